"""A proposed spec, compiled and run on all samples, in a process of its own that is ended when its time is up; and what
the model is told of it.

Specs are bounded and regular expressions are RE2, so a trial is finite; but a stranger wrote the spec, and only another
process can be stopped whatever it does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prefixguard.errors import PrefixGuardError
from prefixguard.escalate import Masker
from prefixguard.induce.checks import CheckReport, Finding
from prefixguard.induce.drafting import checked, refused
from prefixguard.stepview import FIELDS, Adapter, read_runs

#: Notes of the checks that a model should see; other notes are for people.
_NOTES = ("coverage", "joins", "reads")
#: Findings that say as much of the machine, and what else it was doing, as of the spec: not for a comparison of specs.
_OF_THE_MACHINE = ("time",)
#: Findings that no other spec would mend: whether they are harmless, only a person can say.
_OF_A_PERSON = ("leaks.judged_event", "leaks.hidden", "reads.labels", "sense.one_run", "determinism")
#: Steps of the first run that are shown, and the last one, where verdicts stand; characters of a field.
_PREVIEWED, _SHOWN = 5, 90
#: Findings that are told at once, and characters of each.
_MOST, _LENGTH = 10, 600
#: Figures worth a model's attention, in this order.
_FIGURES = (
    *("runs", "runs_succeeded", "runs_failed", "records", "coverage", "runs_read", "calls_joined", "acts_filled"),
    *("tools_named", "parallel_kept", "outcomes_known", "tasks_known"),
)
_UNREAD = "coverage.place"
_UNREAD_IS = (
    "Read what the agent sees, hide what is written after the run; kinds, ids and repeats of other places are "
    "right as they are."
)


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one spec. compiled: it is an adapter. preview: what the first run became, as text."""

    compiled: bool
    report: CheckReport
    preview: str = ""

    @property
    def errors(self) -> int:
        return sum(one.severity == "error" for one in self.report.findings)

    @property
    def faults(self) -> list[Finding]:
        """What the model can mend, worst first."""
        return [
            one
            for one in self.report.findings
            if not one.check.startswith(_OF_A_PERSON)
            and (one.severity != "note" or one.check.partition(".")[0] in _NOTES)
        ]

    @property
    def is_clean(self) -> bool:
        """Nothing is left that a model can mend; notes alone are no reason to ask again."""
        return self.compiled and all(one.severity == "note" for one in self.faults)


def failed(check: str, what: str, remedy: str = "") -> Trial:
    """The trial of a spec that could not be run."""
    return Trial(False, refused(check, what, remedy=remedy))


def try_here(spec: Mapping[str, Any], source: str, labels: str | None = None) -> Trial:
    """Compile and check a spec in this process."""
    adapter, report = checked(spec, source, labels, processes=False)
    if adapter is None:
        what = report.findings[0].what.replace("or state under `waived` why", "(only the user may waive:")
        return failed("compile", what)
    kept = tuple(one for one in report.findings if one.check not in _OF_THE_MACHINE)
    return Trial(True, replace(report, findings=kept), _preview(adapter, source))


def _preview(adapter: Adapter, source: str) -> str:
    """The first run as the spec reads it."""
    try:
        run = next(read_runs(source, adapter), None)
    except PrefixGuardError:
        run = None
    if run is None:
        return ""
    lines = [f"run {run.run_id!r}, task {run.task_id!r}, outcome {run.outcome.value}, {len(run.records)} records"]
    for record in (*run.records[:_PREVIEWED], *run.records[_PREVIEWED:][-1:]):
        texts = {name: " ".join(getattr(record, name).split()) for name in FIELDS}
        said = [
            f"{name}={text[:_SHOWN] + ('...' if len(text) > _SHOWN else '')!r}"
            for name, text in texts.items()
            if text and (name, text) != ("actor", "agent")
        ]
        lines.append(f"{record.index}: {' '.join(said)}")
    return "\n".join(lines)


def try_apart(spec: Mapping[str, Any], source: str, labels: str | None = None, seconds: float = 120.0) -> Trial:
    """As `try_here`, in a child process that has so many seconds."""
    root = str(Path(__file__).resolve().parents[3])
    paths = [root, *(path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path)]
    asked = json.dumps({"spec": spec, "source": source, "labels": labels})
    try:
        done = subprocess.run(
            # -P: a folder of samples that is the working directory is no place to import from
            [sys.executable, "-P", "-c", "from prefixguard.induce.model.trial import main; main()"],
            input=asked.encode("utf-8", "surrogatepass"),
            capture_output=True,
            timeout=seconds,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8"},
            check=False,
        )
        found = json.loads(done.stdout)
        report = found["report"]
        findings = tuple(Finding(**one) for one in report["findings"])
    except subprocess.TimeoutExpired:
        took = f"running the spec on the samples took more than {seconds:g} s and was ended."
        return failed("limits", took, "Simplify it.")
    except OSError as exc:
        return failed("run", f"the trial could not be started ({exc})")
    except (ValueError, KeyError, TypeError):
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"]
        return failed("run", f"running the spec failed ({said[0][:300]})")
    checks = CheckReport(report["adapter"], report["sha256"], findings, report["figures"], report["fields"])
    return Trial(found["compiled"], checks, found["preview"])


def main() -> None:
    """The child: a question on standard input, a trial on standard output, both JSON."""
    asked = json.loads(sys.stdin.buffer.read().decode("utf-8", "surrogatepass"))
    trial = try_here(asked["spec"], asked["source"], asked["labels"])
    out = {"compiled": trial.compiled, "report": trial.report.to_dict(), "preview": trial.preview}
    sys.stdout.buffer.write(json.dumps(out).encode("ascii"))


def feedback(trial: Trial, screened: Sequence[str], masker: Masker) -> str:
    """Faults of one proposal, worst first, with what its first run became. screened: what was changed or refused before
    the trial."""
    said = [*screened, *_told(trial.faults)]
    lines = [f"{i}. {_short(masker.mask(text[: 4 * _LENGTH]))}" for i, text in enumerate(said[:_MOST], 1)]
    if len(said) > _MOST:
        lines.append(f"... and {len(said) - _MOST} more")
    if not said:
        lines.append("No fault was found.")
    if trial.compiled:
        numbers = {name: trial.report.figures[name] for name in _FIGURES if name in trial.report.figures}
        figures = ", ".join(f"{name} {value:{',.0f' if value > 1 else '.3g'}}" for name, value in numbers.items())
        filled = ", ".join(f"{name} {share:.0%}" for name, share in trial.report.fields.items())
        lines.append(f"Figures: {figures}. Records that have the field: {filled}.")
    if trial.preview:
        lines.append(f"The first run, as the spec reads it:\n{masker.mask(trial.preview)}")
    return "\n".join(lines)


def _told(faults: Sequence[Finding]) -> list[str]:
    """A line a fault; places whose text is not read share one, since most are right as they are."""
    unread = [one for one in faults if one.check == _UNREAD and one.severity == "note"]
    lines = []
    for one in faults:
        where, remedy = f" at {one.where}" if one.where else "", f" -> {one.remedy}" if one.remedy else ""
        if one not in unread:
            lines.append(f"[{one.severity}, {one.check}{where}] {one.what}{remedy}")
    if unread:
        places = ", ".join(one.what.partition(" of the raw")[0] for one in unread)
        said = f"little of these places reaches a record: {places} of the raw text. {_UNREAD_IS}"
        lines.append(f"[note, {_UNREAD}] {said}")
    return lines


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LENGTH else f"{line[: _LENGTH - 3]}..."
