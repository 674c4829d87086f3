"""Traces of several agents: what is below a call that began an agent is a run of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from prefixguard.stepview import read_runs
from prefixguard.stepview.delegates import Place, apart
from prefixguard.trace.split import task_key

#: Events: the one above each (perhaps itself, perhaps none that is there), and whether it begins a delegate.
FORESTS = st.lists(st.tuples(st.integers(-1, 12), st.booleans()), max_size=12)


def runs_of(forest: list[tuple[int, bool]], order: list[int]) -> dict[str | None, list[int]]:
    places = [Place(str(n), None if forest[n][0] < 0 else str(forest[n][0]), forest[n][1]) for n in order]
    return dict(apart(order, places))


def nearest(forest: list[tuple[int, bool]], n: int) -> str | None:
    """The delegate that an event is of, by walking up."""
    seen, at = set(), forest[n][0]
    while 0 <= at < len(forest) and at not in seen:
        if forest[at][1]:
            return str(at)
        seen.add(at)
        at = forest[at][0]
    return None


@given(FORESTS, st.randoms(use_true_random=False))
def test_an_event_is_of_the_nearest_delegate_above_it_in_whatever_order_events_come(forest: Any, random: Any) -> None:
    order = list(range(len(forest)))
    random.shuffle(order)
    found = runs_of(forest, order)
    assert next(iter(found)) is None
    for delegate, events in found.items():
        assert events == [n for n in order if nearest(forest, n) == delegate]
    assert sorted(n for events in found.values() for n in events) == list(range(len(forest)))


def test_a_long_chain_is_walked_once() -> None:
    n = 20_000
    events = list(range(n))
    found = dict(apart(events, [Place(str(i), str(i + 1), i == n - 1) for i in range(n)]))
    assert found == {None: [n - 1], str(n - 1): events[:-1]}


def whole(n: int) -> tuple[int, int]:
    return 0, n


SPANS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(1, 6)), max_size=8)


@given(SPANS, st.randoms(use_true_random=False))
def test_agents_that_run_while_another_runs_are_runs_of_their_own(spans: Any, random: Any) -> None:
    """Two agents below one parent, each with an event below it, share a run if and only if neither meets another."""
    lasts = [(begin, begin + length) for _, begin, length in spans]
    agents = [Place(f"a{n}", str(p), False, tuple(map(whole, lasts[n]))) for n, (p, _, _) in enumerate(spans)]
    meets = [
        any(m != n and spans[m][0] == spans[n][0] and lasts[m][0] < e and b < lasts[m][1] for m in range(len(spans)))
        for n, (b, e) in enumerate(lasts)
    ]
    events = [(place.id, place) for place in agents] + [(n, Place(None, f"a{n}", False)) for n in range(len(agents))]
    random.shuffle(events)
    found = dict(apart([event for event, _ in events], [place for _, place in events]))
    of_event = {event: delegate for delegate, own in found.items() for event in own}
    assert all(of_event[n] == (f"a{n}" if meets[n] else None) for n in range(len(spans)))
    assert all(of_event[place.id] is None for place in agents)


SPEC = {
    "container": {
        "format": "jsonl",
        "group_by": "@.trace",
        "delegates": {"id": "@.id", "parent": "@.parent", "when": {"@.role": "tool"}},
    },
    "run": {"id": "$.group", "task": "$.events[0].task", "groups": {"flow": "$.events[0].flow"}},
    "events": "$.events[*]",
    "hidden": [],
}
TRACE = [
    {
        "trace": "t",
        "id": "a",
        "role": "assistant",
        "tool_calls": [{"id": "1", "name": "ask"}],
        "task": "T",
        "flow": "f",
    },
    {"trace": "t", "id": "c", "parent": "b", "role": "assistant", "content": "inner"},
    {"trace": "t", "id": "b", "role": "tool", "call_id": "1", "content": "inner"},
    {"trace": "t", "id": "d", "role": "assistant", "content": "outer"},
]


def test_a_delegate_has_the_task_the_groups_and_the_label_of_its_caller(make: Any, tmp_path: Path) -> None:
    adapter = make(**SPEC)
    labels = tmp_path / "labels.jsonl"
    labels.write_text('{"run_id": "x", "outcome": "failure"}\n')  # by the file, which holds one run and its delegates
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, TRACE)))
    for given_labels, outcome in ((labels, "failure"), (None, "unknown")):
        runs = list(read_runs(tmp_path / "x.jsonl", adapter, labels=given_labels, strict=True))
        found = [(r.run_id, r.task_id, r.groups["flow"], r.outcome.value, [s.tool for s in r.records]) for r in runs]
        assert found == [
            ("t", "T", "f", outcome, ["ask", "respond"]),
            ("t/b", "T", "f", outcome, ["respond"]),
        ]
    labels.write_text('{"run_id": "t", "outcome": "failure"}\n{"run_id": "t/b", "outcome": "success"}\n')
    runs = list(read_runs(tmp_path / "x.jsonl", adapter, labels=labels, strict=True))
    assert [r.outcome.value for r in runs] == ["failure", "success"]


def test_without_a_task_a_delegate_is_never_on_another_side_than_its_caller(make: Any, tmp_path: Path) -> None:
    for name in ("x.jsonl", "y.jsonl"):  # the same id twice
        lines = [{k: v for k, v in event.items() if k != "task"} for event in TRACE]
        (tmp_path / name).write_text("\n".join(map(json.dumps, lines)))
    first, below, second, below_second = read_runs(tmp_path, make(**SPEC))
    assert [first.run_id, below.run_id, second.run_id, below_second.run_id] == ["t", "t/b", "t#2", "t#2/b"]
    assert task_key(first) == task_key(below) != task_key(second) == task_key(below_second)


def test_events_may_name_their_delegate(make: Any, tmp_path: Path) -> None:
    adapter = make(**SPEC | {"container": SPEC["container"] | {"delegates": {"name": "@.agent"}}})
    said = [("a", None), ("b", "helper"), ("c", ""), ("d", "other"), ("e", "helper")]
    lines = [{"trace": "t", "role": "assistant", "content": text, "agent": agent} for text, agent in said]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, lines)))
    runs = {run.run_id: [record.action for record in run.records] for run in read_runs(tmp_path, adapter)}
    assert runs == {"t": ["a", "c"], "t/helper": ["b", "e"], "t/other": ["d"]}
