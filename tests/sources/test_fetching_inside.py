"""No page is fetched from a private address: not by a name, an odd spelling, a redirect or changing DNS.

A listener waits where each of them would lead, and every connection of this process is recorded.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest

from co_cli.ground.errors import PageError, PageRefusedError
from co_cli.sources.web.addresses import Exceptions, read_url
from co_cli.sources.web.fetch import Fetcher
from tests.sources.web_server import Listener, Names, WebServer, Wire

SERVER_ONLY = Exceptions.read(["127.0.0.1"])


THIS_MACHINE = """
    127.0.0.1 127.0.0.1. 127.1 2130706433 0x7f000001 0x7f.0.0.1 017700000001 0177.0.0.1 １２７.0.0.1 ①②⑦.0.0.1 0.0.0.0 0
    [::1] [0:0:0:0:0:0:0:1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [64:ff9b::7f00:1] [2002:7f00:1::]
    localhost LOCALHOST
"""
INSIDE = "127.0.0.1 10.0.0.1 169.254.169.254 fd00:ec2::254 192.168.1.1 224.0.0.1 0.0.0.0 fe80::1"


def test_no_spelling_of_this_machine_is_asked(listener: Listener, connections: list[str]) -> None:
    for host in THIS_MACHINE.split():
        with pytest.raises(PageRefusedError, match="only public addresses are fetched"):
            Fetcher().fetch(read_url(f"http://{host}:{listener.port}/"))

    assert connections == []
    assert listener.accepted == 0


def test_no_name_leads_inside_even_if_its_other_addresses_are_public(
    listener: Listener, connections: list[str]
) -> None:
    for address in INSIDE.split():
        for answer in ([address], ["93.184.215.14", address]):
            with pytest.raises(PageRefusedError, match="innocent.example is " + address.replace(".", r"\.")):
                Fetcher(resolver=Names(innocent_example=[answer])).fetch(
                    read_url(f"http://innocent.example:{listener.port}/")
                )

    assert connections == []
    assert listener.accepted == 0


TARGETS = ("http://inside.example:{port}/", "http://[::1]:{port}/", "//127.2:{port}/", "http://0x7f000002:{port}/x")


def test_no_redirect_leads_inside(server: WebServer, connections: list[str]) -> None:
    with _second() as listener:
        for target in TARGETS:
            for hop, location in enumerate((target.format(port=listener.port), "/1", "/2"), start=1):
                server.redirect(f"/{hop}", location)
            names = Names(inside_example=[["127.0.0.2"]])

            with pytest.raises(PageRefusedError, match=r"leads to .*: .*only public addresses are fetched"):
                Fetcher(exceptions=SERVER_ONLY, resolver=names).fetch(read_url(f"{server.url}/3"))

        assert len(server.asked) == 3 * len(TARGETS)
        assert set(connections) == {"127.0.0.1"}
        assert listener.accepted == 0


def test_an_answer_of_dns_that_changes_after_the_check_changes_nothing(connections: list[str]) -> None:
    with _second() as inside:
        server = WebServer(port=inside.port)
        server.page("/", "Oaks")
        names = Names(changing_example=[["127.0.0.1"], ["127.0.0.2"]])
        fetcher = Fetcher(exceptions=SERVER_ONLY, resolver=names)
        url = read_url(f"http://changing.example:{inside.port}/")

        found = fetcher.fetch(url)
        assert found is not None
        assert found.body == b"Oaks"
        assert server.asked[0].headers["host"] == f"changing.example:{inside.port}"
        assert names.questions == ["changing.example"]

        with pytest.raises(PageRefusedError, match=r"127\.0\.0\.2"):
            fetcher.fetch(url)
        server.close()

        assert connections == ["127.0.0.1"]
        assert inside.accepted == 0


def test_an_exception_allows_a_name_with_a_private_address(server: WebServer) -> None:
    server.page("/", "Oaks")
    url = read_url(f"http://wiki.example:{server.port}/")
    names = Names(wiki_example=[["127.0.0.1"]])

    assert Fetcher(exceptions=Exceptions.read(["wiki.example"]), resolver=names).fetch(url) is not None
    with pytest.raises(PageRefusedError):
        Fetcher(exceptions=Exceptions.read(["docs.example"]), resolver=names).fetch(url)


# -- TLS ------------------------------------------------------------------------------------------------------------


class SecureServer(WebServer):
    """Speaks TLS, and remembers the name it was called by."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.context, self.called = context, list[str | None]()
        context.sni_callback = lambda _, name, __: self.called.append(name)
        super().__init__()

    def answer(self, wire: Wire) -> None:
        with self.context.wrap_socket(wire, server_side=True) as secure:
            super().answer(secure)


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[tuple[SecureServer, ssl.SSLContext]]:
    """A server with a certificate for pages.example, and a client's context that knows who signed it."""
    file = tmp_path / "pages.pem"
    file.write_bytes(certificate("pages.example"))
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(file)
    server = SecureServer(ours)
    yield server, ssl.create_default_context(cafile=str(file))
    server.close()


def test_the_certificate_is_that_of_the_name_though_the_address_is_pinned(
    secure: tuple[SecureServer, ssl.SSLContext],
) -> None:
    server, trusting = secure
    server.page("/", "Oaks")
    names = Names(pages_example=[["127.0.0.1"]], other_example=[["127.0.0.1"]])
    fetcher = Fetcher(exceptions=SERVER_ONLY, resolver=names, tls=trusting)

    found = fetcher.fetch(read_url(f"https://pages.example:{server.port}/"))
    with pytest.raises(PageError, match="certificate is not accepted"):
        fetcher.fetch(read_url(f"https://other.example:{server.port}/"))

    assert found is not None
    assert found.body == b"Oaks"
    assert server.called == ["pages.example", "other.example"]
    assert len(server.asked) == 1


def _second() -> _Closing:
    try:
        return _Closing("127.0.0.2")
    except OSError:
        pytest.skip("this system has only one loopback address")


class _Closing(Listener):
    def __enter__(self) -> _Closing:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def certificate(name: str, address: str = "10.0.0.1") -> bytes:
    x509 = pytest.importorskip("cryptography.x509", reason="needs something to make certificates with")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(ip_address(address))]), False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made.public_bytes(serialization.Encoding.PEM) + secret
