"""Runs that are parsed once and read as often as wanted, and runs with the events of their records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.errors import TraceError
from prefixguard.stepview import (
    SpooledRuns,
    StepRecord,
    list_adapters,
    load_adapter,
    read_runs,
    side_by_side,
    spooled_runs,
)
from prefixguard.trace import Fault, Mistake, Outcome, Run, run_digest

TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates and control characters among them
RECORDS = st.lists(
    st.builds(
        StepRecord, st.integers(1, 9), TEXT, TEXT, TEXT, TEXT, TEXT, TEXT, TEXT, st.sampled_from(["ok", "unknown"]),
        st.integers(-1, 2**40),
    ),
    max_size=3,
)  # fmt: skip
RUNS = st.lists(
    st.builds(
        Run,
        TEXT,
        st.none() | TEXT,
        st.sampled_from(Outcome),
        RECORDS.map(tuple),
        TEXT,
        st.dictionaries(TEXT, TEXT, max_size=2),
        st.none() | st.builds(Mistake, st.none() | st.integers(1, 9), st.none() | TEXT),
        st.lists(st.builds(Fault, st.none() | TEXT, st.none() | TEXT), max_size=2).map(tuple),
    ),
    max_size=4,
)


@given(RUNS)
def test_every_reading_gives_the_runs_that_were_parsed(runs: Any) -> None:
    spooled = SpooledRuns(iter(runs))
    assert list(spooled) == list(spooled) == runs and len(spooled) == len(runs)


def test_a_source_is_parsed_once_and_its_report_kept(
    fresh_lab_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On disk from the first byte on, as where runs are large."""
    monkeypatch.setattr(spooled_runs, "_IN_MEMORY", 1)
    lines = [*fresh_lab_file.read_text().splitlines(), "no json"]
    (tmp_path / "runs.jsonl").write_text("\n".join(lines) + "\n")
    adapter, seen = load_adapter("openai_chat"), []
    spooled = SpooledRuns.read(str(tmp_path / "runs.jsonl"), adapter, progress=seen.append)
    (tmp_path / "runs.jsonl").unlink()
    wanted = list(read_runs(fresh_lab_file, adapter))
    assert [run_digest(run.records) for run in spooled] == [run_digest(run.records) for run in wanted]
    assert [(r.run_id, r.task_id, r.outcome, r.groups) for r in spooled] == [
        (r.run_id, r.task_id, r.outcome, r.groups) for r in wanted
    ]
    assert seen == list(range(1, 25)) and spooled.report.runs == 24 and len(spooled.report.skipped) == 1
    both = zip(spooled, spooled, strict=True)  # two readings at a time do not disturb each other
    assert all(one == other for one, other in both)


def test_options_are_those_of_reading(tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").write_text('{"messages": [{"role": "assistant", "content": "a"}]}\nno json\n')
    with pytest.raises(TraceError, match="line 2"):
        SpooledRuns.read(str(tmp_path / "runs.jsonl"), load_adapter("openai_chat"), strict=True)


GOLDEN = Path(__file__).parents[2] / "stepview_adapters" / "golden"


@pytest.mark.parametrize("name", list_adapters())
def test_records_are_those_of_the_whole_run_each_beside_its_events(name: str) -> None:
    runs = GOLDEN / name / "runs"
    shown = list(side_by_side(runs, name))
    assert [one.run for one in shown] == list(read_runs(runs, load_adapter(name)))
    for one in shown:
        assert tuple(record for exchange in one.exchanges for record in exchange.records) == one.run.records
        assert all(exchange.events for exchange in one.exchanges[:-1])
