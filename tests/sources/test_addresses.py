"""URLs have one spelling, and only public IP addresses may be contacted."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from co_cli.ground.errors import PageRefusedError, SettingsError
from co_cli.sources.web.addresses import Exceptions, follow, read_url, why_refused

SPELLINGS = {
    "https://example.org": "https://example.org/",
    "  HTTPS://Example.ORG:443/A?b=C#part ": "https://example.org/A?b=C",
    "http://example.org:80/": "http://example.org/",
    "http://example.org:8080/": "http://example.org:8080/",
    "http://example.org./a": "http://example.org/a",
    "https://example.org/a/../b/./c/..": "https://example.org/b/",
    "https://example.org/%7efoo%c3%a4?q=%7E": "https://example.org/~foo%C3%A4?q=~",
    "https://example.org/ä%20b": "https://example.org/%C3%A4%20b",
    "https://example.org/100%": "https://example.org/100%25",
    "https://bücher.example/": "https://xn--bcher-kva.example/",
    "https://faß.example/": "https://xn--fa-hia.example/",
    "http://0x7f.1/": "http://127.0.0.1/",
    "http://2130706433/": "http://127.0.0.1/",
    "http://１２７.0.0.1/": "http://127.0.0.1/",
    "http://[0:0::1]:81/": "http://[::1]:81/",
}
NO_PAGES = """\
example.org|//example.org/|ftp://example.org/|file:///etc/passwd|javascript:alert(1)|data:text/html,hi
gopher://example.org/|http:///path|http://|http://example.org:0/|http://example.org:99999/|http://example.org:x/
http://exa mple.org/|http://example.org/a b|http://example.org\\@evil.example/|http://256.256.256.256/
http://1.2.3.4.5/|http://[::1/|http://[fe80::1%25eth0]/|http://-.-..example/"""
PASSWORDS = """\
https://ines:secret@example.org/|https://ines:se cret@example.org/|https://:secret@example.org/
https://ines:secret/more@example.org/|https://ines:secret@[::1/|ftp://ines:secret@example.org/
https://ines:secret\\@example.org/"""
INSIDE = """
    0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 127.255.255.254 172.16.0.1 172.31.255.255 192.168.0.1 169.254.169.254
    100.100.100.200 168.63.129.16 192.0.0.192 192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1
    255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1
    64:ff9b::10.0.0.1 64:ff9b:1::8.8.8.8 100::1 2001::1 2001:db8::1 2002:7f00:1:: 2002:808:808:: 3fff::1 5f00::1 fc00::1
    fd00:ec2::254 fe80::1 fe80::1%eth0 fec0::1 ff02::1
"""
PUBLIC = "8.8.8.8 93.184.215.14 172.32.0.1 100.128.0.1 2606:4700::1111 ::ffff:8.8.8.8 64:ff9b::8.8.8.8"


def refusal(text: str) -> str:
    try:
        return f"accepted as {read_url(text)}"
    except PageRefusedError as error:
        return f"refused: {error}"


def test_the_spellings_of_a_url_are_one_url() -> None:
    assert {written: read_url(written) for written in SPELLINGS} == SPELLINGS
    assert {meant: read_url(meant) for meant in SPELLINGS.values()} == {meant: meant for meant in SPELLINGS.values()}


def test_what_is_not_the_url_of_a_page_is_refused() -> None:
    listed = NO_PAGES.replace("\n", "|").split("|")
    others = ["", "http://a/\r\nHost: evil", f"https://{'a' * 64}.example/", f"https://example.org/{'a' * 2_000}"]

    assert [text for text in (*listed, *others) if not refusal(text).startswith("refused")] == []


def test_a_password_is_refused_and_never_repeated() -> None:
    said = [refusal(text) for text in PASSWORDS.replace("\n", "|").split("|")]

    assert [line for line in said if not line.startswith("refused") or "cret" in line] == []


@given(st.text(max_size=60))
@example("http://[")
@example("http://a/\ud800")
@example("http://xn--a/")
@example("http://\u0661.1/")
def test_any_text_is_a_url_or_refused(text: str) -> None:
    for candidate in (text, f"http://{text}", f"https://example.org/{text}"):
        try:
            url = read_url(candidate)
        except PageRefusedError:
            continue
        assert read_url(str(url)) == url
        assert str(url).isascii()


def test_a_redirect_may_be_relative_and_obeys_the_same_rules() -> None:
    start = read_url("https://example.org/a/b")
    expected = {
        "/b": "https://example.org/b",
        "c?d": "https://example.org/a/c?d",
        "//other.example/x": "https://other.example/x",
        "http://other.example": "http://other.example/",
    }

    assert {location: follow(start, location) for location in expected} == expected
    for location in ("file:///etc/passwd", "ftp://example.org/", "http://a:b@example.org/", "http://[x"):
        with pytest.raises(PageRefusedError):
            follow(start, location)


def test_only_public_addresses_are_accepted() -> None:
    assert [address for address in INSIDE.split() if not why_refused(address)] == []
    assert [address for address in PUBLIC.split() if why_refused(address)] == []


@given(st.ip_addresses())
@example(ipaddress.ip_address("192.88.99.1"))
def test_whatever_python_considers_not_global_is_refused(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    mapped = getattr(address, "ipv4_mapped", None)
    if not (mapped or address).is_global or address.is_multicast:
        assert why_refused(str(address))


def test_an_exception_for_a_network_covers_only_its_addresses() -> None:
    exceptions = Exceptions.read(["10.1.0.0/16", "[::1]"])

    allowed = [why_refused(address, "wiki", exceptions) for address in ("10.1.2.3", "::ffff:10.1.2.3", "::1")]
    refused = [why_refused(address, "wiki", exceptions) for address in ("10.2.0.1", "127.0.0.1")]

    assert (any(allowed), all(refused)) == (False, True)


def test_an_exception_for_a_name_covers_private_addresses_but_no_metadata() -> None:
    exceptions = Exceptions.read(["Wiki.Example.org."])

    assert why_refused("10.1.2.3", "wiki.example.org", exceptions) is None
    assert why_refused("127.0.0.1", "wiki.example.org", exceptions) is None
    assert why_refused("10.1.2.3", "other.example.org", exceptions)
    for address in ("169.254.169.254", "fd00:ec2::254", "168.63.129.16", "0.0.0.0", "224.0.0.1"):
        assert why_refused(address, "wiki.example.org", exceptions)


def test_an_exception_that_cannot_be_read_is_an_error() -> None:
    for entry in ("*", "*.example.org", "http://example.org", "10.0.0.0/99", "1.2.3", "a b", ":", "a/b"):
        with pytest.raises(SettingsError, match="web_allow"):
            Exceptions.read([entry])
