"""The report of an induced adapter: what is read where, what is left out and why, what was decided and by which rule,
and what the checks found. No time and no absolute path stands in it: the same samples, the same report."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.induce.checks import CheckReport
from prefixguard.induce.proposal import Proposal, Usage
from prefixguard.induce.samples import Samples
from prefixguard.results import Block, Bullets, Heading, TableBlock, Text, escaped, plain_value, to_markdown
from prefixguard.stepview import Recognised

#: Rows of a table in the page, and characters of a cell; the JSON has all.
_ROWS, _LONGEST = 60, 300
#: Less of the text than this is worth a word.
_LITTLE = 0.5


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that is known of an induced adapter. mended: sentences on what a person changed by hand."""

    samples: Samples
    proposal: Proposal
    check: CheckReport
    recognised: tuple[Recognised, ...] = ()
    usage: Usage | None = None
    notes: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return str(self.proposal.spec.get("name", ""))

    @property
    def version(self) -> str:
        return str(self.proposal.spec.get("version", ""))

    @property
    def waived(self) -> list[Mapping[str, str]]:
        """Path and reason of each waiver in the spec."""
        entries = self.proposal.spec.get("waived", ())
        return [one for one in entries if isinstance(one, dict) and {"path", "reason"} <= one.keys()]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; `schema` names the form."""
        proposal = self.proposal
        said: dict[str, Any] = plain_value({
            "schema": "prefixguard/induction/v1",
            "adapter": {"name": self.name, "version": self.version, "sha256": self.check.sha256},
            "verdict": verdict(self.check),
            "origin": proposal.origin,
            "score": round(self.check.score(), 6),
            "samples": {
                "name": Path(self.samples.source).name,
                "files": len(self.samples.files),
                "bytes": sum(file.size for file in self.samples.files),
                "left_out": [{"path": path, "why": why} for path, why in self.samples.left_out],
            },
            "recognised": self.recognised,
            "mapped": proposal.mapped,
            "left_out": proposal.left_out,
            "choices": proposal.choices,
            "waived": self.waived,
            "mended": self.mended,
            "notes": (*proposal.notes, *self.notes),
            "usage": self.usage,
            "check": {**self.check.to_dict(), "figures": self._figures()},
        })  # fmt: skip
        return said

    def _figures(self) -> dict[str, float | int]:
        """The check's figures but those of the clock, which are other ones every time."""
        return {name: value for name, value in self.check.figures.items() if "microseconds" not in name}

    def to_markdown(self) -> str:
        """A page for a reviewer."""
        return f"# Adapter {escaped(self.name)} {escaped(self.version)}\n\n{to_markdown(tuple(self._blocks()))}"

    def _blocks(self) -> Iterator[Block]:
        samples, proposal, check = self.samples, self.proposal, self.check
        yield Text(f"sha256 {check.sha256 or 'none: the spec could not be compiled'}")
        size = sum(file.size for file in samples.files)
        origin = "by offline inference" if proposal.origin == "offline" else f"by {proposal.origin}"
        yield Text(
            f"Made {origin} from {len(samples.files):,} sample files ({size:,} bytes), score {check.score():.3f}."
        )
        yield Text(f"{verdict(check)} {outcome_remedy(check)}")
        if self.usage is not None:
            yield Text(f"Language model: {self.usage}. {self.usage.why}")
        for one in self.recognised:
            if one.reads_well:
                yield Text(f"A shipped adapter reads these samples too: {one}.")
        for title, sentences in (("Changed by hand", self.mended), ("Notes", (*proposal.notes, *self.notes))):
            if sentences:
                yield Heading(title)
                yield Bullets(sentences)
        yield Heading("What is read")
        rows = [(m.raw, m.field, f"{m.coverage:.0%}", f"{m.confidence:.2f}", m.why) for m in proposal.mapped]
        yield from _table(("raw path", "becomes", "filled", "confidence", "why"), rows)
        yield Heading("What is left out")
        left = [(one.raw, f"{one.share:.1%}", one.why) for one in proposal.left_out]
        yield from _table(("raw path", "share of text", "why"), left)
        if proposal.choices:
            yield Heading("What the samples did not decide")
        for choice in proposal.choices:
            options = [(one.label, f"{one.confidence:.2f}", one.why, one.example) for one in choice.options]
            caption = f"{choice.field}: {choice.rule}"
            yield from _table(("option", "confidence", "why", "example"), options, caption, {choice.taken})
        if self.waived:
            yield Heading("Waived")
            yield from _table(("path", "reason"), [(one["path"], one["reason"]) for one in self.waived])
        yield Heading("Checks")
        findings = [(one.severity, one.check, one.where, one.what, one.remedy) for one in check.findings]
        yield from _table(("severity", "check", "where", "what", "remedy"), findings)
        filled = [(name, f"{share:.1%}") for name, share in check.fields.items()]
        yield from _table(("field", "share of records that have it"), filled)
        figures = [(key, f"{n:,}" if isinstance(n, int) else f"{n:.3g}") for key, n in self._figures().items()]
        yield from _table(("figure", "value"), figures)
        if samples.left_out:
            yield Heading("Sample files that were not looked at")
            yield from _table(("file", "why"), samples.left_out)


def _table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", taken: Collection[int] = ()
) -> Iterator[Block]:
    """A table of rows cut short; a word where there are none."""
    cut = [[cell if len(cell) <= _LONGEST else f"{cell[: _LONGEST - 1]}…" for cell in row] for row in rows[:_ROWS]]
    yield TableBlock.of(caption, heads, cut, words=range(len(heads)), marked=taken) if rows else Text("Nothing.")
    if len(rows) > _ROWS:
        yield Text(f"{len(rows) - _ROWS} more in the JSON.")


def verdict(check: CheckReport) -> str:
    """One sentence: runs, calls and their results, and of how many runs the outcome is known.

    Counts of calls are those of the runs that were looked at closely, at most 400.
    """
    figures = check.figures
    runs = int(figures.get("runs", 0))
    if not runs:
        return "Reads no run."
    parts = [_count(runs, "run")]
    looked = int(figures.get("runs_looked_at", runs))
    calls = int(figures.get("calls", 0))
    if calls:
        of = "" if looked >= runs else f" in the {looked} looked at"
        # the share leaves out a last call of a run that nothing can have answered any more
        answerable = calls - int(figures.get("calls_open_at_end", 0))
        answered = round(figures.get("calls_joined", 0) * answerable)
        some = "all with results" if answered == answerable else f"{answered} with results"
        parts.append(f"{_count(calls, 'call')}{of}, {some if answered else 'none with a result'}")
    else:
        parts.append(f"{_count(int(figures.get('records', 0)), 'step')}, no call of a tool")
    if figures.get("coverage", 1.0) < _LITTLE:
        parts.append(f"{figures['coverage']:.0%} of the text")
    unknown = runs - round(figures.get("outcomes_known", 0.0) * runs)
    some = "no outcome known" if unknown == runs else f"outcome of {unknown} of {runs} runs unknown"
    return f"Reads {', '.join(parts)}; {some if unknown else 'outcomes all known'}."


def can_train(check: CheckReport) -> bool:
    """Did some runs succeed and others fail? Nothing can be learnt otherwise."""
    return bool(check.figures.get("runs_succeeded") and check.figures.get("runs_failed"))


def outcome_remedy(check: CheckReport) -> str:
    """Why nothing can be trained yet and what to do, or what could still be better; empty where all is well."""
    known = check.figures.get("outcomes_known", 0.0)
    told = (
        "say where it is told (--hint outcome=PATH), or give a file of outcomes by run (--labels FILE), "
        "with --overwrite"
    )
    if not known:
        return f"No outcome is known, so nothing can be trained through this adapter yet: {told}."
    if not can_train(check):
        one = "succeeded" if check.figures.get("runs_succeeded") else "failed"
        return f"All runs with an outcome {one}, and training needs both. If that is wrong, {told}."
    if known < 1:
        return f"Runs of unknown outcome are not trained on. If they have one, {told}."
    return ""


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
