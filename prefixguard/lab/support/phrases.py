"""What customer and agent say: templates with alternatives, so that no sentence gives a run away.

They stand in `phrases.json`. Square brackets hold alternatives, braces hold slots. None of this depends on the
profile: how an agent talks says nothing about how good it is; what it does and what comes back does.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files

from prefixguard.lab.dice import Dice

Line = tuple[str | tuple[str, ...], ...]  # a string, or alternatives


def _compile(template: str) -> Line:
    parts: list[str | tuple[str, ...]] = []
    rest = template
    while rest:
        before, bracket, rest = rest.partition("[")
        if before:
            parts.append(before)
        if bracket:
            inside, _, rest = rest.partition("]")
            parts.append(tuple(inside.split("|")))
    return tuple(parts)


@lru_cache(maxsize=1)
def _lines() -> tuple[str, dict[str, tuple[Line, ...]]]:
    """The system prompt, and the lines of every act."""
    text = json.loads(files(__package__).joinpath("phrases.json").read_text(encoding="utf-8"))
    acts = {**text["customer"], **text["agent"]}
    return text["system"], {act: tuple(_compile(line) for line in lines) for act, lines in acts.items()}


def acts() -> tuple[str, ...]:
    """Everything that can be said."""
    return tuple(_lines()[1])


def system_prompt() -> str:
    return _lines()[0]


def phrase(dice: Dice, act: str, **slots: str) -> str:
    """One way to say `act`. The slots of the template must be among `slots`."""
    parts = [part if isinstance(part, str) else dice.pick(part) for part in dice.pick(_lines()[1][act])]
    return "".join(parts).format(**slots).strip()
