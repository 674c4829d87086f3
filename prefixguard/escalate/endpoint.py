"""An endpoint that speaks chat completions: where it is, which model, how long we wait, what it costs.

Its keys are taken out of everything that leaves the client, replies too: servers repeat what they were sent.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import math
import os
import socket
import ssl
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import getproxies_environment, proxy_bypass

from prefixguard.errors import ConfigError


def is_loopback(url: str) -> bool:
    """Whether a URL leads to this machine: 127.0.0.0/8 in any spelling, ::1, localhost and names below it.

    >>> [is_loopback(f"http://{host}/v1") for host in ("127.8.0.1:80", "[::1]", "localhost.", "127.1", "127.0.0.1.org")]
    [True, True, True, True, False]
    """
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        try:
            address = ipaddress.IPv4Address(socket.inet_aton(host))  # as the system reads it: 127.1, 0x7f000001
        except (OSError, ValueError):
            return False
    mapped = getattr(address, "ipv4_mapped", None)
    return any(one is not None and (one.is_loopback or one.is_unspecified) for one in (address, mapped))


def proxy_for(url: str) -> str | None:
    """The proxy that requests to this URL go through, with its credentials; None for none.

    HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY name it, in small letters too. No request to this machine goes
    through one.
    """
    parts = urlsplit(url)
    if is_loopback(url):
        return None
    proxies = getproxies_environment()
    named = proxies.get(parts.scheme) or proxies.get("all")
    if not named or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return named if "://" in named else f"http://{named}"


def shown_proxy(url: str) -> str | None:
    """Host and port of the proxy that requests to this URL go through, without credentials; None for none."""
    named = proxy_for(url)
    return None if named is None else urlsplit(named).netloc.rpartition("@")[2]


def certificates() -> ssl.SSLContext | bool:
    """Whom a server is trusted by: the certificates that SSL_CERT_FILE or SSL_CERT_DIR name; True for the usual ones.

    ConfigError where they cannot be read.
    """
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if not file and not folder:
        return True
    try:
        return ssl.create_default_context(cafile=file or None, capath=folder or None)
    except (OSError, ValueError) as exc:
        raise ConfigError(
            f"SSL_CERT_FILE {file or folder}: the certificates cannot be read ({exc}). Name a file in PEM form, or "
            "unset it."
        ) from exc


#: What is sent as key where none is set and a base URL is named: local servers want one and do not look at it.
NO_KEY = "none"
#: Who is asked where no base URL is named, whatever OPENAI_BASE_URL says.
OPENAI_URL = "https://api.openai.com/v1"


_LEAST, _MOST = math.ulp(0.0), sys.float_info.max  # above nothing, and finite
#: Options of an endpoint that are numbers: their least and greatest value, and what they are.
_RANGES: dict[str, tuple[float, float, str]] = {
    "timeout": (_LEAST, _MOST, "seconds, more than 0"),
    "patience": (_LEAST, _MOST, "seconds, more than 0"),
    "max_retries": (0, 20, "from 0 to 20"),
    "first_wait": (0, _MOST, "seconds, 0 or more"),
    "max_reply_tokens": (1, _MOST, "tokens of a reply, 1 or more"),
    "temperature": (0, _MOST, "a number, 0 or more"),
    "price_in": (0, _MOST, "a price per million tokens, 0 or more"),
    "price_out": (0, _MOST, "a price per million tokens, 0 or more"),
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is asked. Naming one is what allows text of runs to leave this machine.

    base_url: of any compatible server, such as http://localhost:8000/v1, without a query; None is OpenAI itself. The
    environment does not change it: nothing but what is named here decides where text goes.
    model: its name there.
    key_from : the environment variable that holds the key; never the key itself.
    timeout: wall-clock seconds for one request, its whole reply included; a server that trickles does not get more.
    patience: seconds for one question with all its retries. max_retries: after 408, 409, 429, 5xx, time-outs and
    connections that fail, with exponential backoff and jitter (the openai package's own retries are off). A 429 or
    503 that says when to come back (Retry-After) is waited for and not counted, within the patience; not where it is 0.
    price_in : price of a million tokens that are sent, in any currency; without it the cost is unknown.
    price_out : price of a million tokens that come back.
    max_reply_tokens, temperature, seed: sent only where set, since not every model takes them.
    """

    model: str
    base_url: str | None = None
    key_from: str = "OPENAI_API_KEY"
    timeout: float = 180.0
    patience: float = 600.0
    max_retries: int = 4
    first_wait: float = 1.0
    price_in: float | None = None
    price_out: float | None = None
    max_reply_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise ConfigError("an endpoint needs the name of a model.")
        if self.base_url is not None:
            if any(mark in self.base_url for mark in "?#"):  # the http packages log the URL they ask
                raise ConfigError(
                    f"base URL {shown_url(self.base_url)!r} goes on with a query or a fragment: it must end with its "
                    "path. A key belongs in the environment variable that key_from names."
                )
            try:
                parts = urlsplit(self.base_url)
                _ = parts.port  # ValueError where it is no port
                is_server = parts.scheme in ("http", "https") and bool(parts.netloc)
            except ValueError:
                is_server = False
            if not is_server:
                raise ConfigError(
                    f"base URL {shown_url(self.base_url)!r}: it begins with http:// or https:// and names a server, "
                    "such as http://localhost:8000/v1."
                )
        for name, (least, most, what) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise ConfigError(f"{name} {value}: {what}.")

    def key(self) -> str:
        """The key, from the environment. ConfigError where there is none and no base URL is named."""
        key = os.environ.get(self.key_from, "").strip()
        if key:
            return key
        if self.base_url is not None:
            return NO_KEY
        raise ConfigError(
            f"no key: {self.key_from} is not set. Set it, name another variable, or name the base URL of a server that "
            "needs none."
        )

    @property
    def shown(self) -> str:
        """Model and place for a person, without credentials; and the proxy between, where there is one."""
        proxy = self.proxy
        return f"{self.model} at {shown_url(self.url)}" + (f" (through the proxy {proxy})" if proxy else "")

    @property
    def proxy(self) -> str | None:
        """Host and port of the proxy that the environment puts before the endpoint; None for none."""
        return shown_proxy(self.url)

    @property
    def url(self) -> str:
        """The base URL that is asked."""
        return OPENAI_URL if self.base_url is None else self.base_url

    def cost(self, tokens_in: int, tokens_out: int) -> float | None:
        """What so many tokens cost; None where a price is not known."""
        if self.price_in is None or self.price_out is None:
            return None
        return (tokens_in * self.price_in + tokens_out * self.price_out) / 1e6


def shown_url(url: str) -> str:
    """A URL without name, password, query and fragment: keys hide there.

    >>> shown_url("https://me:secret@host:8000/v1?key=abc")
    'https://host:8000/v1'
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(not a URL)"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said.

    text: its answer. reasoning: what it thought, where the server sends that apart from the answer.
    finish: the server's word (stop, length, content_filter, ...), "limit" where we stopped reading, "" where it said
    nothing. Tokens are estimated (four characters each) where the server did not count.
    seconds: of the whole question, retries and waits included. attempts: requests sent.
    logprobs: the answer's tokens and their natural log-probabilities, in order; empty where the server sends none.
    """

    text: str
    finish: str
    refusal: str
    tokens_in: int
    tokens_out: int
    estimated: bool
    seconds: float
    attempts: int
    model: str = ""
    notes: tuple[str, ...] = field(default=())
    reasoning: str = ""
    logprobs: tuple[tuple[str, float], ...] = field(default=())


class Client(Protocol):
    """Who asks an endpoint (`AsyncClient`)."""

    endpoint: Endpoint

    async def ask(
        self, messages: Sequence[Mapping[str, str]], *, seconds: float | None = None, logprobs: bool = False
    ) -> Reply:
        """The reply to these messages. EndpointError where there is none. seconds, logprobs: see `AsyncClient.ask`."""
        ...


MASK = "<masked key>"
#: Characters. Shorter keys ("none") are words; of longer ones this much of the beginning tells which one it is.
_SHORTEST, _TELLING = 6, 8


def secrets_of(endpoint: Endpoint, key: str) -> tuple[str, ...]:
    """The key, and the passwords of the base URL and of the proxy where they have one: as they stand there,
    plain, and as they are sent; each also as JSON may write it, since answers are JSON within the text of a reply."""
    found = [key]
    for url in (endpoint.base_url, proxy_for(endpoint.url)):
        parts = urlsplit(url or "")
        if parts.password:
            plain = unquote(parts.password)
            sent = base64.b64encode(f"{unquote(parts.username or '')}:{plain}".encode()).decode()
            found += [parts.password, plain, sent]
    escaped = [json.dumps(secret)[1:-1].replace("/", slash) for secret in found for slash in ("/", "\\/")]
    return tuple(dict.fromkeys((*found, *escaped)))


def masked(text: str, secrets: Sequence[str]) -> str:
    """The text without the secrets, whole or cut off at their end.

    >>> masked("bad key abcdefghijkl; again: abcdefghij", ["abcdefghijkl"])
    'bad key <masked key>; again: <masked key>'
    """
    for secret in secrets:
        if len(secret) < _SHORTEST or secret[:_TELLING] not in text:
            continue
        for length in range(len(secret), min(len(secret), _TELLING) - 1, -1):
            text = text.replace(secret[:length], MASK)
    return text
