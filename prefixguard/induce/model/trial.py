"""A proposed spec, compiled and run on all samples, in a process of its own that is ended when its time is up.

Specs are bounded and regular expressions are RE2, so a trial is finite; but a stranger wrote the spec, and only another
process can be stopped whatever it does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from prefixguard.errors import AdapterError, PrefixGuardError
from prefixguard.induce.checks import CheckReport, check_adapter
from prefixguard.stepview import FIELDS, Adapter, read_runs

#: Notes of the checks that a model should see; other notes are for people.
_NOTES = ("coverage", "joins", "reads")
#: Findings that say as much of the machine, and what else it was doing, as of the spec: not for a comparison of specs.
_OF_THE_MACHINE = ("time",)
_PREVIEWED = 5  # and the last one, where verdicts stand
_SHOWN = 90


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing to mend. severity: error, warning, or note for what may be lost; see `checks.Finding`."""

    check: str
    severity: str
    what: str
    where: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one spec. compiled: it is an adapter. ok: no error was found. score: see `CheckReport.score`; 0 with
    errors. preview: what the first run became, as text. checks: the report as JSON; None where there is none."""

    compiled: bool
    ok: bool
    score: float
    faults: tuple[Fault, ...]
    figures: Mapping[str, float] = field(default_factory=dict)
    fields: Mapping[str, float] = field(default_factory=dict)
    preview: str = ""
    sha256: str = ""
    checks: Mapping[str, Any] | None = None

    @property
    def errors(self) -> int:
        return sum(fault.severity == "error" for fault in self.faults)

    @property
    def warnings(self) -> int:
        return sum(fault.severity == "warning" for fault in self.faults)

    @property
    def is_clean(self) -> bool:
        """No error, no warning, and no kind of event, result, task or outcome that seems to be lost."""
        return self.ok and all(fault.severity == "note" and fault.check == "coverage.place" for fault in self.faults)

    @property
    def rank(self) -> tuple[bool, bool, int, float, float]:
        """Better ones are greater: compiled, without errors, with fewer, by score, by text that reaches records."""
        return self.compiled, self.ok, -self.errors, self.score, float(self.figures.get("coverage", 0.0))


def failed(check: str, what: str, remedy: str = "") -> Trial:
    """The trial of a spec that could not be run."""
    return Trial(False, False, 0.0, (Fault(check, "error", what, remedy=remedy),))


def try_here(spec: Mapping[str, Any], source: str, labels: str | None = None) -> Trial:
    """Compile and check a spec in this process."""
    try:
        adapter = Adapter(spec, "spec")
    except AdapterError as exc:
        return failed("compile", str(exc).replace("or state under `waived` why", "(only the user may waive:"))
    except (RecursionError, TypeError, ValueError, KeyError, AttributeError) as exc:
        return failed("compile", f"the spec could not be compiled ({type(exc).__name__}: {str(exc)[:200]})")
    report = check_adapter(adapter, source, labels=labels, processes=False)
    return _trial(report, _preview(adapter, source))


def _trial(report: CheckReport, preview: str) -> Trial:
    report = replace(report, findings=tuple(one for one in report.findings if one.check not in _OF_THE_MACHINE))
    faults = tuple(
        Fault(one.check, one.severity, one.what, one.where, one.remedy)
        for one in report.findings
        if one.severity != "note" or one.check.partition(".")[0] in _NOTES
    )
    figures = {name: float(value) for name, value in report.figures.items()}
    return Trial(
        True, report.ok, report.score(), faults, figures, dict(report.fields), preview, report.sha256, report.to_dict()
    )


def _preview(adapter: Adapter, source: str) -> str:
    """The first run as the spec reads it."""
    try:
        run = next(read_runs(source, adapter), None)
    except PrefixGuardError:
        return ""
    if run is None:
        return ""
    lines = [f"run {run.run_id!r}, task {run.task_id!r}, outcome {run.outcome.value}, {len(run.records)} records"]
    last = run.records[-1:] if len(run.records) > _PREVIEWED else ()
    for record in (*run.records[:_PREVIEWED], *last):
        said = []
        for name in FIELDS:
            text = getattr(record, name)
            if text and (name, text) not in (("actor", "agent"),):
                shown = " ".join(text.split())
                said.append(f"{name}={shown[:_SHOWN] + ('...' if len(shown) > _SHOWN else '')!r}")
        lines.append(f"{record.index}: " + " ".join(said))
    return "\n".join(lines)


def try_apart(spec: Mapping[str, Any], source: str, labels: str | None = None, seconds: float = 120.0) -> Trial:
    """As `try_here`, in a child process that has so many seconds."""
    if not sys.executable:
        return try_here(spec, source, labels)
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
    except subprocess.TimeoutExpired:
        return failed(
            "time", f"running the spec on the samples took more than {seconds:g} s and was ended.", "Simplify it."
        )
    except OSError as exc:
        return failed("run", f"the trial could not be started ({exc})")
    try:
        return _from_json(json.loads(done.stdout))
    except (ValueError, KeyError, TypeError):
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"]
        return failed("run", f"running the spec failed ({said[0][:300]})")


def _from_json(found: dict[str, Any]) -> Trial:
    faults = tuple(Fault(**fault) for fault in found.pop("faults"))
    return Trial(faults=faults, **found)


def main() -> None:
    """The child: a question on standard input, a trial on standard output, both JSON."""
    asked = json.loads(sys.stdin.buffer.read().decode("utf-8", "surrogatepass"))
    trial = try_here(asked["spec"], asked["source"], asked["labels"])
    names = [name for name in Trial.__slots__ if name != "faults"]
    out = {name: getattr(trial, name) for name in names}
    out["faults"] = [{name: getattr(fault, name) for name in Fault.__slots__} for fault in trial.faults]
    sys.stdout.buffer.write(json.dumps(out).encode("ascii"))
