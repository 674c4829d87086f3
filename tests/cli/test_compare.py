"""`prefixguard compare`, as it is typed."""

from __future__ import annotations

from pathlib import Path

import pytest


def test_tables_are_for_people_and_json_is_data(cli, lab_bundle: Path, fresh_lab_file: Path) -> None:
    asked = (lab_bundle, lab_bundle, "--runs", fresh_lab_file, "--resamples", 20)
    said = cli("compare", *asked)
    assert (said.code, said.out) == (0, "")
    for shown in (
        "2 monitors on 24 runs of 6 tasks",
        "lab (1)",
        "lab (2)",
        "First alerts",
        "+.000 [+.000, +.000]",
        "minus the first",
    ):
        assert shown in said.err
    said = cli("compare", *asked, "--json")
    assert said.code == 0 and said.err == ""
    (found,) = said.lines
    assert found["runs"] == 24 and found["paired"] and len(found["monitors"]) == 2
    assert found["monitors"][1]["ahead"]["outcome"]["auprc"] == {"value": 0.0, "interval": [0.0, 0.0]}


@pytest.mark.slow
def test_runs_it_was_made_from_are_left_out(cli, lab_bundle: Path, lab_file: Path) -> None:
    asked = (lab_bundle, lab_bundle, "--runs", lab_file, "--resamples", 10, "--json")
    (found,) = cli("compare", *asked).lines
    assert 0 < found["runs"] < 160 and found["left_out_by"]["used_by_a_monitor"] == 160 - found["runs"]
    assert cli("compare", *asked, "--all").lines[0]["in_sample_runs"] == 160 - found["runs"]


def test_one_monitor_is_no_comparison(cli, lab_bundle: Path, fresh_lab_file: Path) -> None:
    said = cli("compare", lab_bundle, "--runs", fresh_lab_file)
    assert (said.code, said.out) == (2, "") and "needs two or more" in said.err
    assert cli("compare", lab_bundle, lab_bundle).code == 2, "without --runs"


def test_a_folder_that_is_no_bundle(cli, lab_bundle: Path, fresh_lab_file: Path, tmp_path: Path) -> None:
    said = cli("compare", lab_bundle, tmp_path, "--runs", fresh_lab_file)
    assert (said.code, said.out) == (2, "") and said.err.startswith("Error: ")
    assert str(tmp_path) in said.err.replace("\n", "")
