"""Logs of home-made loggers: heads, runs, calls and results are found, whatever the log looks like."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prefixguard.induce.samples import open_samples
from prefixguard.induce.search.beam import search
from prefixguard.induce.search.evidence import Evidence
from prefixguard.induce.search.families.text import propose
from prefixguard.stepview import Adapter, read_runs

sys.path.insert(0, str(Path(__file__).parents[1]))
from test_text_log import FACTS, FORMATS, Told, bars, chat, tales

HEADER = {"schema": "prefixguard/adapter/v1", "name": "log", "version": "1.0.0", "description": "log", "run": {}}


def best(folder: Path, files: dict[str, str], names: bool = True) -> dict[str, Any] | None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    evidence = Evidence(open_samples(folder), names=names)
    try:
        found = search(propose(evidence), evidence)
    finally:
        evidence.close()
    return {**HEADER, **found[0].candidate.spec} if found else None


@pytest.mark.parametrize("render", [*FORMATS, bars, chat], ids=lambda render: render.__name__)
def test_a_home_made_log(render: Callable[[list[Told]], dict[str, str]], tmp_path: Path) -> None:
    told = tales()
    spec = best(tmp_path, render(told))
    assert spec is not None
    runs = sorted(read_runs(tmp_path, Adapter(spec)), key=lambda run: run.records[0].arguments if run.records else "")
    assert len(runs) == len(told), spec
    shell = render.__name__ == "folders"
    by_tools = [[record for record in run.records if record.tool not in ("", "respond")] for run in runs]
    wanted = sorted(told, key=lambda tale: tale.steps[0].argument)
    for calls, tale in zip(by_tools, wanted, strict=True):
        tools = [record.tool for record in calls]
        assert tools == [step.tool for step in tale.steps] or (shell and set(tools) == {"sh"}), spec
        for record, step in zip(calls, tale.steps, strict=True):
            assert step.argument in record.arguments, spec
            assert " ".join(step.result.split()) in " ".join(record.result.split()), spec
            assert record.status == ("error" if step.result.startswith("Error") else "ok"), spec
    every = " ".join(part for run in runs for r in run.records for part in (r.result, r.action, r.observation))
    for word in ("Reward:", "episode over", "verdict", "Final status", "success=", "run_end"):
        assert word not in every, spec


@pytest.mark.parametrize("render", [*FORMATS, bars, chat], ids=lambda render: render.__name__)
def test_names_of_heads_only_help(render: Callable[[list[Told]], dict[str, str]], tmp_path: Path) -> None:
    told = tales()
    spec = best(tmp_path, render(told), names=False)
    assert spec is not None
    runs = [
        [r.tool for r in run.records if r.tool not in ("", "respond")] for run in read_runs(tmp_path, Adapter(spec))
    ]
    assert sorted(runs) == sorted([step.tool for step in tale.steps] for tale in told), spec


def test_prose_and_noise_are_no_logs(tmp_path: Path) -> None:
    prose = "\n\n".join(f"{fact.capitalize()}. {fact.capitalize()}." for fact in FACTS * 6)
    noise = "".join(map(chr, range(32, 256))) * 40 + "\n" + "x" * 300_000
    assert best(tmp_path, {"notes.txt": prose, "noise.txt": noise}) is None
