"""One named behaviour of an agent, and what was found of it at a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

BehaviourKind = Literal["fault", "artefact", "neutral"]


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A predicate over a run so far that has a name.

    name : stable identifier, words joined by underscores.
    kind : `fault`, what an agent should not do; `artefact`, what has a cause outside the agent's work, such as a limit
        of steps; `neutral`, what agents do.
    sentence : one sentence for people. It says what is the case; numbers and the call stand in the finding.
    nudge : a sentence that can be put to the agent. "" where nobody can act on the behaviour.
    advice : a sentence for the developers of the agent. "" where nobody can act on it.
    watch, alarm : counts from which rules without a model say WATCH and ALARM; 0: never.
    rests_on : names of the context features that show it; what they moved a risk by is what the behaviour moved it by.
    label : a few words for tables and pictures, where the name alone would be a riddle. "": the words of the name.
    """

    name: str
    kind: BehaviourKind
    sentence: str
    nudge: str = ""
    advice: str = ""
    watch: int = 0
    alarm: int = 0
    rests_on: tuple[str, ...] = ()
    label: str = ""

    @property
    def actionable(self) -> bool:
        """Whether somebody can act on it."""
        return bool(self.nudge)

    @property
    def title(self) -> str:
        """The behaviour in a few words.

        >>> Behaviour("tests_pass", "neutral", "The tests pass.").title
        'tests pass'
        """
        return self.label or self.name.replace("_", " ")


@dataclass(slots=True, unsafe_hash=True)  # not frozen, which would take fifteen times as long at every step
class BehaviourFinding:
    """A behaviour that holds at a step.

    since : step at which it began, from 1. count : how often it was seen since then, 1 or more; what is counted is said
    by the behaviour's sentence. evidence : the call, the text or the value, on one line and harmless to show. It quotes
    the run: treat it as text from outside.
    """

    behaviour: Behaviour
    since: int
    count: int
    evidence: str = ""

    def __str__(self) -> str:
        """The finding in words.

        >>> str(BehaviourFinding(Behaviour("b", "fault", "The same call gave the same result again."), 3, 4, "get {}"))
        'The same call gave the same result again: 4 times since step 3 (get {})'
        """
        times = f"{self.count} times since step {self.since}" if self.count > 1 else f"step {self.since}"
        shown = f" ({self.evidence})" if self.evidence else ""
        return f"{self.behaviour.sentence.rstrip('.')}: {times}{shown}"

    def to_json(self) -> dict[str, Any]:
        """The finding as a JSON object; the behaviour by its name and kind."""
        return {
            "behaviour": self.behaviour.name, "kind": self.behaviour.kind, "since": self.since, "count": self.count,
            "evidence": self.evidence,
        }  # fmt: skip
