"""What an audit must find where the auditor's skill is known: probabilities of a run's ending, and of figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scripted_server import Skill

from prefixguard.escalate import PromptKind
from prefixguard.escalate.prompting import halves

_DRAWS = 4000


@dataclass(frozen=True, slots=True)
class Law:
    """How a run's audit ends: probabilities. right: an alarm that names the decisive step. alarm: any, right ones
    included. error: no verdict. What is left is safe or abstained."""

    right: float
    alarm: float
    error: float


def expected_of(skill: Skill, kind: PromptKind, steps: int, mistake: int | None, error: float) -> Law:
    """The law of a run with so many steps, each asked about where the kind walks. error: of a question."""
    if kind is PromptKind.BINARY_SEARCH:
        return _search(skill, steps, mistake, error)
    asked = [steps] if kind is PromptKind.POST_HOC else list(range(1, steps + 1))
    by_step = kind is PromptKind.STEP_BY_STEP
    total = np.zeros(3)
    for weight, hit, wrong in _classes(skill):
        parts = [_question(skill, step, mistake, hit, wrong, by_step) for step in asked]
        total += weight * np.array(_walk(parts, error, by_step))
    return Law(*total.tolist())


def _classes(skill: Skill) -> list[tuple[float, float, float]]:
    """(weight, hit, wrong) of kinds of runs: where the skill is drawn once a run, it is certain within one."""
    if skill.by_call:
        return [(1.0, skill.hit, skill.wrong)]
    miss = 1.0 - skill.hit
    return [(skill.hit, 1.0, 0.0), (miss * skill.wrong, 0.0, 1.0), (miss * (1.0 - skill.wrong), 0.0, 0.0)]


def _question(
    skill: Skill, step: int, mistake: int | None, hit: float, wrong: float, by_step: bool
) -> tuple[float, float]:
    """Chances that a question on the prefix up to `step` names the decisive step, and any."""
    shown = mistake is not None and (mistake == step if by_step else mistake <= step)
    if shown:
        elsewhere = 0.0 if by_step or step < 2 else (1.0 - hit) * wrong
        right, alarm = hit, hit + elsewhere
    else:
        right, alarm = 0.0, skill.false_alarm
    chance = (1.0 if by_step else 1.0 / step) if shown else 0.0  # of a lie that happens to be true
    return skill.lie * chance + (1 - skill.lie) * right, skill.lie + (1 - skill.lie) * alarm


def _walk(parts: Sequence[tuple[float, float]], error: float, by_step: bool) -> tuple[float, float, float]:
    """Without an alarm: the last question decides, or, where each judges its own step, any that had no verdict."""
    right = alarm = 0.0
    going = whole = 1.0  # no alarm so far; and every question had a verdict
    failed = 0.0
    for hits, alarms in parts:
        right += going * (1 - error) * hits
        alarm += going * (1 - error) * alarms
        failed = going * error
        going *= 1.0 - (1 - error) * alarms
        whole *= (1 - error) * (1.0 - alarms)
    return right, alarm, going - whole if by_step else failed


def _search(skill: Skill, steps: int, mistake: int | None, error: float) -> Law:
    """On a sound run it cannot tell; on another every half must be right, and none is put right later."""
    if mistake is None:
        return Law(0.0, 0.0, error)
    right, failed = _halved((1, steps), mistake, skill.hit, error)
    return Law(right, 1.0 - failed, failed)


def _halved(within: tuple[int, int], mistake: int, hit: float, error: float) -> tuple[float, float]:
    """Chances to end at the mistake, and without a verdict, from this range on."""
    if within[0] == within[1]:
        return float(within[0] == mistake), 0.0
    first, second = halves(within)
    right, other = (first, second) if mistake <= first[1] else (second, first)
    on = _halved(right, mistake, hit, error)
    off = _halved(other, mistake, hit, error)
    fine = 1.0 - error
    return fine * (hit * on[0] + (1 - hit) * off[0]), error + fine * (hit * on[1] + (1 - hit) * off[1])


@dataclass(frozen=True, slots=True)
class Expected:
    """Mean and standard deviation of figures over what may happen."""

    figures: Mapping[str, tuple[float, float]]

    @classmethod
    def of(cls, laws: Sequence[Law], failed: NDArray[np.bool_], seed: int) -> Expected:
        """Step accuracy, false alarms and errors exactly; Exact-F1, a ratio, over many draws."""
        right = np.array([law.right for law in laws])
        alarm = np.array([law.alarm for law in laws])
        error = np.array([law.error for law in laws])
        draws = np.random.default_rng(seed).random((_DRAWS, len(laws)))
        exact = ((draws < right) & failed).sum(axis=1)
        alarms = (draws < alarm).sum(axis=1)
        f1 = 2.0 * exact / (failed.sum() + alarms)
        return cls(
            {
                "step_accuracy": _share(right[failed]),
                "false_alarm_rate": _share(alarm[~failed]),
                "errors": _share(error),
                "exact_f1": (float(f1.mean()), float(f1.std())),
            }
        )


def _share(chances: NDArray[np.float64]) -> tuple[float, float]:
    """Of independent runs."""
    return float(chances.mean()), float(np.sqrt((chances * (1 - chances)).sum()) / len(chances))
