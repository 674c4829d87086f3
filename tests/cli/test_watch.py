from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from prefixguard.runtime import load

COMMAND = [sys.executable, "-c", "from prefixguard.cli import main; main()"]


@pytest.fixture
def messages(fresh_lab_file: Path) -> list[dict[str, Any]]:
    return json.loads(fresh_lab_file.read_text().splitlines()[0])["messages"]


def as_lines(messages: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(message) + "\n" for message in messages)


def test_a_stream_gives_the_readings_of_the_whole_run(cli, lab_bundle: Path, fresh_lab_file: Path, messages) -> None:
    live = cli("watch", lab_bundle, "-", "--json", "--run-id", "support-00040-0", stdin=as_lines(messages))
    assert live.code == 0 and live.err == ""
    whole = [one for one in cli("score", lab_bundle, fresh_lab_file).lines if one["run_id"] == "support-00040-0"]
    assert live.lines == whole
    of_file = cli("watch", lab_bundle, fresh_lab_file, "--json", "--run-id", "support-00040-0")
    assert of_file.lines == whole


def test_lines_for_people(cli, lab_bundle: Path, messages) -> None:
    said = cli("watch", lab_bundle, stdin=as_lines(messages))
    steps = said.out.splitlines()
    assert steps[0].startswith("step   1  ") and "fails 0." in steps[0] and "soon 0." in steps[0]
    assert len(steps) == len(cli("watch", lab_bundle, "--json", stdin=as_lines(messages)).lines)
    assert "\x1b" not in said.out, "no colours where there is no terminal"


def test_a_line_of_a_file_says_its_run(cli, lab_bundle: Path, fresh_lab_file: Path) -> None:
    """So that all of it can be piped; and an alarm that stays says so."""
    said = cli("watch", lab_bundle, fresh_lab_file)
    scored = cli("score", lab_bundle, fresh_lab_file).lines
    lines = said.out.splitlines()
    assert [line.split()[:3] for line in lines] == [[one["run_id"], "step", str(one["step"])] for one in scored]
    alarms = [one["run_id"] for one in scored if one["level"] == "ALARM"]
    stay = [line for line in lines if re.search(r"ALARM .*the alarm of step \d+ stays", line)]
    assert len(stay) == len(alarms) - len(set(alarms)) > 0
    assert "run support-" not in said.err


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b'{"role": "assistant", "conte', "line 3 is not JSON"),
        (b"\xff\xfe{}", "line 3 is not UTF-8"),
        (b"[" * 100_000, "line 3 is not JSON (nested too deeply)"),
        (b'"' + b"x" * (17 << 20) + b'"', "line 3 is longer than the 16,777,216 bytes that are read"),
    ],
)
def test_a_line_that_is_no_event_is_unknown_and_the_watch_goes_on(
    cli, lab_bundle: Path, messages, bad: bytes, why: str
) -> None:
    good = as_lines(messages).encode().splitlines(keepends=True)
    said = cli("watch", lab_bundle, "--json", stdin=b"".join([*good[:2], bad + b"\n", *good[2:]]))
    assert said.code == 0
    unknown = [one for one in said.lines if one["level"] == "UNKNOWN"]
    assert len(unknown) == 1 and unknown[0]["unknown_reason"].startswith(why)
    assert unknown[0]["outcome_risk"] is None
    judged = [one for one in said.lines if one["level"] != "UNKNOWN"]
    assert judged == [
        {**one, "run_id": "stdin"} for one in cli("watch", lab_bundle, "--json", stdin=as_lines(messages)).lines
    ]


def test_events_of_another_format_are_unknown_never_ok(cli, lab_bundle: Path) -> None:
    said = cli("watch", lab_bundle, "--json", stdin='{"type": "span", "name": "x"}\n' * 3)
    assert said.code == 0
    assert [one["level"] for one in said.lines] == ["UNKNOWN"]
    assert "none of the run's 3 events is a step to the adapter openai_chat" in said.lines[0]["unknown_reason"]


def test_readings_come_while_the_agent_is_still_running(lab_bundle: Path, messages) -> None:
    """The reading of a step is there before the next event is given."""
    process = subprocess.Popen(
        [*COMMAND, "watch", str(lab_bundle), "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None
    session = load(lab_bundle).start()
    for message in messages:
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        for reading in session.observe(message):
            assert json.loads(process.stdout.readline()) == {"run_id": "stdin", **reading.to_json()}
    process.stdin.close()
    for reading in session.end():
        assert json.loads(process.stdout.readline())["step"] == reading.step
    assert process.stdout.read() == b""
    process.stdout.close()
    assert process.wait(timeout=60) == 0


def test_a_header_is_what_is_known_at_the_start(cli, lab_bundle: Path, messages, tmp_path: Path) -> None:
    header = tmp_path / "header.json"
    header.write_text('{"task_id": "t", "agent": "me"}')
    assert cli("watch", lab_bundle, "--header", header, stdin=as_lines(messages)).code == 0
    header.write_text("[1]")
    said = cli("watch", lab_bundle, "--header", header, stdin="")
    assert said.code == 2 and "header.json: holds no JSON object" in said.told
    said = cli("watch", lab_bundle, header, "--header", header)
    assert said.code == 2 and "--header goes with standard input" in said.told


def test_a_run_that_is_not_in_the_file(cli, lab_bundle: Path, fresh_lab_file: Path) -> None:
    said = cli("watch", lab_bundle, fresh_lab_file, "--run-id", "nobody")
    assert said.code == 2 and "none of its 24 runs is called 'nobody'" in said.told


def test_what_a_run_is_given_is_said_by_options(cli, messages, lab_bundle: Path, fresh_lab_file: Path) -> None:
    given = ("--tools", "nothing_else", "--step-limit", "1")
    alone, told = (cli("watch", lab_bundle, "-", "--json", *more, stdin=as_lines(messages)) for more in ((), given))
    risks = [[(one["outcome_risk"], one["level"]) for one in said.lines] for said in (alone, told)]
    assert risks[0] == risks[1]
    names = {one["behaviour"] for line in told.lines for one in line["behaviours"]}
    assert {"missing_tool", "near_step_cap"} <= names
    assert "near_step_cap" not in {one["behaviour"] for line in alone.lines for one in line["behaviours"]}
    refused = cli("watch", lab_bundle, fresh_lab_file, *given)
    assert refused.code == 2 and "--tools and --step-limit go with standard input" in refused.err
    refused = cli("watch", lab_bundle, "-", "--step-limit", "0", stdin="")
    assert refused.code == 2 and "The limit of steps is 0: use a number of steps from 1, or None." in refused.err
