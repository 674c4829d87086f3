"""Candidates for the decisive step of a failed run, and which of them proposers and verifiers agree on.

Source: AgentForesight, 3.1 and equation 8: proposers name a few steps each; verifiers judge each named step by four
criteria; a step is admitted where enough verifiers find all four; of the admitted ones that with most proposers wins.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prefixguard.escalate import agent_of, same_agent
from prefixguard.stepview import StepRecord

#: What a verifier judges of a candidate. exists: the step does what is said of it. substantive: that is a mistake, no
#: slip of form. decisive: done right, the run could have reached the goal. earliest: no step before it is decisive.
CRITERIA = ("exists", "substantive", "decisive", "earliest")
#: Candidates of one proposer that are read.
MOST_CANDIDATES = 3
_YES, _NO = ("yes", "true"), ("no", "false")
_LONGEST = 600


@dataclass(frozen=True, slots=True)
class ProposedStep:
    """A step that was proposed. proposers: who named it, by number, each once. reason: of the first of them."""

    step: int
    agent: str
    proposers: tuple[int, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class CandidateCheck:
    """What one verifier says of a candidate. criteria: each of `CRITERIA`. confidence: in [0, 1]; 0.5 where it gave
    none."""

    criteria: Mapping[str, bool]
    confidence: float

    @property
    def passes(self) -> bool:
        """Whether all four hold."""
        return all(self.criteria.values())


@dataclass(frozen=True, slots=True)
class CandidateVote:
    """How a candidate fared. checks: of the verifiers that answered."""

    candidate: ProposedStep
    checks: tuple[CandidateCheck, ...]

    @property
    def passes(self) -> int:
        """Verifiers for whom all four criteria hold."""
        return sum(check.passes for check in self.checks)

    @property
    def confidence(self) -> float:
        """Mean confidence of these; 0.0 without any."""
        sure = [check.confidence for check in self.checks if check.passes]
        return math.fsum(sorted(sure)) / len(sure) if sure else 0.0

    def as_json(self) -> dict[str, Any]:
        """Plain values, for the provenance of a label."""
        found = Counter(name for check in self.checks for name in CRITERIA if check.criteria[name])
        return {
            "step": self.candidate.step,
            "agent": self.candidate.agent,
            "proposers": len(self.candidate.proposers),
            "answered": len(self.checks),
            "passes": self.passes,
            "criteria": {name: found[name] for name in CRITERIA},
            "confidence": round(self.confidence, 4),
            "reason": self.candidate.reason,
        }


def read_candidates(said: Mapping[str, Any], records: Sequence[StepRecord]) -> tuple[list[tuple[int, str]], list[str]]:
    """Steps and reasons that a proposer names, each step once, and what was passed over, a clause each.

    said: {"candidates": [{"step", "agent", "reason"}, ...]}. A step counts where an agent acts there, and where the
    agent that is named, if one is, is that one.
    """
    given, problems = said.get("candidates"), list[str]()
    if not isinstance(given, list):
        return [], ["a proposal outside the form"]
    steps, found = {record.index: record for record in records if record.actor == "agent"}, dict[int, str]()
    for one in given:
        step = one.get("step") if isinstance(one, dict) else None
        if isinstance(step, bool) or not isinstance(step, int) or step not in steps:
            problems.append("a proposed step at which no agent acts")
        elif isinstance(one.get("agent"), str) and not same_agent(one["agent"], agent_of(steps[step])):
            problems.append("a proposed agent that did not act at the step")
        elif step in found:
            problems.append("a step that one proposer names twice")
        elif len(found) == MOST_CANDIDATES:
            problems.append(f"candidates beyond the first {MOST_CANDIDATES} of a proposer")
        else:
            reason = one.get("reason")
            found[step] = " ".join(reason.split())[:_LONGEST] if isinstance(reason, str) else ""
    return list(found.items()), problems


def merged(proposals: Mapping[int, Sequence[tuple[int, str]]], records: Sequence[StepRecord]) -> list[ProposedStep]:
    """Candidates of all proposers, in the order of their steps. proposals: by proposer, as `read_candidates` gives."""
    agents = {record.index: agent_of(record) for record in records}
    named: dict[int, list[int]] = {}
    reasons: dict[int, str] = {}
    for proposer, candidates in sorted(proposals.items()):
        for step, reason in candidates:
            named.setdefault(step, []).append(proposer)
            reasons[step] = reasons.get(step) or reason
    return [ProposedStep(step, agents[step], tuple(named[step]), reasons[step]) for step in sorted(named)]


def read_check(said: Mapping[str, Any]) -> CandidateCheck | None:
    """What a verifier says; None where a criterion is missing or neither yes nor no."""
    criteria: dict[str, bool] = {}
    for name in CRITERIA:
        value = said.get(name)
        word = value.strip().lower() if isinstance(value, str) else value
        if word is True or word in _YES:
            criteria[name] = True
        elif word is False or word in _NO:
            criteria[name] = False
        else:
            return None
    sure = said.get("confidence")
    is_number = isinstance(sure, int | float) and not isinstance(sure, bool) and 0 <= sure <= 1
    return CandidateCheck(criteria, float(sure) if is_number and sure is not None else 0.5)


def winner(votes: Sequence[CandidateVote], needed: int) -> tuple[CandidateVote | None, str]:
    """The candidate that is decisive, and "" ; or None, and why there is none, a clause.

    needed: verifiers for whom all four criteria must hold, 1 or more. Of those admitted the one with most proposers;
    of equals the one that its verifiers are surest of; then the earliest. A verifier without an answer admits nobody.
    """
    if not votes:
        return None, "no candidate was proposed"
    if all(len(vote.checks) < needed for vote in votes):
        return None, "too few verifiers answered"
    admitted = [vote for vote in votes if vote.passes >= needed]
    if not admitted:
        return None, "no candidate was admitted"
    best = min(admitted, key=lambda one: (-len(one.candidate.proposers), -one.confidence, one.candidate.step))
    return best, ""
