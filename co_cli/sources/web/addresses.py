"""Normalise the URL of a web page, and decide which IP addresses may be contacted.

Only http and https. A URL with a user name or password, a control character or a backslash is refused, and a password
is never repeated in a message. The IP address that a connection goes to is checked, not the name it came from: only
public addresses, and those that the setting `web_allow` lists.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

import httpx2

from co_cli.ground.errors import PageRefusedError
from co_cli.ground.settings import HOST, NUMERIC_LABEL, read_host
from co_cli.ground.values import to_utf8

LONGEST_URL = 2_000
FORBIDDEN = re.compile(r"[\x00-\x20\x7f\\]")

OWN, PRIVATE = "this machine's own address", "a private address"
"""An exception for a host name covers these two kinds. The other kinds need an exception for the address itself."""
KINDS = {
    "a cloud's metadata address": "168.63.129.16 100.100.100.200 192.0.0.192 fd00:ec2::254 fd20:ce::254",
    OWN: "127.0.0.0/8 ::1",
    PRIVATE: "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7 fec0::/10",
    "a link-local address, where clouds keep their metadata": "169.254.0.0/16 fe80::/10",
    "a reserved address": "0.0.0.0/8 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 "
    "203.0.113.0/24 224.0.0.0/3 2001::/23 2001:db8::/32 2002::/16 3ffe::/16 3fff::/20",
}
NETWORKS = [(ipaddress.ip_network(network), kind) for kind, listed in KINDS.items() for network in listed.split()]
PUBLIC_IPV6 = ipaddress.IPv6Network("2000::/3")
IPV4_IN_IPV6 = tuple(map(ipaddress.IPv6Network, ("::ffff:0:0/96", "64:ff9b::/96")))
"""IPv4-mapped addresses, and NAT64, through which networks without IPv4 reach every IPv4 site."""


class Exceptions(NamedTuple):
    """The parsed setting `web_allow`."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()

    @classmethod
    def read(cls, entries: Sequence[str], origin: str = "web_allow") -> Exceptions:
        """Names such as `wiki.example.org`, addresses such as `127.0.0.1`, networks such as `10.1.0.0/16`."""
        found = [read_host(entry, origin) for entry in entries]
        hosts = frozenset(entry for entry in found if isinstance(entry, str))
        return cls(hosts, tuple(entry for entry in found if not isinstance(entry, str)))


def why_refused(address: str, host: str = "", exceptions: Exceptions | None = None) -> str | None:
    """What kind of address it is, if no page may be fetched from it. None if one may be."""
    exceptions = exceptions or Exceptions()
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address) and any(ip in network for network in IPV4_IN_IPV6):
        ip = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
    if any(ip in network for network in exceptions.networks):
        return None
    kind = next((kind for network, kind in NETWORKS if ip in network), None)
    if kind in (OWN, PRIVATE) and host.lower() in exceptions.hosts:
        return None
    if kind is None and ip.version == 6 and ip not in PUBLIC_IPV6:
        return "a reserved address"
    return kind


def read_url(text: str) -> str:
    """The URL in its one spelling, without the part after `#`. Raises PageRefusedError."""
    text = to_utf8(text.strip())
    shown = without_credentials(text)
    if len(text) > LONGEST_URL:
        raise PageRefusedError(f"{shown[:60]}... is {len(text):,} characters long; the limit is {LONGEST_URL:,}")
    if FORBIDDEN.search(text):
        raise PageRefusedError(f"{shown!r} has a blank, a backslash or a control character; write %20, %5C, ...")
    try:
        parts = urlsplit(text)
        scheme, port, name = parts.scheme.lower(), parts.port, parts.hostname or ""
    except ValueError:
        # a password may contain anything, so a URL that cannot be parsed and may have one is not shown
        raise PageRefusedError(f"{'it' if '@' in text else shown}: the host or port cannot be read") from None
    if scheme not in ("http", "https"):
        raise PageRefusedError(f"{shown}: only http:// and https:// pages can be fetched")
    if "@" in parts.netloc:
        raise PageRefusedError(f"{shown} has a user name or password; pages are fetched without credentials")
    try:
        if port == 0:
            raise ValueError
        path = re.sub(r"(/\.\.?)\Z", r"\1/", _normal(parts.path)) or "/"
        query = _normal(parts.query).encode() or None
        return str(httpx2.URL(scheme=scheme, host=_host(name), port=port, path=path, query=query))
    except (ValueError, OSError, httpx2.InvalidURL):
        raise PageRefusedError(f"{shown}: the host or port cannot be read") from None


def follow(url: str, location: str) -> str:
    """Where a redirect leads. The same rules apply as to any other URL."""
    try:
        return read_url(urljoin(url, location.strip().replace(" ", "%20")))
    except ValueError:
        raise PageRefusedError(f"{url} redirects to an address that cannot be read") from None


def without_credentials(text: str) -> str:
    """For messages and logs."""
    return re.sub(r"^([A-Za-z][A-Za-z0-9+.-]*:)?(//)?[^/?#]*@", r"\1\2", text)


def _host(name: str) -> str:
    """As DNS and TLS need it: ASCII, lower case, addresses in their usual form. Raises ValueError or OSError."""
    if ":" in name and "%" not in name:
        return str(ipaddress.IPv6Address(name))
    name = unicodedata.normalize("NFKC", name).rstrip(".").lower()
    if not name.isascii():
        name = httpx2.URL(scheme="http", host=name).raw_host.decode().rstrip(".")
    if NUMERIC_LABEL.match(name.rsplit(".", 1)[-1]):
        return socket.inet_ntoa(socket.inet_aton(name))  # 2130706433, 0x7f.1 and 0177.0.0.1 all mean 127.0.0.1
    if not HOST.fullmatch(name):
        raise ValueError
    return name


def _normal(text: str) -> str:
    """With `%7E` as `~`, `%c3` as `%C3` and a lone `%` as `%25`: one spelling for one page."""

    def escape(found: re.Match[str]) -> str:
        letter = chr(int(found[1] or "25", 16))
        return letter if re.match(r"[A-Za-z0-9._~-]", letter) else f"%{found[1] or '25'}".upper()

    return re.sub(r"%([0-9A-Fa-f]{2})?", escape, text)
