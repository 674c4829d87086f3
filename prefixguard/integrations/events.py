"""One event of a running agent, in the words of hooks, recorded files and monitors: `prefixguard/event/v1`.

What a hook feeds to a monitor is what the recorder writes, one JSON object a line, and what the shipped adapter
`events` reads. So a monitor that was trained on recorded files reads a live run as it read those.

A run is a tree of agents. Each agent that works on messages of its own has an agent path: `main`, and below it one
for every sub-agent and every parallel branch (`main/research#call_2`). Each path is watched by a session of its own.
An agent that takes over a conversation (a handoff) goes on in the same path under another name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, get_args

from prefixguard.errors import TraceError
from prefixguard.stepview import EVENT_SCHEMA as SCHEMA
from prefixguard.stepview import is_limit, is_tools

MAIN: Final = "main"

Kind = Literal["task", "observed", "said", "called", "returned", "injected", "ended", "outcome"]
KINDS: Final[tuple[str, ...]] = get_args(Kind)
ACTORS: Final = ("agent", "user", "environment", "system")

#: Code points of a text, and of arguments as JSON, that an event keeps; adapters keep far less of each field.
MOST_TEXT: Final = 200_000


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened in a run. Fields that do not belong to the kind stay as they are by default.

    run : id of the run, unique among the runs of a folder.
    kind : `task`, what the agent was asked, first in its path; `observed`, text that arrived (a user's message, the
        environment); `said`, the agent's text without a call; `called`, a tool call; `returned`, what came back;
        `injected`, text that a monitor or its host put in, which monitors do not read; `ended`, the path is over;
        `outcome`, how the run ended, for training, which monitors do not see.
    agent_path : which agent of the run, `main` or below it.
    agent : the agent's name; for people and for evaluation, never evidence.
    actor : who `said` or `called`: agent, unless it was the user, the environment or the system.
    text : of the task, the observation, the agent, the result; of `called`, the agent's text that came with the call.
    turn : number of the model's reply that made the call; calls of one turn may return in any order.
    call_id : ties `returned` to `called`; unique in its path.
    tool, arguments : of `called`. arguments: a JSON value, the JSON text of one as the model spelled it, or any text.
    is_error : of `returned`: did the call fail? None where nobody says; then the text decides.
    task_id : of `task`: runs with the same one never stand on two sides of a split.
    tools, step_limit : of `task`: names of the tools that the agent can call, at most 1,000 of at most 200 characters;
        steps that it may have, 1 or more. Behaviours rest on them, and no risk does.
    outcome : of `outcome`: success or failure.
    id : of the event; one that comes again within 256 events is left out. "" where there is none.
    at : seconds since 1970, UTC. seconds : that the step took, where somebody says it; else the times of its events do.
    tokens_in, tokens_out : of the model's reply. cost : US dollars. logprobs : a summary of the reply's token
        log-probabilities: `mean` and `min`. metadata : anything else; never a feature.
    """

    run: str
    kind: Kind
    agent_path: str = MAIN
    agent: str = ""
    actor: Literal["", "agent", "user", "environment", "system"] = ""
    text: str = ""
    turn: int | None = None
    call_id: str = ""
    tool: str = ""
    arguments: Any = None
    is_error: bool | None = None
    task_id: str = ""
    tools: Sequence[str] | None = None
    step_limit: int | None = None
    outcome: Literal["", "success", "failure"] = ""
    id: str = ""
    at: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None
    seconds: float | None = None
    logprobs: Mapping[str, float] | None = None
    metadata: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """The line that the recorder writes, as an object of plain JSON values: what is absent is left out, texts are
        cut to `MOST_TEXT`, values that JSON has no form for become their text."""
        run, path = well_formed(self.run), well_formed(self.agent_path)
        found: dict[str, Any] = {"schema": SCHEMA, "run": run, "agent_path": path, "kind": self.kind}
        for name in _OTHERS:
            value = getattr(self, name)
            if value is None or value == "":
                continue
            found[name] = well_formed(value[:MOST_TEXT]) if isinstance(value, str) else value
        for name in ("arguments", "metadata", "logprobs", "tools"):
            if name in found:
                found[name] = plain_json(found[name])
        return found

    @classmethod
    def from_json(cls, found: Any) -> Event:
        """The event of such an object. Raises TraceError, which names the field, for one that is none.

        Keys that this release does not know are left out, since a later release may add some.
        """
        if not isinstance(found, Mapping):
            raise TraceError(f"an event is a JSON object, not {type(found).__name__}.")
        if found.get("schema", SCHEMA) != SCHEMA:
            raise TraceError(f"the event is of schema {found.get('schema')!r:.80}; this release reads {SCHEMA}.")
        given = {name: found[name] for name in _TYPES if found.get(name) is not None}
        for name, value in given.items():
            if not fits(name, value):
                wanted = _SAID.get(name) or _CALLED[_TYPES[name]]
                raise TraceError(f"event: {name} is {value!r:.80}, and must be {wanted}.")
        for name, allowed in (("kind", KINDS), ("outcome", ("success", "failure")), ("actor", ACTORS)):
            if (name in given or name == "kind") and given.get(name) not in allowed:
                raise TraceError(f"event: {name} is {given.get(name)!r:.80}, and must be one of {', '.join(allowed)}.")
        if not given.get("run"):
            raise TraceError("event: it has no run: the id of the run that it belongs to.")
        if "arguments" in found:
            given["arguments"] = found["arguments"]
        return cls(**given)

    @classmethod
    def of(cls, given: Any) -> Event:
        """The event itself where its fields have their types, and the event of an object; else raises TraceError."""
        if not isinstance(given, cls):
            return cls.from_json(given)
        for name, kind in _TYPES.items():
            value = getattr(given, name)
            if value is not None and value.__class__ is not kind and not fits(name, value):
                break
        else:
            if given.run and given.kind in KINDS:
                return given
        every = {one.name: getattr(given, one.name) for one in fields(cls)}
        return cls.from_json({name: v for name, v in every.items() if not (isinstance(v, str) and not v)})


_OTHERS = tuple(field.name for field in fields(Event) if field.name not in ("run", "kind", "agent_path"))
_NUMBERS = {
    "turn": int,
    "tokens_in": int,
    "tokens_out": int,
    "at": (int, float),
    "cost": (int, float),
    "seconds": (int, float),
}
_TYPES: dict[str, Any] = {
    **{field.name: str for field in fields(Event) if field.name != "arguments"},
    **_NUMBERS,
    "is_error": bool,
    "logprobs": Mapping,
    "metadata": Mapping,
    "tools": (list, tuple),
    "step_limit": int,
}
_CALLED: dict[Any, str] = {
    str: "a text", int: "a whole number", (int, float): "a number", bool: "true or false", Mapping: "an object",
}  # fmt: skip
_SAID = {"tools": "a list of at most 1,000 names, each of 1 to 200 characters", "step_limit": "a number from 1"}


def fits(name: str, value: Any) -> bool:
    """Is this a value that the field may have? Any for `arguments`, and for names that no field has."""
    kind = _TYPES.get(name, object)
    if name in ("tools", "step_limit"):
        return is_tools(value) if name == "tools" else is_limit(value)
    return isinstance(value, kind) and (not isinstance(value, bool) or kind in (bool, object))


#: How deep values of frameworks are followed, and how many parts of one are kept.
_DEEPEST, _MOST_PARTS = 16, 10_000


def plain_json(value: Any) -> Any:
    """A value as JSON has it: objects of frameworks by their fields, texts cut, what has no form as its text.

    At most 16 levels deep and 10,000 parts; what is beyond becomes `"..."`. Raises nothing of its own.

    >>> plain_json({"a": (1, float("nan")), 2: {"x"}})
    {'a': [1, 'nan'], '2': ['x']}
    """
    left = [_MOST_PARTS]
    return _plain(value, _DEEPEST, left)


def _plain(value: Any, depth: int, left: list[int]) -> Any:
    left[0] -= 1
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= 1024 else f"<whole number of {value.bit_length()} bits>"
    if isinstance(value, str):
        return well_formed(value[:MOST_TEXT])
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth == 0 or left[0] <= 0:
        return "..."
    try:
        if isinstance(value, Mapping):
            parts = list(value.items())[: max(left[0], 0)]
            return {well_formed(str(key)): _plain(one, depth - 1, left) for key, one in parts}
        if isinstance(value, list | tuple | set | frozenset):
            return [_plain(one, depth - 1, left) for one in list(value)[: max(left[0], 0)]]
        if callable(dump := getattr(value, "model_dump", None)) and not isinstance(value, type):
            return _plain(dump(mode="json"), depth - 1, left)
        if (inside := getattr(value, "__dataclass_fields__", None)) is not None and not isinstance(value, type):
            return {name: _plain(getattr(value, name), depth - 1, left) for name in inside}
        return str(value)[:MOST_TEXT]
    except Exception:  # an object of the host's: whatever its methods do, the event is kept
        return f"<{type(value).__name__}>"


def text_of(value: Any) -> str:
    """What a framework calls content or output, as text: text itself, the texts of its blocks, else JSON.

    >>> text_of([{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}]), text_of({"ok": True})
    ('a\\nb', '{"ok":true}')
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and value:
        blocks = [_block_text(one) for one in value]
        if all(block is not None for block in blocks):
            return "\n".join(block for block in blocks if block)
    found = plain_json(value)
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _block_text(block: Any) -> str | None:
    """The text of a content block; "" of one that has none to read, such as reasoning; None where it is no block."""
    if isinstance(block, str):
        return block
    kind = field_of(block, "type")
    if not isinstance(kind, str):
        return None
    for name in ("text", "refusal"):
        if isinstance(text := field_of(block, name), str):
            return text
    if "image" in kind:
        return "<image>"
    return text_of(inner) if (inner := field_of(block, "content")) is not None else ""


def well_formed(text: str) -> str:
    """The text, with a question mark for every half of a character, which no file can hold.

    >>> well_formed("a\\ud800b")
    'a?b'
    """
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text


def field_of(value: Any, name: str, default: Any = None) -> Any:
    """A field of a framework's object, or of the same as a dict; the default where it has none."""
    try:
        found = value.get(name, default) if isinstance(value, Mapping) else getattr(value, name, default)
    except Exception:
        return default
    return found
