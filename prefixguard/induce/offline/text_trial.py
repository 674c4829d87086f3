"""A drafted spec, compiled and run on some of the samples: what it finds, as numbers to choose by."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from prefixguard.errors import PrefixGuardError
from prefixguard.induce.offline.call_forms import MOST_NAMES
from prefixguard.induce.offline.text_draft import Draft
from prefixguard.induce.offline.text_source import TextSource
from prefixguard.induce.samples import Kind
from prefixguard.stepview import Adapter, ReadReport, read_runs

#: Code points of one text, and of all, that a trial reads.
LONGEST_TEXT = 400_000
MOST_TEXT = 2_000_000


@dataclass(frozen=True, slots=True)
class Trial:
    """What a spec found.

    calls: records with a tool; answered: of them, with a result; said: records with the agent's text. coverage: share
    of the text that reached a record. ends: share of runs with a known outcome.
    """

    runs: int
    empty: int
    records: int
    calls: int
    answered: int
    coverage: float
    ends: float
    tools: Mapping[str, int]
    said: int

    @property
    def why(self) -> str:
        return (
            f"{self.runs} runs with {self.records} records, {self.calls} of them calls, {self.answered} with a result; "
            f"{self.coverage:.0%} of the text reaches a record"
        )

    def score(self, sure: float) -> float:
        """In about [0, 1].

        Runs that have steps 0.2, records with a tool 0.2, calls with a result 0.25, text that is kept 0.1, few tools
        0.1, known outcomes 0.05, records with what the agent said 0.05, how sure the roles are 0.05.
        """
        if not self.records:
            return 0.0
        steps = self.records / max(1, self.runs)
        alive = self.runs / max(1, self.runs + self.empty)
        usual = min(1.0, steps / 2)
        few = 1.0 if 1 <= len(self.tools) <= MOST_NAMES else 0.0
        return (
            0.2 * alive * usual
            + 0.2 * self.calls / self.records
            + 0.25 * (self.answered / self.calls if self.calls else 0.0)
            + 0.1 * min(1.0, self.coverage)
            + 0.05 * self.said / self.records
            + 0.1 * few
            + 0.05 * self.ends
            + 0.05 * sure
        )


def try_spec(draft: Draft, source: TextSource) -> Trial | None:
    """Run a spec on a copy of some samples; None if it does not compile or reads nothing."""
    try:
        adapter = Adapter(draft.spec)
    except PrefixGuardError as exc:
        draft.notes.append(f"A spec did not compile: {exc}")
        return None
    with tempfile.TemporaryDirectory(prefix="prefixguard-") as name:
        size = _write(Path(name), source)
        report = ReadReport()
        tools: Counter[str] = Counter()
        runs = records = calls = answered = kept = known = said = 0
        try:
            for run in read_runs(name, adapter, report=report):
                runs += 1
                known += run.outcome.value != "unknown"
                for record in run.records:
                    records += 1
                    kept += len(record.observation) + len(record.action) + len(record.result) + len(record.arguments)
                    if record.tool and record.tool != "respond":
                        calls += 1
                        tools[record.tool] += 1
                    answered += bool(record.result)
                    said += bool(record.action)
        except PrefixGuardError as exc:
            draft.notes.append(f"A spec read nothing: {exc}")
            return None
    return Trial(
        runs,
        sum(report.empty.values()),
        records,
        calls,
        min(answered, calls),
        min(1.0, kept / max(1, size)),
        known / max(1, runs),
        dict(tools.most_common(MOST_NAMES + 1)),
        said,
    )


def _write(folder: Path, source: TextSource) -> int:
    """Copies of samples, cut at whole lines; how many code points of log there are."""
    total = 0
    if source.documents:
        for path, kind, value in source.documents:
            rows = value if kind is Kind.JSONL else [value]
            _put(folder, path, "\n".join(json.dumps(row, default=str) for row in rows))
        return sum(map(len, source.texts))
    for i, file in enumerate(source.files):
        text = file.text[:LONGEST_TEXT]
        if total and total + len(text) > MOST_TEXT:
            continue
        total += len(text)
        data: Any = text
        if file.kind is Kind.NOTEBOOK:
            data = json.dumps({"nbformat": 4, "cells": [{"outputs": [{"text": text}]}]})
        _put(folder, file.path, data)
        if source.companions:
            _put(folder, source.companions[i].path, json.dumps(source.companions[i].value, default=str))
    return total


def _put(folder: Path, path: str, text: str) -> None:
    parts = [part for part in PurePosixPath(path).parts if part not in ("", ".", "..", "/")]
    target = folder.joinpath(*parts) if parts else folder / "sample.txt"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8", errors="replace")
