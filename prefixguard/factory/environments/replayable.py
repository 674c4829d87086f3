"""What a world must offer, so that runs in it can be played again from any decision on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

from prefixguard.errors import ReplayDrift, ReplayError, UnreplayableRun
from prefixguard.factory.labelled import LabelledRun
from prefixguard.trace import Outcome

#: Why a run is left out whose world is not there, hangs, crashed, or answers nonsense. It may be tried again.
WORLD_FAILED = "the environment failed"
#: What an agent does at a decision, plain JSON.
Action = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Decision:
    """What the agent of a recorded run did at one point.

    step: the record that shows it, from 1. action: what it did. answer: what came back; None where the environment
    checks answers in another way. faults: what may go wrong here, kind to the action that does it. is_shown: if the
    action is a mistake, whether the records up to it show that; no label names one that they do not show.
    """

    step: int
    action: Action
    answer: str | None = None
    faults: Mapping[str, Action] | None = None
    is_shown: bool = True


@dataclass(frozen=True, slots=True)
class Proposal:
    """What the agent might have done instead. place: of the decision, from 0."""

    place: int
    action: Action
    reason: str = ""


class ReplayableEnvironment(Protocol):
    """A world with an agent in it. It stands at one decision of one run; `replay` or `reset` puts it there.

    name: as in the provenance of runs. licence: of what its runs say. chances: "keyed": named by their decisions, so
    that a run can be played again with one action changed and all else as it was; "none": nothing is left to chance,
    and after a change a reference goes on in place of the agent; "free": they cannot be named. Every method may raise
    ReplayError where the world fails, and a replay ReplayDrift.
    """

    name: str
    licence: str
    chances: str

    @property
    def spec(self) -> dict[str, Any]:
        """How to open it again."""
        ...

    def tasks(self, count: int) -> list[str]:
        """The first tasks, at most so many."""
        ...

    def reset(self, task: str, seed: str, agent: str = "") -> str:
        """Begin a run; what the agent sees first. seed: decides all chances. agent: who plays; "" the usual one."""
        ...

    def decisions(self, run: LabelledRun) -> tuple[Decision, ...]:
        """What the agent of a recorded run did, in order, with all that could go wrong there."""
        ...

    def replay(self, run: LabelledRun, place: int) -> None:
        """Play a recorded run again up to its decision `place` (from 0), which is not made. ReplayDrift where the world
        answers otherwise than it did."""
        ...

    def step(self, action: Action) -> str:
        """Do this at the present decision; what comes back."""
        ...

    def continuation(self, salt: str | None) -> Outcome:
        """Let the agent go on to the end. salt: names the chances of all that comes after the last action; None: those
        that the run would have had."""
        ...

    def verify(self) -> Outcome:
        """How the run ended, by the state of the world and never by words; UNKNOWN before its end."""
        ...

    def trace(self) -> dict[str, Any]:
        """The run so far: its fields as the adapter `openai_chat` reads them."""
        ...

    def provenance(self) -> dict[str, Any]:
        """How the run so far is made again, plain JSON."""
        ...

    def complaint(self, run: LabelledRun) -> str:
        """What the world itself knows against a run that succeeded, a clause; "" for nothing."""
        ...

    def corrections(self, run: LabelledRun) -> list[Proposal]:
        """Where the run may have gone wrong, from what the world itself knows; empty where it knows nothing."""
        ...

    def correction(self, run: LabelledRun, step: int, said: Mapping[str, Any]) -> Proposal | None:
        """What somebody proposes to do at a step (from 1) instead, as this world can do it; None where it cannot, or
        where it is what the agent did. said: tool and arguments, or "say", and reason."""
        ...

    def reference(self, run: LabelledRun) -> str:
        """What would have reached the goal, for a proposer that may know it; "" where the world does not say."""
        ...

    def fork(self) -> Self:
        """Another one that stands where this one does."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


def how_made(run: LabelledRun, spec: Mapping[str, Any]) -> tuple[str, str, str]:
    """Task, seed and agent of a run. UnreplayableRun where it was not made in the environment `spec`."""
    made = run.provenance
    if made.get("environment") != spec:
        raise UnreplayableRun(f"run {run.run_id!r} was not made in this environment ({dict(spec)}).")
    task, seed, agent = made.get("task"), made.get("seed"), made.get("agent")
    if not isinstance(task, str) or not isinstance(seed, str) or not isinstance(agent, str):
        raise UnreplayableRun(f"run {run.run_id!r}: its provenance names no task, seed and agent, texts.")
    return task, seed, agent


def fault_of(exc: ReplayError) -> dict[str, Any]:
    """Why a run is left out as facts: `fault`, a clause that adds up over runs, and `cause`, what was said."""
    fault = WORLD_FAILED
    if isinstance(exc, ReplayDrift):
        fault = "the environment answers otherwise than it did"
    elif isinstance(exc, UnreplayableRun):
        fault = "it cannot be played again: it was not made so"
    return {"fault": fault, "cause": str(exc)}


def outage_of(facts: Mapping[str, Any]) -> str:
    """What was said where the world failed, so that the run may be tried again; "" for all else. facts: of a run."""
    return str(facts["cause"]) if facts.get("fault") == WORLD_FAILED else ""
