"""A web address as a person typed it, or a server sent it, into the one spelling that names the page.

Only http and https. An address with a user name or password, a control character or a backslash is refused, and a
refused password is never repeated in a message.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import NamedTuple
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from co_cli.errors import PageRefusedError
from co_cli.typed import whole

PORTS = {"http": 80, "https": 443}
LONGEST = 2_000
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
NUMERIC_LABEL = re.compile(r"(?:0[xX][0-9A-Fa-f]*|[0-9]+)\Z")
HOST = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
FORBIDDEN = re.compile(r"[\x00-\x20\x7f\\]")


class PageUrl(NamedTuple):
    """A page's address, taken apart."""

    scheme: str
    host: str
    """As DNS and TLS want it: lower case, ASCII, without brackets."""
    port: int
    target: str
    """Path and query, as they stand in a request."""

    @property
    def authority(self) -> str:
        """As it stands in the `Host` header: the port only where it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def looks_like_url(text: str) -> bool:
    """Is it meant as an address, of whatever kind, and not as a path?"""
    return SCHEME.match(text) is not None


def read_url(text: str) -> PageUrl:
    """The address in its one spelling; the part behind `#` is dropped, for it names no other page."""
    text = whole(text.strip())
    shown = without_credentials(text)
    if len(text) > LONGEST:
        raise PageRefusedError(f"{shown[:60]}... is {len(text):,} characters long; at most {LONGEST:,} are read")
    if FORBIDDEN.search(text):
        raise PageRefusedError(
            f"{shown!r} holds a blank, a backslash or a control character; write it as %20, %5C, ..."
        )
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        # a password may hold anything: what cannot be taken apart, and may have one, is not shown
        raise PageRefusedError(f"{'it' if '@' in text else shown}: the host or port cannot be read") from None
    scheme = parts.scheme.lower()
    if scheme not in PORTS:
        raise PageRefusedError(f"{shown}: only http:// and https:// pages can be fetched")
    if "@" in parts.netloc:
        raise PageRefusedError(f"{shown} holds a user name or password; pages are fetched without credentials")
    if port == 0:
        raise PageRefusedError(f"{shown}: 0 is no port")
    return PageUrl(scheme, _host(parts.hostname or "", shown), port or PORTS[scheme], _target(parts))


def follow(url: PageUrl, location: str) -> PageUrl:
    """Where a redirect leads, by the same rules as any other address."""
    try:
        return read_url(urljoin(str(url), location.strip().replace(" ", "%20")))
    except ValueError:
        raise PageRefusedError(f"{url} redirects to an address that cannot be read") from None


def without_credentials(text: str) -> str:
    """For messages and logs."""
    return re.sub(r"^([A-Za-z][A-Za-z0-9+.-]*:)?(//)?[^/?#]*@", r"\1\2", text)


def _host(host: str, shown: str) -> str:
    host = host.rstrip(".")
    if not host:
        raise PageRefusedError(f"{shown} names no host")
    if ":" in host:
        try:
            return str(ipaddress.IPv6Address(host)) if "%" not in host else _no_host(shown)
        except ValueError:
            return _no_host(shown)
    import idna  # names in other scripts are rare, but the standard library's codec reads them by rules of 2003

    try:
        name = host.lower() if host.isascii() else idna.encode(host, uts46=True).decode("ascii")
        if NUMERIC_LABEL.match(name.rsplit(".", 1)[-1]):
            # 2130706433, 0x7f.1 and 0177.0.0.1 are all spellings of 127.0.0.1, to every system library
            return socket.inet_ntoa(socket.inet_aton(name))
    except (idna.IDNAError, OSError):
        return _no_host(shown)
    return name if HOST.fullmatch(name) and len(name) < 254 else _no_host(shown)


def _no_host(shown: str) -> str:
    raise PageRefusedError(f"{shown}: the host cannot be read")


def _target(parts: SplitResult) -> str:
    path = _dotless(quote(_decoded(parts.path), safe="/:@!$&'()*+,;=~%")) or "/"
    query = quote(_decoded(parts.query), safe="/:@!$&'()*+,;=~%?")
    return f"{path}?{query}" if query else path


def _decoded(text: str) -> str:
    """With `%7E` as `~` and `%c3` as `%C3`: both name the same thing."""

    def one(found: re.Match[str]) -> str:
        letter = chr(int(found[1], 16))
        return letter if UNRESERVED.match(letter) else found[0].upper()

    return re.sub(r"%([0-9A-Fa-f]{2})", one, re.sub(r"%(?![0-9A-Fa-f]{2})", "%25", text))


def _dotless(path: str) -> str:
    """Without `.` and `..`, which a client takes out before it asks."""
    kept: list[str] = []
    parts = path.split("/")
    for part in parts:
        if part == "..":
            if len(kept) > 1:
                kept.pop()
        elif part != ".":
            kept.append(part)
    if parts[-1] in (".", "..") and (not kept or kept[-1]):
        kept.append("")
    joined = "/".join(kept)
    return joined if joined.startswith("/") else "/" + joined
