"""Nothing that goes to this machine goes through a proxy; what does is said; a netrc is not read."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from model_server import model_server, says

from prefixguard.errors import ConfigError, EndpointError
from prefixguard.escalate import AsyncClient, Endpoint, Reply
from prefixguard.escalate.endpoint import is_loopback, proxy_for

NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NETRC")
MESSAGES = [{"role": "user", "content": "the text of a run"}]


@pytest.fixture
def got(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, dict[str, str]]]]:
    """A proxy on loopback that the environment names; what it gets: lines and headers of requests."""
    received: list[tuple[str, dict[str, str]]] = []

    class Proxy(BaseHTTPRequestHandler):
        def answer(self) -> None:
            received.append((self.requestline, dict(self.headers)))
            self.send_error(502)

        do_POST = do_GET = do_CONNECT = answer

        def log_message(self, *_: object) -> None:
            """Nothing is written."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name in NAMES[:3]:
        monkeypatch.setenv(name, f"http://ann:swordfish@127.0.0.1:{server.server_port}")
    yield received
    server.shutdown()
    server.server_close()


def asked(endpoint: Endpoint) -> Reply:
    async def main() -> Reply:
        client = AsyncClient(endpoint)
        try:
            return await client.ask(MESSAGES)
        finally:
            await client.aclose()

    return asyncio.run(main())


def test_a_proxy_gets_nothing_of_what_goes_to_this_machine(got: list[tuple[str, dict[str, str]]]) -> None:
    with model_server(says("hello")) as server:
        for host in ("127.0.0.1", "localhost"):
            endpoint = Endpoint("m", server.url.replace("127.0.0.1", host), timeout=10.0, max_retries=0)
            assert asked(endpoint).text == "hello" and endpoint.proxy is None and "proxy" not in endpoint.shown
    assert got == []


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_another_endpoint_is_asked_through_it_and_that_is_said(
    got: list[tuple[str, dict[str, str]]], scheme: str
) -> None:
    endpoint = Endpoint("m", f"{scheme}://models.example.org/v1", timeout=10.0, max_retries=0)
    with pytest.raises(EndpointError) as met:
        asked(endpoint)
    assert len(got) == 1 and "models.example.org" in got[0][0]
    assert f"(through the proxy {endpoint.proxy})" in str(met.value) and "swordfish" not in str(met.value)
    assert endpoint.proxy is not None and endpoint.proxy.startswith("127.0.0.1:")


def test_credentials_of_a_netrc_are_not_sent(
    got: list[tuple[str, dict[str, str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login ann password swordfish")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HOME", str(tmp_path))
    with model_server(says("hello")) as server:
        asked(Endpoint("m", server.url, timeout=10.0, max_retries=0))
        assert [
            {name.lower(): value for name, value in headers.items()}["authorization"] for headers in server.headers
        ] == ["Bearer none"]


@pytest.mark.parametrize(
    ("no_proxy", "passes"), [("models.example.org", True), (".example.org", True), ("*", True), ("else.org", False)]
)
def test_no_proxy_holds(got: object, monkeypatch: pytest.MonkeyPatch, no_proxy: str, passes: bool) -> None:
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert (proxy_for("https://models.example.org/v1") is None) == passes


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.255.3.4:8000", "[::1]:80", "[::ffff:127.0.0.1]", "LOCALHOST", "localhost.", "a.localhost",
     "127.1", "0x7f000001", "2130706433", "[::]"],
)  # fmt: skip
def test_what_is_this_machine(host: str) -> None:
    assert is_loopback(f"http://me:key@{host}/v1")


@pytest.mark.parametrize("host", ["128.0.0.1", "localhost.org", "127.0.0.1.org", "notlocalhost", "[::2]", "10.0.0.1"])
def test_what_is_another_machine(host: str) -> None:
    assert not is_loopback(f"http://{host}/v1")


def test_certificates_that_cannot_be_read_are_named(got: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/file.pem")
    with pytest.raises(ConfigError, match=r"SSL_CERT_FILE /no/such/file\.pem: the certificates cannot be read"):
        asked(Endpoint("m", "https://models.example.org/v1", timeout=5.0, max_retries=0))


def test_a_proxy_that_cannot_be_used_is_named_without_its_password(
    got: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "gopher://ann:swordfish@proxy.example.org:70")
    with pytest.raises(ConfigError, match=r"the proxy proxy\.example\.org:70 cannot be used") as met:
        asked(Endpoint("m", "https://models.example.org/v1", timeout=5.0, max_retries=0))
    assert "swordfish" not in str(met.value)
