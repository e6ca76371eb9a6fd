"""Which addresses are public enough to be asked for a page."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from co_cli.errors import SettingsError
from co_cli.sources.web.addresses import Exceptions, why_refused

INSIDE = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "169.254.169.254",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::8.8.8.8",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
]
PUBLIC = [
    "8.8.8.8",
    "93.184.215.14",
    "172.32.0.1",
    "100.128.0.1",
    "2606:4700::1111",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
]


@pytest.mark.parametrize("address", INSIDE)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert why_refused(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_not_refused(address: str) -> None:
    assert why_refused(address) is None


@given(st.ip_addresses())
@example(ipaddress.ip_address("192.88.99.1"))
def test_whatever_python_holds_for_not_global_is_refused(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    mapped = getattr(address, "ipv4_mapped", None)
    if not (mapped or address).is_global or address.is_multicast:
        assert why_refused(str(address))


def test_an_exception_for_a_network_covers_its_addresses_only() -> None:
    exceptions = Exceptions.read(["10.1.0.0/16", "[::1]"])

    assert why_refused("10.1.2.3", "wiki", exceptions) is None
    assert why_refused("::ffff:10.1.2.3", "wiki", exceptions) is None
    assert why_refused("::1", "wiki", exceptions) is None
    assert why_refused("10.2.0.1", "wiki", exceptions)
    assert why_refused("127.0.0.1", "wiki", exceptions)


def test_an_exception_for_a_name_covers_private_addresses_and_no_metadata() -> None:
    exceptions = Exceptions.read(["Wiki.Example.org."])

    assert why_refused("10.1.2.3", "wiki.example.org", exceptions) is None
    assert why_refused("127.0.0.1", "wiki.example.org", exceptions) is None
    assert why_refused("10.1.2.3", "other.example.org", exceptions)
    for address in ("169.254.169.254", "fd00:ec2::254", "168.63.129.16", "0.0.0.0", "224.0.0.1"):
        assert why_refused(address, "wiki.example.org", exceptions)


@pytest.mark.parametrize(
    "entry", ["*", "*.example.org", "http://example.org", "10.0.0.0/99", "1.2.3", "a b", ":", "a/b"]
)
def test_an_exception_that_cannot_be_read_is_refused(entry: str) -> None:
    with pytest.raises(SettingsError, match="web_allow"):
        Exceptions.read([entry])
