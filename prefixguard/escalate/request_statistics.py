"""What became of every question: offered = answered + cached + dropped + failed, exactly."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from prefixguard.escalate.verdict import AuditResult


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """The counts at one moment; all numbers belong together.

    offered = answered + cached + dropped + failed + pending; pending is 0 once a queue is closed.
    answered: a reply gave a verdict (ALARM, SAFE or ABSTAIN). cached: an earlier reply did, or that of the very same
        question that was on its way. dropped: never sent, by reason. failed: sent (or the very same question was), and
        no verdict came, by the word of the verdict ERROR or "closed", "late", "raised".
    verdicts: answered and cached ones by outcome.
    tokens_in, tokens_out, seconds, attempts: sums over what was sent, failed ones included where something is known of
        them. estimated: how many of the answers' tokens are estimates. cost: sum where known; cost_unknown: answers and
        failures without a known cost. masked: secrets that were masked in what was sent, by kind, each once a question.
    """

    offered: int = 0
    answered: int = 0
    cached: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    verdicts: Mapping[str, int] = field(default_factory=dict)
    tokens_in: int = 0
    tokens_out: int = 0
    estimated: int = 0
    cost: float = 0.0
    cost_unknown: int = 0
    seconds: float = 0.0
    attempts: int = 0
    masked: Mapping[str, int] = field(default_factory=dict)

    @property
    def n_dropped(self) -> int:
        """Questions that were never sent."""
        return sum(self.dropped.values())

    @property
    def n_failed(self) -> int:
        """Questions that were sent and got no verdict."""
        return sum(self.failed.values())

    @property
    def pending(self) -> int:
        """Questions that are waiting or on their way."""
        return self.offered - self.answered - self.cached - self.n_dropped - self.n_failed

    def as_json(self) -> dict[str, Any]:
        """All numbers as plain values, reasons in order of name."""
        reasons = {f"{name}_by_reason": dict(sorted(getattr(self, name).items())) for name in ("dropped", "failed")}
        by_kind = {name: dict(sorted(getattr(self, name).items())) for name in ("verdicts", "masked")}
        own = {"dropped": self.n_dropped, "failed": self.n_failed, "pending": self.pending}
        return {**asdict(self), **own, **reasons, **by_kind}


class RequestStatistics:
    """Counts questions. Thread-safe; every call is one change, so a snapshot never shows half of one."""

    __slots__ = ("_by", "_lock", "_sums")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        counted = ("offered", "answered", "cached", "tokens_in", "tokens_out", "estimated", "cost_unknown", "attempts")
        self._sums: dict[str, Any] = {**dict.fromkeys(counted, 0), "cost": 0.0, "seconds": 0.0}
        self._by: dict[str, Counter[str]] = {name: Counter() for name in ("dropped", "failed", "verdicts", "masked")}

    def offer(self) -> None:
        """A question is there. Exactly one of the calls below ends it."""
        with self._lock:
            self._sums["offered"] += 1

    def refuse(self, reason: str) -> None:
        """A question is there and is dropped at once: `offer` and `drop` in one change."""
        with self._lock:
            self._sums["offered"] += 1
            self._by["dropped"][reason] += 1

    def drop(self, reason: str) -> None:
        """A question that was offered will not be sent."""
        with self._lock:
            self._by["dropped"][reason] += 1

    def answer(self, judged: AuditResult) -> None:
        """A question was sent and answered by this, which is no ERROR."""
        with self._lock:
            self._sums["answered"] += 1
            self._by["verdicts"][judged.verdict.outcome.value] += 1
            self._spend(judged)

    def cache(self, judged: AuditResult) -> None:
        """A question was answered by an earlier reply, or one that was on its way; it took nothing."""
        with self._lock:
            self._sums["cached"] += 1
            self._by["verdicts"][judged.verdict.outcome.value] += 1

    def fail(self, reason: str, judged: AuditResult | None = None, *, sent: bool = True) -> None:
        """A question got no verdict. judged: what it took all the same, where that is known. sent: it was sent itself,
        and not only the very same one."""
        with self._lock:
            self._by["failed"][reason] += 1
            if judged is not None:
                self._spend(judged)
            elif sent:
                self._sums["cost_unknown"] += 1

    def snapshot(self) -> RequestCounts:
        """The counts now."""
        with self._lock:
            by: dict[str, Any] = {name: dict(found) for name, found in self._by.items()}
            return RequestCounts(**self._sums, **by)

    def renew_lock(self) -> None:
        """In a forked child, where another thread may have held the lock: a new one."""
        self._lock = threading.Lock()

    def _spend(self, judged: AuditResult) -> None:
        for name in ("tokens_in", "tokens_out", "estimated", "seconds", "attempts"):
            self._sums[name] += getattr(judged, name)
        self._by["masked"].update(judged.masked)
        if judged.cost is not None:
            self._sums["cost"] += judged.cost
        else:
            self._sums["cost_unknown"] += 1
