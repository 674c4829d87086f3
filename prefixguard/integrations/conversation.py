"""Messages and items as chat completions and Responses have them, objects or dicts, told to a watched run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from prefixguard.integrations.events import field_of, plain_json, text_of
from prefixguard.integrations.watched_run import WatchedRun

#: Items of Responses that are calls with a result of their own, which the provider's servers made.
_HOSTED = {
    "web_search_call": "web_search",
    "file_search_call": "file_search",
    "code_interpreter_call": "code_interpreter",
    "image_generation_call": "image_generation",
    "mcp_call": "",
}
#: Items that say nothing to act on.
_SILENT = (
    "reasoning",
    "compaction",
    "item_reference",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
)


def tell_chat_input(run: WatchedRun, messages: Sequence[Any]) -> None:
    """What a chat completion is asked with: the messages behind the agent's last one are new."""
    start = behind_last(messages, lambda message: field_of(message, "role") == "assistant")
    for position in range(start, len(messages)):
        message = messages[position]
        role, content = field_of(message, "role"), field_of(message, "content")
        if role in ("tool", "function"):
            call_id = field_of(message, "tool_call_id") or field_of(message, "name") or ""
            result_of(run, call_id, content)
        elif role == "user":
            observe_again(run, text_of(content), position)


def tell_chat_reply(run: WatchedRun, message: Any, usage: Any = None) -> None:
    """What the model answered: calls, or speech. usage : of the completion, where it is known."""
    text = text_of(field_of(message, "content")) or text_of(field_of(message, "refusal"))
    calls = [
        (str(field_of(call, "id") or ""), field_of(call, "function") or field_of(call, "custom"))
        for call in field_of(message, "tool_calls") or ()
    ]
    tell_reply(run, text, [(i, field_of(f, "name"), _arguments(f)) for i, f in calls], tokens_of(usage))


def tell_responses_input(run: WatchedRun, given: Any, agent: str = "") -> None:
    """What a response is asked with: a text, or items; those behind the agent's last one are new."""
    if isinstance(given, str):
        observe_again(run, given, 0, agent)
        return
    items = list(given or ())
    start = behind_last(items, lambda item: field_of(item, "role") == "assistant" or _is_call(item))
    for position in range(start, len(items)):
        item = items[position]
        kind = field_of(item, "type")
        if isinstance(kind, str) and kind.endswith("_output"):
            result_of(run, field_of(item, "call_id"), field_of(item, "output"))
        elif field_of(item, "role") == "user":
            observe_again(run, text_of(field_of(item, "content")), position, agent)


def tell_responses_output(run: WatchedRun, items: Iterable[Any], usage: Any = None, agent: str = "") -> None:
    """What the model answered: items of one response, in order."""
    texts: list[str] = []
    calls: list[tuple[str, Any, Any]] = []
    hosted: list[tuple[str, str, bool]] = []
    for item in items:
        kind = str(field_of(item, "type", ""))
        if kind == "message" or (kind == "" and field_of(item, "role") == "assistant"):
            texts.append(text_of(field_of(item, "content")))
        elif kind in _HOSTED:
            call_id = str(field_of(item, "id") or f"hosted-{len(calls)}")
            calls.append((call_id, _HOSTED[kind] or field_of(item, "name"), _hosted_arguments(item)))
            found = (
                field_of(item, "error")
                or field_of(item, "output")
                or field_of(item, "results")
                or field_of(item, "outputs")
            )
            failed = bool(field_of(item, "error")) or field_of(item, "status") in ("failed", "incomplete")
            hosted.append((call_id, text_of(found), failed))
        elif kind.endswith("_call"):
            name = field_of(item, "name") or kind.removesuffix("_call")
            calls.append((str(field_of(item, "call_id") or ""), name, _arguments(item)))
    tell_reply(run, "\n".join(filter(None, texts)), calls, {"agent": agent, **tokens_of(usage)})
    for call_id, text, failed in hosted:
        run.returned(call_id, text, is_error=failed)


def tell_reply(run: WatchedRun, text: str, calls: Sequence[tuple[str, Any, Any]], fields: Mapping[str, Any]) -> None:
    """One reply of a model. calls : id, tool and arguments of each. fields : of the reply's first event."""
    if not calls:
        if text:
            run.said(text, **fields)
        return
    turn = run.next_turn()
    for n, (call_id, tool, arguments) in enumerate(calls):
        first = {"text": text, **fields} if n == 0 else {"agent": fields.get("agent", "")}
        run.called(str(tool or ""), arguments, call_id=call_id, turn=turn, **first)


def tokens_of(usage: Any) -> dict[str, int | float]:
    """`tokens_in`, `tokens_out` and `cost` of a provider's usage, under either API's names; {} where it says none.

    >>> tokens_of({"prompt_tokens": 8, "output_tokens": 3, "cost": 0.001})
    {'tokens_in': 8, 'tokens_out': 3, 'cost': 0.001}
    """
    names = {"tokens_in": ("prompt_tokens", "input_tokens"), "tokens_out": ("completion_tokens", "output_tokens")}
    found = {
        ours: next(
            (n for name in theirs if isinstance(n := field_of(usage, name), int) and not isinstance(n, bool)), None
        )
        for ours, theirs in names.items()
    }
    cost = field_of(usage, "cost")  # dollars, where somebody between the host and the provider adds them
    priced = {"cost": cost} if isinstance(cost, int | float) and not isinstance(cost, bool) else {}
    return {**{name: n for name, n in found.items() if n is not None}, **priced}


def result_of(run: WatchedRun, call_id: Any, result: Any, is_error: bool | None = None) -> None:
    """What came back, unless a hook has told it already. Ids of calls may come again."""
    call_id = str(call_id or "")
    if run.is_open(call_id) or not run.has_returned(call_id):
        given = result if isinstance(result, BaseException) else text_of(result)
        run.returned(call_id, given, is_error=is_error)


def observe_again(run: WatchedRun, text: str, position: int, agent: str = "") -> None:
    """A user's message; one that comes again, since the same messages are sent again, is one event."""
    if text:
        digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()
        run.observed(text, id=f"{position}-{digest}", agent=agent)


def behind_last(items: Sequence[Any], is_agents: Callable[[Any], bool]) -> int:
    """Where what came after the agent's last message begins."""
    return next((n for n in range(len(items), 0, -1) if is_agents(items[n - 1])), 0)


def _is_call(item: Any) -> bool:
    kind = field_of(item, "type")
    return isinstance(kind, str) and (kind.endswith("_call") or kind in _SILENT)


def _arguments(call: Any) -> Any:
    for name in ("arguments", "input", "action", "operation"):
        if (found := field_of(call, name)) is not None:
            return found
    return None


def _hosted_arguments(item: Any) -> Any:
    found = _arguments(item)
    if found is not None:
        return found
    given = {name: plain_json(value) for name in ("queries", "code", "query") if (value := field_of(item, name))}
    return json.dumps(given) if given else None
