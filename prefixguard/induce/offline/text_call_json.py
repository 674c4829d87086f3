"""Calls that are JSON objects, alone, in a fenced block or in a text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import re2

from prefixguard.induce.offline.text_call_form import (
    IDENTIFIER,
    NAME,
    THOUGHT_NAMES,
    CallForm,
    example_of,
    of_text,
    ranked,
    rest_of,
    share_of,
    vocabulary,
)
from prefixguard.induce.offline.text_words import is_prose, word_set
from prefixguard.stepview import decode_text

#: Names that a tool's key may have, the likeliest first.
_TOOL_KEYS: Final = (
    *("tool", "tool_name", "name", "function", "function_name", "action", "action_name", "action_type"),
    *("command", "cmd", "op", "operation", "api", "method", "type"),
)
_ARGUMENT_KEYS: Final = word_set(
    "arguments args parameters params input inputs action_input tool_input kwargs parameter action_args payload"
)


def json_call(texts: list[str], at: str) -> CallForm | None:
    ways: tuple[tuple[str, str | None], ...] = (
        ("a JSON object", None),
        ("a JSON object in a fenced block", r"(?s)```(?:json|JSON)?\s*(\{.*?\})\s*```"),
        ("a JSON object in the text", r"(?s)(\{.*\})"),
    )
    for label, regex in ways:
        if regex is None:
            bodies = [text for text in texts if text.lstrip()[:1] == "{"]
            inside: Any = at
        else:
            pattern = re2.compile(regex)
            found = (pattern.search(text[:60_000]) for text in texts if "{" in text)
            bodies = [match.group(1) for match in found if match is not None]
            inside = of_text(regex, at)
        if len(bodies) < max(1, 0.3 * len(texts)):
            continue
        form = json_at(bodies, inside, {"json": inside}, label)
        if form is None:
            continue
        share = form.share * len(bodies) / len(texts)
        if share < 0.3:
            continue
        test = r"^\s*\{" if regex is None else regex
        action = form.action if regex is None else rest_of(regex.replace("(\\{", "(?:\\{"), at)
        return replace(
            form,
            when=None if share > 0.999 else {"re": test},
            action=action,
            share=share,
            example=example_of(test, texts),
        )
    return None


_FENCE_OPEN = re.compile(r"```\w*\s*$")
_WORD = re.compile(NAME)
_BETWEEN = r"[^\w{]+"


def worded(texts: list[str], at: str) -> CallForm | None:
    """A name and a JSON object, bare, fenced or with words that never change around: `calling x with {...}`."""
    told: list[tuple[str, ...]] = []
    for text in texts:
        before, brace, _ = text.partition("{")
        if brace and len(before) <= 120 and text.rstrip().endswith(("}", "```")):
            told.append(tuple(_WORD.findall(_FENCE_OPEN.sub("", before))))
    sizes = Counter(map(len, told))
    size, n = sizes.most_common(1)[0] if sizes else (0, 0)
    if not 1 <= size <= 6 or n < max(2, 0.6 * len(texts)):
        return None
    rows = [row for row in told if len(row) == size]
    varying = [i for i in range(size) if len({row[i] for row in rows}) > 1]
    if len(varying) != 1:
        return None
    slot = varying[0]
    names = vocabulary([row[slot] for row in rows], len(rows))
    if not names:
        return None
    first = rows[0]
    start = r"(?s)^[^\w{]*" + "".join(re.escape(word) + _BETWEEN for word in first[:slot])
    end = "".join(_BETWEEN + re.escape(word) for word in first[slot + 1 :]) + r"[^\w{]*(?:```\w*\s*)?"
    whole = rf"{start}{NAME}{end}\{{.*\}}[\s`]*$"
    share = share_of(whole, texts)
    if share < 0.6:
        return None
    around = " ".join("NAME" if i == slot else word for i, word in enumerate(first))
    return CallForm(
        {"re": whole} if share < 1 else None,
        of_text(rf"{start}({NAME}){end}\{{", at),
        of_text(rf"{start}{NAME}{end}(\{{.*\}})[\s`]*$", at),
        None,
        share,
        0.6 + 0.35 * share,
        "a name and a JSON object",
        f"{share:.0%} of the texts are {around!r} with one of {len(names)} names, then a JSON object",
        example_of(whole, texts),
        tools=ranked(names),
    )


def json_at(bodies: Sequence[str], inside: Any, value: dict[str, Any], label: str) -> CallForm | None:
    """The form of texts that are JSON objects; share: of the texts that are such a call."""
    objects: list[dict[str, Any]] = []
    for body in bodies:
        try:
            found = decode_text(body)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            objects.append(found)
    if len(objects) < max(1, 0.5 * len(bodies)):
        return None
    best: tuple[float, str, str, dict[str, int], Sequence[dict[str, Any]]] | None = None
    levels: list[tuple[str, Sequence[dict[str, Any]]]] = [("$", objects)]
    for key in sorted({key for one in objects for key in list(one)[:40]}):
        nested = [one[key] for one in objects if isinstance(one.get(key), dict)]
        if len(nested) >= 0.8 * len(objects) and key.lower() not in _ARGUMENT_KEYS:
            levels.append((f"$.{key}" if key.isidentifier() else f"$[{_quoted(key)}]", nested))
    for place, dicts in levels:
        for key in sorted({key for one in dicts for key in list(one)[:40]}):
            values = [one[key] for one in dicts if isinstance(one.get(key), str)]
            if len(values) < 0.9 * len(dicts):
                continue
            names = vocabulary([value for value in values if IDENTIFIER.fullmatch(value)], len(values))
            if sum(names.values()) < 0.9 * len(values):
                continue
            named = key.lower() in _TOOL_KEYS
            beside = any(
                isinstance(one.get(other), dict) for one in dicts[:50] for other in list(one)[:40] if other != key
            )
            if not named and not beside:
                continue
            score = (
                (2 - _TOOL_KEYS.index(key.lower()) / 20 if named else 0)
                + 1.5 * beside
                + 0.2 * (len(names) > 1)
                + 0.1 * (place == "$")
            )
            if best is None or score > best[0]:
                best = (score, place, key, names, dicts)
    if best is None:
        return None
    _, place, key, names, dicts = best
    others = sorted({other for one in dicts for other in list(one)[:40] if other != key})
    arguments_key = _arguments_key(dicts, others)
    thoughts = [
        other
        for other in others
        if other != arguments_key
        and (
            other.lower() in THOUGHT_NAMES
            or is_prose([one[other] for one in dicts if isinstance(one.get(other), str)], least=3)
        )
    ]

    def inner(name: str, place: str = place) -> dict[str, Any]:
        return {**value, "path": f"{place}.{name}" if name.isidentifier() else f"{place}[{_quoted(name)}]"}

    if arguments_key is not None:
        arguments: Any = inner(arguments_key)
    else:
        left = [other for other in others if other not in thoughts][:24]
        arguments = {"object": {other: inner(other) for other in left}} if left else None
    outer = sorted({k for one in objects for k in list(one)[:40]}) if place != "$" else []
    spoken = [inner(one) for one in thoughts] + [
        inner(k, "$")
        for k in outer
        if is_prose([one[k] for one in objects if isinstance(one.get(k), str)], least=3) or k.lower() in THOUGHT_NAMES
    ]
    action = None if not spoken else spoken[0] if len(spoken) == 1 else {"join": spoken}
    return CallForm(
        None,
        inner(key),
        arguments,
        action,
        len(objects) / len(bodies),
        0.95 if arguments_key is not None else 0.85,
        label,
        f"{len(objects)} of {len(bodies)} are JSON with {key!r}, one of {len(names)} names"
        + (f", and {arguments_key!r}" if arguments_key else ""),
        bodies[0][:200],
        tools=ranked(names),
    )


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _arguments_key(dicts: Sequence[dict[str, Any]], others: Sequence[str]) -> str | None:
    best: tuple[float, str] | None = None
    for other in others:
        values = [one[other] for one in dicts if other in one]
        objects = sum(isinstance(one, dict) for one in values)
        named = other.lower() in _ARGUMENT_KEYS
        if not named and objects < 0.6 * len(values):
            continue
        score = objects / len(values) + named + len(values) / len(dicts)
        if score >= 1.4 and (best is None or score > best[0]):
            best = (score, other)
    return best[1] if best is not None else None
