"""Readings that leave this machine: secrets masked, and JSON posted over HTTP by the standard library alone."""

from __future__ import annotations

import base64
import contextlib
import json
import math
import random
import re
import socket
import ssl
import threading
from collections.abc import Mapping
from dataclasses import replace
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from time import sleep
from typing import Any, Final, TypedDict
from urllib.parse import parse_qsl, unquote, urlsplit

from prefixguard.errors import ConfigError, OutputError
from prefixguard.escalate.endpoint import is_loopback, proxy_for, shown_url
from prefixguard.escalate.masking import Masker
from prefixguard.integrations.sinks.queue import WatchedReading, verdict_in_words
from prefixguard.runtime import plain

#: Seconds before the first retry, doubled for every further one; and the longest wait, whatever a receiver asks for.
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 10.0
#: Answers that say "later".
_PASSING: Final = (408, 425, 429, 500, 502, 503, 504)
#: Bytes of an answer that are read, and characters of it that a message quotes.
_MOST_ANSWER, _QUOTED = 1 << 20, 200
_CUT_WORD = re.compile(r"""[^\s"',;:(){}\[\]]+…""")


def outgoing(watched: WatchedReading) -> WatchedReading:
    """The reading as it may leave: likely secrets in its words masked, and every text from outside printable and short.

    Ids of up to 200 printable characters stay as they are.
    """
    reading, masker = watched.reading, Masker()
    said = tuple(plain(masker.mask(_without_cut_words(reason)), 400) for reason in reading.reasons)
    found, faults = (
        tuple(replace(one, evidence=plain(masker.mask(_without_cut_words(one.evidence)), 200)) for one in findings)
        for findings in (reading.behaviours, reading.faults)
    )
    verdict = watched.verdict
    if verdict is not None:
        agent, quote = (
            None if text is None else plain(masker.mask(text), 300) for text in (verdict.agent, verdict.quote)
        )
        verdict = replace(verdict, agent=agent, reason=plain(masker.mask(verdict.reason), 500), quote=quote)
    unknown = None if reading.unknown_reason is None else plain(masker.mask(reading.unknown_reason), 500)
    return replace(
        watched,
        run=plain(watched.run, 200),
        agent_path=plain(watched.agent_path, 200),
        agent=plain(watched.agent, 200),
        reading=replace(reading, reasons=said, unknown_reason=unknown, behaviours=found, faults=faults),
        verdict=verdict,
    )


def _without_cut_words(text: str) -> str:
    """Without what is left of a word that was cut: the first half of a secret no longer looks like one.

    >>> _without_cut_words('login {"key":"sk-abcde… (step 3)')
    'login {"key":"… (step 3)'
    """
    return _CUT_WORD.sub("…", text)


def explanation(watched: WatchedReading) -> str:
    """Why the risk is what it is, or why there is none, or what the auditor said, in one line; "" where nothing is
    said."""
    if watched.verdict is not None:
        return verdict_in_words(watched.verdict)
    return "; ".join(watched.reading.reasons) or watched.reading.unknown_reason or ""


class HttpOptions(TypedDict, total=False):
    """How a sink posts.

    timeout : seconds, above 0, to connect, and again for the whole answer; 5 by default. retries : 0 to 10, 3 by
    default, after connections that fail, time-outs, 408, 425, 429 and 5xx, with waits that double. allow_http : http to
    another machine, where the network is trusted; http to this machine is always allowed.
    """

    timeout: float
    retries: int
    allow_http: bool


class JsonPoster:
    """Posts JSON to one URL. Every request ends at its deadline, redirects are not followed, waits are bounded.

    A connection is opened for every request. A proxy that the environment names for https is used.
    """

    def __init__(
        self,
        url: str,
        content_type: str,
        headers: Mapping[str, str],
        *,
        timeout: float = 5.0,
        retries: int = 3,
        allow_http: bool = False,
    ) -> None:
        """headers : sent with every request; their values count as secrets and stand in no message. The rest: see
        `HttpOptions`.

        Raises ConfigError.
        """
        try:
            parts = urlsplit(url)
            self._host, self._port = parts.hostname or "", parts.port
        except ValueError as exc:
            raise ConfigError(f"url: {shown_url(url)!r} is none ({exc}).") from exc
        self.shown = shown_url(url)
        if parts.scheme not in ("http", "https") or not self._host:
            raise ConfigError(f"url {self.shown!r}: it begins with https:// and names a server.")
        if parts.username is not None:
            raise ConfigError(f"url {self.shown!r} holds a name or a password: send them in a header.")
        if parts.scheme == "http" and not allow_http and not is_loopback(url):
            raise ConfigError(
                f"url {self.shown!r}: readings and secrets would cross the network unencrypted. Use https; or say "
                "allow_http=True, where the network is trusted."
            )
        if not (math.isfinite(timeout) and timeout > 0) or not 0 <= retries <= 10:
            raise ConfigError(f"timeout is {timeout} and retries {retries}: seconds above 0, and from 0 to 10.")
        for name, value in headers.items():
            if not (name.isascii() and name.isprintable() and value.isascii() and value.isprintable()) or " " in name:
                raise ConfigError(f"header {plain(name, 60)!r}: names and values are printable ASCII, in one line.")
        self._url, self._is_tls = url, parts.scheme == "https"
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = {**headers, "Content-Type": content_type, "User-Agent": "prefixguard", "Connection": "close"}
        words = {parts.query, *(value for _, value in parse_qsl(parts.query))}
        words |= {word for value in headers.values() for word in (value, value.split(" ")[-1])}
        self._secrets = sorted(words - {""}, key=lambda word: (-len(word), word))  # a whole one before its parts
        self._timeout, self._retries = timeout, retries

    def post(self, body: Any) -> Any:
        """Send a JSON value. Returns the JSON of the answer, None where it is none.

        Raises OutputError, which names the receiver without its secrets, when the last retry has failed.
        """
        data = json.dumps(body, allow_nan=False).encode()
        for n in range(self._retries + 1):
            wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2**n * random.uniform(0.8, 1.2))
            try:
                status, headers, answer = self._once(data)
            except (OSError, HTTPException, ValueError) as exc:  # ValueError: the deadline closed what TLS was reading
                why = f"{type(exc).__name__}: {exc}"
            else:
                if 200 <= status < 300:
                    return _json(answer)
                why = self._refused(status, headers, answer)
                if status not in _PASSING:
                    break
                wait = min(_LONGEST_WAIT, max(wait, _seconds(headers.get("retry-after"))))
            if n < self._retries:
                sleep(wait)
        raise OutputError(f"{self.shown}: {plain(Masker(self._secrets).mask(why), 300)}")

    def _once(self, data: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = self._connection()
        is_late, watchdog = threading.Event(), None
        try:
            connection.connect()
            # a time-out of the socket holds for one read: a receiver that trickles would never end
            watchdog = threading.Timer(self._timeout, _hang_up, (connection.sock, is_late))
            watchdog.daemon = True
            watchdog.start()
            connection.request("POST", self._target, data, self._headers)
            response = connection.getresponse()
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read(_MOST_ANSWER)
        finally:
            if watchdog is not None:
                watchdog.cancel()
            connection.close()
            if is_late.is_set():  # what was read until then may look like an answer
                raise TimeoutError(f"no whole answer within {self._timeout:g} s")

    def _connection(self) -> HTTPConnection:
        if not self._is_tls:
            return HTTPConnection(self._host, self._port, timeout=self._timeout)
        trust = ssl.create_default_context()
        if (proxy := proxy_for(self._url)) is None:
            return HTTPSConnection(self._host, self._port, timeout=self._timeout, context=trust)
        parts = urlsplit(proxy)
        connection = HTTPSConnection(parts.hostname or "", parts.port or 80, timeout=self._timeout, context=trust)
        connection.set_tunnel(self._host, self._port, basic(parts.username, parts.password, "Proxy-Authorization"))
        return connection

    def _refused(self, status: int, headers: Mapping[str, str], answer: bytes) -> str:
        if 300 <= status < 400:
            to = shown_url(headers.get("location", "nowhere"))
            return f"the receiver answered {status}, to {to}. Redirects are not followed: name that URL, if it is right"
        if status in (401, 403):
            return f"the receiver answered {status}. Check the key or the header"
        return f"the receiver answered {status}: {answer[:_QUOTED].decode('utf-8', 'replace')}"


def basic(user: str | None, password: str | None, header: str = "Authorization") -> dict[str, str]:
    """The header that names a user; none where there is no user."""
    if user is None:
        return {}
    both = f"{unquote(user)}:{unquote(password or '')}".encode()
    return {header: f"Basic {base64.b64encode(both).decode()}"}


def _hang_up(sock: socket.socket, is_late: threading.Event) -> None:
    is_late.set()
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)  # of the base class: that of TLS takes away what is being read


def _seconds(retry_after: str | None) -> float:
    return float(retry_after) if retry_after is not None and retry_after.isascii() and retry_after.isdigit() else 0.0


def _json(answer: bytes) -> Any:
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        return None
