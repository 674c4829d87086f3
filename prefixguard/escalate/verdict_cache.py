"""Verdicts on disk, so that the same question is not paid twice.

They are kept in the common store (`prefixguard.store`), by a key that names everything that the answer rests on: the
steps that are shown, the model, the version of the prompt. What is kept: verdict, raw reply, tokens, cost and time;
never messages, addresses or keys. What release 0.3 kept, a JSON file a verdict, is read too.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from prefixguard.errors import ConfigError, OutputError
from prefixguard.escalate.verdict import AuditResult, Verdict, VerdictOutcome
from prefixguard.stepview import StepRecord, serialize
from prefixguard.store import Kept, Store

SCHEMA = "prefixguard/judged/v1"
#: Bytes of a file of release 0.3 that are read; a reply has at most 256 Ki characters.
MAX_FILE = 4 << 20


@runtime_checkable
class Keyed(Protocol):
    """An auditor that says the key of a question before it is asked."""

    def key_of(self, records: Sequence[StepRecord]) -> str:
        """The `AuditResult.key` that `judge` on these records would have."""
        ...


def question_key(records: Sequence[StepRecord], model: str, prompt_version: str) -> str:
    """SHA-256, in hex, of the steps, the model's name and the prompt's version: the key of a question to an auditor
    that says none itself (`Keyed`). Index and agent of a step count too, since a verdict names them."""
    digest = hashlib.sha256()
    for part in (model, prompt_version):
        _add(digest, part.encode("utf-8", "surrogatepass"))
    for record in records:
        _add(digest, f"{record.index}\0{record.agent}".encode("utf-8", "surrogatepass"))
        _add(digest, serialize(record))
    return digest.hexdigest()


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
        try:
            self._store.put(
                Kept({"schema": SCHEMA, **judged.as_json(), "key": key, "cached": False}), "verdict", key=key
            )
        except (OutputError, ValueError, TypeError):
            self._write_failed += 1

    def _of_0_3(self, key: str) -> Any:
        name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        with (self.path / name[:2] / name[2:4] / f"{name[4:]}.json").open("rb") as file:
            return json.loads(file.read(MAX_FILE))


def as_cached(judged: AuditResult) -> AuditResult:
    """The same answer to one who did not pay for it."""
    return replace(judged, cached=True, tokens_in=0, tokens_out=0, estimated=False, cost=0.0, seconds=0.0, attempts=0)


def _add(digest: Any, data: bytes) -> None:
    digest.update(len(data).to_bytes(8, "big"))
    digest.update(data)


#: Fields of a verdict, and what each may be.
_KINDS: dict[str, tuple[type | None, ...]] = {
    "agent": (str, None),
    "reason": (str,),
    "quote": (str, None),
    "quote_found": (bool, None),
    "confidence": (float, int, None),
}


def _from_document(document: Any, key: str) -> AuditResult:
    """ValueError, TypeError or KeyError for what `put` does not write."""
    if document["schema"] != SCHEMA or document["key"] != key:
        raise ValueError("another file")
    outcome = VerdictOutcome(document["outcome"])
    step = _kind(document["step"], int, None)
    if outcome is VerdictOutcome.ERROR or (step is None) == (outcome is VerdictOutcome.ALARM):
        raise ValueError("no verdict that is kept")
    if step is not None and step < 1:
        raise ValueError("a step before the first")
    told = {name: _kind(document[name], *kinds) for name, kinds in _KINDS.items()}
    if told["confidence"] is not None and not 0 <= told["confidence"] <= 1:
        raise ValueError("no probability")
    notes, seconds = document["notes"], _kind(document["seconds"], float, int)
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes) or not math.isfinite(seconds):
        raise ValueError("notes are no texts, or seconds no time")
    texts = {name: _kind(document[name], str) for name in ("reply", "finish")}
    verdict = Verdict(outcome, step, notes=tuple(notes), **told)
    return as_cached(AuditResult(verdict, key, True, 0, 0, False, 0.0, 0.0, 0, **texts))


def _kind(value: Any, *kinds: type | None) -> Any:
    """The value, if it is of exactly one of these types; None stands for itself."""
    if (value is None and None in kinds) or type(value) in kinds:
        return value
    raise ValueError(f"{value!r} instead of {kinds}")
