"""The package's public names: a tested list, each of which is there, loaded when it is used."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_monitor

import prefixguard
from prefixguard.errors import AdapterError
from prefixguard.runtime import Monitor


@pytest.mark.parametrize("name", prefixguard.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(prefixguard, name) is getattr(prefixguard, name)
    assert name in dir(prefixguard)


def test_the_list_is_what_is_loaded() -> None:
    assert set(prefixguard.__all__) == set(prefixguard._ROOMS)
    assert sorted(prefixguard.__all__) == prefixguard.__all__
    with pytest.raises(AttributeError, match="no attribute 'watch_me'"):
        prefixguard.watch_me  # noqa: B018


ORDERS = [
    "import prefixguard; f = prefixguard.evaluate",
    "from prefixguard.evaluate import figures; import prefixguard; f = prefixguard.evaluate",
    "import prefixguard.evaluate; f = prefixguard.evaluate",
    "from prefixguard import evaluate as f",
]


@pytest.mark.parametrize("first", ORDERS)
def test_evaluate_is_room_and_function_whatever_is_imported_first(first: str) -> None:
    program = f"""{first}
import prefixguard.evaluate as room
assert callable(f) and f is room and room.evaluate is not room
try:
    f("nowhere", "nothing")
except prefixguard.errors.BundleError as exc:
    assert "No bundle at nowhere" in str(exc)
"""
    subprocess.run([sys.executable, "-c", "import prefixguard.errors\n" + program], check=True)


def test_signatures_are_those_of_the_rooms() -> None:
    assert list(inspect.signature(prefixguard.score).parameters) == ["monitor", "runs", "adapter", "strict", "report"]
    assert prefixguard.load is sys.modules["prefixguard.runtime"].load


def test_parse_and_score_from_a_file(tmp_path: Path, monitor: Monitor, bundle_path: Path) -> None:
    """The same readings as from records, from a path or an opened monitor, without outcomes."""
    import json

    runs = [
        {"run_id": f"r{i}", "messages": events}
        for i, events in enumerate([tiny_monitor.failing_run(), tiny_monitor.calm_run(3), []])
    ]
    (tmp_path / "runs.json").write_text(json.dumps(runs))
    (tmp_path / "tiny.json").write_text(json.dumps(tiny_monitor.CHAT))
    parsed = list(prefixguard.parse(tmp_path / "runs.json", tmp_path / "tiny.json"))
    assert [(run.run_id, len(run.records), run.outcome) for run in parsed] == [
        ("r0", 5, prefixguard.Outcome.UNKNOWN),
        ("r1", 3, prefixguard.Outcome.UNKNOWN),
    ]
    report = prefixguard.ReadReport()
    scored = list(prefixguard.score(bundle_path, tmp_path / "runs.json", report=report))
    assert report.empty == {"unknown": 1}
    lines = [line for one in scored for line in one.to_json()]
    assert [(line["run_id"], line["step"]) for line in lines] == [
        *(("r0", i) for i in range(1, 6)),
        *(("r1", i) for i in range(1, 4)),
    ]
    assert list(lines[0]) == [
        "run_id",
        "step",
        "imminent_risk",
        "outcome_risk",
        "level",
        "symbol",
        "state",
        "reasons",
        "unknown_reason",
    ]
    again = [line for one in prefixguard.score(monitor, parsed) for line in one.to_json()]
    assert again == lines
    live = [r.to_json() for s in [monitor.start()] for e in tiny_monitor.failing_run() for r in s.observe(e)]
    assert [{k: v for k, v in line.items() if k != "run_id"} for line in lines[:5]] == live


def test_parse_names_an_unknown_adapter(tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match="tau_bench"):
        prefixguard.parse(tmp_path, "tau_bensh")
