"""What a bug report needs: versions, the machine and what is installed; never a path, a secret or a text of a note."""

from __future__ import annotations

import locale
import platform
import re
import sys
from importlib import metadata
from typing import TYPE_CHECKING

from co_cli.ground.settings import SETTINGS
from co_cli.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from co_cli.ground.settings import Settings
    from co_cli.ground.summaries import Status
    from co_cli.upkeep.doctor import Finding

PACKAGE = "co-cli"
SAFE_KINDS = ("choice", "number", "share", "bytes", "count")
"""Settings whose values name no path, address or person."""


def about_program() -> list[str]:
    """Versions of co, Python, the system and the packages that co uses."""
    encodings = f"{locale.getencoding()}, terminal {getattr(sys.stdout, 'encoding', None)}"
    return [
        f"co {__version__}",
        f"{platform.python_implementation()} {platform.python_version()} on {sys.platform}, {platform.machine()}",
        f"{platform.system()} {platform.release()}, {encodings}",
        *_packages(),
    ]


def bug_report(findings: Iterable[Finding], settings: Settings, status: Status) -> str:
    """The whole report as Markdown, to paste into an issue."""
    changed = [
        f"{setting.name} = {getattr(settings, setting.name)}"
        if setting.kind in SAFE_KINDS
        else f"{setting.name} is set"
        for setting in SETTINGS
        if settings.set_by[setting.name] not in ("default", "project")  # a project's vault, which nobody set
    ]
    parts = {
        "Program": about_program(),
        "Vault": _numbers(status),
        "Settings that are not the default": changed or ["none"],
        "Checks": [f"{finding.level}  {finding.check}{' (fixed)' if finding.fixed else ''}" for finding in findings],
    }
    return "\n\n".join(f"### {title}\n\n```\n" + "\n".join(lines) + "\n```" for title, lines in parts.items())


def _numbers(status: Status) -> list[str]:
    return [
        f"notes: {', '.join(f'{count} of {source}' for source, count in status.notes.items()) or 'none'}",
        f"sources besides the vault: {len(status.linked)}, with {sum(status.linked.values())} notes",
        f"passages: {status.passages}, without a vector {status.unembedded}, vectors of {status.space}",
        f"index: {status.backend}, {status.search_db_bytes} bytes, updated {status.synced_at}",
        f"skipped: {len(status.skipped)}, with problems {len(status.problems)}, not read {len(status.unread)}",
    ]


def _packages() -> Iterator[str]:
    """The version of each requirement; those of extras by the name of the extra."""
    found: dict[str, list[str]] = {}
    for requirement in metadata.requires(PACKAGE) or ():
        found.setdefault(_extra_of(requirement), []).extend(map(_installed, _needed(requirement)))
    for extra, packages in found.items():
        yield f"{f'[{extra}]' if extra else 'packages'}: {', '.join(sorted(packages))}"


def _needed(requirement: str) -> list[str]:
    """The package that a requirement names, and what its extras add: without that, the package alone says nothing."""
    named = re.match(r"([\w.-]+)(?:\[([\w,-]+)\])?", requirement)
    name, extras = named.groups() if named else ("", None)
    if extras is None:
        return [name]
    try:
        more = [other for other in metadata.requires(name) or () if _extra_of(other) in extras.split(",")]
    except metadata.PackageNotFoundError:  # so its extras are not known
        return [name]
    return [name, *(package for other in more for package in _needed(other))]


def _extra_of(requirement: str) -> str:
    extra = re.search(r"extra == ['\"]([\w-]+)", requirement)
    return extra[1] if extra else ""


def _installed(name: str) -> str:
    try:
        return f"{name} {metadata.version(name)}"
    except metadata.PackageNotFoundError:
        return f"{name} missing"
