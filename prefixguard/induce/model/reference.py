"""The grammar of a spec as a model is taught it: written from the schema, so that the two cannot part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import Any

#: Keys that stand in many places and say the same everywhere.
_EVERYWHERE = ("comment", "files")
#: Top-level keys that the tool writes itself, or that a model has no use for.
_OURS = (
    "$schema", "schema", "name", "version", "description", "comment", "budgets", "waived", "view", "kind", "signals",
)  # fmt: skip
#: What tables of scores are read with: nothing that is made of raw traces needs it.
_OF_SCORES = ("score", "step")


@cache
def schema() -> dict[str, Any]:
    """The JSON schema of specs, decoded."""
    text = (resources.files("prefixguard.stepview") / "adapter.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@cache
def reference() -> str:
    """Every construct of the language, a line each."""
    spec = schema()
    parts = spec["$defs"]
    lines = ["## Spec (top level)"]
    for name, part in spec["properties"].items():
        if name in _OURS:
            continue
        required = ", required" if name in spec["required"] else ""
        lines.append(f"- `{name}`{required}: {_said(part, nested=False)}")
        lines += [f"  - {line}" for line in _properties(part)]
    lines += ["", "## container (`files`: globs; ** any folders, * within a name, {a,b} either)"]
    lines += _forms(parts["container"]["anyOf"])
    lines += ["", "## events: a path, or one of these (keys of the first fit all)", *_forms(parts["events"]["anyOf"])]
    lines += ["", "## Paths", parts["path"]["description"], "", "## Values", parts["value"]["description"]]
    for name, part in parts.items():
        if name.startswith("value_"):
            word = name.removeprefix("value_")
            own = _said(part["properties"][word]) if "description" in part["properties"][word] else ""
            extra = "; ".join(_properties(part, skip=(word, "of")))
            lines.append(" ".join(one for one in (f"- `{word}`: {part['description']}", own, extra) if one))
    lines += ["", "## Tests", parts["test"]["anyOf"][0].get("description", parts["test"]["description"])]
    lines += [f"- {line}" for line in _properties(parts["test"]["anyOf"][1])]
    lines += ["", "## when", parts["when"]["description"]]
    words = parts["when"]["anyOf"][1]["properties"]
    record = [name for name, part in words.items() if "In status rules only" in part.get("description", "")]
    lines += [f"- {line}" for line in _properties({"properties": words}, skip=tuple(record))]
    lines.append(f"- in `status` rules also fields of the record: {', '.join(record)}")
    lines += ["", "## status", parts["status"]["description"], "", "## Rules", parts["rule"]["description"]]
    lines += [f"- {line}" for line in _properties(parts["rule"], skip=_OF_SCORES)]
    return "\n".join(lines)


def _forms(forms: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A line a form; what a key is, is said where it is met first."""
    told: set[str] = set()
    for one in forms:
        name = one.get("properties", {}).get("format", {}).get("const")
        if "properties" not in one or name == "scores":
            continue
        new = {key: part for key, part in one["properties"].items() if str(part) not in told and key != "format"}
        again = [f"`{key}`" for key in one["properties"] if key not in (*new, "format", *_EVERYWHERE)]
        keys = [*_properties({"properties": new}), *[f"{', '.join(again)} as above"] * (0 < len(again) < 4)]
        told |= set(map(str, new.values()))
        yield f"- {f'`{name}`: ' if name else ''}{one['description']} {'; '.join(keys)}".rstrip()


def _properties(part: dict[str, Any], skip: tuple[str, ...] = ()) -> Iterator[str]:
    for name, inner in part.get("properties", {}).items():
        if name in skip or name in _EVERYWHERE:
            continue
        said = _said(inner)
        yield f"`{name}`: {said}" if said else f"`{name}`"


def _said(part: dict[str, Any], nested: bool = True) -> str:
    """What the schema says of a part, in a sentence: its description, or the choices it has."""
    said = str(part.get("description", ""))
    choices = next((one["enum"] for one in (part, *part.get("anyOf", ())) if "enum" in one), ())
    if not all(str(choice) in said for choice in choices):
        named = " | ".join(json.dumps(choice) for choice in choices)
        said = f"{named}. {said}".rstrip(". ") + "."
    inner = part.get("properties")
    if inner and nested:
        said = f"{said} {{{'; '.join(_properties(part))}}}".strip()
    kind = str(part.get("$ref", "")).rpartition("/")[2]
    names = {"value": "a value", "test": "a test", "when": "a condition", "regex": "RE2", "path": "a path"}
    return said or names.get(kind, "")
