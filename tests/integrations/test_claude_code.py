"""The command that Claude Code runs at its hooks, driven as Claude Code drives it: a process a hook, JSON in and out.

The payloads have the shapes of https://code.claude.com/docs/en/hooks and https://code.claude.com/docs/en/agent-sdk/hooks,
and are those that Claude Code 2.1.330 sent for such a session, with the paths made short.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard import errors, hook_settings, parse
from prefixguard.integrations import Guard, claude_worker
from prefixguard.integrations.claude import EVENTS, ClaudeWatcher
from prefixguard.integrations.claude_worker import KeptSessions
from prefixguard.runtime import Monitor, score

BASE = {"session_id": "s1", "transcript_path": "/t/s1.jsonl", "cwd": "/w", "prompt_id": "p1"}
IN_TOOL = {"permission_mode": "default", "effort": {"level": "medium"}}
SUB = {"agent_id": "a1", "agent_type": "researcher"}


def payload(name: str, **fields: Any) -> dict[str, Any]:
    return {**BASE, **({} if name == "MessageDisplay" else IN_TOOL), "hook_event_name": name, **fields}


def batch(*calls: tuple[str, str, Any, Any, str | None], **of: Any) -> Iterator[dict[str, Any]]:
    """Payloads of calls that the model made at once: (id, tool, input, response or what the model reads, error)."""
    for call_id, tool, arguments, _, _ in calls:
        yield payload("PreToolUse", tool_name=tool, tool_input=arguments, tool_use_id=call_id, **of)
    for call_id, tool, arguments, response, error in calls:
        common = {"tool_name": tool, "tool_input": arguments, "tool_use_id": call_id, "duration_ms": 3, **of}
        if error is None:
            shown = {"stdout": response, "stderr": "", "interrupted": False, "isImage": False}
            yield payload("PostToolUse", tool_response=shown, **common)
        else:
            yield payload("PostToolUseFailure", error=error, is_interrupt=False, **common)
    told = [
        {"tool_name": tool, "tool_input": arguments, "tool_use_id": call_id, "tool_response": error or response}
        for call_id, tool, arguments, response, error in calls
    ]
    yield payload("PostToolBatch", tool_calls=told, **of)


def shown(text: str) -> dict[str, Any]:
    return payload("MessageDisplay", turn_id="t", message_id=text, index=0, final=True, delta=text)


FAILS = ("Bash", {"command": "ls /nope"}, "", "Exit code 2\nls: cannot access '/nope'")
ASKS = {"subagent_type": "researcher", "description": "d", "prompt": "Look deeper.", "run_in_background": False}
SESSION: list[dict[str, Any]] = [
    payload("SessionStart", source="startup"),
    payload("UserPromptSubmit", prompt="Where is order A1?"),
    shown("I look."),
    *batch(("c1", "Bash", {"command": "find A1"}, "it is in Bern", None), ("c2", *FAILS)),
    payload("PreToolUse", tool_name="Agent", tool_input=ASKS, tool_use_id="c3"),
    payload("SubagentStart", **SUB),
    *batch(("d1", "Bash", {"command": "find R1"}, "moved", None), **SUB),
    payload("SubagentStop", stop_hook_active=False, last_assistant_message="It was moved.", **SUB),
    *list(batch(("c3", "Agent", ASKS, "It was moved.", None)))[1:],
    shown("It is in Bern."),
    payload("Stop", stop_hook_active=False, last_assistant_message="It is in Bern.", background_tasks=[]),
    payload("SessionEnd", reason="other"),
]
STEPS = {
    "s1/main": [
        ("Bash", '{"command":"find A1"}', "Where is order A1?", "I look.", "it is in Bern", "ok"),
        ("Bash", '{"command":"ls /nope"}', "", "", FAILS[3], "error"),
        ("Agent", json.dumps(ASKS, sort_keys=True, separators=(",", ":")), "", "", "It was moved.", "ok"),
        ("respond", "", "", "It is in Bern.", "", "ok"),
    ],
    "s1/main/researcher#a1": [
        ("Bash", '{"command":"find R1"}', "Look deeper.", "", "moved", "ok"),
        ("respond", "", "", "It was moved.", "", "ok"),
    ],
}


class Command:
    """The command with its options. `worker` is the process id of the one that judges."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.base, self.options = folder / "state", [*options, "--state", str(folder / "state")]

    def __call__(self, given: Any) -> subprocess.CompletedProcess[bytes]:
        data = given if isinstance(given, bytes) else json.dumps(given).encode()
        command = [sys.executable, "-m", "prefixguard", "hook", "claude-code", *self.options]
        return subprocess.run(command, input=data, capture_output=True, timeout=60, check=False)

    def answer(self, given: Any) -> Any:
        done = self(given)
        assert (done.returncode, done.stderr) == (0, b"")
        return json.loads(done.stdout or b"{}")

    @property
    def state(self) -> Path:
        (found,) = self.base.iterdir()
        return found

    def kill(self) -> None:
        for lock in self.base.glob("*/lock"):
            if (lock.parent / "socket").exists():
                os.kill(int(lock.read_text()), signal.SIGKILL)
                (lock.parent / "socket").unlink()


@pytest.fixture
def command(tmp_path: Path, events_bundle: Path) -> Iterator[Command]:
    made = Command(tmp_path, "--monitor", str(events_bundle), "--record", str(tmp_path / "runs"), "--on-alarm", "nudge")
    yield made
    made.kill()


def test_a_session_as_claude_code_tells_it(command: Command, tmp_path: Path, events_monitor: Monitor) -> None:
    """Every step and every field; nothing that a worker which is killed between two hooks would lose."""
    answers = []
    for n, one in enumerate(SESSION):
        if n in (4, 8, 11):
            command.kill()
        answers.append(command.answer(one))
        if n == 5:
            (kept,) = (command.state / "runs").iterdir()
            assert (command.state.stat().st_mode & 0o777, kept.stat().st_mode & 0o777) == (0o700, 0o600)
    runs = {run.run_id: run for run in parse(tmp_path / "runs", "events")}
    found = {
        name: [(s.tool, s.arguments, s.observation, s.action, s.result, s.status) for s in run.records]
        for name, run in runs.items()
    }
    assert found == STEPS
    guard = Guard(events_monitor, on_alarm="nudge")  # one process from beginning to end answers the same
    watcher = ClaudeWatcher(guard, {})
    assert answers == [watcher.answer(one) for one in SESSION]
    file = [reading.level.value for one in score(events_monitor, tmp_path / "runs") for reading in one.readings]
    counted = json.loads((command.state / "counters.json").read_bytes())
    assert counted == guard.counters
    assert counted["readings"] == len(file) == 6
    assert list((command.state / "runs").iterdir()) == []  # the session has ended


def test_nudge_and_stop(tmp_path: Path, events_bundle: Path, command: Command) -> None:
    loop = [
        payload("UserPromptSubmit", prompt="Where?"), *batch(("c1", *FAILS)), *batch(("c2", *FAILS)),
        payload("PreToolUse", tool_name="Bash", tool_input={}, tool_use_id="c3"),
    ]  # fmt: skip
    said = [answer["hookSpecificOutput"] for one in loop if (answer := command.answer(one))]
    wrong = "The same call gave the same result"
    assert [(one["hookEventName"], wrong in one["additionalContext"]) for one in said] == [("PostToolBatch", True)]
    stops = Command(tmp_path / "b", "--monitor", str(events_bundle), "--on-alarm", "stop")
    try:
        answers = [stops.answer(one) for one in loop]
        last = answers[-1]["hookSpecificOutput"]
        assert (last["permissionDecision"], "stopped by its monitor" in last["permissionDecisionReason"]) == (
            "deny",
            True,
        )
        notice = payload("UserPromptSubmit", prompt="<task-notification>\n</task-notification>")
        assert [stops.answer(notice), stops.answer(loop[-1])["continue"]] == [{}, False]
        person = payload("UserPromptSubmit", prompt="Go on, I know.")
        assert [stops.answer(person), stops.answer(loop[-1])] == [{}, {}]
    finally:
        stops.kill()


@pytest.mark.parametrize(
    "broken",
    [b"", b"{", b"\xff\xfe", b"[1]", b'"x"', b"{}", b'{"hook_event_name": 7, "session_id": {}}', b"[" * 100_000],
)
def test_broken_payloads(command: Command, broken: bytes) -> None:
    """Nothing is said to Claude, nothing blocks it, and it is counted."""
    done = command(broken)
    assert (done.returncode, done.stdout) == (0, b"")
    problems = command.state / "problems.jsonl"
    counters = command.state / "counters.json"
    if problems.exists():
        assert b"Claude goes on unwatched" in done.stderr and len(problems.read_text().splitlines()) == 1
    else:
        assert json.loads(counters.read_bytes())["unread_events"] == 1


def test_what_is_missing_or_locked(tmp_path: Path, events_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prompt = payload("UserPromptSubmit", prompt="x")

    def refused(command: Command) -> str:
        done = command(prompt)
        assert (done.returncode, done.stdout) == (0, b"")
        return done.stderr.decode()

    missing = Command(tmp_path / "a", "--monitor", str(tmp_path / "nothing"))
    assert "no bundle there" in refused(missing)
    assert "no bundle there" in (missing.state / "problems.jsonl").read_text()
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "manifest.json").write_text("{}")
    for sentence in ("no worker", "s ago"):  # the second hook does not try again
        assert sentence in refused(Command(tmp_path / "b", "--monitor", str(damaged)))
    seen = Command(tmp_path / "c", "--monitor", str(events_bundle))
    seen.answer(prompt)
    seen.kill()
    seen.state.chmod(0o755)
    assert "must be a folder of yours that nobody else can read" in refused(seen)
    for wrong in ([], ["--monitor"], ["--on-alarm", "shout"], ["--of-later", "x"]):
        assert "usage: prefixguard hook" in refused(Command(tmp_path / "d", *wrong))

    import fcntl

    monkeypatch.setattr("prefixguard.hook._BEGINS", 0.5)
    seen.state.chmod(0o700)
    with (seen.state / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        from prefixguard import hook

        options = hook._read(["claude-code", *seen.options])
        with pytest.raises(OSError, match="another worker holds the state folder's lock"):
            hook._ask(options, b"{}")
    for _ in range(100):  # the worker that waited for the lock has it now
        if (seen.state / "socket").exists():
            break
        time.sleep(0.1)
    seen.kill()


def test_processor_time(command: Command) -> None:
    """From its start to its exit a hook takes less than 150 ms of processor time: the least of 20."""
    command.answer(payload("UserPromptSubmit", prompt="x"))
    taken = []
    for n in range(20):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command.answer(list(batch((f"c{n}", "Bash", {"command": "ls"}, "ok", None)))[-1])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(taken) < 0.15


def test_settings_ask_for_every_hook(tmp_path: Path) -> None:
    import shlex

    found = hook_settings(monitor=tmp_path / "my monitor", record="runs", on_alarm="stop")
    assert set(found["hooks"]) == {*EVENTS, "SessionStart"}
    (one,) = found["hooks"]["PreToolUse"]
    arguments = shlex.split(one["hooks"][0]["command"])
    assert arguments[:4] == [sys.executable, "-P", "-m", "prefixguard"]
    assert arguments[arguments.index("--monitor") + 1] == str(tmp_path / "my monitor")
    assert arguments[arguments.index("--record") + 1] == str(Path("runs").absolute())
    with pytest.raises(errors.ConfigError, match="name a monitor, or a folder to record to"):
        hook_settings()


VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["", "a1", "c1", "Bash", "Agent", "<task-notification>"])
)
NESTED = st.recursive(VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))
FIELDS = (
    "session_id", "agent_id", "agent_type", "tool_name", "tool_input", "tool_use_id", "tool_response", "error",
    "tool_calls", "prompt", "delta", "last_assistant_message",
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.builds(dict, st.dictionaries(st.sampled_from(FIELDS), NESTED)), max_size=12), st.randoms())
def test_whatever_comes(events_monitor: Monitor, payloads: list[dict[str, Any]], rng: Any) -> None:
    """Payloads of another release, out of order, of agents that are over: answers are objects, nothing is raised."""
    watcher = ClaudeWatcher(Guard(events_monitor, on_alarm="nudge"), {})
    for one in payloads:
        answer = watcher.answer({"session_id": "s1", "hook_event_name": rng.choice(EVENTS), **one})
        assert isinstance(answer, dict) and json.dumps(answer)


def test_runs_that_made_room_go_on(tmp_path: Path) -> None:
    """Many sessions beside each other: one that had to make room is taken from its file."""
    state = tmp_path / "state"
    state.mkdir()
    sessions = KeptSessions(Guard.recording(tmp_path / "runs", max_open_runs=2), state)
    for name, fields in (("UserPromptSubmit", {"prompt": "x"}), ("Stop", {"last_assistant_message": "y"})):
        for n in range(5):
            assert sessions.answer(json.dumps(payload(name, **fields) | {"session_id": f"s{n}"}).encode()) == {}
    runs = {run.run_id: [s.action for s in run.records] for run in parse(tmp_path / "runs", "events")}
    assert runs == {f"s{n}/main": ["y"] for n in range(5)}


def test_a_worker_whose_folder_is_gone_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claude_worker, "_LOOKS", 0.05)
    monkeypatch.chdir(tmp_path)
    state = tmp_path / "state"
    state.mkdir()
    sessions = KeptSessions(Guard.recording(tmp_path / "runs"), state)
    with claude_worker.listening(state) as server:
        shutil.rmtree(state)
        began = time.monotonic()
        claude_worker.serve(server, sessions, 60.0)
        assert time.monotonic() - began < 30.0


def test_a_state_folder_that_is_removed_holds_up_no_hook(tmp_path: Path) -> None:
    """The worker of the removed folder leaves that of the new one alone; the run goes on under another id."""
    command = Command(tmp_path, "--record", str(tmp_path / "runs"))
    try:
        command.answer(payload("UserPromptSubmit", prompt="x"))
        for removed in (command.base, command.state / "socket"):
            shutil.rmtree(removed) if removed.is_dir() else removed.unlink()
            command.answer(payload("UserPromptSubmit", prompt="y"))
            time.sleep(3 * claude_worker._LOOKS)  # what is left of the old worker has gone
            assert (command.state / "socket").exists()
            began = time.monotonic()
            command.answer(payload("Stop", last_assistant_message="z"))
            assert time.monotonic() - began < 5.0, "so long a hook waits for an answer"
        assert not (command.state / "problems.jsonl").exists()
    finally:
        command.kill()


def test_what_an_alarm_does_may_change_within_a_session(command: Command, tmp_path: Path, events_bundle: Path) -> None:
    options = ["--monitor", str(events_bundle), "--record", str(tmp_path / "runs")]
    stops = Command(tmp_path, *options, "--on-alarm", "stop")
    assert command.answer(payload("UserPromptSubmit", prompt="Where?")) == {}
    answers = [stops.answer(one) for calls in (("c1", *FAILS), ("c2", *FAILS)) for one in batch(calls)]
    assert answers[-1]["continue"] is False
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["s1.jsonl"]


def test_agents_that_go_on_and_calls_without_a_batch(tmp_path: Path) -> None:
    """A sub-agent that is spoken to again is another path; calls of a release without batches are told at the stop."""
    watcher = ClaudeWatcher(Guard.recording(tmp_path), {})
    stop = payload("SubagentStop", last_assistant_message="One.", **SUB)
    for one in (payload("UserPromptSubmit", prompt="x"), stop, stop | {"last_assistant_message": "Two."}, stop):
        assert watcher.answer(one) == {}
    for one in [*batch(("c1", "Bash", {}, "ok", None)), payload("Stop", last_assistant_message="Done.")]:
        if one["hook_event_name"] != "PostToolBatch":
            watcher.answer(one)
    runs = {run.run_id: [s.action or s.result for s in run.records] for run in parse(tmp_path, "events")}
    path = "s1/main/researcher#a1"
    assert runs == {"s1/main": ["ok", "Done."], path: ["One."], f"{path}~2": ["Two."], f"{path}~3": ["One."]}
