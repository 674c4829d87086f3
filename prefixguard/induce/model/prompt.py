"""The messages a model is sent: what a spec is, the samples behind a fence, and what was wrong with its last answer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from prefixguard.induce.model.pack import Pack
from prefixguard.induce.model.reference import reference
from prefixguard.stepview import canonical

#: Version of the wording; a transcript names it.
PROMPT_VERSION = "4"

Message = dict[str, str]


@cache
def _part(name: str) -> str:
    return (resources.files("prefixguard.induce.model") / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()


def fenced(text: str, title: str) -> str:
    """Data between two lines that the data cannot hold: they carry its own hash, so nothing inside can close them.

    >>> print(fenced("hi", "samples"))
    <<<DATA 8f434346648f6b96df89dda9 samples
    hi
    DATA 8f434346648f6b96df89dda9>>>
    """
    mark = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]
    while mark in text:
        mark = hashlib.sha256(mark.encode()).hexdigest()[:24]
    return f"<<<DATA {mark} {title}\n{text}\nDATA {mark}>>>"


def teaching() -> str:
    """All that is the same for every set of samples."""
    return "\n\n".join((_part("semantics"), "# The language of specs", reference(), _part("examples")))


def first_messages(
    pack: Pack, hints: Mapping[str, str] | None = None, draft: Mapping[str, Any] | None = None
) -> list[Message]:
    """System and user message of the first round. hints: what the user has fixed, by name: paths of the language.
    draft: a spec to start from."""
    parts = [teaching(), "# Samples", "A cut-down view of the files; marks in <...> say what is not shown."]
    parts.append(fenced(pack.text, "samples"))
    if draft is not None:
        parts.append("# A draft\n\nWritten by a program without a model; any part of it may be wrong.")
        parts.append(fenced(canonical(draft), "draft"))
    parts.append(_part("task"))
    if hints:
        fixed = "\n".join(f"- {name}: `{value}`" for name, value in sorted(hints.items()))
        parts.append(f"The user has fixed these; the spec must read exactly them:\n{fixed}")
    return [{"role": "system", "content": _part("system")}, {"role": "user", "content": "\n\n".join(parts)}]


def next_messages(first: Sequence[Message], answer: str, faults: str, remark: str = "") -> list[Message]:
    """The messages of a later round: the first ones, one earlier answer, and what was wrong with it."""
    said = "\n\n".join(part for part in (_part("round"), remark, fenced(faults, "faults")) if part)
    return [*first, {"role": "assistant", "content": answer}, {"role": "user", "content": said}]
