"""A handful of runs of a set, in a folder of their own."""

from __future__ import annotations

import json
from pathlib import Path

from agreement import Reading
from mutations import Layout
from samples import take


def reading(place: str, outcome: str) -> Reading:
    return Reading(place, None, outcome, ())


def tree(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_files_that_are_a_run_each_are_drawn_with_their_companions_and_both_outcomes(tmp_path: Path) -> None:
    source, reference = tmp_path / "set", []
    for n in range(40):
        for path in (f"runs/r{n}.json", f"logs/r{n}/report.json"):
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_text("{}")
        reference.append(reading(f"runs/r{n}.json", "success" if n == 7 else "failure"))
    (source / "summary.json").write_text("[]")
    take(source, tmp_path / "few", Layout(), reference, runs=8, seed=3)
    found = tree(tmp_path / "few")
    drawn = [path.split("/")[1].split(".")[0] for path in found if path.startswith("runs/")]
    assert len(drawn) == 8
    assert "r7" in drawn
    assert [path for path in found if path.startswith("logs/")] == sorted(f"logs/{run}/report.json" for run in drawn)
    assert "summary.json" in found
    take(source, tmp_path / "again", Layout(), reference, runs=8, seed=3)
    assert tree(tmp_path / "again") == found
    take(source, tmp_path / "other", Layout(), reference, runs=8, seed=4)
    assert tree(tmp_path / "other") != found


def test_files_of_many_runs_are_all_there_with_some_of_their_runs_in_order(tmp_path: Path) -> None:
    source, reference = tmp_path / "set", []
    source.mkdir()
    for name in ("a", "b"):
        (source / f"{name}.json").write_text(json.dumps({"info": name, "simulations": [{"n": n} for n in range(30)]}))
        reference += [reading(f"{name}.json run {n + 1}", "success") for n in range(30)]
    take(source, tmp_path / "few", Layout("simulations"), reference, runs=12, seed=3)
    for name in ("a", "b"):
        kept = json.loads((tmp_path / "few" / f"{name}.json").read_text())
        numbers = [run["n"] for run in kept["simulations"]]
        assert kept["info"] == name
        assert len(numbers) == 6
        assert numbers == sorted(numbers)


def test_runs_without_a_record_are_a_part_of_the_handful_and_not_all_of_it(tmp_path: Path) -> None:
    source, reference = tmp_path / "set", []
    for n in range(40):
        (source / f"t{n}").mkdir(parents=True)
        (source / f"t{n}" / "results.json").write_text("{}")
        (source / f"t{n}" / "agent.log").write_text("log")
        if n % 2:
            reference.append(reading(f"t{n}/results.json", "failure"))
    take(source, tmp_path / "few", Layout(), reference, runs=8, seed=3)
    found = tree(tmp_path / "few")
    assert len(found) == 16
    assert sum(int(path.split("/")[0][1:]) % 2 == 0 for path in found if path.endswith(".log")) == 2
