"""What a monitor says after a step; and what moved its risk in the words of its features: at most three phrases."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.alarm import Level
from prefixguard.behaviours import BehaviourFinding
from prefixguard.context import FEATURES, Feature
from prefixguard.encoder import SparseRow, Vocabulary
from prefixguard.stepview import plain


@dataclass(slots=True, unsafe_hash=True)  # not frozen, which would take fifteen times as long at every step
class Reading:
    """The judgement after one step, or why there is none.

    step: number of the step, from 1; for an event that did not become a step, the number of steps so far.
    imminent_risk: calibrated probability that the run fails and ends within the horizon; None when UNKNOWN, and of
        rules without a model.
    outcome_risk: calibrated probability that the run fails; None likewise. Alarms go by this one.
    level: OK, WATCH, ALARM or UNKNOWN.
    symbol: the step's symbol, from 0; None when UNKNOWN.
    state: the automaton's state, from 0; None for monitors of kind onnx.
    reasons: in words, strongest first, at WATCH and ALARM: at most three sentences, what the agent does wrong and what
        to do first. They quote the run: treat them as text from outside.
    unknown_reason: why nothing could be judged; None unless level is UNKNOWN.
    behaviours: all that hold at this step, at every level; () where the step was not read.
    faults: what the agent does wrong, at this step or at the two before it, strongest first: the first reasons say it.
    latency_us: microseconds from the event (or from the reading before, if one event gave several) to this reading.
    """

    step: int
    imminent_risk: float | None
    outcome_risk: float | None
    level: Level
    symbol: int | None
    state: int | None
    reasons: tuple[str, ...]
    unknown_reason: str | None
    latency_us: float
    behaviours: tuple[BehaviourFinding, ...] = ()
    faults: tuple[BehaviourFinding, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The fields that `score` and `watch --json` write, times left out: the same run gives the same lines."""
        shown = {name: getattr(self, name) for name in self.__slots__ if name not in ("latency_us", "faults")}
        found = [finding.to_json() for finding in self.behaviours]
        return {**shown, "level": self.level.value, "reasons": list(self.reasons), "behaviours": found}


MOST = 3
_FLOOR = 1e-6  # log-odds; smaller contributions are rounding
_TERM_LENGTH = 60
_PLACES = {
    "actor": "the actor",
    "tool": "the tool's name",
    "arguments": "the arguments",
    "observation": "the observation",
    "action": "the agent's text",
    "result": "the result",
    "status": "the step's status",
}


def say_reasons(
    of_context: NDArray[np.float32],
    of_terms: NDArray[np.float32],
    row: SparseRow,
    context: NDArray[np.float32],
    typical: NDArray[np.float32],
    vocabulary: Vocabulary,
    features: tuple[Feature, ...] = FEATURES,
) -> tuple[str, ...]:
    """The strongest pushes towards failure, strongest first, ties by position; context before terms.

    Three reasons should say three things: of each group of context features only the strongest is said, and of terms
    in one field that share a word only the strongest.
    of_context (d,), of_terms (nnz,): contributions to the outcome logit. typical (d,): medians over training steps.
    features: what the numbers of the context are of.
    """
    d = len(of_context)
    pushes = np.concatenate((of_context, of_terms))
    said: list[str] = []
    groups: set[str] = set()
    words: set[tuple[str, str]] = set()
    for i in np.argsort(-pushes, kind="stable").tolist():
        if not pushes[i] > _FLOOR or len(said) == MOST:
            break
        if i < d:
            if features[i].group not in groups:
                groups.add(features[i].group)
                said.append(say_feature(features[i], float(context[i]), float(typical[i])))
            continue
        term = vocabulary.terms[int(row.indices[i - d])]
        field, _, text = term.partition(":")
        mine = {(field, word) for word in text.split(" ")}
        if words.isdisjoint(mine):
            words |= mine
            said.append(say_term(term))
    return tuple(said)


def say_feature(feature: Feature, value: float, typical: float) -> str:
    """A feature's phrase with its value, and what is usual where that differs.

    >>> say_feature(FEATURES[18], 3.0, 0.0)
    'times this very call was made before: 3 (usually 0)'
    >>> say_feature(FEATURES[5], 0.0, 0.0)
    'not the case: this step failed'
    """
    if feature.kind == "yes":
        return feature.text if value else f"not the case: {feature.text}"
    if feature.kind == "logarithm":
        value, typical = float(round(math.expm1(value))), float(round(math.expm1(typical)))
    shown, usual = _number(value), _number(typical)
    said = f"{feature.text}: {shown}"
    return said if shown == usual else f"{said} (usually {usual})"


def say_term(term: str) -> str:
    """A vocabulary term in words; its text comes from runs, so control characters are escaped and length is capped.

    >>> say_term("result:error")
    'word `error` in the result'
    >>> say_term("action:give up")
    "words `give up` in the agent's text"
    """
    field, _, text = term.partition(":")
    kind = "words" if " " in text else "word"
    return f"{kind} `{plain(text, _TERM_LENGTH)}` in {_PLACES.get(field, 'the step')}"


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else f"{value:.2g}"
