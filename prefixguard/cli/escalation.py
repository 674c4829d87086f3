"""`watch --escalate`: the auditor behind a monitor, and how its verdicts are said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

from rich.text import Text

from prefixguard.cli.console import say, visible
from prefixguard.cli.reading_line import reading_line
from prefixguard.errors import UsageError
from prefixguard.escalate import (
    AsyncClient,
    CircuitBreaker,
    Endpoint,
    EscalatedReading,
    EscalationPolicy,
    Escalator,
    LlmAuditor,
    Rung,
    VerdictCache,
    VerdictOutcome,
    escalate_records,
    watch_escalated,
)
from prefixguard.runtime import Monitor
from prefixguard.stepview import ReadReport, read_runs


@dataclass(frozen=True, slots=True)
class Escalation:
    """A model behind a monitor. patience: seconds to wait at a run's end for verdicts under way."""

    escalator: Escalator
    patience: float

    def watch(
        self, monitor: Monitor, stream: BinaryIO, *, header: Mapping[str, Any] | None, group: str | None
    ) -> Iterator[EscalatedReading]:
        """As `runtime.watch`."""
        del monitor  # the escalator has it
        return watch_escalated(self.escalator, stream, header=header, group=group, patience=self.patience)

    def of_file(self, path: str, wanted: str | None, report: ReadReport) -> Iterator[tuple[str, EscalatedReading]]:
        """Run by run, or the one that is wanted."""
        monitor, found = self.escalator.monitor, False
        for run in read_runs(path, monitor.bundle.adapter, report=report):
            if wanted is None or run.run_id == wanted:
                found = True
                group = monitor.group_of(run)
                for said in escalate_records(self.escalator, run.records, group=group, patience=self.patience):
                    yield run.run_id, said
        if report.runs and not found:
            raise UsageError(f"{path}: none of its {report.runs:,} runs is called {wanted!r}. See: prefixguard score")

    def close(self) -> None:
        """End it, and say what became of its questions."""
        _say_counts(self.escalator)


def escalation_of(
    monitor: Monitor,
    endpoint: Endpoint,
    *,
    mark: float | None,
    every: int,
    calls: int,
    block: float | None,
    rung: str,
    budget_tokens: int,
    replies: Path | None,
    patience: float,
) -> Escalation:
    """The monitor with a model behind it, by the options of `watch`. ConfigError, MissingExtraError as these say."""
    policy = EscalationPolicy(
        mark=mark,
        every=every,
        calls_a_run=calls,
        mode="async" if block is None else "block",
        deadline=10.0 if block is None else block,
        seconds=max(60.0, block or 0.0),
        rung=cast(Rung, rung),
        question_tokens=budget_tokens + (endpoint.max_reply_tokens or 0),
    )
    breaker = CircuitBreaker()
    auditor = LlmAuditor(AsyncClient(endpoint, breaker=breaker), budget_tokens=budget_tokens)
    cache = None if replies is None else VerdictCache(replies)
    return Escalation(Escalator(monitor, auditor, policy, cache, breaker=breaker), patience)


def escalated_lines(said: EscalatedReading) -> list[Text]:
    """The reading at the level that verdicts made, what came of its question, a verdict that is new, and the message
    for the agent."""
    line = reading_line(replace(said.reading, level=said.level))
    if said.escalation is not None:
        line.append(f"  [{visible(said.escalation)}]", style="cyan")
    lines = [line]
    if said.news and said.verdict is not None:
        verdict = said.verdict
        text = f"          auditor on step {said.about}: {verdict.outcome.value}"
        if verdict.outcome is VerdictOutcome.ALARM:
            text += f", step {verdict.step}" + (f" by {visible(verdict.agent)}" if verdict.agent else "")
        lines.append(Text(f"{text}. {visible(verdict.reason)}".rstrip(), style="cyan"))
    if said.note is not None and said.escalation is not None:
        lines.append(Text(f"          auditor silent: {visible(said.note)}", style="magenta"))
    if said.message is not None:
        lines.append(Text(f"          to the agent: {visible(said.message)}", style="bold"))
    return lines


def _say_counts(escalator: Escalator) -> None:
    """Ends the escalator, and says what became of its questions."""
    counts = escalator.close(drain=False, seconds=1.0)
    if not counts.offered:
        say("Escalation: the risk never came above the mark, so nothing was asked.")
        return
    money = f", at a cost of {counts.cost:.4f}" if counts.cost else ""
    say(
        f"Escalation: {counts.offered:,} questions: {counts.answered:,} answered, {counts.cached:,} answered before, "
        f"{counts.n_dropped:,} dropped, {counts.n_failed:,} failed; {counts.tokens_in:,} tokens sent, "
        f"{counts.tokens_out:,} received{money}."
    )
    for what, reasons in (("dropped", counts.dropped), ("failed", counts.failed)):
        for reason, number in sorted(reasons.items()):
            say(f"  {what}, {visible(reason)}: {number:,}")
