"""Whole runs: outcomes, ids, companion files, labels, and every kind of bad input with its sentence."""

from __future__ import annotations

import json
import shutil
import tarfile
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from prefixguard.errors import TraceError
from prefixguard.stepview import ReadReport, read_runs
from prefixguard.trace import Fault, Mistake, Outcome


def run(name: str = "r1", reward: Any = 1.0, **more: Any) -> dict[str, Any]:
    return {"id": name, "task": "t", "reward": reward, "messages": [{"role": "assistant", "content": "hi"}]} | more


@pytest.mark.parametrize(
    ("reward", "outcome"),
    [
        (1.0, Outcome.SUCCESS),
        (1, Outcome.SUCCESS),
        (0.0, Outcome.FAILURE),
        (0.5, Outcome.FAILURE),  # this spec says: below 1 is failure
        ("1.0", Outcome.UNKNOWN),
        ("false", Outcome.UNKNOWN),
        (True, Outcome.UNKNOWN),
        (False, Outcome.UNKNOWN),
        (None, Outcome.UNKNOWN),
        ([], Outcome.UNKNOWN),
        (float("nan"), Outcome.UNKNOWN),
    ],
)
def test_outcome_by_threshold(make: Any, read: Any, reward: Any, outcome: Outcome) -> None:
    assert read(make(), [run(reward=reward)])[0].outcome is outcome


def spec_outcome(**rule: Any) -> dict[str, Any]:
    return {"id": "$.id", "outcome": rule}


@pytest.mark.parametrize(
    ("rule", "value", "outcome"),
    [
        ({"success": True, "failure": False}, "false", Outcome.UNKNOWN),
        ({"success": True, "failure": False}, 0, Outcome.UNKNOWN),
        ({"success": True, "failure": False}, False, Outcome.FAILURE),
        ({"type": "number", "success": {"eq": 1}, "failure": {"eq": 0}}, 0.5, Outcome.UNKNOWN),
        ({"type": "number", "success": {"eq": 1}, "failure": "else"}, 0.5, Outcome.FAILURE),
        ({"type": "number", "success": {"eq": 1}, "failure": "else"}, float("nan"), Outcome.UNKNOWN),
        ({"type": "number", "success": {"eq": 1}, "failure": "else"}, None, Outcome.UNKNOWN),
        ({"type": "boolean", "success": True, "failure": "else"}, "no", Outcome.UNKNOWN),
        ({"type": "string", "success": "else", "failure": "bad"}, "fine", Outcome.SUCCESS),
        ({"success": {"ge": 0}, "failure": {"le": 0}}, 0, Outcome.UNKNOWN),
    ],
)
def test_what_neither_or_both_sides_cover_is_unknown(
    make: Any, read: Any, rule: Any, value: Any, outcome: Outcome
) -> None:
    adapter = make(run=spec_outcome(of="$.reward", **rule))
    assert read(adapter, [run(reward=value)])[0].outcome is outcome


def test_groups_ids_tasks_and_where(make: Any, read: Any) -> None:
    groups = {"file": {"file": "stem"}, "none": "$.absent"}
    adapter = make(run={"task": {"join": ["$.task", "$.part"]}, "groups": groups})
    one, two = read(adapter, [run(part=1), run()])
    assert (one.run_id, one.task_id, dict(one.groups)) == ("runs.json#1", "t\n1", {"file": "runs"})
    assert two.task_id is None
    assert one.source.endswith("runs.json run 1")
    keyed = make(container={"format": "json", "runs": "$.*"}, run={"groups": {"k": "$key", "n": "$index"}})
    (only,) = read(keyed, {"seven": run()})
    assert (only.run_id, dict(only.groups)) == ("runs.json#seven", {"k": "seven", "n": "1"})
    single = make(container={"format": "json"}, run={})
    assert read(single, run())[0].run_id == "runs.json"


def test_duplicate_ids_are_told_apart_or_refused(make: Any, read: Any) -> None:
    report = ReadReport()
    assert [r.run_id for r in read(make(), [run(), run(), run()], report=report)] == ["r1", "r1#2", "r1#3"]
    assert report.duplicate_ids == 2
    with pytest.raises(TraceError, match=r"run 2: run id 'r1' occurs before. Make ids unique"):
        read(make(), [run(), run()], strict=True)


def test_a_label_is_of_the_run_that_is_called_so(make: Any, read: Any, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("run_id,outcome\na,success\na#2,success\n")
    report = ReadReport()
    runs = read(make(), [run("a", 0.0), run("a#2", 0.0), run("a", 0.0), run("a", 0.0)], labels=labels, report=report)
    assert [(r.run_id, r.outcome.value) for r in runs] == [
        ("a", "success"), ("a#2", "success"), ("a#3", "failure"), ("a#4", "failure"),
    ]  # fmt: skip
    late = read(make(), [run("a", 0.0), run("a", 0.0), run("a#2", 0.0)], labels=labels, report=report)
    assert [(r.run_id, r.outcome.value) for r in late] == [
        ("a", "success"), ("a#2", "success"), ("a#2#2", "failure"),
    ]  # fmt: skip


def test_empty_runs_are_counted_with_their_outcome(make: Any, read: Any) -> None:
    report = ReadReport()
    runs = [run("a", 0.0, messages=[]), run("b", 1.0, messages=None), run("c")]
    assert [r.run_id for r in read(make(), runs, report=report)] == ["c"]
    assert report.empty == {"failure": 1, "success": 1}
    assert report.skipped == []


def test_only_empty_runs_are_no_error(make: Any, read: Any) -> None:
    report = ReadReport()
    assert read(make(), [run(messages=[])], report=report) == []
    assert report.empty == {"success": 1}


def test_a_mistake_is_found_by_its_event(make: Any, read: Any) -> None:
    adapter = make(run={"labels": {"mistake_step": "$.step", "step_base": 1, "mistake_agent": "$.who"}})
    messages = [{"role": "user"}, {"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}]
    (found,) = read(adapter, [run(messages=messages, step="3", who="Coder")])
    assert found.mistake is not None
    assert (found.mistake.step, found.mistake.agent) == (2, "Coder")
    for step in (1, "x", 99, True, 2.5, "3.0", "9" * 30):
        (found,) = read(adapter, [run(messages=messages, step=step)])
        assert found.mistake is not None
        assert found.mistake.step is None
    for step in (3, 3.0, "3"):
        (found,) = read(adapter, [run(messages=messages, step=step, who=float("nan"))])
        assert found.mistake == Mistake(2, None)


@pytest.mark.parametrize("step", [None, "", [3], float("nan"), -1, "-1", -1.0])
def test_a_set_that_names_no_step_says_that_there_is_no_mistake(step: Any, make: Any, read: Any) -> None:
    adapter = make(run={"labels": {"mistake_step": "$.step", "mistake_agent": "$.who"}})
    (found,) = read(adapter, [run(step=step, who=None)])
    assert found.mistake is None
    (found,) = read(adapter, [run(step=step, who="Coder")])
    assert found.mistake == (None if str(step).startswith("-1") else Mistake(None, "Coder"))


def test_a_label_means_the_event_that_has_its_number(make: Any, read: Any) -> None:
    labels = {"mistake_step": "$.step", "step_field": "@.n", "mistake_agent": "$.who"}
    messages = [{"role": "assistant", "content": str(n), "n": n} for n in (1, 10, "11", 40)]
    for step, record in (("1", 1), (10, 2), (11.0, 3), ("40", 4), (2, None), (0, None)):
        (found,) = read(make(run={"labels": labels}), [run(messages=messages, step=step)])
        assert found.mistake == Mistake(record, None)
        assert [one.action for one in found.records] == ["1", "10", "11", "40"]


def test_faults_of_a_list_and_of_flags(make: Any, read: Any) -> None:
    listed = {"faults": {"each": "$.blamed", "agent": "@.who", "mode": "@.how"}}
    blamed = [{"who": "B", "how": "2"}, {"who": "A"}, {"how": 7}, {"who": "B", "how": "2"}, {"who": ""}, 3, None]
    (found,) = read(make(run={"labels": listed}), [run(blamed=blamed)])
    assert found.faults == (Fault("B", "2"), Fault("A", None), Fault(None, "7"))
    assert found.mistake is None
    odd: Any
    for odd in (None, "x", 3, [], {}):
        (found,) = read(make(run={"labels": listed}), [run(blamed=odd)])
        assert found.faults == ()
    flags = {"faults": {"each": "$.flags", "when": {"@.value": {"in": [1, True]}}, "mode": "@.name"}}
    (found,) = read(make(run={"labels": flags}), [run(flags={"b": 1, "a": 0, "c": True, "d": None, "e": "1"})])
    assert found.faults == (Fault(None, "b"), Fault(None, "c"))


BAD = [None, 3, "text", {"id": "x"}, run("y", messages="oops"), run("z", messages={"a": 1})]


def test_bad_runs_among_good_are_skipped_counted_and_named(make: Any, read: Any) -> None:
    report = ReadReport()
    good = [run(f"g{i}") for i in range(20)]
    assert len(read(make(), good[:10] + BAD + good[10:], report=report)) == 20
    reasons = [reason for _, reason in report.skipped]
    assert len(reasons) == len(BAD)
    assert [where.rpartition("/")[2] for where, _ in report.skipped] == [f"runs.json run {n}" for n in range(11, 17)]
    assert reasons[0].endswith("runs.json run 11: a run that is null. Remove it, or name another adapter.")
    assert "run 'x': nothing where adapter chat has its events; there is id." in reasons[3]
    assert "run 'y': the events are a text, not a list." in reasons[4]
    assert "run 'z': the events are an object, not a list." in reasons[5]
    for bad in BAD:
        with pytest.raises(TraceError):
            read(make(), [*good, bad], strict=True)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            '[{"id": "r1", "messages": [',
            "line 1, column 28: not JSON (Expecting value). It looks cut off; write it again.",
        ),
        ('[\n{"id": 1,}\n, 2, 3, 4]', "line 2, column 10: not JSON"),
        ("", "the file is empty"),
        ("hello", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"data": []}', "no runs at $[*]; the document is an object with data"),
        ("7", "no runs at $[*]; the document is one value"),
    ],
)
def test_a_document_that_cannot_be_read(make: Any, read: Any, document: str, message: str) -> None:
    if message.startswith("no runs") and document.startswith("{"):
        adapter = make(container={"format": "json", "runs": "$.runs[*]"})
        message = message.replace("$[*]", "$.runs[*]")
    else:
        adapter = make()
    for strict in (True, False):
        with pytest.raises(TraceError) as caught:
            read(adapter, document, strict=strict)
        assert message in str(caught.value)
        assert "runs.json" in str(caught.value)


def test_an_adapter_for_another_format_names_what_it_skipped(make: Any, read: Any) -> None:
    turns = [{"role": "narrator", "text": "x"}, {"role": "narrator", "text": "y"}, {"type": "ping"}]
    with pytest.raises(TraceError) as caught:
        read(make(), [run(messages=turns)])
    assert "no records (adapter chat 1.0.0 skipped all 3 events: 2 role=narrator, 1 type=ping)" in str(caught.value)
    assert "prefixguard parse" in str(caught.value)
    with pytest.raises(TraceError, match="nothing where adapter chat has its events; there is conversation"):
        read(make(), [{"conversation": []}])


def test_nothing_to_read(make: Any, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"there is no such file or folder. Check the path"):
        list(read_runs(tmp_path / "none", make()))
    with pytest.raises(TraceError, match=r"no file matches \*\*/\*.json \(adapter chat 1.0.0\)"):
        list(read_runs(tmp_path, make()))


def test_invalid_utf8_nan_and_surrogates(make: Any, read: Any) -> None:
    report = ReadReport()
    document = b'[{"id": "a", "reward": NaN, "messages": [{"role": "assistant", "content": "x\xff\xfey \\ud800 z"}]}]'
    (only,) = read(make(), document, report=report)
    assert only.records[0].action == "x\ufffd\ufffdy \ufffd z"
    assert only.outcome is Outcome.UNKNOWN
    assert report.bad_bytes == 2


def test_a_byte_order_mark_is_no_obstacle(make: Any, read: Any) -> None:
    assert len(read(make(), b"\xef\xbb\xbf" + json.dumps([run()]).encode())) == 1


def test_wrong_types_in_every_field(make: Any, read: Any) -> None:
    strange: list[Any] = [None, True, 0, -1.5, "", "x", [], [[]], {}, {"a": None}, float("inf")]
    for field in ("id", "task", "reward", "question"):
        read(make(), [run("ok"), *({**run(), field: value} for value in strange)])
    for field in ("role", "content", "tool_calls", "call_id", "id", "name", "arguments"):
        for value in strange:
            call = {"id": "c", "name": "n", "arguments": "{}", field: value}
            messages = [
                {"role": "assistant", "content": "x", "tool_calls": [call]},
                {"role": "tool", "call_id": "c", "content": "y", field: value},
                {"role": "assistant", "content": "z", field: value},
                {"role": "assistant", "content": "end"},
            ]
            assert read(make(), [run(messages=messages)])[0].records[-1].action == "end"


def test_jsonl_streams_and_names_bad_lines(make: Any, read: Any) -> None:
    adapter = make(container={"format": "jsonl"})
    lines = [json.dumps(run("a")), "", "{broken", json.dumps(run("b")), json.dumps([1])]
    report = ReadReport()
    assert [r.run_id for r in read(adapter, "\r\n".join(lines), "runs.jsonl", report=report)] == ["a", "b"]
    assert [where.rpartition("/")[2] for where, _ in report.skipped] == ["runs.jsonl line 3", "runs.jsonl line 5"]
    assert "line 3, column 2: not JSON" in report.skipped[0][1]
    with pytest.raises(TraceError, match="line 3, column 2: not JSON"):
        read(adapter, "\n".join(lines), "runs.jsonl", strict=True)


def test_a_jsonl_file_is_not_held_in_memory(make: Any, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    line = json.dumps(run(messages=[{"role": "assistant", "content": "x" * 20_000}]))
    path.write_text("\n".join([line] * 1_000))
    adapter = make(container={"format": "jsonl"}, run={})
    tracemalloc.start()
    count = sum(1 for _ in read_runs(path, adapter))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 1_000
    assert peak < 3_000_000


def test_a_line_of_50_mb(make: Any, read: Any) -> None:
    adapter = make(container={"format": "jsonl"})
    line = json.dumps(run(messages=[{"role": "assistant", "content": "x" * 50_000_000}]))
    assert len(read(adapter, line, "runs.jsonl")[0].records[0].action) < 2_100


def test_events_a_line_grouped_into_runs(make: Any, read: Any) -> None:
    adapter = make(
        container={"format": "jsonl", "group_by": "@.trace"},
        events="$.events[*]",
        run={"task": "$.events[0].task"},
        hidden=[],
    )
    lines = [
        {"trace": "t2", "role": "assistant", "content": "1", "task": "x"},
        {"trace": "t1", "role": "assistant", "content": "2"},
        {"trace": "t2", "role": "assistant", "content": "3"},
        {"role": "assistant"},
    ]
    report = ReadReport()
    runs = read(adapter, "\n".join(map(json.dumps, lines)), "spans.jsonl", report=report)
    assert [(r.run_id, r.task_id, [s.action for s in r.records]) for r in runs] == [
        ("spans.jsonl#t2", "x", ["1", "3"]),
        ("spans.jsonl#t1", None, ["2"]),
    ]
    assert "no value to group by" in report.skipped[0][1]
    otlp = make(
        container={"format": "jsonl", "group_by": "@.traceId", "elements": "@.resourceSpans[*].spans[*]"},
        events={"path": "$.events[*]", "order_by": "@.start"},
        rules=[{"emit": "step", "tool": "@.name"}],
        run={},
        hidden=[],
    )
    spans = [{"traceId": "a", "start": "9", "name": "late"}, {"traceId": "a", "start": "10", "name": "later"}]
    (only,) = read(otlp, json.dumps({"resourceSpans": [{"spans": spans[::-1]}]}), "otlp.jsonl")
    assert [s.tool for s in only.records] == ["late", "later"]


def test_labels_beside_the_runs_have_the_last_word(make: Any, read: Any, tmp_path: Path) -> None:
    labels = tmp_path / "labels.jsonl"
    labels.write_text('{"run_id": "a", "outcome": "failure", "task_id": "T"}\n{"run_id": "zz", "outcome": "success"}\n')
    report = ReadReport()
    one, two = read(make(), [run("a", 1.0), run("b", 1.0)], labels=labels, report=report)
    assert (one.outcome, one.task_id) == (Outcome.FAILURE, "T")
    assert (two.outcome, two.task_id) == (Outcome.SUCCESS, "t")
    assert (report.labels.unmatched, report.labels.first_unmatched) == (1, ("zz",))
    assert (report.labels.unlabelled, report.labels.first_unlabelled) == (1, ("b",))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Runs in RUNS/trajs with reports in RUNS/logs, and a secret beside RUNS."""
    runs = tmp_path / "RUNS"
    for name, resolved in (("a", True), ("b", False), ("c", None)):
        (runs / "trajs").mkdir(parents=True, exist_ok=True)
        (runs / "trajs" / f"{name}.json").write_text(json.dumps(run(name)))
        if resolved is not None:
            (runs / "logs" / name).mkdir(parents=True)
            (runs / "logs" / name / "report.json").write_text(json.dumps({"resolved": resolved}))
    (tmp_path / "secret.json").write_text('{"resolved": true}')
    (runs / "list.json").write_text(json.dumps({"resolved": ["a"]}))
    return runs


def sibling(template: str, **rule: Any) -> dict[str, Any]:
    verdict = {"of": {"sibling": template, "path": "$.resolved"}, "type": "boolean", "success": True, "failure": False}
    return {
        "container": {"format": "json", "files": "trajs/*.json"},
        "run": {"id": "$.id", "outcome": verdict | rule},
        "hidden": [],
    }


def outcomes(adapter: Any, source: Path) -> dict[str, str]:
    return {r.run_id: r.outcome.value for r in read_runs(source, adapter)}


def test_outcomes_in_companion_files(make: Any, tree: Path) -> None:
    expected = {"a": "success", "b": "failure", "c": "unknown"}
    for template in ("../logs/{id}/report.json", "../logs/{stem}/report.json", "../logs/{$.id}/report.json"):
        assert outcomes(make(**sibling(template)), tree) == expected


def test_membership_of_a_companion_list(make: Any, tree: Path) -> None:
    inside = {"in": {"sibling": "../list.json", "path": "$.resolved"}}
    adapter = make(**sibling("", of={"file": "stem"}, type="string", success=inside, failure="else"))
    assert outcomes(adapter, tree) == {"a": "success", "b": "failure", "c": "failure"}
    (tree / "list.json").unlink()
    assert outcomes(adapter, tree) == {"a": "unknown", "b": "unknown", "c": "unknown"}


def test_companion_files_never_leave_the_runs(make: Any, tree: Path) -> None:
    for template in ("../../secret.json", "../logs/../../secret.json", "../../../../../../etc/passwd"):
        report = ReadReport()
        found = list(read_runs(tree, make(**sibling(template)), report=report))
        assert {r.outcome for r in found} == {Outcome.UNKNOWN}
        assert report.companions_missing == 3
    (tree / "link.json").symlink_to(tree.parent / "secret.json")
    assert set(outcomes(make(**sibling("../link.json")), tree).values()) == {"unknown"}
    (tree / "trajs" / "a.json").write_text(json.dumps(run("../../secret")))
    assert outcomes(make(**sibling("../{id}.json")), tree)["../../secret"] == "unknown"
    (tree / "logs" / "b" / "report.json").write_text("{broken")
    assert outcomes(make(**sibling("../logs/{stem}/report.json")), tree)["b"] == "unknown"


def test_folder_glob_tar_and_stdin_read_the_same(
    make: Any, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = make(**sibling("../logs/{id}/report.json"))
    expected = outcomes(adapter, tree)
    for kind in ("w", "w:gz", "w:xz"):
        archive = tmp_path / f"runs.tar{kind[1:].replace(':', '.')}"
        with tarfile.open(archive, kind) as tar:
            for path in sorted(tree.rglob("*"), reverse=True):
                tar.add(path, path.relative_to(tree), recursive=False)
        assert outcomes(adapter, archive) == expected
    by_glob = make(**sibling("../logs/{id}/report.json"))
    assert set(outcomes(by_glob, tree / "trajs" / "*.json")) == set(expected)
    archive.write_bytes(archive.read_bytes()[:-200])
    with pytest.raises(TraceError, match="cannot be unpacked"):
        outcomes(adapter, archive)
    with (tree / "trajs" / "a.json").open("rb") as stream:

        class Standard:
            buffer = stream

        monkeypatch.setattr("sys.stdin", Standard)
        assert [r.run_id for r in read_runs("-", make(container={"format": "json"}))] == ["a"]


def test_order_is_that_of_the_paths(make: Any, tree: Path) -> None:
    shutil.copy(tree / "trajs" / "a.json", tree / "trajs" / "B.json")
    adapter = make(
        **sibling("x"),
    )
    assert [r.source.rpartition("/")[2] for r in read_runs(tree, adapter)] == ["B.json", "a.json", "b.json", "c.json"]
