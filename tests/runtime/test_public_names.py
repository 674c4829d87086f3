"""The package's public names: a tested list, each of which is there, loaded when it is used."""

import inspect
import os
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
    assert {"evaluate", "load", "train", "Monitor"} < set(prefixguard.__all__)
    with pytest.raises(AttributeError, match="no attribute 'watch_me'"):
        prefixguard.watch_me  # noqa: B018


def test_evaluate_is_a_function_like_any_other() -> None:
    function = prefixguard.evaluate
    assert getattr(sys.modules[function.__module__], function.__qualname__) is function  # so it can be pickled
    assert list(inspect.signature(prefixguard.evaluate).parameters)[:2] == ["monitor", "runs"]


@pytest.mark.slow
def test_type_checkers_see_what_is_loaded(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    lines = [f"reveal_type(prefixguard.{name})" for name in prefixguard.__all__]
    program.write_text("\n".join(["import prefixguard", *lines, "prefixguard.evaluate(1)"]))
    heavy = "".join(f"[mypy-{name}.*]\nfollow_imports = skip\n" for name in ("torch", "openai", "onnx", "onnxscript"))
    (tmp_path / "mypy.ini").write_text(f"[mypy]\n{heavy}")  # no public type is theirs, and reading them takes long
    mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(program)]
    here = os.environ | {"MYPYPATH": str(Path(prefixguard.__file__).parents[1])}
    said = subprocess.run(mypy, cwd=tmp_path, env=here, capture_output=True, text=True, check=False).stdout
    assert "Any" not in {line.rpartition("is ")[2].strip('"') for line in said.splitlines()}, said
    assert 'Missing positional argument "runs" in call to "evaluate"' in said


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
        "behaviours",
    ]
    again = [line for one in prefixguard.score(monitor, parsed) for line in one.to_json()]
    assert again == lines
    live = [r.to_json() for s in [monitor.start()] for e in tiny_monitor.failing_run() for r in s.observe(e)]
    assert [{k: v for k, v in line.items() if k != "run_id"} for line in lines[:5]] == live


def test_parse_names_an_unknown_adapter(tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match="tau_bench"):
        prefixguard.parse(tmp_path, "tau_bensh")
