"""What an auditor says of a run, or of the part of it that is there, what asking took, and verdicts kept on disk.

Verdicts are kept in the common store (`prefixguard.store`), so that the same question is not paid twice, by a key that
names everything that the answer rests on: the steps that are shown, the model, the version of the prompt. What is kept:
verdict, raw reply, tokens, cost and time; never messages, addresses or keys. Files of release 0.3 (JSON, one for each
verdict) are read too.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, get_args, get_type_hints, runtime_checkable

from prefixguard.errors import ConfigError, OutputError
from prefixguard.stepview import StepRecord, serialize
from prefixguard.store import Kept, Store


class VerdictOutcome(StrEnum):
    """ALARM: a step is named. SAFE: nothing decisive was found. ABSTAIN: the auditor said that it cannot tell.

    ERROR: there is no verdict (no answer, no answer in the protocol, an answer that the run refutes). Never SAFE.
    """

    ALARM = "alarm"
    SAFE = "safe"
    ABSTAIN = "abstain"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One verdict.

    step: ALARM only: index of the record that is blamed, from 1, one of those that were shown.
    agent: ALARM only: the agent of the run that is blamed, as the run spells it; None where the auditor named none.
    reason: in the auditor's words; text from outside.
    quote: evidence that it quoted; None where it quoted none. quote_found: does it stand in the blamed record; None
        without a quote.
    confidence: probability, in [0, 1], that the verdict is right; None where nothing tells.
    fault: ERROR only: one word of a fixed list, for counts ("truncated", "no-answer", "step-out-of-range", ...).
    detail: ERROR only: what happened, in a sentence.
    notes: what was tolerated in the answer's form, or does not fit the run ("fenced", "agent did not act there"), one
        entry each.
    """

    outcome: VerdictOutcome
    step: int | None = None
    agent: str | None = None
    reason: str = ""
    quote: str | None = None
    quote_found: bool | None = None
    confidence: float | None = None
    fault: str = ""
    detail: str = ""
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """All fields as plain values."""
        return {**asdict(self), "outcome": self.outcome.value, "notes": list(self.notes)}


@dataclass(frozen=True, slots=True)
class AuditResult:
    """One question to an auditor and its answer.

    key: hash of everything that was sent (messages, model, prompt version): the same question has the same key.
    cached: answered from an earlier reply; nothing was sent and tokens and cost are 0.
    tokens_in, tokens_out: estimated where `estimated`. cost: in the currency of the prices; None where unknown.
    seconds: from question to verdict. attempts: requests sent. reply: the raw reply, kept for audit.
    masked: different secrets that were masked in the records, by kind.
    """

    verdict: Verdict
    key: str
    cached: bool
    tokens_in: int
    tokens_out: int
    estimated: bool
    cost: float | None
    seconds: float
    attempts: int
    reply: str
    finish: str = ""
    masked: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    def as_json(self) -> dict[str, Any]:
        """All fields as plain values; those of the verdict beside them."""
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "verdict"}
        return {**self.verdict.as_json(), **own, "masked": dict(self.masked)}


def as_cached(judged: AuditResult) -> AuditResult:
    """The same answer to one who did not pay for it."""
    return replace(judged, cached=True, tokens_in=0, tokens_out=0, estimated=False, cost=0.0, seconds=0.0, attempts=0)


class Auditor(Protocol):
    """Gives verdicts on prefixes. `judge` never raises for what the endpoint does: that is a verdict ERROR."""

    @property
    def model(self) -> str:
        """What is asked."""
        ...

    @property
    def prompt_version(self) -> str:
        """Which wording asks, with its hash."""
        ...

    async def judge(self, records: Sequence[StepRecord], *, seconds: float | None = None) -> AuditResult:
        """The verdict on these records, the steps of a run so far, in order from 1. seconds: at most so long."""
        ...


@runtime_checkable
class Keyed(Protocol):
    """An auditor that says the key of a question before it is asked."""

    def key_of(self, records: Sequence[StepRecord]) -> str:
        """The `AuditResult.key` that `judge` on these records would have."""
        ...


def question_key(records: Sequence[StepRecord], model: str, prompt_version: str) -> str:
    """SHA-256, in hex, of the steps, the model's name and the prompt's version: the key of a question to an auditor
    that says none itself (`Keyed`). Index and agent of a step count too, since a verdict names them."""
    parts = [model.encode("utf-8", "surrogatepass"), prompt_version.encode("utf-8", "surrogatepass")]
    for record in records:
        parts += [f"{record.index}\0{record.agent}".encode("utf-8", "surrogatepass"), serialize(record)]
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).hexdigest()


_SCHEMA = "prefixguard/judged/v1"
#: Bytes of a file of release 0.3 that are read; a reply has at most 256 Ki characters.
_MAX_FILE = 4 << 20


class VerdictCache:
    """The folder. Thread-safe, and safe for several processes: of two that write the same key, one stays."""

    __slots__ = ("_store", "_write_failed", "path")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """path: made where it is not there. ConfigError where that cannot be."""
        self.path = Path(path)
        self._store = Store(self.path)
        self._write_failed = 0
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise ConfigError(
                f"no verdicts can be kept in {self.path}: {exc.strerror or exc}. Name another folder."
            ) from exc

    @property
    def write_failed(self) -> int:
        """Verdicts that could not be written (disk full, no permission)."""
        return self._write_failed

    def get(self, key: str) -> AuditResult | None:
        """The verdict kept for this key, `cached`, having taken nothing; None where there is none that can be read."""
        kept = self._store.get("verdict", key=key)
        try:
            return _from_document(self._of_0_3(key) if kept is None else kept.facts, key)
        except (OSError, ValueError, TypeError, KeyError, RecursionError, OverflowError):
            return None

    def put(self, key: str, judged: AuditResult) -> None:
        """Keep a verdict under this key. An ERROR is never kept; what cannot be written is counted."""
        if judged.verdict.outcome is VerdictOutcome.ERROR:
            return
        document = {"schema": _SCHEMA, **judged.as_json(), "key": key, "cached": False}
        try:
            self._store.put(Kept(document), "verdict", key=key)
        except (OutputError, ValueError, TypeError):
            self._write_failed += 1

    def _of_0_3(self, key: str) -> Any:
        name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        with (self.path / name[:2] / name[2:4] / f"{name[4:]}.json").open("rb") as file:
            return json.loads(file.read(_MAX_FILE))


def _from_document(document: Any, key: str) -> AuditResult:
    """ValueError, TypeError or KeyError for what `put` does not write."""
    verdict = Verdict(**_read(Verdict, document, [one.name for one in fields(Verdict)]))
    if document["schema"] != _SCHEMA or document["key"] != key:
        raise ValueError("another file")
    step, confidence = verdict.step, verdict.confidence
    if verdict.outcome is VerdictOutcome.ERROR or (step is None) == (verdict.outcome is VerdictOutcome.ALARM):
        raise ValueError("no verdict that is kept")
    if (step is not None and step < 1) or (confidence is not None and not 0 <= confidence <= 1):
        raise ValueError("a step before the first, or no probability")
    own = _read(AuditResult, document, ("seconds", "reply", "finish"))
    if not math.isfinite(own.pop("seconds")):
        raise ValueError("seconds are no time")
    return as_cached(AuditResult(verdict, key, True, 0, 0, False, 0.0, 0.0, 0, **own))


def _read(kind: type, document: Any, names: Sequence[str]) -> dict[str, Any]:
    """Fields of a dataclass from a JSON object, each of exactly the type that it is declared as; a whole number is a
    float too."""
    declared = get_type_hints(kind)
    return {name: _value(document[name], declared[name]) for name in names}


def _value(value: Any, declared: Any) -> Any:
    kinds = get_args(declared) or (declared,)
    if Ellipsis in kinds:
        return tuple(_value(one, kinds[0]) for one in _value(value, list))
    if isinstance(declared, type) and issubclass(declared, StrEnum):
        return declared(value)
    if type(value) in kinds or (type(value) is int and float in kinds):
        return value
    raise ValueError(f"{value!r} instead of {declared}")
