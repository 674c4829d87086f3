"""Endpoints: what is refused, what they cost, and that keys stay where they are."""

from __future__ import annotations

import asyncio
import builtins
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from model_server import model_server, says, whole

from prefixguard.distribution import install_command
from prefixguard.errors import ConfigError, EndpointError, MissingExtraError
from prefixguard.escalate import AsyncClient, Chat, Endpoint, Reply
from prefixguard.escalate.circuit import NoReplyError
from prefixguard.escalate.endpoint import is_loopback, proxy_for, shown_url


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model": " "}, "name of a model"),
        ({"base_url": "localhost:8000"}, "http://"),
        ({"base_url": "file:///etc/passwd"}, "http://"),
        ({"base_url": "http://[::1/v1"}, "http://"),
        ({"base_url": "http://host:port/v1"}, "http://"),
        ({"base_url": "http://h/v1?key=hidden"}, "'http://h/v1' goes on with a query.*key_from"),
        ({"base_url": "http://h/v1#there"}, "fragment"),
        ({"max_reply_tokens": 0}, "max_reply_tokens"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": float("inf")}, "temperature"),
        ({"temperature": -0.5}, "temperature"),
        ({"timeout": 0}, "timeout"),
        ({"patience": float("nan")}, "patience"),
        ({"max_retries": -1}, "max_retries"),
        ({"price_in": -1.0}, "price_in"),
        ({"first_wait": -1.0}, "first_wait"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        Endpoint(**{"model": "m", **options})
    assert "hidden" not in str(caught.value)


def test_the_key_is_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", " abc ")
    assert Endpoint("m", key_from="OTHER_KEY").key() == "abc"
    assert "abc" not in repr(Endpoint("m", key_from="OTHER_KEY"))


def test_a_server_of_ones_own_needs_no_key() -> None:
    assert Endpoint("m", "http://localhost:1/v1").key() == "none"
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        Chat(Endpoint("m"))


def test_credentials_in_a_url_are_not_shown() -> None:
    assert Endpoint("m", "https://bob:secret@host/v1").shown == "m at https://host/v1"
    assert shown_url("https://bob:secret@host/v1?key=hidden") == "https://host/v1"
    assert Endpoint("m").shown == "m at https://api.openai.com/v1"


def test_the_environment_does_not_decide_where_text_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-abcdefghijklmnop")
    with model_server(whole("x")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("HTTPS_PROXY", server.url.removesuffix("/v1"))  # which refuses: nothing leaves this machine
        monkeypatch.setenv("NO_PROXY", "")
        with pytest.raises(NoReplyError, match=r"https://api\.openai\.com/v1"):
            Chat(Endpoint("m", max_retries=0, timeout=5.0)).ask([{"role": "user", "content": "private"}])
        assert server.requests == []
        assert Chat(Endpoint("m", server.url)).ask([{"role": "user", "content": "x"}]).text == "x"


def test_cost() -> None:
    assert Endpoint("m", price_in=1.0, price_out=2.0).cost(1_000_000, 500_000) == 2.0
    assert Endpoint("m", price_in=1.0).cost(5, 5) is None


@pytest.mark.parametrize("client", [Chat, AsyncClient])
@pytest.mark.parametrize("package", ["openai"])
def test_without_the_packages_the_remedy_is_said(
    client: type[Chat | AsyncClient], package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=package)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtraError, match=re.escape(install_command("llm"))):
        client(Endpoint("m", "http://localhost:1/v1"))


def test_the_room_is_imported_without_the_packages() -> None:
    import subprocess
    import sys

    rooms = "prefixguard.escalate, prefixguard.escalate.client"
    code = f"import sys, {rooms}; sys.exit(any(m in sys.modules for m in ('openai',)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


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
