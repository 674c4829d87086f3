"""How a question is asked: from the form we like best to the plainest that a server takes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prefixguard.escalate.endpoint import Endpoint
from prefixguard.escalate.wire import ServerFault

#: Who says what: {"role": ..., "content": ...}.
Message = Mapping[str, str]

#: From the one we like best to the plainest. A server that answers 400 gets the next one, once.
_FREE: tuple[tuple[str, ...], ...] = (("stream",), ())
_SHAPED: tuple[tuple[str, ...], ...] = (("json_schema", "stream"), ("json_object", "stream"), *_FREE)
_TOO_LONG = ("context length", "context_length", "too long", "maximum context")
#: Settings that some models refuse by name (OpenAI's reasoning models take the default temperature only).
_LEFT_OUT = ("temperature", "seed")


@dataclass(frozen=True, slots=True)
class Form:
    """One form of request. asks: some of json_schema, json_object, stream. logprobs: are they asked for. limit: what
    this server calls the greatest length of a reply. without: settings of the endpoint that it does not take."""

    asks: tuple[str, ...]
    logprobs: bool
    limit: str
    without: tuple[str, ...] = ()


def speaks_of_length(message: str) -> bool:
    """May the message of an error be about a prompt that is too long?"""
    text = message.lower()
    return any(said in text for said in _TOO_LONG) or "tokens" in _words(text)


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9_]+", text))


class RequestForms:
    """What one server was found to take. Shared by all questions to it; never goes back to a form that was refused."""

    def __init__(self, endpoint: Endpoint, schema: Mapping[str, Any] | None) -> None:
        """schema: JSON Schema of the reply; None for free text."""
        self._endpoint, self._schema = endpoint, schema
        self._forms = _FREE if schema is None else _SHAPED
        self._place = 0
        self._logprobs = True
        self._limit = "max_tokens"
        self._without: tuple[str, ...] = ()

    def now(self, logprobs: bool = False) -> Form:
        """The form for the next request. logprobs: are they wanted."""
        return Form(self._forms[self._place], logprobs and self._logprobs, self._limit, self._without)

    def plainer(self, fault: ServerFault, used: Form, logprobs: bool) -> bool:
        """Takes the next plainer form where the fault may be about the form that was used; False: give up.

        logprobs: were they wanted. Several requests under way that meet the same fault take one step together.
        """
        text = fault.message.lower()
        if fault.status not in (400, 415, 422):
            return False
        if self.now(logprobs) != used:  # another question has found out already
            return True
        if used.limit == "max_tokens" and "max_completion_tokens" in text and self._endpoint.max_reply_tokens:
            self._limit = "max_completion_tokens"
            return True
        if used.logprobs and "logprob" in text:
            self._logprobs = False
            return True
        words = _words(text)
        refused = [name for name in _LEFT_OUT if name in words and getattr(self._endpoint, name) is not None]
        if refused := [name for name in refused if name not in used.without]:
            self._without = (*self._without, *refused)
            return True
        if speaks_of_length(text):
            return False
        if self._place + 1 < len(self._forms):
            about_stream = "stream" in text and "response_format" not in text
            self._place = len(self._forms) - 1 if about_stream else self._place + 1
            return True
        if used.logprobs:
            self._logprobs = False
            return True
        return False

    def arguments(self, form: Form, messages: Sequence[Message]) -> dict[str, Any]:
        """What to give to the openai package."""
        endpoint = self._endpoint
        asked: dict[str, Any] = {"model": endpoint.model, "messages": [dict(message) for message in messages]}
        if "json_schema" in form.asks:
            schema = {"name": "answer", "schema": self._schema, "strict": False}
            asked["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif "json_object" in form.asks:
            asked["response_format"] = {"type": "json_object"}
        if "stream" in form.asks:
            asked |= {"stream": True, "stream_options": {"include_usage": True}}
        if form.logprobs:
            asked["logprobs"] = True
        if endpoint.max_reply_tokens is not None:
            asked[form.limit] = endpoint.max_reply_tokens
        for name in _LEFT_OUT:
            value = getattr(endpoint, name)
            if value is not None and name not in form.without:
                asked[name] = value
        return asked
