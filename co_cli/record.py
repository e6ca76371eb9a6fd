"""Frozen records for the values that a cold search passes around: `typing.NamedTuple`, without importing typing.

To a type checker a Record *is* a NamedTuple, and it behaves like one. Importing typing costs half a Python start, and
each NamedTuple class a third of a millisecond; `dataclasses` would cost a whole start. Modules on the path of a cold
`co search` therefore use this, and import typing only for the type checker.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as Record  # pyright: ignore[reportUnusedImport]
else:
    from _operator import itemgetter  # `operator` itself is Python code that nobody else here needs

    class _RecordType(type):
        """Makes the annotated names of a class body the fields of a tuple."""

        def __new__(cls, name, bases, body):
            if not bases:
                return super().__new__(cls, name, (tuple,), body)
            fields = tuple(body.get("__annotations__", ()))
            defaults = {field: body.pop(field) for field in fields if field in body}
            required = len(fields) - len(defaults)
            body.update({field: property(itemgetter(place)) for place, field in enumerate(fields)})
            body.update(_fields=fields, _field_defaults=defaults, __slots__=(), __match_args__=fields)
            made = super().__new__(cls, name, bases, body)
            if tuple(defaults) != fields[required:]:
                raise TypeError(f"{name}: a field without a default follows one that has it")
            return made

    class Record(metaclass=_RecordType):
        __slots__ = ()

        def __new__(cls, *values, **named):
            fields = cls._fields
            if len(values) > len(fields):
                raise TypeError(f"{cls.__name__} takes {len(fields)} values, not {len(values)}")
            if len(values) < len(fields):
                try:
                    rest = [
                        named.pop(field) if field in named else cls._field_defaults[field]
                        for field in fields[len(values) :]
                    ]
                except KeyError as missing:
                    raise TypeError(f"{cls.__name__} needs {missing}") from None
                values = (*values, *rest)
            if named:
                raise TypeError(f"{cls.__name__} has no further field {', '.join(named)}")
            return tuple.__new__(cls, values)

        @classmethod
        def _make(cls, values):
            return cls(*values)

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def _replace(self, **changes):
            return type(self)(**{**self._asdict(), **changes})

        def __repr__(self):
            shown = ", ".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
            return f"{type(self).__name__}({shown})"

        def __getnewargs__(self):
            return tuple(self)
