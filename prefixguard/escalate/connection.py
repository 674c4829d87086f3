"""Requests over HTTP through the openai package: one request, its deadline, and how much of an answer is read.

Every request ends at its deadline, whatever the server does (sends a header byte a second, never ends, says nothing):
time-outs of the openai package alone hold for one read, not for the whole. Redirects are not followed, so the key goes
to the named server only.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from prefixguard.errors import ConfigError, EndpointError
from prefixguard.escalate.endpoint import Endpoint, certificates, proxy_for, shown_proxy
from prefixguard.escalate.key_masking import masked, secrets_of
from prefixguard.escalate.retries import Unreached
from prefixguard.escalate.wire import Body, BodyReader, ServerFault, fault_from_answer

#: Bytes of an error's body that are read, and of what follows the end of a stream.
_ERROR, _AFTER_END = 4096, 65_536
#: Seconds: for what follows the end of a stream (the connection serves the next request then), and for closing.
_END_OF_STREAM, _CLOSING = 0.1, 1.0
#: Packages below openai, by release; their errors share no base with its own.
_HTTP_PACKAGES = ("httpx", "httpx2", "httpcore", "httpcore2", "h11", "anyio")


class Connection:
    """Connections to one endpoint, kept open between requests. Belongs to the event loop that it is made on."""

    def __init__(self, endpoint: Endpoint, key: str) -> None:
        import openai

        self.loop = asyncio.get_running_loop()
        self.closed = False
        self._openai = openai
        self._secrets = secrets_of(endpoint, key)
        url = endpoint.url  # never None: the openai package would ask OPENAI_BASE_URL
        options: dict[str, Any] = {}
        if "@" in (parts := urlsplit(url)).netloc:  # the http packages log the URL they ask
            options["auth"] = (unquote(parts.username or ""), unquote(parts.password or ""))
            url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        proxy, verify = proxy_for(url), certificates()
        try:
            http_client: Any = openai.DefaultAsyncHttpxClient(
                follow_redirects=False,
                timeout=endpoint.timeout,
                event_hooks={"response": [_refuse_errors]},
                trust_env=False,  # nothing of it but what is said here: no credentials of a netrc, no other proxy
                proxy=proxy,
                verify=verify,
                **options,
            )
        except (ImportError, ValueError, TypeError) as exc:
            if proxy is None:
                raise
            raise ConfigError(
                f"the proxy {shown_proxy(url)} cannot be used ({type(exc).__name__}). Set another one in HTTPS_PROXY, "
                "or name the endpoint's host in NO_PROXY."
            ) from None
        self._client: Any = openai.AsyncOpenAI(
            api_key=key,
            base_url=url,
            max_retries=0,
            timeout=endpoint.timeout,
            default_headers={"Accept-Encoding": "identity"},  # a small body must not unpack to a big one
            http_client=http_client,
        )

    async def request(self, arguments: Mapping[str, Any], seconds: float) -> Body:
        """Sends one request for a completion. arguments: of the openai package. seconds: until it must be complete.

        ServerFault, Unreached or EndpointError, none of which holds the key.
        """
        deadline = time.monotonic() + seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange(arguments, seconds, deadline)
        except TimeoutError:
            fault: Exception = Unreached(f"no complete answer within {round(seconds, 2):g} s", timed_out=True)
        except Exception as exc:
            fault = self._fault(exc, seconds)
        raise fault  # not where it was met: what was raised there may repeat the key

    async def aclose(self) -> None:
        """Closes the connections; requests under way fail. Waits no longer than a second."""
        self.closed = True
        try:
            async with asyncio.timeout(_CLOSING):
                await self._client.close()
        except (TimeoutError, OSError):
            pass  # nothing waits for it

    async def _exchange(self, arguments: Mapping[str, Any], seconds: float, deadline: float) -> Body:
        completions = self._client.chat.completions.with_streaming_response
        async with completions.create(timeout=seconds, **arguments) as answer:
            response = answer.http_response
            if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
                raise EndpointError("the endpoint compresses its answer although it was asked not to.")
            reader = BodyReader(response.headers.get("content-type", ""))
            async with aclosing(response.aiter_raw()) as chunks:  # as they come: a size would wait for so many
                async for chunk in chunks:
                    if time.monotonic() > deadline:  # where the loop had no time to say so
                        raise TimeoutError
                    if reader.feed(chunk):
                        break
                body = reader.close()
                if body.finish != "limit":
                    await _to_end(chunks)
            return body

    def _fault(self, met: Exception, seconds: float) -> Exception:
        """What was met, as one of ours and without the key."""
        openai = self._openai
        found = met.__cause__ if isinstance(met.__cause__, ServerFault) else met  # some releases wrap it
        if isinstance(found, ServerFault):
            return ServerFault(found.status, masked(found.message, self._secrets), found.retry_after)
        if isinstance(found, EndpointError):
            return EndpointError(masked(str(found), self._secrets))
        below = type(found).__module__.partition(".")[0] in _HTTP_PACKAGES
        if isinstance(found, openai.APITimeoutError) or (below and "Timeout" in type(found).__name__):
            return Unreached(f"no answer within {round(seconds, 2):g} s", timed_out=True)
        if self.closed:
            return Unreached("the client was closed", timed_out=False, told=False)
        if isinstance(found, openai.APIConnectionError | OSError) or below:
            cause = found.__cause__ or found
            said = masked(str(cause), self._secrets)[:200]
            return Unreached(f"the connection failed ({type(cause).__name__}: {said})", timed_out=False)
        if isinstance(found, openai.OpenAIError):
            return EndpointError(f"the openai package gave up: {masked(str(found), self._secrets)[:300]}")
        return met


async def _to_end(chunks: AsyncGenerator[bytes, None]) -> None:
    """Reads what little follows the end of a stream, so that its connection can be used again."""
    left = _AFTER_END
    try:
        async with asyncio.timeout(_END_OF_STREAM):
            async for chunk in chunks:
                left -= len(chunk)
                if left < 0:
                    return
    except TimeoutError:
        return


async def _refuse_errors(response: Any) -> None:
    """Turns every answer that is not 2xx into a ServerFault, reading the beginning of its body only: the openai package
    would read all of it."""
    if 200 <= response.status_code < 300:
        return
    data = b""
    async with aclosing(response.aiter_raw()) as chunks:
        async for chunk in chunks:
            data += chunk
            if len(data) >= _ERROR:
                break
    raise fault_from_answer(response.status_code, data[:_ERROR], response.headers.get("retry-after"))
