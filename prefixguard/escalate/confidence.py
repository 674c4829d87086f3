"""How sure an auditor is of its verdict, from the log-probabilities of the tokens that spell it.

What the tokens say by themselves is called raw: a model that was tuned to follow instructions is far too sure of most
things that it writes. It becomes a confidence through a map that is fitted on verdicts whose truth is known.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from prefixguard.errors import ConfigError, DataError

#: Tokens and their natural log-probabilities, in order.
Tokens = Sequence[tuple[str, float]]

#: Pairs that a map is fitted on, at least, and of the right and of the wrong ones each: two numbers are fitted.
LEAST_PAIRS, LEAST_OF_EACH = 40, 5
#: Characters at the end of a reply that are searched, of one value, and places of the key that are tried.
_SEARCHED, _LONGEST_VALUE, _TRIED = 65_536, 400, 64
_SHORTEST = 1e-6  # raw confidences are kept this far from 0 and 1: beyond it they are rounding
_SCHEMA = "prefixguard/confidence/v1"
_DECODER = json.JSONDecoder()
_COLON = re.compile(r"[ \t\r\n]*:[ \t\r\n]*")


def value_span(text: str, key: str, value: str | int | None = None) -> tuple[int, int] | None:
    """Where the value of a key is spelled: characters [begin, end), without the quotes of a string.

    The last place in the text where `"key": <a JSON string, number, true, false or null>` stands and (where `value`
    is given) reads as this value: a number may be spelled as a string, letter case and outer spaces do not count.
    None where there is none.

    >>> value_span('{"answer": 12, "agent": "B"}', "answer")
    (11, 13)
    """
    name = json.dumps(key, ensure_ascii=False)
    begin = max(0, len(text) - _SEARCHED)
    place = len(text)
    for _ in range(_TRIED):
        place = text.rfind(name, begin, place)
        if place < 0:
            return None
        colon = _COLON.match(text, place + len(name))
        if colon is None:
            continue
        start = colon.end()
        try:
            found, length = _DECODER.raw_decode(text[start : start + _LONGEST_VALUE])
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict | list) or (value is not None and _plain(found) != _plain(value)):
            continue
        quotes = isinstance(found, str)
        return start + quotes, start + length - quotes
    return None


def decisive_tokens(logprobs: Tokens, key: str, value: str | int | None = None) -> tuple[tuple[str, float], ...]:
    """The tokens of a reply that spell the value of a key of the answer's JSON, wholly or in part; () where none do.

    logprobs: of the whole reply, in order, as in `Reply.logprobs`. key, value: see `value_span`. Places are counted in
    the tokens' own text, so what the server left out of the reply's text (reasoning, end marks) moves nothing.
    """
    span = value_span("".join(token for token, _ in logprobs), key, value)
    return () if span is None else tokens_at(logprobs, span)


def tokens_at(logprobs: Tokens, span: tuple[int, int]) -> tuple[tuple[str, float], ...]:
    """The tokens that spell the characters [begin, end) of their joined text, wholly or in part."""
    found, begin = [], 0
    for token, logprob in logprobs:
        end = begin + len(token)
        if begin < span[1] and end > span[0]:
            found.append((token, logprob))
        begin = end
    return tuple(found)


def raw_confidence(logprobs: Tokens, key: str, value: str | int | None = None) -> float | None:
    """Raw, uncalibrated: the probability that the model gave to this spelling of the value, given all before it.

    In [0, 1]: the product of the probabilities of the decisive tokens. None where no token spells the value (the
    server sent no log-probabilities, or the answer has no such key). Not the probability that the verdict is right;
    see `ConfidenceMap`.

    >>> round(raw_confidence([('{"answer": ', -0.1), ("1", -0.5), ("2", -0.25), ("}", 0.0)], "answer", 12), 4)
    0.4724
    """
    tokens = decisive_tokens(logprobs, key, value)
    return min(1.0, math.exp(math.fsum(logprob for _, logprob in tokens))) if tokens else None


@dataclass(frozen=True, slots=True)
class ConfidenceMap:
    """From a raw confidence to the probability that a verdict is right: sigmoid(slope * logit(raw) + intercept).

    slope: 0 or more, so that the map never falls; 0 where raw confidences tell nothing (the map is then the share of
    right verdicts). pairs, right: verdicts that it was fitted on, and how many of them were right.
    Source: Platt 1999, with a slope that is held at 0 or above.
    """

    slope: float
    intercept: float
    pairs: int = 0
    right: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.slope) and self.slope >= 0 and math.isfinite(self.intercept)):
            raise ConfigError(
                f"confidence map: finite numbers and a slope of 0 or more, got {self.slope!r} and {self.intercept!r}."
            )
        if not 0 <= self.right <= self.pairs:
            raise ConfigError(f"confidence map: {self.right} right verdicts of {self.pairs}.")

    def __call__(self, raw: float) -> float:
        """The calibrated confidence, in [0, 1], of a raw one in [0, 1]. ConfigError outside."""
        if not 0 <= raw <= 1:
            raise ConfigError(f"raw confidence {raw!r}: a probability, from 0 to 1.")
        return float(_sigmoid(self.slope * _logits(np.array([raw])) + self.intercept)[0])

    @classmethod
    def fit(cls, raw: Sequence[float], right: Sequence[bool]) -> ConfidenceMap:
        """Fitted on verdicts whose truth is known.

        raw: their raw confidences, each in [0, 1]. right: was each right, in the same order. ConfigError where the two
        do not fit each other or a number is outside; DataError below 40 pairs, or below 5 right or 5 wrong ones.
        """
        found = np.asarray(raw, dtype=np.float64)  # (n,)
        is_right = np.asarray(right, dtype=bool)  # (n,)
        if found.ndim != 1 or found.shape != is_right.shape:
            raise ConfigError(f"{found.size} raw confidences and {is_right.size} answers: one for each.")
        if not bool(np.all((found >= 0) & (found <= 1))):
            raise ConfigError("raw confidences are probabilities, from 0 to 1.")
        n, n_right = len(found), int(is_right.sum())
        if n < LEAST_PAIRS or min(n_right, n - n_right) < LEAST_OF_EACH:
            raise DataError(
                f"a confidence map needs at least {LEAST_PAIRS} verdicts, {LEAST_OF_EACH} right and {LEAST_OF_EACH} "
                f"wrong ones; there are {n}, {n_right} of them right. Until then the confidence stays raw."
            )
        slope, intercept = _fitted(_logits(found), is_right)
        return cls(slope, intercept, n, n_right)

    def to_json(self) -> dict[str, Any]:
        """All that is needed to read it back, as plain values."""
        return {"schema": _SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> ConfidenceMap:
        """What `to_json` gave. ConfigError where it is something else."""
        if not isinstance(document, Mapping) or document.get("schema") != _SCHEMA:
            raise ConfigError(f'this is no confidence map: its "schema" is not {_SCHEMA}.')
        slope, intercept, pairs, right = (document.get(one.name) for one in fields(cls))
        if not (type(pairs) is int and type(right) is int and _is_number(slope) and _is_number(intercept)):
            raise ConfigError("confidence map: slope and intercept are numbers, pairs and right are whole numbers.")
        return cls(float(slope or 0), float(intercept or 0), pairs, right)


def _is_number(x: Any) -> bool:
    return type(x) is float or (type(x) is int and abs(x) < 10**9)


def _plain(value: Any) -> str:
    return value.strip().casefold() if isinstance(value, str) else json.dumps(value)


def _logits(raw: np.ndarray) -> np.ndarray:
    held = np.clip(raw, _SHORTEST, 1 - _SHORTEST)
    logits: np.ndarray = np.log(held) - np.log1p(-held)
    return logits


def _sigmoid(z: np.ndarray) -> np.ndarray:
    p: np.ndarray = np.exp(-np.logaddexp(0.0, -z))
    return p


def _fitted(x: np.ndarray, is_right: np.ndarray) -> tuple[float, float]:
    """Slope >= 0 and intercept of least log-loss: Newton's steps, halved where they do not help.

    x: float64 (n,), logits. is_right: bool (n,). Targets are drawn in from 0 and 1 as Platt 1999, section 2.2, does,
    so the optimum is finite even where the two kinds lie apart.
    """
    n_right = int(is_right.sum())
    n_wrong = len(x) - n_right
    target = np.where(is_right, (n_right + 1) / (n_right + 2), 1 / (n_wrong + 2))
    columns = np.stack([x, np.ones_like(x)], axis=1)  # (n, 2)

    def loss(weights: np.ndarray) -> float:
        z = columns @ weights
        return float(np.sum(np.logaddexp(0.0, z) - target * z))

    weights = np.zeros(2)
    for _ in range(100):
        p = _sigmoid(columns @ weights)
        gradient = columns.T @ (p - target)
        if float(np.abs(gradient).max()) < 1e-9 * len(x):
            break
        hessian = (columns * (p * (1 - p))[:, None]).T @ columns + 1e-12 * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        while size > 1e-10 and loss(weights - size * step) > loss(weights):
            size /= 2
        weights = weights - size * step
    if weights[0] > 0:
        return float(weights[0]), float(weights[1])
    base = float(target.mean())  # the loss is convex: held at slope 0, the best is the share
    return 0.0, math.log(base / (1 - base))
