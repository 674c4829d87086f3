"""The accounts of questions: how much may be asked, and what became of every one.

Budgets: a question is held against them before it is sent, and settled by what it took. In a budget with a window, what
was sent counts from its sending until a window later, and what is not settled yet counts always: so in no window are
more calls sent than the budget has, however long questions wait.

Counts: offered = answered + cached + dropped + failed, exactly.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from prefixguard.escalate.verdict import AuditResult

#: Seconds of the window of budgets "a minute".
MINUTE = 60.0


@dataclass(slots=True)
class Held:
    """A question that a budget let pass. sent_at: the clock's time when it was sent; None before. Made by `Budget`."""

    tokens: int
    money: float
    sent_at: float | None = None
    settled: bool = False


class Budget:
    """Calls, tokens and money, in all or in any window of time. Thread-safe."""

    __slots__ = ("_clock", "_limits", "_lock", "_over", "_unknown", "_used", "_window", "name")

    def __init__(
        self,
        name: str,
        *,
        calls: int | None = None,
        tokens: int | None = None,
        money: float | None = None,
        window: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """name: said in refusals ("run", "minute"). window: seconds; None: nothing is ever forgotten. clock: seconds,
        never falling."""
        self.name = name
        self._limits = (calls, tokens, money)
        self._window, self._clock = window, clock
        self._used: tuple[int, int, float] = (0, 0, 0.0)  # what is held, and what was spent within the window
        self._over: list[tuple[float, int, float]] = []  # heap of what was spent: (sent at, tokens, money)
        self._unknown = False  # money is limited, and an answer's cost is not known
        self._lock = threading.Lock()

    def hold(self, tokens: int, money: float) -> Held | str:
        """Hold one question that takes so much; or the reason why not, such as "calls a run"."""
        with self._lock:
            self._forget()
            if self._unknown:
                return "cost unknown"
            after = (self._used[0] + 1, self._used[1] + tokens, self._used[2] + money)
            for what, limit, use in zip(("calls", "tokens", "money"), self._limits, after, strict=True):
                # A limit of nothing refuses even what is held to cost nothing.
                if limit is not None and (use > limit + 1e-12 or limit == 0):
                    return f"{what} a {self.name}"
            if self._limits[2] is not None and self._used[2] >= self._limits[2]:
                return f"money a {self.name}"
            self._used = after
            return Held(tokens, money)

    def sent(self, held: Held) -> None:
        """The question is being sent now."""
        with self._lock:
            held.sent_at = self._clock()

    def settle(self, held: Held, tokens: int, money: float | None) -> None:
        """What the question took. money: None where it is not known. A second settlement changes nothing."""
        with self._lock:
            if held.settled:
                return
            held.settled = True
            if money is None:
                self._unknown = self._unknown or self._limits[2] is not None
                money = held.money
            calls, all_tokens, all_money = self._used
            self._used = (calls, all_tokens - held.tokens + tokens, all_money - held.money + money)
            if self._window is not None:
                heapq.heappush(self._over, (held.sent_at if held.sent_at is not None else self._clock(), tokens, money))
                self._forget()

    def release(self, held: Held) -> None:
        """The question was not sent: it took nothing, not even a call."""
        with self._lock:
            if not held.settled:
                held.settled = True
                self._take_back(held.tokens, held.money)

    @property
    def used(self) -> tuple[int, int, float]:
        """Calls, tokens and money that count now: held, or spent within the window."""
        with self._lock:
            self._forget()
            return self._used

    def _take_back(self, tokens: int, money: float) -> None:
        calls, all_tokens, all_money = self._used
        # Sums of floats: nothing held is exactly nothing, whatever was added and taken before.
        self._used = (calls - 1, all_tokens - tokens, all_money - money if calls > 1 else 0.0)

    def _forget(self) -> None:
        while self._over and self._window is not None and self._over[0][0] <= self._clock() - self._window:
            _, tokens, money = heapq.heappop(self._over)
            self._take_back(tokens, money)


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
        by_reason = {name: dict(sorted(getattr(self, name).items())) for name in _BY_REASON}
        sums = {"dropped": self.n_dropped, "failed": self.n_failed, "pending": self.pending}
        more = {f"{name}_by_reason": by_reason.pop(name) for name in ("dropped", "failed")}
        return {**asdict(self), **sums, **more, **by_reason}


_BY_REASON = ("dropped", "failed", "verdicts", "masked")


class RequestStatistics:
    """Counts questions. Not thread-safe: a queue changes and reads it under its own lock."""

    __slots__ = ("_by", "_sums")

    def __init__(self) -> None:
        self._by: dict[str, Counter[str]] = {name: Counter() for name in _BY_REASON}
        self._sums: dict[str, Any] = {k: v for k, v in asdict(RequestCounts()).items() if k not in _BY_REASON}

    def offer(self) -> None:
        """A question is there; `end` is called once for it."""
        self._sums["offered"] += 1

    def end(self, ending: str, judged: AuditResult | None = None, reason: str = "", *, sent: bool = True) -> None:
        """What became of a question: "answered", "cached", "dropped" or "failed".

        judged: the answer; of a failure what it took all the same, where that is known. sent: the question was sent
        itself, and not only the very same one.
        """
        if ending in ("answered", "cached") and judged is not None:
            self._sums[ending] += 1
            self._by["verdicts"][judged.verdict.outcome.value] += 1
        else:
            self._by[ending][reason] += 1
        if ending in ("answered", "failed") and sent:
            self._spend(judged)

    def _spend(self, judged: AuditResult | None) -> None:
        if judged is None or judged.cost is None:
            self._sums["cost_unknown"] += 1
        else:
            self._sums["cost"] += judged.cost
        if judged is not None:
            for name in ("tokens_in", "tokens_out", "estimated", "seconds", "attempts"):
                self._sums[name] += getattr(judged, name)
            self._by["masked"].update(judged.masked)

    def snapshot(self) -> RequestCounts:
        """The counts now."""
        by: dict[str, Any] = {name: dict(found) for name, found in self._by.items()}
        return RequestCounts(**self._sums, **by)
