"""An auditor that asks one kind of question and answers by a function of the prefix; and steps to walk through."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from prefixguard.escalate.prompting import PromptKind
from prefixguard.escalate.verdict import AuditResult, Verdict
from prefixguard.stepview import StepRecord


def steps_of(n: int, others: Collection[int] = (), name: str = "run") -> tuple[StepRecord, ...]:
    """n steps by agents a0 and a1 in turn. others: steps at which the environment acts."""
    return tuple(
        StepRecord(
            i, "environment" if i in others else "agent", "" if i in others else f"a{i % 2}", "look", "{}", "", name,
            f"seen {i}", "ok", i - 1,
        )
        for i in range(1, n + 1)
    )  # fmt: skip


class WalkingScript:
    """Answers `says(last step shown, range)`; remembers the prefixes, and whether it was closed."""

    def __init__(self, kind: PromptKind, says: Callable[[int, tuple[int, int] | None], Verdict]) -> None:
        self.kind, self._says = kind, says
        self.prefixes: list[int] = []
        self.closed = False

    async def judge(
        self,
        records: Sequence[StepRecord],
        *,
        seconds: float | None = None,
        answer: str | None = None,
        within: tuple[int, int] | None = None,
    ) -> AuditResult:
        self.prefixes.append(len(records))
        verdict = self._says(len(records), within)
        return AuditResult(verdict, f"k{len(self.prefixes)}", False, 100, 10, False, 0.001, 0.01, 1, "reply", "stop")

    async def aclose(self) -> None:
        self.closed = True
