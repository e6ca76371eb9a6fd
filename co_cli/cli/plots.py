"""Numbers as a picture in a terminal, in plain characters: columns that fit into 80 places."""

from __future__ import annotations

import math
from collections.abc import Sequence

HEIGHT = 6
MARGIN = 9
"""Places left of the columns, for the scale."""


def plot(values: Sequence[float | None], width: int, labels: tuple[str, str], unit: str = "") -> list[str]:
    """A column for each value, as wide as there is room; neighbours share one if there are too many, the largest wins.

    `labels` stand under the first and the last.
    """
    room = max(width - MARGIN - 2, 10)
    together = max(1, math.ceil(len(values) / room))
    joined = [
        max((value or 0.0 for value in values[place : place + together]), default=0.0)
        for place in range(0, len(values), together)
    ]
    each = max(1, min(4, room // max(len(joined), 1)))
    top = nice(max(joined, default=0.0))
    lines: list[str] = []
    for row in range(HEIGHT, 0, -1):
        scale = _number(top * row / HEIGHT, unit) if row in (HEIGHT, HEIGHT // 2) else ""
        columns = "".join(_cell(value / top * HEIGHT if top else 0.0, row) * each for value in joined)
        lines.append(f"{scale:>{MARGIN}} |{columns}".rstrip())
    line = len(joined) * each
    lines.append(f"{'0':>{MARGIN}} +{'-' * line}")
    gap = max(line - len(labels[0]) - len(labels[1]), 1)
    lines.append(f"{'':>{MARGIN}}  {labels[0]}{' ' * gap}{labels[1]}")
    return lines


def nice(number: float) -> float:
    """The next of 1, 2, 5, 10, 20, ... that is no smaller: a scale that people can read."""
    if number <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(number))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= number * (1 - 1e-9))


def _cell(height: float, row: int) -> str:
    """What a column of this height shows in this row; the least value is still a dot."""
    if height >= row - 0.25:
        return "#"
    if height >= row - 0.75:
        return ":"
    return "." if height > row - 1 else " "


def _number(value: float, unit: str) -> str:
    text = f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"
    return f"{text}{unit}"
