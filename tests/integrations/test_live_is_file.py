"""The law of the room: what a guard records, read as a file, gives the records and readings that it gave live."""

from __future__ import annotations

import json
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from prefixguard import parse
from prefixguard.integrations import KINDS, Guard, events
from prefixguard.runtime import Level, Monitor, score
from prefixguard.stepview import StepRecord

TEXTS = st.text(max_size=30) | st.sampled_from(["error: not found", "ok", "I look.", "{}", "\x00\x07\ud800", "ü" * 50])
PATHS = st.sampled_from(["main", "main/a#1", "main/ü#2"])
EVENTS = st.fixed_dictionaries(
    {"kind": st.sampled_from([kind for kind in KINDS if kind not in ("ended", "outcome")]), "agent_path": PATHS},
    optional={
        "text": TEXTS,
        "agent": st.sampled_from(["", "boss", "ärger"]),
        "call_id": st.sampled_from(["", "c1", "c2", "c3"]),
        "tool": st.sampled_from(["find", "", "get it"]),
        "arguments": st.none() | TEXTS | st.dictionaries(TEXTS, st.integers() | TEXTS, max_size=3),
        "turn": st.integers(0, 3),
        "is_error": st.booleans(),
        "metadata": st.dictionaries(TEXTS, TEXTS, max_size=2),
    },
)


@given(events=st.lists(EVENTS, max_size=30), success=st.booleans())
@example([{"kind": kind, "agent_path": "main/a#1"} for kind in ("returned", "called", "returned")], False)
def test_whatever_comes(events_monitor: Monitor, events: list[dict[str, Any]], success: bool) -> None:
    """Any events in any order: files and live agree step by step, and nothing is raised."""
    with tempfile.TemporaryDirectory() as folder:
        guard = Guard(events_monitor, record=folder)
        kept: list[StepRecord] = []
        guard._session = lambda *_: events_monitor.start(keep=kept.append)  # type: ignore[method-assign]
        live: dict[str, list[Any]] = {}
        with guard.run("do it", run_id="r") as run:
            for n, event in enumerate(events):  # times make each an event of its own
                for reading in guard.feed({"run": run.id, "at": n, **event}):
                    assert reading.unknown_reason is None or "field" not in reading.unknown_reason
                    live.setdefault(event["agent_path"], []).append(reading)
        guard.outcome(run.id, success)
        assert guard.counters.get("internal_errors", 0) == 0
        file = [record for one in parse(folder, "events") for record in one.records]
        assert sorted(map(repr, file)) == sorted(map(repr, kept))  # every field, whatever the monitor makes of it
        for scored in score(events_monitor, folder):
            path = scored.run.run_id.partition("/")[2]
            mine = [reading for reading in live.get(path, []) if reading.level is not Level.UNKNOWN]
            theirs = list(scored.readings)
            assert [r.to_json() for r in mine] == [r.to_json() for r in theirs[: len(mine)]]
            assert len(theirs) - len(mine) <= 64  # calls that were open as the run ended: their readings came then
            assert scored.run.outcome == ("success" if success else "failure")


def test_a_task_that_is_told_twice(events_monitor: Monitor, tmp_path: Path) -> None:
    """It is left out, live and in the file; one of other words is what the agent sees next."""
    guard, live = Guard(events_monitor, record=tmp_path), []
    for n, task in enumerate(("x", "x", "y")):
        for event in ({"kind": "task", "text": task}, {"kind": "said", "text": str(n)}):
            live += guard.feed({"run": "r", **event})
    (file,) = score(events_monitor, tmp_path)
    assert [one.to_json() for one in live] == [one.to_json() for one in file.readings]
    assert [one.observation for one in file.run.records] == ["x", "", "y"]
    assert guard.counters["second_tasks"] == 1


def test_readings_and_records_of_a_nested_run(events_monitor: Monitor, tmp_path: Path) -> None:
    """Parallel calls, an error, a sub-agent whose last words are the result of the call that asked it."""
    guard = Guard(events_monitor, record=tmp_path)
    live = []
    with guard.run("Where is A1?", run_id="r", task_id="t", agent="boss") as run:
        run.called("find", {"b": 1, "a": "x"}, call_id="c1", text="I look.")
        run.called("find", '{"b": 2}', call_id="c2")
        live += run.returned("c2", "ok")
        live += run.returned("c1", KeyError("A1"))
        ask = run.called("research", {"q": "A1"})
        with run.delegate("researcher", task="A1?", call_id=ask) as below:
            below.called("find", {"id": "A1"}, call_id="d1")
            inside = below.returned("d1", {"found": True})
            inside += below.said([{"type": "text", "text": "It is in Bern."}])
        assert run.reading is not None and run.reading.step == 3  # the call is a step as soon as the delegate has ended
        live += run.said("In Bern.")
    guard.outcome(run.id, True)
    runs = {found.run_id: found for found in parse(tmp_path, "events")}
    assert {name: found.task_id for name, found in runs.items()} == {"r/main": "t", f"r/{below.agent_path}": "t"}
    steps = [(s.tool, s.arguments, s.observation, s.action, s.result, s.status) for s in runs["r/main"].records]
    assert steps == [
        ("find", '{"a":"x","b":1}', "Where is A1?", "I look.", "KeyError: 'A1'", "error"),
        ("find", '{"b":2}', "", "", "ok", "ok"),
        ("research", '{"q":"A1"}', "", "", "It is in Bern.", "ok"),
        ("respond", "", "", "In Bern.", "", "ok"),
    ]
    assert [s.result or s.action for s in runs[f"r/{below.agent_path}"].records] == ['{"found":true}', "It is in Bern."]
    file = {scored.run.run_id: scored.readings for scored in score(events_monitor, tmp_path)}
    assert [r.to_json() for r in inside] == [r.to_json() for r in file[f"r/{below.agent_path}"]]
    assert [r.step for r in live] == [1, 2, 4]
    assert [r.to_json() for r in file["r/main"] if r.step != 3] == [r.to_json() for r in live]


def test_the_schema_describes_the_events(events_monitor: Monitor, tmp_path: Path) -> None:
    """Every line that is recorded is of the published schema, which has the fields of events and no others."""
    import jsonschema

    schema = json.loads((Path(events.__file__).parent / "event.schema.json").read_text(encoding="utf-8"))
    assert set(schema["properties"]) == {"schema", *(field.name for field in fields(events.Event))}
    guard = Guard(events_monitor, record=tmp_path, on_alarm="nudge")
    with guard.run("x", run_id="r", agent="boss") as run:
        for n in range(3):
            run.returned(run.called("find", {"n": n}, cost=0.1, tokens_in=3), "error", is_error=True)
        run.nudge()
        run.observed("y", metadata={"a": [None]}, logprobs={"mean": -0.5}, id="e1")
    guard.outcome("r", False)
    lines = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert {line["kind"] for line in lines} == {*events.KINDS} - {"said"}
    for line in lines:
        jsonschema.validate(line, schema)
        assert events.Event.from_json(line).to_json() == line


def test_secrets_and_shapes_of_the_file(tmp_path: Path) -> None:
    """One file a run, readable by its owner alone, one JSON object a line, the schema in each."""
    guard = Guard.recording(tmp_path)
    with guard.run("x", run_id="../../etc/passwd") as run:
        run.said("y", tokens_in=3, cost=0.5, metadata={"seed": float("inf"), "deep": [[[{"a": {1}}]]]})
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert {(line["schema"], line["run"], line["agent_path"]) for line in lines} == {
        ("prefixguard/event/v1", "../../etc/passwd", "main")
    }
    assert lines[1]["metadata"] == {"seed": "inf", "deep": [[[{"a": [1]}]]]}
