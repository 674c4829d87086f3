"""`prefixguard compare`, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from prefixguard.cli.app import Commands
from prefixguard.cli.commands.compare import compare_command


@pytest.fixture
def compare_line() -> Any:
    """The command in an application of its own: exit code, standard output, standard error."""
    app = typer.Typer(cls=Commands, pretty_exceptions_enable=False)
    app.callback()(lambda: None)
    app.command("compare")(compare_command)

    def run(*arguments: object) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, ["compare", *map(str, arguments)])
        return result.exit_code, result.stdout_bytes.decode(), result.stderr_bytes.decode()

    return run


def test_tables_are_for_people_and_json_is_data(compare_line: Any, lab_bundle: Path, fresh_lab_file: Path) -> None:
    asked = (lab_bundle, lab_bundle, "--runs", fresh_lab_file, "--resamples", 20)
    code, out, err = compare_line(*asked)
    assert (code, out) == (0, "")
    for shown in (
        "2 monitors on 24 runs of 6 tasks",
        "lab (1)",
        "lab (2)",
        "First alerts",
        "+.000 [+.000, +.000]",
        "minus the first",
    ):
        assert shown in err
    code, out, err = compare_line(*asked, "--json")
    assert code == 0 and err == ""
    said = json.loads(out)
    assert said["runs"] == 24 and said["paired"] and len(said["monitors"]) == 2
    assert said["monitors"][1]["ahead"]["outcome"]["auprc"] == {"value": 0.0, "interval": [0.0, 0.0]}


@pytest.mark.slow
def test_runs_it_was_made_from_are_left_out(compare_line: Any, lab_bundle: Path, lab_file: Path) -> None:
    asked = (lab_bundle, lab_bundle, "--runs", lab_file, "--resamples", 10, "--json")
    said = json.loads(compare_line(*asked)[1])
    assert 0 < said["runs"] < 160 and said["left_out_by"]["used_by_a_monitor"] == 160 - said["runs"]
    assert json.loads(compare_line(*asked, "--all")[1])["in_sample_runs"] == 160 - said["runs"]


def test_one_monitor_is_no_comparison(compare_line: Any, lab_bundle: Path, fresh_lab_file: Path) -> None:
    code, out, err = compare_line(lab_bundle, "--runs", fresh_lab_file)
    assert (code, out) == (2, "") and "needs two or more" in err
    assert compare_line(lab_bundle, lab_bundle)[0] == 2, "without --runs"


def test_a_folder_that_is_no_bundle(compare_line: Any, lab_bundle: Path, fresh_lab_file: Path, tmp_path: Path) -> None:
    code, out, err = compare_line(lab_bundle, tmp_path, "--runs", fresh_lab_file)
    assert (code, out) == (2, "") and err.startswith("Error: ") and str(tmp_path) in err.replace("\n", "")
