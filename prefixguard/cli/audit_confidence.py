"""How sure an auditor is: a map from raw to calibrated confidence, fitted on one audit and used by the next."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from prefixguard.auditor import AuditLine, confidence_pairs, fit_confidence
from prefixguard.cli.console import say
from prefixguard.errors import DataError, OutputError, UsageError
from prefixguard.escalate import ConfidenceMap
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run, read_named

NAME = "confidence.json"
_LARGEST = 1 << 20  # bytes


def read_confidence(path: Path) -> ConfidenceMap:
    """A map that `fit_confidence` wrote. UsageError where it cannot be read."""
    try:
        return ConfidenceMap.from_json(json.loads(read_named(path, _LARGEST)))
    except (ValueError, RecursionError) as exc:  # errors of ours among them
        raise UsageError(f"--confidence {path}: {exc} Name the {NAME} of an audit with --logprobs.") from exc


def keep_confidence(runs: Sequence[Run[StepRecord]], lines: Sequence[AuditLine], out: Path | None) -> None:
    """Fits it on the verdicts of labelled runs, and writes it into the audit's folder; says it where that cannot be."""
    if not confidence_pairs(runs, lines):
        say("No labelled verdict has a confidence: does the server send log-probabilities?")
        return
    try:
        fitted = fit_confidence(runs, lines)
    except DataError as exc:
        say(f"Confidences stay as they are: {exc}")
        return
    said = f"Confidence, fitted on {fitted.pairs:,} labelled verdicts ({fitted.right:,} right)"
    if out is None:
        say(f"{said}: name a folder with --out, and it is kept there.")
        return
    path = out / NAME
    try:
        path.write_text(json.dumps(fitted.to_json(), indent=1) + "\n", encoding="utf-8")
    except OSError as exc:
        raise OutputError(f"{path}: {exc.strerror or exc}.") from exc
    say(f"{said}, is in {path}. Use it on other runs: --confidence {path}")
