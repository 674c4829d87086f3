"""Results that stand inside a code fence: the fence is of the log, not of what came back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_FENCED = r"(?s)^\s*```[\w+.-]*[ \t]*\n(.*?)\n?[ \t]*```\s*$"
_FENCE = re.compile(_FENCED)


def bare(text: str) -> str:
    """The text without a fence around all of it.

    >>> bare("```txt\\nabc\\n```"), bare("see:\\n```\\nabc\\n```")
    ('abc', 'see:\\n```\\nabc\\n```')
    """
    match = _FENCE.match(text) if text.count("```") == 2 else None
    return match.group(1) if match is not None else text


def unfenced(bodies: Sequence[str], at: str = "@.body") -> Any:
    """The value of the spec for these texts: what is in the fence where most have one, else all of it."""
    told = [body for body in bodies if body.strip()]
    if sum(bare(body) is not body for body in told) < max(1, 0.5 * len(told)):
        return at
    return {"first": [{"re": _FENCED, "of": at}, at]}
