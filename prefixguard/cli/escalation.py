"""`watch --escalate`: the auditor behind a monitor, and how its verdicts are said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.text import Text

from prefixguard.cli.console import say, say_proxy, visible
from prefixguard.cli.shown import ReadingLines
from prefixguard.cli.signatures import own_parameters
from prefixguard.errors import UsageError
from prefixguard.escalate import (
    Endpoint,
    EscalatedReading,
    Escalator,
    VerdictCache,
    VerdictOutcome,
    masked_in_words,
    model_escalator,
)
from prefixguard.runtime import Monitor

#: Seconds of patience at most.
_MOST_PATIENCE = 1e6


def escalator_of(
    monitor: Monitor,
    model: str,
    *,
    threshold: float | None = None,
    every: int = 5,
    gap: int = 1,
    calls: int = 8,
    calls_a_minute: int | None = None,
    block: float | None = None,
    intervention: str = "warn",
    budget_tokens: int = 24_000,
    mask: bool = True,
    reply_tokens: int | None = 2048,
    temperature: float | None = 0.0,
    replies: Path | None = None,
    patience: float = 30.0,
    **server: Any,
) -> Escalator:
    """The monitor with a model behind it, by the options of `watch`. server: further fields of `Endpoint`.

    threshold : the risk above which it is asked. Default: the monitor's WATCH threshold.
    every : while the risk stays above: ask again after so many steps.
    gap : fewest steps from one question of a run to its next.
    calls : questions of a run at most.
    calls_a_minute : questions in any minute at most. Default: 120; with a finished file, no limit.
    block : wait so many seconds for each verdict. Default: never wait while it runs.
    intervention : at ALARM: warn; nudge: a message for the agent; stop: the message, and to stop.
    budget_tokens : tokens of a prompt.
    mask : mask likely secrets (keys, passwords, cards, e-mail) in what is sent.
    reply_tokens : tokens that a reply may have.
    temperature : sent if given; 0 where a server takes it.
    replies : folder of verdicts, so that none is asked for twice.
    patience : seconds to wait at the end for verdicts under way.
    ConfigError, MissingExtraError as these say; UsageError where the patience is no number of seconds.
    """
    endpoint = Endpoint(model, max_reply_tokens=reply_tokens, temperature=temperature, **server)
    if not 0 <= patience <= _MOST_PATIENCE:
        raise UsageError(f"--patience {patience:g}: seconds, from 0 to {_MOST_PATIENCE:,.0f}.")
    say_proxy(endpoint.proxy)
    return model_escalator(
        monitor,
        endpoint,
        budget_tokens=budget_tokens,
        mask=mask,
        cache=None if replies is None else VerdictCache(replies),
        mark=threshold,
        every=every,
        gap=gap,
        calls_a_run=calls,
        calls_a_minute=calls_a_minute,
        mode="async" if block is None else "block",
        deadline=10.0 if block is None else block,
        seconds=max(endpoint.timeout, block or 0.0),
        intervention=intervention,
    )


class EscalatedLines:
    """The lines of one run's readings. It remembers what was printed, so that a reading that comes again prints only
    what is new."""

    __slots__ = ("_last", "_note", "_readings")

    def __init__(self, names: tuple[str, ...] = ()) -> None:
        """names: of the symbols of an automaton, in words."""
        self._last: EscalatedReading | None = None
        self._note: str | None = None
        self._readings = ReadingLines(names=names)

    def document(self, said: EscalatedReading) -> dict[str, Any] | None:
        """The reading as JSON; None for one that comes again with nothing new."""
        last = self._before(said)
        if last is not None and not said.news and said.message is None and _state(said) == _state(last):
            return None
        return said.to_json()

    def lines(self, said: EscalatedReading) -> list[Text]:
        """The reading at the level that verdicts made, what came of its question, a verdict that is new, and the
        message for the agent. Of a reading that comes again, the line only where its level is another one now."""
        lines = []
        last = self._before(said)
        if last is None or last.level is not said.level:
            line = self._readings.line(replace(said.reading, level=said.level))
            if said.escalation is not None:
                line.append(f"  [{visible(said.escalation)}]", style="cyan")
            lines.append(line)
        if said.news and said.verdict is not None:
            verdict = said.verdict
            text = f"          auditor on step {said.about}: {verdict.outcome.value}"
            if verdict.outcome is VerdictOutcome.ALARM:
                text += f", step {verdict.step}" + (f" by {visible(verdict.agent)}" if verdict.agent else "")
            lines.append(Text(f"{text}. {visible(verdict.reason)}".rstrip(), style="cyan"))
        if said.note is not None and (said.note != self._note or (said.escalation is not None and not said.again)):
            lines.append(Text(f"          auditor silent: {visible(said.note)}", style="magenta"))
            self._note = said.note
        if said.message is not None:
            lines.append(Text(f"          to the agent: {visible(said.message)}", style="bold"))
        return lines

    def _before(self, said: EscalatedReading) -> EscalatedReading | None:
        """What was told last of the reading that comes again; None for a reading that is new."""
        last = self._last
        if said.reading.unknown_reason is None or last is None or last.reading.step != said.reading.step:
            self._last = said  # a line that is no event stands at the step before it, and does not come again
        return last if said.again else None


def _state(said: EscalatedReading) -> tuple[object, ...]:
    return said.level, said.escalation, said.about, said.note, said.stop


def close_escalator(escalator: Escalator, *, priced: bool) -> None:
    """End it, and say what became of its questions. priced: whether prices are known."""
    counts = escalator.close(drain=False, seconds=1.0)
    if not counts.offered:
        say("Escalation: the risk never came above the threshold, so nothing was asked.")
        return
    money = ""
    if priced and (counts.cost or counts.cost_unknown):
        money = f", at a cost of {counts.cost:.4f}"
        if counts.cost_unknown:
            money += f" and what {counts.cost_unknown:,} of the questions cost that got no reply, which is not known"
    say(
        f"Escalation: {counts.offered:,} questions: {counts.answered:,} answered, {counts.cached:,} answered before, "
        f"{counts.n_dropped:,} dropped, {counts.n_failed:,} failed; {counts.tokens_in:,} tokens sent, "
        f"{counts.tokens_out:,} received{money}."
    )
    if counts.masked:
        say(masked_in_words(counts.masked))
    for what, reasons in (("dropped", counts.dropped), ("failed", counts.failed)):
        for reason, number in sorted(reasons.items()):
            say(f"  {what}, {visible(reason)}: {number:,}")


#: Fields of `Endpoint` that are options of `watch`, and all of its options that go with --escalate.
SERVER = ("base_url", "key_from", "timeout", "price_in", "price_out")
ESCALATION = (*SERVER, *own_parameters(escalator_of)[0])
