"""Endpoints: what is refused, what they cost, and that keys stay where they are."""

from __future__ import annotations

import builtins
import re
from typing import Any

import pytest
from model_server import model_server, whole

from prefixguard.distribution import install_command
from prefixguard.errors import ConfigError, MissingExtraError
from prefixguard.escalate import Chat, Endpoint
from prefixguard.escalate.circuit import NoReplyError
from prefixguard.escalate.client import AsyncClient
from prefixguard.escalate.endpoint import shown_url


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
