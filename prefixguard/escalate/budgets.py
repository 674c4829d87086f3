"""How much may be asked: calls, tokens and money, a run or in any minute.

A question is held against its budgets before it is sent, and settled by what it took. In a budget with a window,
what was sent counts from its sending until a window later, and what is not settled yet counts always: so in no window
are more calls sent than the budget has, however long questions wait.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

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

    __slots__ = (
        "_clock",
        "_limits",
        "_lock",
        "_over",
        "_unknown",
        "_used",
        "_window",
        "name",
    )

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
        """name: said in refusals ("run", "minute"). window: seconds; None: nothing is ever forgotten.

        clock: seconds, never falling.
        """
        self.name = name
        self._limits = (calls, tokens, money)
        self._window = window
        self._clock = clock
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
                sent_at = held.sent_at if held.sent_at is not None else self._clock()
                heapq.heappush(self._over, (sent_at, tokens, money))
                self._forget()

    def release(self, held: Held) -> None:
        """The question was not sent: it took nothing, not even a call."""
        with self._lock:
            if held.settled:
                return
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
        if self._window is None or not self._over:
            return
        now = self._clock()
        while self._over and self._over[0][0] <= now - self._window:
            _, tokens, money = heapq.heappop(self._over)
            self._take_back(tokens, money)
