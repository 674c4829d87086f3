"""What a proposal of an adapter is: the spec, how sure each part of it is, what it leaves out and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Mapped:
    """One place of the raw data that reaches a record or a run.

    raw: the place, as the spec spells it ("@.content"), and where it holds ("when @.role is tool"). field: of the
    record ("result") or the run ("task"). coverage: share of the events (runs) it applies to in which it is filled.
    confidence: in [0, 1]. why: a sentence for a person.
    """

    raw: str
    field: str
    coverage: float
    confidence: float
    why: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A place of the raw data that reaches nothing. share: of all raw text, in [0, 1]. why: a sentence."""

    raw: str
    why: str
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class Option:
    """One answer to a choice. value: what the spec would say. example: a value found there, cut short."""

    label: str
    value: Any
    confidence: float
    why: str
    example: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """Something the samples do not decide beyond doubt. field: of the run or record. taken: index into options.
    rule: how it was taken when nobody was asked."""

    field: str
    options: tuple[Option, ...]
    taken: int
    rule: str


#: Asked about a choice; answers with the index of an option.
Asker = Callable[[Choice], int]


def take_first(choice: Choice) -> int:
    """The stated rule: what is already taken, the most confident option."""
    return choice.taken


@dataclass(frozen=True, slots=True)
class Proposal:
    """A spec, not yet frozen. origin: "offline" or the model's name. notes: sentences for the report."""

    spec: Mapping[str, Any]
    mapped: tuple[Mapped, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    choices: tuple[Choice, ...] = ()
    notes: tuple[str, ...] = ()
    origin: str = "offline"


@dataclass(frozen=True, slots=True)
class Usage:
    """What asking a language model took. rounds: replies that were read. cost: in the currency of the prices that were
    named; None where none were. why: why its proposal was not taken; empty where it was. estimated: some tokens were
    not counted by the server but by us (four characters each)."""

    model: str
    rounds: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    why: str = ""
    estimated: bool = False

    def __str__(self) -> str:
        about = "about " if self.estimated else ""
        cost = "cost unknown (name prices to see it)" if self.cost is None else f"cost {self.cost:.4f}"
        tokens = f"{about}{self.tokens_in:,} tokens sent, {self.tokens_out:,} received"
        return f"{self.model}: {self.rounds} rounds, {tokens}, {cost}"
