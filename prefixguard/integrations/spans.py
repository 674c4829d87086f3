"""What a span says: a model's call or a tool's, by OpenTelemetry's GenAI conventions or by OpenInference."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from prefixguard.integrations.events import field_of, text_of

Message = dict[str, Any]
Kind = Literal["model", "tool", "agent", "other", ""]

_KINDS: Final[dict[Any, Kind]] = {"LLM": "model", "TOOL": "tool", "AGENT": "agent"}
_OPERATIONS: Final[dict[Any, Kind]] = {
    "chat": "model", "generate_content": "model", "text_completion": "model", "execute_tool": "tool",
    "invoke_agent": "agent",
}  # fmt: skip
_NO_GENAI = (
    "Spans of model calls do not hold their messages, so they cannot be watched: set "
    "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental and "
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY before the instrumentation is loaded."
)
_NO_OPENINFERENCE = (
    "Spans of model calls do not hold their messages, so they cannot be watched: leave OPENINFERENCE_HIDE_INPUTS, "
    "OPENINFERENCE_HIDE_OUTPUTS and the switches of their messages and texts unset."
)
_REDACTED = "__REDACTED__"


@dataclass(frozen=True)
class ModelCall:
    """messages, reply : as chat completions have them; reply is None where the model gave none. usage : as there.

    conversation : its id. missing : what to switch on, where the span holds no contents. is_cut : it has lost its first
    messages to the SDK's limit of attributes. is_lost : there was a reply, and the span has none, or not all of it.
    """

    messages: list[Message]
    reply: Message | None
    usage: dict[str, Any]
    conversation: str
    missing: str
    is_cut: bool
    is_lost: bool

    @cached_property
    def behind(self) -> int:
        """Where the messages begin that are new: behind the agent's last one."""
        return next((n for n in range(len(self.messages), 0, -1) if _is_agents(self.messages[n - 1])), 0)

    @cached_property
    def before(self) -> Message:
        """The reply that these messages answer; without text and calls where they answer none."""
        end = start = self.behind
        while start and _is_agents(self.messages[start - 1]):
            start -= 1
        return _joined(self.messages[start:end])

    @cached_property
    def tail(self) -> str:
        """A digest of that reply; "" of none."""
        return said_digest(self.before)

    @cached_property
    def system(self) -> str:
        return _digest([text_of(m.get("content")) for m in self.messages if m.get("role") in ("system", "developer")])

    @cached_property
    def head(self) -> str:
        """A digest of what the conversation begins with; "" where the span has lost it."""
        first = next((m for m in self.messages if m.get("role") not in ("system", "developer")), None)
        return "" if first is None or self.is_cut else _digest([first.get("role"), text_of(first.get("content"))])


@dataclass(frozen=True, slots=True)
class ToolCall:
    """name : "" where the span names no tool. result : None where the span has none. is_error : None: the text decides.
    error : what went wrong, where it did."""

    name: str
    arguments: Any
    call_id: str
    result: str | None
    is_error: bool | None
    error: str
    conversation: str


def kind_of(span: Any) -> Kind:
    """What the span is of; "" as long as it does not say."""
    attributes = _attributes(span)
    kind, operation = attributes.get("openinference.span.kind"), attributes.get("gen_ai.operation.name")
    if kind is not None:
        return _KINDS.get(str(kind), "other")
    return "" if operation is None else _OPERATIONS.get(str(operation), "other")


def agent_name(span: Any) -> str:
    attributes = _attributes(span)
    named = attributes.get("gen_ai.agent.name") or attributes.get("agent.name") or field_of(span, "name")
    return str(named or "agent")


def model_call(span: Any) -> ModelCall:
    """Of a finished span of a model's call."""
    attributes = _attributes(span)
    conversation = str(attributes.get("gen_ai.conversation.id") or attributes.get("session.id") or "")
    is_cut = False
    if "openinference.span.kind" in attributes:
        messages = list(_flattened(attributes, "llm.input_messages."))
        said = list(_flattened(attributes, "llm.output_messages."))
        usage = {f"{kind}_tokens": attributes.get(f"llm.token_count.{kind}") for kind in ("prompt", "completion")}
        is_cut = bool(field_of(span, "dropped_attributes")) and "llm.input_messages.0.message.role" not in attributes
        is_whole = "llm.output_messages.0.message.role" in attributes and any(map(_is_agents, messages))
        said = [] if is_cut and not is_whole else said
        missing = _NO_OPENINFERENCE
    else:
        messages = list(_of_parts(attributes.get("gen_ai.input.messages")))
        said = list(_of_parts(attributes.get("gen_ai.output.messages")))[:1]  # further ones are other choices
        if messages and (system := _json(attributes.get("gen_ai.system_instructions"))):
            messages.insert(0, {"role": "system", "content": _parts_text(system)})
        usage = {name: attributes.get(f"gen_ai.usage.{name}") for name in ("input_tokens", "output_tokens")}
        missing = _NO_GENAI
    reply, failed = _joined(said) if said else None, bool(_error(span))
    is_hidden = not messages or _REDACTED in (
        attributes.get("output.value"),
        *(m["content"] for m in (*messages, *said)),
    )
    is_call = bool(messages or said or any(usage.values()))  # and not what a framework does around one
    if is_cut or not (is_call and is_hidden) or (failed and not messages):
        missing = ""
    return ModelCall(messages, reply, usage, conversation, missing, is_cut, reply is None and not failed)


def tool_call(span: Any) -> ToolCall:
    """Of a finished span of a tool's call."""
    attributes = _attributes(span)
    error = _error(span)
    is_error: bool | None = True if error else None
    if "openinference.span.kind" in attributes:
        name, arguments = attributes.get("tool.name"), attributes.get("input.value")
        result, call_id = attributes.get("output.value"), attributes.get("tool_call.id") or attributes.get("tool.id")
        message = _json(result)
        message = field_of(message, "data") if field_of(message, "type") == "tool" else None
        if isinstance(message, Mapping):  # as LangChain writes a tool's message
            call_id, result = message.get("tool_call_id") or call_id, message.get("content")
            is_error = True if message.get("status") == "error" else is_error
    else:
        name, arguments = attributes.get("gen_ai.tool.name"), attributes.get("gen_ai.tool.call.arguments")
        result, call_id = attributes.get("gen_ai.tool.call.result"), attributes.get("gen_ai.tool.call.id")
    conversation = attributes.get("gen_ai.conversation.id") or attributes.get("session.id")
    text = None if result is None or result == _REDACTED else text_of(result)
    return ToolCall(str(name or ""), arguments, str(call_id or ""), text, is_error, error, str(conversation or ""))


def calls_of(message: Message) -> list[tuple[str, str]]:
    """(tool, arguments in one spelling) of the calls of a message."""
    functions = [field_of(call, "function") for call in message.get("tool_calls") or ()]
    return [(str(field_of(f, "name") or ""), spelled(field_of(f, "arguments"))) for f in functions]


def spelled(arguments: Any) -> str:
    """Arguments in one spelling, whether they came as JSON or as its text."""
    found = _json(arguments)
    return text_of(arguments) if found is None else json.dumps(found, sort_keys=True, default=str)


def said_digest(message: Message) -> str:
    """A digest of what an agent said, as the history of its next call repeats it; "" of nothing."""
    calls = calls_of(message)
    ids = [field_of(call, "id") for call in message.get("tool_calls") or ()]
    text = text_of(message.get("content")).strip()
    return _digest([ids, calls]) if calls else _digest(text) if text else ""


def _attributes(span: Any) -> Mapping[str, Any]:
    found = field_of(span, "attributes")
    return found if isinstance(found, Mapping) else {}


def _is_agents(message: Message) -> bool:
    return bool(message.get("role") == "assistant")


def _digest(value: Any) -> str:
    return hashlib.blake2b(json.dumps(value, default=str).encode(), digest_size=12).hexdigest()


def _json(value: Any) -> Any:
    """The JSON object or list of a text, or one that is there already; None where it is none."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, Mapping | list | tuple) else None


def _error(span: Any) -> str:
    """What a span says went wrong; "" where nothing did."""
    status = field_of(span, "status")
    if field_of(field_of(status, "status_code"), "name") != "ERROR":
        return ""
    for event in reversed(field_of(span, "events") or ()):
        found = field_of(event, "attributes") or {}
        if field_of(event, "name") == "exception":
            name = str(field_of(found, "exception.type") or "").rpartition(".")[2]
            return f"{name}: {field_of(found, 'exception.message') or ''}"
    return str(field_of(status, "description") or _attributes(span).get("error.type") or "error")


def _joined(messages: list[Message]) -> Message:
    """Messages of one reply as one."""
    text = "\n".join(filter(None, (text_of(message.get("content")) for message in messages)))
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def _parts_text(parts: Any) -> str:
    texts = [field_of(part, "content") for part in parts if field_of(part, "type") == "text"]
    return "\n".join(text_of(text) for text in texts if text)


def _of_parts(messages: Any) -> Iterator[Message]:
    """Messages of the GenAI conventions, which are made of parts."""
    for message in _json(messages) or ():
        role, parts = field_of(message, "role"), field_of(message, "parts") or ()
        answers = [part for part in parts if field_of(part, "type") == "tool_call_response"]
        for part in answers:
            content = field_of(part, "response", field_of(part, "result"))
            yield {"role": "tool", "tool_call_id": field_of(part, "id"), "content": content}
        calls = [
            {"id": field_of(part, "id"), "function": {name: field_of(part, name) for name in ("name", "arguments")}}
            for part in parts
            if field_of(part, "type") == "tool_call"
        ]
        if not answers or calls or _parts_text(parts):
            role = "assistant" if role == "model" else role
            yield {"role": role, "content": _parts_text(parts), "tool_calls": calls}


def _flattened(attributes: Mapping[str, Any], prefix: str) -> Iterator[Message]:
    """Messages that OpenInference has flattened to `prefix0.message.tool_calls.1.tool_call.id` and the like."""
    tree: dict[str, Any] = {}
    for key, value in attributes.items():
        if not key.startswith(prefix):
            continue
        place, (*path, last) = tree, key.removeprefix(prefix).split(".")
        for part in path:
            below = place.setdefault(part, {})
            if not isinstance(below, dict):
                break
            place = below
        else:
            place[last] = value
    for one in _in_order(tree):
        message = field_of(one, "message")
        content = field_of(message, "content")
        if content is None:
            blocks = [field_of(block, "message_content") for block in _in_order(field_of(message, "contents"))]
            content = text_of([block for block in blocks if block is not None] or None)
        calls = [field_of(call, "tool_call") for call in _in_order(field_of(message, "tool_calls"))]
        made = [{"id": field_of(call, "id"), "function": _function(field_of(call, "function"))} for call in calls]
        call_id = field_of(message, "tool_call_id")
        yield {"role": field_of(message, "role"), "content": content, "tool_call_id": call_id, "tool_calls": made}


def _function(found: Any) -> dict[str, Any]:
    """OpenInference leaves empty arguments out."""
    return {"name": field_of(found, "name"), "arguments": field_of(found, "arguments", "{}")}


def _in_order(numbered: Any) -> list[Any]:
    """Values of {"0": ..., "10": ...} by number."""
    found = numbered if isinstance(numbered, dict) else {}
    return [found[key] for key in sorted((key for key in found if key.isdecimal()), key=lambda key: (len(key), key))]
