"""What a model is told about its last proposal: a short numbered list."""

from __future__ import annotations

from collections.abc import Sequence

from prefixguard.escalate import Masker
from prefixguard.induce.model.trial import Fault, Trial

_MOST = 10
_LENGTH = 600
#: Figures worth a model's attention, in this order.
_FIGURES = (
    "runs",
    "records",
    "coverage",
    "runs_read",
    "calls_joined",
    "acts_filled",
    "tools_named",
    "parallel_kept",
    "outcomes_known",
    "tasks_known",
)
_UNREAD = "coverage.place"
_UNREAD_IS = (
    "Read what the agent sees, hide what is written after the run; kinds, ids and repeats of other places are "
    "right as they are."
)


def feedback(trial: Trial, screened: Sequence[str], masker: Masker) -> str:
    """Faults of one proposal, worst first, with what its first run became. screened: what was changed or refused before
    the trial."""
    said = [*screened, *_told(trial)]
    lines = [f"{i}. {_sentence(text, masker)}" for i, text in enumerate(said[:_MOST], 1)]
    missing = len(said) - _MOST
    if missing > 0:
        lines.append(f"... and {missing} more")
    if not lines:
        lines.append("No fault was found.")
    if trial.compiled:
        figures = [f"{name} {_number(trial.figures[name])}" for name in _FIGURES if name in trial.figures]
        filled = [f"{name} {share:.0%}" for name, share in trial.fields.items()]
        lines.append(f"Figures: {', '.join(figures)}. Records that have the field: {', '.join(filled)}.")
    if trial.preview:
        lines.append("The first run, as the spec reads it:\n" + masker.mask(trial.preview))
    return "\n".join(lines)


def _told(trial: Trial) -> list[str]:
    """A line a fault, worst first; places whose text is not read share one, since most are right as they are."""
    order = ("error", "warning", "note")
    faults = sorted(trial.faults, key=lambda fault: order.index(fault.severity))
    unread = [fault for fault in faults if fault.check == _UNREAD and fault.severity == "note"]
    lines = [told(fault) for fault in faults if fault not in unread]
    if unread:
        places = ", ".join(fault.what.partition(" of the raw")[0] for fault in unread)
        lines.append(
            f"[note, {_UNREAD}] little of these places reaches a record: {places} of the raw text. {_UNREAD_IS}"
        )
    return lines


def told(fault: Fault) -> str:
    """A fault in a line."""
    where = f" at {fault.where}" if fault.where else ""
    remedy = f" -> {fault.remedy}" if fault.remedy else ""
    return f"[{fault.severity}, {fault.check}{where}] {fault.what}{remedy}"


def _sentence(text: str, masker: Masker) -> str:
    text = " ".join(masker.mask(text[: 4 * _LENGTH]).split())
    return text if len(text) <= _LENGTH else f"{text[: _LENGTH - 3]}..."


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() and value > 1 else f"{value:.3g}"
