"""What a person says beforehand, as fragments of the spec: `--hint PART=VALUE` and files of JSON. The rest is inferred
around it, and nothing that is inferred overrules it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.errors import AdapterError, ConfigError, TraceError
from prefixguard.induce.model.outline import Outline
from prefixguard.induce.proposal import Choice
from prefixguard.induce.samples import Samples
from prefixguard.stepview import Adapter, canonical
from prefixguard.trace.named_file import read_named

#: Parts of a spec, with an example of what each may hold.
EXAMPLES: dict[str, str] = {
    "container": '{"format":"json","runs":"$[*]"}',
    "container.runs": "$.runs[*]",
    "container.files": "**/*.json",
    "container.group_by": "@.run_id",
    "run": '{"task":"$.task_id"}',
    "run.id": "$.run_id",
    "run.task": "$.task_id",
    "run.groups": '{"agent":"$.agent"}',
    "run.preamble": "$.question",
    "run.outcome": '{"of":"$.reward","type":"number","success":{"ge":1},"failure":"else"}',
    "run.labels": '{"mistake_step":"$.mistake_step","step_base":0}',
    "events": "$.messages[*]",
    "rules": '[{"when":{"@.role":"assistant"},"emit":"say","action":{"text":"@.content"}}]',
    "status": '[{"when":{"result":{"re":"(?i)^error"}},"is":"error"},{"is":"ok"}]',
    "join": '{"by":"id","scope":"run"}',
    "turn": "@.message.id",
    "kind": "@.type",
    "signals": '{"at":"@.timestamp"}',
    "budgets": '{"result":[1200,800]}',
    "hidden": '["$.reward"]',
    "waived": '[{"path":"@.content","reason":"the agent says it live, too"}]',
    "version": '"1.0.0"',
    "description": '"Chats of our desk."',
}
#: Short names of parts.
_SHORT = {"outcome": "run.outcome", "task": "run.task", "id": "run.id", "runs": "container.runs"}
#: Of steps, by the place of the event that holds them; a `status` that is JSON is the part of the spec.
_OF_STEPS = ("role", "tool", "arguments", "call_id", "result", "action", "status")
#: All names that a hint may have.
HINTS = (*_SHORT, "success", "events", *_OF_STEPS, *(part for part in EXAMPLES if part not in ("events", "status")))
#: Parts that add up instead of taking each other's place.
_ADDED = ("hidden", "waived")
#: Files, and documents of each, in which lists are looked for.
_LOOKED_AT = 20
#: Bytes of a file that holds a fragment.
MOST_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Said:
    """What a person said. fragment: parts of the spec. hints: the same and more by short names, as inference takes
    them: paths, or values of the spec as JSON."""

    fragment: Mapping[str, Any]
    hints: Mapping[str, str]


def said_of(hints: Mapping[str, str], files: tuple[str | Path, ...] = ()) -> Said:
    """Hints and files of fragments together. ConfigError for what is no part of a spec or no value of that part, with
    the hint that would be."""
    fragment: dict[str, Any] = {}
    for file in files:
        fragment = overlaid(fragment, _fragment_in(Path(file)))
    short: dict[str, str] = {}
    for name, text in hints.items():
        part = _SHORT.get(name, name)
        if name == "success" or (name in _OF_STEPS and not text.startswith(("[", "{", '"'))):
            if name != "success":
                _check_path(name, text, "@.content")
            short[name] = text
        elif part in EXAMPLES:
            fragment = overlaid(fragment, _nested(part.split("."), _value(name, part, text)))
        else:
            raise ConfigError(
                f"hint {name!r}: nothing of that name. A hint is PART=VALUE; PART is one of {', '.join(HINTS)}. For "
                f"example: --hint 'run.outcome={EXAMPLES['run.outcome']}'"
            )
    return Said(fragment, {**_short_of(fragment), **short})


def overlaid(spec: Mapping[str, Any], fragment: Mapping[str, Any]) -> dict[str, Any]:
    """The spec with what the fragment says: objects part by part, all else in the place of what was there; what is
    hidden or waived is added.

    >>> overlaid({"run": {"id": "$.a", "task": "$.b"}, "hidden": ["$.x"]}, {"run": {"id": "$.c"}, "hidden": ["$.y"]})
    {'run': {'id': '$.c', 'task': '$.b'}, 'hidden': ['$.x', '$.y']}
    """
    found = dict(spec)
    for key, value in fragment.items():
        before = found.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping) and (key in ("run", "container", "outcome")):
            found[key] = overlaid(before, value)
        elif key in _ADDED and isinstance(before, list) and isinstance(value, list):
            found[key] = before + [one for one in value if one not in before]
        else:
            found[key] = dict(value) if isinstance(value, Mapping) else value
    return found


def completed(spec: Mapping[str, Any], fragment: Mapping[str, Any]) -> dict[str, Any]:
    """An inferred spec with what a person said. An outcome of which only the place was said keeps the sides that were
    inferred for it; without them it is left out."""
    run = fragment.get("run", {})
    outcome = run.get("outcome") if isinstance(run, Mapping) else None
    if outcome is None or _is_whole(outcome):
        return overlaid(spec, fragment)
    rest = {**fragment, "run": {key: value for key, value in run.items() if key != "outcome"}}
    found = overlaid(spec, rest)
    inferred = found.get("run", {}).get("outcome")
    if isinstance(outcome, Mapping) and _SIDES & outcome.keys() and isinstance(inferred, Mapping):
        found["run"] = {**found["run"], "outcome": {**inferred, **outcome}}
    return found


#: What an outcome has besides the value that it is read from.
_SIDES = {"success", "failure", "type"}


def _place_of(outcome: Any) -> Any:
    """The value that an outcome is read from; None where only its sides were said."""
    if isinstance(outcome, Mapping) and ("of" in outcome and not {"re", "map", "cut"} & outcome.keys()):
        return outcome["of"]
    return None if isinstance(outcome, Mapping) and _SIDES & outcome.keys() else outcome


def _is_whole(outcome: Any) -> bool:
    return isinstance(outcome, Mapping) and {"of", "success", "failure"} <= outcome.keys()


def answers(choice: Choice) -> list[str]:
    """The flags of which each answers the question, in the order of its options; for a shell."""
    part = {"outcome": "run.outcome", "task": "run.task", "id": "run.id"}.get(choice.field, choice.field)
    if part not in EXAMPLES:
        return []
    values = [option.value for option in choice.options if option.value is not None]
    if not values:
        return [f"--hint {choice.field}=PATH"] + ["--labels FILE"] * (choice.field == "outcome")
    return [f"--hint {shlex.quote(f'{part}={_as_text(value)}')}" for value in values]


def places_of_events(samples: Samples) -> list[str]:
    """Where lists of objects are in the samples, those with most elements first: what `events` may be."""
    outline = Outline(_LOOKED_AT * _LOOKED_AT)
    for file in samples.files[:_LOOKED_AT]:
        for value in file.value[:_LOOKED_AT] if isinstance(file.value, list) else [file.value]:
            outline.add(value, "$")
    lists = {
        "".join(path): met.types["object"]
        for path, met in outline.places.items()
        if path[-1] == "[*]" and not {"[*]", ".*"} & {*path[:-1]}
    }
    return sorted((path for path in lists if lists[path]), key=lambda path: (-lists[path], path))[:3]


def _nested(parts: list[str], value: Any) -> dict[str, Any]:
    return {parts[0]: value if len(parts) == 1 else _nested(parts[1:], value)}


def _value(name: str, part: str, text: str) -> Any:
    """What is said of a part: JSON, or a path, or a glob or text where the part is one."""
    example = EXAMPLES[part]
    if text.lstrip().startswith(("{", "[", '"')):
        try:
            value = json.loads(text)
        except ValueError as exc:
            raise ConfigError(f"hint {name}={text}: not JSON ({exc}). For example: --hint '{part}={example}'") from exc
    else:
        value = text
        if part not in ("container.files", "version", "description", "status"):
            _check_path(name, text, example, part)
    _check_part(name, part, value, example)
    return value


def _check_path(name: str, text: str, example: str, part: str | None = None) -> None:
    if text and text[0] in "$@%^":
        return
    hint = f"--hint '{part or name}="
    root, end = "@" if example[0] == "@" else "$", "[*]" if example.endswith("[*]") else ""
    guess = f"Perhaps: {hint}{root}.{text}{end}' " if text.isidentifier() else ""
    raise ConfigError(
        f"hint {name}={text!r}: a path is needed, such as $.result.ok (of the run) or @.content; or a value of the "
        f"spec as JSON. {guess}For example: {hint}{example}'"
    )


#: A spec into which a part is put to see whether it can be one.
_FRAME = {
    "schema": "prefixguard/adapter/v1", "name": "hint", "version": "1.0.0", "container": {"format": "json"},
    "events": "$.none[*]", "rules": [{"when": "else", "emit": "skip"}],
}  # fmt: skip


def _check_part(name: str, part: str, value: Any, example: str) -> None:
    if part == "run.outcome" and not _is_whole(value):
        given = _place_of(value)
        part, value = "run.groups", {} if given is None else {"outcome": given}
    frame: dict[str, Any] = dict(_FRAME)
    if part.startswith("container"):
        frame["container"] = {"format": "jsonl"}  # takes every key that a part may give
    try:
        Adapter(overlaid(frame, _nested(part.split("."), value)))
    except AdapterError as exc:
        why = str(exc).removeprefix("adapter hint, ")
        raise ConfigError(f"hint {name}: {why} For example: --hint '{name}={example}'") from exc


def _fragment_in(file: Path) -> dict[str, Any]:
    remedy = 'A fragment is a JSON object with parts of a spec: {"run": {"task": "$.task_id"}}.'
    try:
        value = json.loads(read_named(file, MOST_BYTES, remedy=remedy, error=TraceError))
    except ValueError as exc:
        if isinstance(exc, TraceError):
            raise
        raise ConfigError(f"{file}: not JSON ({exc}). {remedy}") from exc
    tops = {part.partition(".")[0] for part in EXAMPLES} | {"schema", "name", "comment", "view"}
    wrong = [key for key in value if key not in tops] if isinstance(value, dict) else ["?"]
    if wrong:
        raise ConfigError(f"{file}: {wrong[0]!r} is no part of a spec. {remedy}")
    return {key: part for key, part in value.items() if key not in ("schema", "name")}


def _short_of(fragment: Mapping[str, Any]) -> dict[str, str]:
    """What inference is told of the fragment: places as it names them, and the whole as JSON where it says more."""
    parts = (fragment.get(key) for key in ("run", "container"))
    run, container = (part if isinstance(part, Mapping) else {} for part in parts)
    outcome, runs, events = run.get("outcome"), container.get("runs"), fragment.get("events")
    places = {
        "id": run.get("id"),
        "task": run.get("task"),
        "outcome": _place_of(outcome),
        "run.outcome": outcome if _is_whole(outcome) else None,
        "runs": runs if isinstance(runs, str) else None,
        "events": events if isinstance(events, str) else None,
    }
    found = {key: _as_text(value) for key, value in places.items() if value is not None}
    if "run.outcome" in found or {*run, *container, *fragment} - {"run", "container"} - found.keys():
        found["fragment"] = canonical(dict(fragment))
    return found


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else canonical(value)
