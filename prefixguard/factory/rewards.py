"""What a reply is worth in training: pure functions on what `audit` would read in it.

The gate of every reward is the parser that reads the deployed auditor's replies (`read_verdict`): a reply that `audit`
calls an error is worth the least there is. So a model is never rewarded for what its users would not see.

Sources: `three_axis` AgentForesight Eq. 10-11, `multi_granular` AgenTracer Eq. 11-12. Neither paper gives all of its
constants; ours stand in `RewardConstants` and are written into the record of every training. `hypothesis` is ours: the
verifier of VerifyMAS is trained on replies alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from prefixguard.auditor import HypothesisAnswer, HypothesisLabel
from prefixguard.errors import ConfigError
from prefixguard.escalate import Verdict, VerdictOutcome, same_agent


@dataclass(frozen=True, slots=True)
class RewardConstants:
    """Constants of the rewards. ConfigError where one is out of range.

    invalid: taken for a reply that is no verdict, 1 or more: below that a broken reply beats a wrong one, and a model
        learns to break its replies.
    step, agent: weights of the two axes of an alarm, 0 or more, together 1.
    sigma: how quickly the worth of a step falls with its distance, in steps, above 0.
    unsure: worth of UNSURE, in (-1, 1).
    """

    invalid: float = 1.2
    step: float = 0.5
    agent: float = 0.5
    sigma: float = 1.0
    unsure: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.invalid < math.inf:
            raise ConfigError(f"invalid {self.invalid}: 1 or more, or a broken reply is worth more than a wrong one.")
        if min(self.step, self.agent) < 0 or not math.isclose(self.step + self.agent, 1):
            raise ConfigError(f"step {self.step} and agent {self.agent}: weights of 0 or more that add up to 1.")
        if not 0 < self.sigma < math.inf:
            raise ConfigError(f"sigma {self.sigma}: steps, above 0.")
        if not -1 < self.unsure < 1:
            raise ConfigError(f"unsure {self.unsure}: between -1, a wrong verdict, and 1, a right one.")


_CONSTANTS = RewardConstants()


def is_valid(verdict: Verdict) -> bool:
    """Whether a verdict passes the gate: `audit` can read it, and an alarm names an agent of the run."""
    if verdict.outcome is VerdictOutcome.ALARM:
        return verdict.step is not None and bool(verdict.agent)
    return verdict.outcome is not VerdictOutcome.ERROR


def three_axis(
    verdict: Verdict, gold_step: int | None, gold_agent: str | None, constants: RewardConstants = _CONSTANTS
) -> float:
    """Class, step and agent of a verdict on a prefix. gold_step: of its decisive mistake; None: the prefix is safe.

    No verdict: -invalid. The wrong class: -1. SAFE of a safe prefix: 1. An alarm of an unsafe one: up to 1, see
    `_of_alarm`. UNSURE: unsure.

    >>> alarm = Verdict(VerdictOutcome.ALARM, step=4, agent="Coder")
    >>> three_axis(alarm, 4, "Coder"), three_axis(alarm, None, None), round(three_axis(alarm, 5, "Tester"), 3)
    (1.0, -1.0, 0.303)
    """
    if not is_valid(verdict):
        return -constants.invalid
    if verdict.outcome is VerdictOutcome.ABSTAIN:
        return constants.unsure
    if (verdict.outcome is VerdictOutcome.SAFE) != (gold_step is None):
        return -1.0
    return 1.0 if gold_step is None else _of_alarm(verdict, gold_step, gold_agent, constants)


def multi_granular(
    verdict: Verdict, gold_step: int | None, gold_agent: str | None, constants: RewardConstants = _CONSTANTS
) -> float:
    """Step and agent of a verdict on a run that is known to have failed: there is no safe class.

    No verdict: 0, as in the source. An alarm: up to 1, see `_of_alarm`. SAFE: 0 too, it names nothing. UNSURE: unsure,
    where that is above 0. ConfigError for a safe prefix.
    """
    if gold_step is None:
        raise ConfigError("multi_granular knows failed runs only; this row is safe. Take three_axis.")
    if not is_valid(verdict):
        return 0.0
    if verdict.outcome is VerdictOutcome.ALARM:
        return _of_alarm(verdict, gold_step, gold_agent, constants)
    return max(constants.unsure, 0.0) if verdict.outcome is VerdictOutcome.ABSTAIN else 0.0


def hypothesis(
    answer: HypothesisAnswer,
    gold_label: HypothesisLabel,
    gold_agents: Collection[str] = (),
    constants: RewardConstants = _CONSTANTS,
) -> float:
    """Label and agents of an answer to one hypothesis.

    No answer: -invalid. A present mode that is missed, or an absent one that is found: -1. Neutral and contradict taken
    for each other: 0. The right label: 1; of a present mode the weight of `step`, and that of `agent` times the F1 of
    the agents who are blamed.
    """
    if answer.label is HypothesisLabel.ERROR:
        return -constants.invalid
    if answer.label is not gold_label:
        return -1.0 if HypothesisLabel.ENTAIL in (answer.label, gold_label) else 0.0
    if gold_label is not HypothesisLabel.ENTAIL or not gold_agents:
        return 1.0
    hits = len({*answer.agents} & {*gold_agents})
    named = len({*answer.agents, *answer.unknown_agents}) + len({*gold_agents})
    return constants.step + constants.agent * 2 * hits / named


def _of_alarm(verdict: Verdict, gold_step: int, gold_agent: str | None, constants: RewardConstants) -> float:
    """step * exp(-d**2 / (2 sigma**2)) + agent, of a distance of d steps; the second part where the agent is right.

    Of a mistake whose agent nobody knows the step alone counts, with the whole weight.
    """
    near = math.exp(-(((verdict.step or 0) - gold_step) ** 2) / (2 * constants.sigma**2))
    if gold_agent is None:
        return near
    return constants.step * near + constants.agent * same_agent(verdict.agent, gold_agent)


#: Rewards of verdicts by name.
REWARDS = {"three_axis": three_axis, "multi_granular": multi_granular}
