"""The plain `openai` client, chat completions and Responses, sync and async, whole replies and streams; and functions
of litellm, which are called with the same and answer the same.

A model is asked with the results of the calls before it, so their readings come before it is asked: an alarm can stop
the run, or say something to the agent, before the next tokens are paid for.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast

from prefixguard.errors import ConfigError
from prefixguard.integrations.call_context import is_watched, watched_by
from prefixguard.integrations.conversation import (
    tell_chat_input,
    tell_chat_reply,
    tell_responses_input,
    tell_responses_output,
)
from prefixguard.integrations.events import field_of
from prefixguard.integrations.watched_run import RunKeeper, WatchedRun, current_run

C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., Any])


def watch_client(guard: RunKeeper, client: C) -> C:
    """The same client, whose calls from now on belong to the run that they are made in (`with guard.run(...)`).

    Calls outside any run are not watched, and counted (`calls_outside_runs`). Raises ConfigError for what is no client
    of the openai package.
    """
    found = False
    for names, api in ((("chat", "completions"), _Chat), (("responses",), _Responses)):
        place: Any = client
        for name in names:
            place = getattr(place, name, None)
        if place is None:
            continue
        for raw in ("with_raw_response", "with_streaming_response"):  # they keep the methods of before
            getattr(place, "__dict__", {}).pop(raw, None)
        for method in ("create", "parse"):
            original = getattr(place, method, None)
            if original is not None and not is_watched(original, guard):
                setattr(place, method, _watched(guard, original, api))
            found = found or original is not None
    if not found:
        raise ConfigError(
            f"{type(client).__name__} is no client of the openai package: give OpenAI() or AsyncOpenAI()."
        )
    for name in ("copy", "with_options"):
        original = getattr(client, name, None)
        if original is not None and not is_watched(original, guard):
            setattr(client, name, _copying(guard, original))
    return client


def _copying(guard: RunKeeper, original: Callable[..., Any]) -> Callable[..., Any]:
    """Clients that are made of a watched one are watched."""

    @functools.wraps(original)
    def copy(*args: Any, **options: Any) -> Any:
        return watch_client(guard, original(*args, **options))

    return watched_by(guard, copy)


def watch_function(guard: RunKeeper, function: F) -> F:
    """A function such as `litellm.completion`, `acompletion`, `responses` or `aresponses`, or the same method of a
    router, whose calls belong to the run that they are made in.

    Raises ConfigError for what takes neither `messages` nor `input`.
    """
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    api = next((api for api in (_Chat, _Responses) if api.given in names), None)
    if api is None:
        name = getattr(function, "__name__", type(function).__name__)
        raise ConfigError(f"{name} takes neither messages nor input: give a function such as litellm.completion.")
    if is_watched(function, guard):
        return function
    return cast(F, _watched(guard, function, api, names))


def _watched(
    guard: RunKeeper, original: Callable[..., Any], api: type[_Call], names: Sequence[str] = ()
) -> Callable[..., Any]:
    """names : of the parameters, for a function that is called with some by position."""
    if inspect.iscoroutinefunction(inspect.unwrap(original)):

        @functools.wraps(original)
        async def ask(*args: Any, **options: Any) -> Any:
            args, options = args[len(names) :], {**dict(zip(names, args, strict=False)), **options}
            call = api.begin(guard, options)
            if call is not None:
                await call.run.answered()
                call.act(options)
            reply = await original(*args, **options)
            return reply if call is None else call.of_reply(reply)

    else:

        @functools.wraps(original)
        def ask(*args: Any, **options: Any) -> Any:
            args, options = args[len(names) :], {**dict(zip(names, args, strict=False)), **options}
            call = api.begin(guard, options)
            if call is not None:
                call.act(options)
            reply = original(*args, **options)
            return reply if call is None else call.of_reply(reply)

    return watched_by(guard, ask)


class _Call(ABC):
    """One request to a model within a run."""

    #: Option that holds what the model is asked with.
    given = ""

    def __init__(self, guard: RunKeeper, run: WatchedRun) -> None:
        self.guard, self.run, self.is_whole = guard, run, False

    @classmethod
    def begin(cls, guard: RunKeeper, options: dict[str, Any]) -> _Call | None:
        """Tell the run what the model is asked with; None outside a run."""
        run = current_run(guard)
        if run is None:
            guard.count("calls_outside_runs")
            return None
        call = cls(guard, run)
        if isinstance(given := options.get(cls.given), Iterator):  # it can be read once
            options[cls.given] = given = list(given)
        call._try(call.tell_input, given)
        return call

    def act(self, options: dict[str, Any]) -> None:
        """Put a nudge into what the model is asked with. Raises AgentStopped where the run is to stop."""
        self.run.check()
        if (text := self.run.nudge()) is not None:
            options[self.given] = self.with_message(options.get(self.given), {"role": "user", "content": text})

    @staticmethod
    def with_message(given: Any, message: dict[str, Any]) -> Any:
        """Put a message behind the others: into the host's own list, so that the conversation keeps it."""
        if isinstance(given, list):
            given.append(message)
            return given
        if isinstance(given, str):
            return [{"role": "user", "content": given}, message]
        return [*given, message] if isinstance(given, Iterable) else given

    def of_reply(self, reply: Any) -> Any:
        """The reply for the host, told to the run; a stream is told when it is over."""
        if hasattr(reply, "http_response") and hasattr(reply, "parse"):
            return self._of_raw(reply)
        if hasattr(reply, "__aiter__"):
            return _WatchedStream(reply, self)
        if hasattr(reply, "__iter__") and hasattr(reply, "close"):
            return _WatchedStream(reply, self)
        self._try(self.tell_reply, reply)
        return reply

    def _of_raw(self, reply: Any) -> Any:
        """A raw response: what it is parsed to is told when the host parses it, the first time. One that nobody parses
        is counted (`unparsed_replies`) when it is given up."""
        parse, told = reply.parse, list[Any]()

        def known(parsed: Any) -> Any:
            if not told:
                told.append(self.of_reply(parsed))
            is_stream = isinstance(told[0], _WatchedStream) and told[0]._stream is parsed
            return told[0] if is_stream else parsed

        if inspect.iscoroutinefunction(parse):

            @functools.wraps(parse)
            async def parsed(*args: Any, **options: Any) -> Any:
                return known(await parse(*args, **options))

        else:

            @functools.wraps(parse)
            def parsed(*args: Any, **options: Any) -> Any:
                return known(parse(*args, **options))

        def given_up(guard: RunKeeper) -> None:
            if not told:
                guard.count("unparsed_replies")

        reply.parse = parsed
        weakref.finalize(reply, given_up, self.guard).atexit = False
        return reply

    def _try(self, tell: Callable[[Any], None], what: Any) -> None:
        """Nothing that an object of another release lacks reaches the host."""
        try:
            tell(what)
        except Exception as exc:
            self.run.failed(f"a message of run {self.run.id}", exc)

    @abstractmethod
    def tell_input(self, given: Any) -> None: ...

    @abstractmethod
    def tell_reply(self, reply: Any) -> None: ...

    @abstractmethod
    def chunk(self, chunk: Any) -> None: ...

    @abstractmethod
    def end_of_stream(self, _: Any = None) -> None: ...


class _Chat(_Call):
    given = "messages"

    def __init__(self, guard: RunKeeper, run: WatchedRun) -> None:
        super().__init__(guard, run)
        self._text: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._usage: Any = None

    def tell_input(self, given: Any) -> None:
        tell_chat_input(self.run, list(given or ()))

    def tell_reply(self, reply: Any) -> None:
        choices = field_of(reply, "choices") or ()
        if choices:
            tell_chat_reply(self.run, field_of(choices[0], "message"), field_of(reply, "usage"))

    def chunk(self, chunk: Any) -> None:
        self._usage = field_of(chunk, "usage") or self._usage
        for choice in field_of(chunk, "choices") or ():
            delta = field_of(choice, "delta")
            if field_of(choice, "index", 0) != 0 or delta is None:
                continue
            self.is_whole = self.is_whole or bool(field_of(choice, "finish_reason"))
            self._text.append(field_of(delta, "content") or field_of(delta, "refusal") or "")
            for part in field_of(delta, "tool_calls") or ():
                call = self._calls.setdefault(
                    field_of(part, "index", 0), {"id": "", "function": {"name": "", "arguments": ""}}
                )
                call["id"] = field_of(part, "id") or call["id"]
                function = field_of(part, "function")
                for name in ("name", "arguments"):
                    call["function"][name] += field_of(function, name) or ""

    def end_of_stream(self, _: Any = None) -> None:
        calls = [call for _, call in sorted(self._calls.items())]
        tell_chat_reply(self.run, {"content": "".join(self._text), "tool_calls": calls}, self._usage)


class _Responses(_Call):
    given = "input"

    def __init__(self, guard: RunKeeper, run: WatchedRun) -> None:
        super().__init__(guard, run)
        self._items: list[Any] = []
        self._usage: Any = None

    def tell_input(self, given: Any) -> None:
        tell_responses_input(self.run, given)

    def tell_reply(self, reply: Any) -> None:
        tell_responses_output(self.run, field_of(reply, "output") or (), field_of(reply, "usage"))

    def chunk(self, chunk: Any) -> None:
        kind = field_of(chunk, "type")
        if kind == "response.output_item.done":
            self._items.append(field_of(chunk, "item"))
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            self.is_whole, response = True, field_of(chunk, "response")
            self._usage = field_of(response, "usage")
            self._items = list(field_of(response, "output") or self._items)

    def end_of_stream(self, _: Any = None) -> None:
        tell_responses_output(self.run, self._items, self._usage)


class _WatchedStream:
    """A stream as the client gave it; what came is told to the run once it is over, or left."""

    def __init__(self, stream: Any, call: _Call) -> None:
        self._stream, self._call, self._is_told = stream, call, False
        self._chunks: Any = None  # of `next` and `anext`

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[Any]:
        try:
            for chunk in self._stream:
                self._call._try(self._call.chunk, chunk)
                yield chunk
            self._call.is_whole = True
        finally:
            self._tell()

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            async for chunk in self._stream:
                self._call._try(self._call.chunk, chunk)
                yield chunk
            self._call.is_whole = True
        finally:
            self._tell()

    def __next__(self) -> Any:
        self._chunks = self._chunks or iter(self)
        return next(self._chunks)

    async def __anext__(self) -> Any:
        self._chunks = self._chunks or aiter(self)
        return await anext(self._chunks)

    def __enter__(self) -> _WatchedStream:
        self._stream.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self._tell()
        self._stream.__exit__(*exc)

    async def __aenter__(self) -> _WatchedStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        self._tell()
        await self._stream.__aexit__(*exc)

    def _tell(self) -> None:
        if not self._is_told:
            self._is_told = True
            if not self._call.is_whole:
                self._call.guard.count("streams_given_up")
            self._call._try(self._call.end_of_stream, None)
