"""The block above a log that says what the run is: keys and values between two rulers, one block a file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prefixguard.induce.offline.outcome import judge_values
from prefixguard.induce.offline.text_lines import literal
from prefixguard.lexicon import Meaning, affinity, polarity

#: A block has no more lines than this.
LONGEST = 60
_RULERS = ("---", "+++")
_KEY = re.compile(r"([A-Za-z_][\w .-]{0,40}?)[ \t]*[:=][ \t]*(.*)$")


@dataclass(frozen=True, slots=True)
class Headers:
    """fields: one a text, the values by key. sizes: lines of the block of each text, 0 where it has none."""

    fields: tuple[Mapping[str, str], ...]
    sizes: tuple[int, ...]


def headers_of(texts: Sequence[str]) -> Headers:
    """The blocks of the texts; none where fewer than nine in ten of the texts have one."""
    fields: list[dict[str, str]] = []
    sizes: list[int] = []
    for text in texts:
        found, size = _block(text.split("\n", LONGEST + 1)[: LONGEST + 1])
        fields.append(found)
        sizes.append(size)
    if sum(map(bool, sizes)) < 0.9 * len(texts):
        return Headers(({},) * len(texts), (0,) * len(texts))
    return Headers(tuple(fields), tuple(sizes))


def _block(lines: Sequence[str]) -> tuple[dict[str, str], int]:
    if not lines or lines[0].rstrip() not in _RULERS:
        return {}, 0
    ruler = lines[0].rstrip()
    found: dict[str, str] = {}
    for at, line in enumerate(lines[1:], 1):
        if line.rstrip() == ruler:
            return (found, at + 1) if found else ({}, 0)
        match = _KEY.match(line)
        if match is not None:
            found.setdefault(match.group(1), match.group(2).strip().strip("\"'"))
        elif line.strip() and line[:1] not in " \t-#":
            return {}, 0
    return {}, 0


def columns(headers: Headers) -> dict[str, list[str | None]]:
    """Values by key, one a text that is a run."""
    keys = sorted({key for one in headers.fields for key in one})
    return {key: [one.get(key) for one in headers.fields] for key in keys}


def value_of(key: str, of: str) -> dict[str, Any]:
    """The value of the spec for the text behind this key: the first such line is that of the block."""
    return {"re": rf"(?m)^{literal(key)}[ \t]*[:=][ \t]*[\"']?(.*?)[\"']?[ \t]*$", "of": of}


def task_key(headers: Headers) -> str:
    """The key that says what a run is asked to do, by its name; empty where there is none."""
    found = []
    for key, values in columns(headers).items():
        told = [value for value in values if value]
        weight = max(affinity(key, Meaning.TASK_TEXT), affinity(key, Meaning.TASK_ID))
        if weight >= 0.5 and len(told) >= 0.9 * len(values) and (len(set(told)) > 1 or len(told) == 1):
            longest = sum(map(len, told)) / len(told)
            found.append((weight, longest, key))
    return max(found)[2] if found else ""


@dataclass(frozen=True, slots=True)
class Told:
    """What a key says of how runs ended. success, failure: tests of the spec over its text."""

    key: str
    success: Any
    failure: Any
    confidence: float
    why: str
    example: str


def outcomes(headers: Headers) -> list[Told]:
    """Keys that say how runs ended, the surest first."""
    found = []
    for key, values in columns(headers).items():
        told = [value for value in values if value]
        if not told:
            continue
        typed = [None if value is None else _typed(value) for value in values]
        for form in judge_values(typed, key)[:1]:
            sides = {text: _side(form.success, one, text) for text, one in zip(values, typed, strict=True) if text}
            good = sorted(text for text, side in sides.items() if side)
            if not good or not isinstance(form.success, str | bool | int | float | dict):
                continue
            success: Any = good[0] if len(good) == 1 else {"in": good}
            sure = form.confidence * (0.25 + 0.75 * len(told) / len(values))
            found.append(Told(key, success, "else", sure, form.why, told[0]))
    return sorted(found, key=lambda one: (-one.confidence, one.key))


def _typed(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if re.fullmatch(r"-?\d{1,15}", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?\d{1,15}\.\d{1,15}", text) else text


def _side(test: Any, value: Any, text: str) -> bool:
    if isinstance(test, dict):
        if "ge" in test:
            return isinstance(value, int | float) and not isinstance(value, bool) and value >= test["ge"]
        if "in" in test:
            return value in test["in"] or text in test["in"]
        return polarity(text) > 0
    return type(value) is type(test) and bool(value == test)
