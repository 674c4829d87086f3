"""Ids that `parse` prints always find their labels, whatever runs are called and wherever they lie."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.runtime import parse
from prefixguard.stepview import Adapter, ReadReport, load_adapter, read_runs
from prefixguard.trace import LabelTally, Outcome

FOLDERS = st.sampled_from(["", "a/", "b/", "a/b/", "runs/"])
NAMES = st.sampled_from(["q1.json", "q2.json", "q1.jsonl", "run.1.json", "q1#2.json", "q\\1.json", "é.json"])
IDS = st.sampled_from([None, "q1", "q1#2", "q1#3", "a/q1.json", "q1.json", "7", "", " ", "ü\n", "\ud800"])
LAYOUTS = st.dictionaries(st.tuples(FOLDERS, NAMES).map("".join), st.lists(IDS, min_size=1, max_size=3), min_size=1)


def by_stem() -> Adapter:
    """Chat histories whose id is the name of their file."""
    spec = json.loads(load_adapter("openai_chat").to_bytes())
    return Adapter({**spec, "name": "by_stem", "run": {**spec["run"], "id": {"file": "stem"}}})


def write(folder: Path, layout: dict[str, list[str | None]]) -> None:
    for path, ids in layout.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        said = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}]
        runs: list[Any] = [{"messages": said} | ({} if run_id is None else {"run_id": run_id}) for run_id in ids]
        lines = [json.dumps(run) for run in runs]
        text = "\n".join(lines) if path.endswith("l") else lines[0] if len(runs) == 1 else f"[{','.join(lines)}]"
        (folder / path).write_text(text)


@settings(max_examples=60)
@given(LAYOUTS, st.booleans())
def test_the_ids_that_parse_gives_label_all_runs(layout: dict[str, list[str | None]], stems: bool) -> None:
    adapter = by_stem() if stems else load_adapter("openai_chat")
    with tempfile.TemporaryDirectory() as place:
        runs, labels = Path(place) / "runs", Path(place) / "labels.jsonl"
        write(runs, layout)
        printed = [run.run_id for run in parse(runs, adapter)]
        assert len(set(printed)) == len(printed)
        told = {name: ("success", "failure")[i % 2] for i, name in enumerate(printed)}
        labels.write_text("".join(json.dumps({"run_id": name, "outcome": told[name]}) + "\n" for name in told))
        report = ReadReport()
        joined = {run.run_id: run.outcome.value for run in read_runs(runs, adapter, labels=labels, report=report)}
    assert joined == told
    assert report.labels == LabelTally()


@pytest.mark.parametrize("spelled", ["{}", "./{}", "runs/{}", "\\"])
def test_paths_tell_files_of_one_name_apart(tmp_path: Path, spelled: str) -> None:
    write(tmp_path / "runs", {"a/q1.json": [None], "b/q1.json": [None]})
    paths = ["a\\q1.json", "b\\q1.json"] if spelled == "\\" else [spelled.format(f"{one}/q1.json") for one in "ab"]
    labels = tmp_path / "labels.csv"
    labels.write_text("run_id,outcome\n" + f"{paths[0]},success\n{paths[1]},failure\n")
    found = read_runs(tmp_path / "runs", by_stem(), labels=labels)
    assert [(run.run_id, run.outcome) for run in found] == [("q1", Outcome.SUCCESS), ("q1#2", Outcome.FAILURE)]


def test_a_name_of_several_files_labels_none_of_them(tmp_path: Path) -> None:
    write(tmp_path / "runs", {"a/q1.json": [None], "b/q1.json": [None], "c.json": [None]})
    labels, report = tmp_path / "labels.csv", ReadReport()
    labels.write_text("run_id,outcome\nq1,success\nc,failure\n")
    found = list(read_runs(tmp_path / "runs", load_adapter("openai_chat"), labels=labels, report=report))
    assert [run.outcome.value for run in found] == ["unknown", "unknown", "failure"]
    assert (report.labels.ambiguous, report.labels.unlabelled, report.labels.unmatched) == (1, 2, 0)
    assert "Write the path inside the folder of runs" in " ".join(report.left_out())
