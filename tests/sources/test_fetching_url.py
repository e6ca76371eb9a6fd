"""An address has one spelling, and what is no page's address is refused."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from co_cli.errors import PageRefusedError
from co_cli.sources.web.addresses import follow, looks_like_url, read_url


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("https://example.org", "https://example.org/"),
        ("  HTTPS://Example.ORG:443/A?b=C#part ", "https://example.org/A?b=C"),
        ("http://example.org:80/", "http://example.org/"),
        ("http://example.org:8080/", "http://example.org:8080/"),
        ("http://example.org./a", "http://example.org/a"),
        ("https://example.org/a/../b/./c/..", "https://example.org/b/"),
        ("https://example.org/%7efoo%c3%a4?q=%7E", "https://example.org/~foo%C3%A4?q=~"),
        ("https://example.org/ä b".replace(" ", "%20"), "https://example.org/%C3%A4%20b"),
        ("https://example.org/100%", "https://example.org/100%25"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://faß.example/", "https://xn--fa-hia.example/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://１２７.0.0.1/", "http://127.0.0.1/"),
        ("http://[0:0::1]:81/", "http://[::1]:81/"),
    ],
)
def test_the_spellings_of_an_address_are_one_address(written: str, meant: str) -> None:
    assert str(read_url(written)) == meant
    assert read_url(meant) == read_url(written)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.org",
        "//example.org/",
        "ftp://example.org/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/html,hi",
        "gopher://example.org/",
        "http:///path",
        "http://",
        "http://example.org:0/",
        "http://example.org:99999/",
        "http://example.org:x/",
        "http://exa mple.org/",
        "http://example.org/a b",
        "http://example.org/\r\nHost: evil",
        "http://example.org\\@evil.example/",
        "http://256.256.256.256/",
        "http://1.2.3.4.5/",
        "http://[::1/",
        "http://[fe80::1%25eth0]/",
        "http://-.-..example/",
        "https://" + "a" * 64 + ".example/",
        "https://example.org/" + "a" * 2_000,
    ],
)
def test_what_is_no_address_of_a_page_is_refused(text: str) -> None:
    with pytest.raises(PageRefusedError):
        read_url(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://ines:secret@example.org/",
        "https://ines:se cret@example.org/",
        "https://:secret@example.org/",
        "https://ines:secret/more@example.org/",
        "https://ines:secret@[::1/",
        "ftp://ines:secret@example.org/",
        "https://ines:secret\\@example.org/",
    ],
)
def test_a_password_is_refused_and_never_repeated(text: str) -> None:
    with pytest.raises(PageRefusedError) as caught:
        read_url(text)

    assert "cret" not in str(caught.value)


@given(st.text(max_size=60))
@example("http://[")
@example("http://a/\ud800")
@example("http://xn--a/")
@example("http://\u0661.1/")
def test_any_text_is_an_address_or_refused(text: str) -> None:
    for candidate in (text, f"http://{text}", f"https://example.org/{text}"):
        try:
            url = read_url(candidate)
        except PageRefusedError:
            continue
        assert read_url(str(url)) == url
        assert str(url).isascii()


@pytest.mark.parametrize(
    ("location", "meant"),
    [
        ("/b", "https://example.org/b"),
        ("c?d", "https://example.org/a/c?d"),
        ("//other.example/x", "https://other.example/x"),
        ("http://other.example", "http://other.example/"),
    ],
)
def test_a_redirect_may_be_relative(location: str, meant: str) -> None:
    assert str(follow(read_url("https://example.org/a/b"), location)) == meant


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "ftp://example.org/", "http://a:b@example.org/", "http://[x"]
)
def test_a_redirect_obeys_the_same_rules(location: str) -> None:
    with pytest.raises(PageRefusedError):
        follow(read_url("https://example.org/a/b"), location)


def test_a_path_is_not_taken_for_an_address() -> None:
    assert looks_like_url("https://example.org")
    assert looks_like_url("ftp://example.org")  # so that it is refused as an address, not missed as a file
    assert not looks_like_url("notes/a.md")
    assert not looks_like_url(r"C:\notes")
