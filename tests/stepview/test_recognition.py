"""Which shipped adapter reads some runs: each its own golden samples, and none what is of no known format."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from prefixguard.errors import TraceError
from prefixguard.stepview import ReadReport, list_adapters, load_adapter, read_runs, recognise, run_files

GOLDEN = Path(__file__).parents[2] / "stepview_adapters" / "golden"
TRACES = Path(os.environ.get("PREFIXGUARD_TRACES", ".traces"))
SAMPLES = Path(__file__).parents[1] / "induce" / "samples"
SETS = {
    "tau_bench": "tau_bench", "tau2": "tau2", "sweagent": "sweagent", "mini_swe_agent": "minisweagent",
    "terminal_log": "terminal_bench", "webshop_react": "webshop_react", "online_mind2web": "mind2web_abp",
    "intercode": "intercode", "react_log": "reflexion", "whoandwhen": "whoandwhen", "sentinel": "sentinel",
}  # fmt: skip
#: Adapters of a format that another one reads too: the other is found first.
SECOND = {"whoandwhen_turns": "whoandwhen"}


@pytest.mark.parametrize("name", list_adapters())
def test_a_format_is_recognised_by_its_own_samples(name: str) -> None:
    (best, *rest) = recognise(GOLDEN / name / "runs")
    assert best.name == SECOND.get(name, name), (best, rest)
    if name in SECOND:
        best = rest[0]
        assert best.name == name
    assert best.reads_well and best.runs > 0 and best.records >= best.runs
    if "outcome" in json.loads(load_adapter(name).to_bytes())["run"]:
        assert best.outcomes > 0


@pytest.mark.parametrize("folder", sorted(SAMPLES.iterdir()), ids=lambda folder: folder.name)
def test_public_formats_are_recognised(folder: Path) -> None:
    name = {"inspect": "inspect_log", "langgraph_dumpd": "langgraph"}.get(folder.name, folder.name)
    assert recognise(folder)[0].name == name


def test_what_cannot_be_read_is_not_read_to_its_end(tmp_path: Path) -> None:
    for i in range(300):
        (tmp_path / f"{i:03}.json").write_text('{"kept": [1, 2]}')
    report = ReadReport()
    with pytest.raises(TraceError):
        list(read_runs(tmp_path, load_adapter("openai_chat"), report=report, most=60))
    assert len(report.skipped) == 60
    assert recognise(tmp_path) == ()


def test_a_format_of_ones_own_is_not(tmp_path: Path) -> None:
    run = {"trip": 1, "legs": [{"did": "go", "to": "x", "saw": "y"}], "won": True}
    (tmp_path / "a.json").write_text(json.dumps([run] * 3))
    (tmp_path / "b.log").write_text("12:00 go x\n12:01 see y\n")
    assert not [one for one in recognise(tmp_path) if one.reads_well]
    assert recognise("-") == ()


@pytest.mark.real
@pytest.mark.skipif(not (TRACES / "tau2").is_dir(), reason="real runs are not unpacked (PREFIXGUARD_TRACES)")
@pytest.mark.parametrize("name", SETS)
def test_real_sets(name: str) -> None:
    (best, *_) = recognise(TRACES / SETS[name])
    assert best.name == name and best.reads_well, best
    assert f"{name} reads 20 runs" in str(best)


def test_files_of_a_run_are_named_with_its_companions() -> None:
    found = list(run_files(GOLDEN / "mini_swe_agent" / "runs", load_adapter("mini_swe_agent")))
    assert all(one.file.startswith("trajs/") for one in found)
    assert [one.companions for one in found] == [
        ("logs/acme__bell-2/report.json",),
        ("logs/acme__lamp-1/report.json",),
    ]
    several = list(run_files(GOLDEN / "tau_bench" / "runs", load_adapter("tau_bench")))
    assert next(one.position for one in several if one.file == several[0].file) == 1
    (folder, *_) = run_files(GOLDEN / "terminal_log" / "runs", load_adapter("terminal_log"))
    assert any(path.endswith("sessions/agent.log") for path in folder.companions)
