"""Which addresses a page may be fetched from: those of the public internet, and the exceptions a person lists.

Judged is the address that a connection is made to, not the name it came from. An address that stands for another one
(IPv4 inside IPv6) is judged by what it stands for; tunnels, and whatever is not known to be public, are refused.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import NamedTuple

from co_cli.errors import SettingsError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

INSIDE = "inside"
"""Addresses of this machine and of private networks: an exception for a name covers them."""
NEVER = "never"
"""Metadata services and what is no host at all: only an exception for the very address covers them."""

SPECIAL: tuple[tuple[str, str, str], ...] = (
    ("168.63.129.16/32", NEVER, "a cloud's metadata address"),
    ("100.100.100.200/32", NEVER, "a cloud's metadata address"),
    ("192.0.0.192/32", NEVER, "a cloud's metadata address"),
    ("fd00:ec2::254/128", NEVER, "a cloud's metadata address"),
    ("fd20:ce::254/128", NEVER, "a cloud's metadata address"),
    ("127.0.0.0/8", INSIDE, "this machine's own address"),
    ("::1/128", INSIDE, "this machine's own address"),
    ("10.0.0.0/8", INSIDE, "a private address"),
    ("172.16.0.0/12", INSIDE, "a private address"),
    ("192.168.0.0/16", INSIDE, "a private address"),
    ("100.64.0.0/10", INSIDE, "a private address"),
    ("fc00::/7", INSIDE, "a private address"),
    ("fec0::/10", INSIDE, "a private address"),
    ("0.0.0.0/8", NEVER, "an address of no host"),
    ("::/128", NEVER, "an address of no host"),
    ("169.254.0.0/16", NEVER, "a link-local address, where clouds keep their metadata"),
    ("fe80::/10", NEVER, "a link-local address"),
    ("192.0.0.0/24", NEVER, "a reserved address"),
    ("192.0.2.0/24", NEVER, "an address for documentation"),
    ("192.88.99.0/24", NEVER, "a reserved address"),
    ("198.18.0.0/15", NEVER, "an address for benchmarks"),
    ("198.51.100.0/24", NEVER, "an address for documentation"),
    ("203.0.113.0/24", NEVER, "an address for documentation"),
    ("224.0.0.0/4", NEVER, "a multicast address"),
    ("240.0.0.0/4", NEVER, "a reserved address"),
    ("ff00::/8", NEVER, "a multicast address"),
    ("2001::/23", NEVER, "a reserved address"),
    ("2001:db8::/32", NEVER, "an address for documentation"),
    ("2002::/16", NEVER, "an address of a tunnel"),
    ("3ffe::/16", NEVER, "a reserved address"),
    ("3fff::/20", NEVER, "an address for documentation"),
)
HOST_NAME = re.compile(r"(?:[a-z0-9_-]+\.)*[a-z0-9_-]*[a-z_-][a-z0-9_-]*")
"""As DNS has it: the last part is no number. Names in other scripts are given in their `xn--` form."""
TABLE = tuple((ipaddress.ip_network(network), level, words) for network, level, words in SPECIAL)
PUBLIC_IPV6 = ipaddress.IPv6Network("2000::/3")
STANDS_FOR_IPV4 = tuple(map(ipaddress.IPv6Network, ("::ffff:0:0/96", "64:ff9b::/96")))
"""IPv4-mapped addresses, and those of NAT64, through which networks without IPv4 reach every IPv4 site."""


class Exceptions(NamedTuple):
    """What the setting `web_allow` lists, taken apart."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def read(cls, entries: Sequence[str], origin: str = "web_allow") -> Exceptions:
        """Names such as `wiki.example.org`, addresses such as `127.0.0.1`, networks such as `10.1.0.0/16`."""
        hosts: set[str] = set()
        networks: list[Network] = []
        for entry in entries:
            text = entry.strip().strip("[]").lower().rstrip(".")
            try:
                networks.append(ipaddress.ip_network(text, strict=False))
            except ValueError:
                if not HOST_NAME.fullmatch(text):
                    raise SettingsError(
                        f"{origin}: {entry!r} is neither a host's name nor an address or network such as 10.1.0.0/16"
                    ) from None
                hosts.add(text)
        return cls(frozenset(hosts), tuple(networks))


def why_refused(address: str, host: str = "", exceptions: Exceptions | None = None) -> str | None:
    """What kind of address it is, if no page is fetched from there; None if one may be."""
    exceptions = exceptions or Exceptions()
    judged = _meant(ipaddress.ip_address(address))
    if any(judged.version == network.version and judged in network for network in exceptions.networks):
        return None
    level, words = _kind(judged)
    if level == INSIDE and host.lower() in exceptions.hosts:
        return None
    return words if level else None


def _meant(address: Address) -> Address:
    """The address that this one stands for."""
    if isinstance(address, ipaddress.IPv6Address) and any(address in network for network in STANDS_FOR_IPV4):
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def _kind(address: Address) -> tuple[str, str]:
    for network, level, words in TABLE:
        if address.version == network.version and address in network:
            return level, words
    if isinstance(address, ipaddress.IPv6Address) and address not in PUBLIC_IPV6:
        return NEVER, "a reserved address"
    return "", ""
