"""The report of an induced adapter: what is read where, what is left out and why, what was decided and by which rule,
and what the checks found. No time and no absolute path stands in it: the same samples, the same report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.induce.checks import CheckReport
from prefixguard.induce.proposal import Proposal
from prefixguard.induce.samples import Samples
from prefixguard.induce.verdict import outcome_remedy, verdict
from prefixguard.stepview import Recognised

#: Rows of a table in the page; the JSON has all.
_ROWS = 60


@dataclass(frozen=True, slots=True)
class Usage:
    """What asking a language model took. cost: in the currency of the prices that were named; None where none were.
    why: why its proposal was not taken; empty where it was."""

    model: str
    rounds: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    why: str = ""

    def __str__(self) -> str:
        cost = "cost not known" if self.cost is None else f"cost {self.cost:.4f}"
        return (
            f"{self.model}: {self.rounds} rounds, {self.tokens_in:,} tokens sent, {self.tokens_out:,} received, {cost}"
        )


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that is known of an induced adapter.

    name, version, sha256: of the adapter; sha256 is empty where the spec could not be compiled. waived: (path, reason)
    as in the spec. mended: sentences on what a person changed in the spec by hand.
    """

    name: str
    version: str
    sha256: str
    samples: Samples
    proposal: Proposal
    check: CheckReport
    recognised: tuple[Recognised, ...] = ()
    usage: Usage | None = None
    waived: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; `schema` names the form."""
        proposal, usage = self.proposal, self.usage
        return {
            "schema": "prefixguard/induction/v1",
            "adapter": {"name": self.name, "version": self.version, "sha256": self.sha256},
            "verdict": verdict(self.check),
            "origin": proposal.origin,
            "score": round(self.check.score(), 6),
            "samples": {
                "name": Path(self.samples.source).name,
                "files": len(self.samples.files),
                "bytes": sum(file.size for file in self.samples.files),
                "left_out": [{"path": path, "why": why} for path, why in self.samples.left_out],
            },
            "recognised": [_fields(one) for one in self.recognised],
            "mapped": [_fields(one) for one in proposal.mapped],
            "left_out": [_fields(one) for one in proposal.left_out],
            "choices": [
                {
                    "field": choice.field,
                    "taken": choice.taken,
                    "rule": choice.rule,
                    "options": [_fields(option) for option in choice.options],
                }
                for choice in proposal.choices
            ],
            "waived": [{"path": path, "reason": reason} for path, reason in self.waived],
            "mended": list(self.mended),
            "notes": [*proposal.notes, *self.notes],
            "usage": None if usage is None else _fields(usage),
            "check": {**self.check.to_dict(), "figures": self._figures()},
        }

    def _figures(self) -> dict[str, float | int]:
        """The check's figures but those of the clock, which are other ones every time."""
        return {name: value for name, value in self.check.figures.items() if "microseconds" not in name}

    def to_markdown(self) -> str:
        """A page for a reviewer."""
        return "\n".join(self._page()).rstrip() + "\n"

    def _page(self) -> Iterator[str]:
        samples, proposal, check = self.samples, self.proposal, self.check
        yield f"# Adapter {self.name} {self.version}\n"
        yield f"sha256 `{self.sha256 or 'none: the spec could not be compiled'}`\n"
        size = sum(file.size for file in samples.files)
        origin = "by offline inference" if proposal.origin == "offline" else f"by {proposal.origin}"
        yield f"Made {origin} from {len(samples.files):,} sample files ({size:,} bytes), score {check.score():.3f}.\n"
        yield f"{' '.join(filter(None, (verdict(check), outcome_remedy(check))))}\n"
        if self.usage is not None:
            yield f"Language model: {self.usage}.{' ' + self.usage.why if self.usage.why else ''}\n"
        for one in self.recognised:
            if one.reads_well:
                yield f"A shipped adapter reads these samples too: {one}.\n"
        for title, sentences in (("Changed by hand", self.mended), ("Notes", (*proposal.notes, *self.notes))):
            if sentences:
                yield f"## {title}\n"
                yield from (f"- {plain(one)}" for one in sentences)
                yield ""
        yield "## What is read\n"
        rows = [(m.raw, m.field, f"{m.coverage:.0%}", f"{m.confidence:.2f}", m.why) for m in proposal.mapped]
        yield from table(("raw path", "becomes", "filled", "confidence", "why"), rows)
        yield "## What is left out\n"
        yield from table(
            ("raw path", "share of text", "why"), [(o.raw, f"{o.share:.1%}", o.why) for o in proposal.left_out]
        )
        if proposal.choices:
            yield "## What the samples did not decide\n"
            for choice in proposal.choices:
                yield f"**{plain(choice.field)}**: {plain(choice.rule)}\n"
                marks = [(">" if i == choice.taken else "", o) for i, o in enumerate(choice.options)]
                rows = [(m, o.label, f"{o.confidence:.2f}", o.why, o.example) for m, o in marks]
                yield from table(("taken", "option", "confidence", "why", "example"), rows)
        if self.waived:
            yield "## Waived\n"
            yield from table(("path", "reason"), self.waived)
        yield "## Checks\n"
        yield from table(
            ("severity", "check", "where", "what", "remedy"),
            [(f.severity, f.check, f.where, f.what, f.remedy) for f in check.findings],
        )
        yield "Filled fields, share of records:\n"
        yield from table(("field", "filled"), [(name, f"{share:.1%}") for name, share in check.fields.items()])
        yield from table(("figure", "value"), [(name, number(value)) for name, value in self._figures().items()])
        if samples.left_out:
            yield "## Sample files that were not looked at\n"
            yield from table(("file", "why"), samples.left_out)


def _fields(one: Any) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__dataclass_fields__}


def number(value: float | int) -> str:
    """A figure for people.

    >>> number(3), number(0.98765), number(12345)
    ('3', '0.988', '12,345')
    """
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def plain(text: Any) -> str:
    """Text from samples, harmless in Markdown: one line, no cell borders, no links or markup, cut to 300 characters."""
    shown = "".join(c if c.isprintable() else " " for c in str(text))
    shown = shown if len(shown) <= 300 else shown[:299] + "…"
    for mark in ("\\", "|", "<", "[", "`"):
        shown = shown.replace(mark, "\\" + mark)
    return shown


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """A Markdown table and an empty line; a word where there are no rows."""
    shown = list(rows)
    if not shown:
        yield "Nothing.\n"
        return
    yield "| " + " | ".join(heads) + " |"
    yield "|" + " --- |" * len(heads)
    for row in shown[:_ROWS]:
        yield "| " + " | ".join(plain(cell) for cell in row) + " |"
    if len(shown) > _ROWS:
        yield f"| ... | {len(shown) - _ROWS} more in the JSON |" + " |" * (len(heads) - 2)
    yield ""
