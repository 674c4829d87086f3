"""The written samples of public formats: what the stories say, both outcomes, one truth a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from format_samples import FORMATS, files_of, truth_of

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", FORMATS)
def test_the_files_are_what_the_stories_say(name: str) -> None:
    folder = HERE / "samples" / name
    kept = {str(p.relative_to(folder)): p.read_text(encoding="utf-8") for p in folder.rglob("*") if p.is_file()}
    assert kept == files_of(name), "run: cd tests/support && python -m format_samples"
    assert (HERE / "truth" / f"{name}.jsonl").read_text(encoding="utf-8") == truth_of(name)


@pytest.mark.parametrize("name", FORMATS)
def test_a_truth_has_both_outcomes_repeated_tasks_and_every_file_it_names(name: str) -> None:
    lines = [json.loads(line) for line in truth_of(name).splitlines()]
    runs = {line["run"]: (line["task_id"], line["outcome"]) for line in lines}
    assert {outcome for _, outcome in runs.values()} == {"success", "failure"}
    assert len({task for task, _ in runs.values()}) < len(runs)
    assert {line["file"] for line in lines} <= set(files_of(name))


@pytest.mark.parametrize("name", FORMATS)
def test_what_a_truth_says_stands_in_the_samples(name: str) -> None:
    text = "".join(files_of(name).values())
    for line in map(json.loads, truth_of(name).splitlines()):
        for word in f"{line['result']} {line['action']}".split():
            assert json.dumps(word.strip('",'), ensure_ascii=False)[1:-1].split("\\")[0] in text
