"""Ways to find runs and events in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hand_written import chats, folder

from prefixguard.induce import open_samples
from prefixguard.induce.offline.source import Source
from prefixguard.induce.offline.sources import sources


def found(root: Path, files: dict[str, Any], **hints: str) -> list[Source]:
    return sources(open_samples(folder(root, files)), hints)


def ways(found: list[Source]) -> set[tuple[Any, Any, str]]:
    return {(one.runs, one.group_by, one.event_places[0]) for one in found}


def test_every_level_that_could_be_a_run_is_a_way(tmp_path: Path) -> None:
    days = {"days": [{"day": f"d{d}", "trips": chats(3)} for d in range(3)]}
    said = {runs for runs, _, events in ways(found(tmp_path, {"a.json": days})) if "messages" in events}
    assert {None, "$.days[*]", "$.days[*].trips[*]"} <= said


def test_the_likeliest_comes_first(tmp_path: Path) -> None:
    best = found(tmp_path, {"all.json": chats()})[0]
    assert (best.runs, best.events) == ("$[*]", "$.messages[*]")
    assert [len(view.events) for view in best.views] == [9] * 6
    assert best.novelty > 0.5


def test_only_files_that_hold_runs_are_matched(tmp_path: Path) -> None:
    files = {f"runs/{i}.json": run for i, run in enumerate(chats())}
    best = found(tmp_path, {**files, "labels/all.json": {"0": True}, "readme.md": "text"})[0]
    assert best.container["files"] == "**/runs/*.json"
    assert best.files == tuple(f"runs/{i}.json" for i in range(6))


def lines(ids: list[Any], name: str = "sid", **more: Any) -> list[dict[str, Any]]:
    return [{name: one, "text": f"line {k} of {one} says something", **more} for one in ids for k in range(6)]


def group(found: list[Source]) -> Any:
    return max((one for one in found if one.event_places == ("$.events[*]",)), key=lambda one: one.prior).group_by


@pytest.mark.parametrize(
    ("ids", "name"),
    [
        (["a1b2c3d4", "e5f6a7b8", "c9d0e1f2"], "sid"),
        (["run-1", "run-2", "run-3"], "x"),
        ([101, 102, 103], "episode"),
        ([7, 8, 9], "x"),
    ],
)
def test_lines_are_gathered_by_an_id_that_they_share(ids: list[Any], name: str, tmp_path: Path) -> None:
    best = found(tmp_path, {"log.jsonl": lines(ids, name)})
    assert group(best) == f"@.{name}"


def test_the_id_may_lie_inside_an_object(tmp_path: Path) -> None:
    log = [
        {"ctx": {"trace id": one["sid"]}, "text": one["text"]} for one in lines(["a1b2c3d4", "e5f6a7b8", "c9d0e1f2"])
    ]
    assert group(found(tmp_path, {"log.jsonl": log})) == '@.ctx["trace id"]'


def test_numbers_that_come_and_go_gather_nothing(tmp_path: Path) -> None:
    log = [{"level": (20, 30)[k % 2], "step": k % 5, "text": f"line {k} says something"} for k in range(40)]
    assert all(not isinstance(one.group_by, str) for one in found(tmp_path, {"log.jsonl": log}))


def test_a_run_is_a_file_where_ids_stay_within_files(tmp_path: Path) -> None:
    files = {f"{i}.jsonl": lines([f"turn-{i}-1", f"turn-{i}-2"], "turn", run=f"run-{i}") for i in range(4)}
    assert group(found(tmp_path, files)) in ("@.run", {"file": "path"})


def test_a_line_that_holds_a_whole_run_is_a_run(tmp_path: Path) -> None:
    best = found(tmp_path, {"all.jsonl": chats()})[0]
    assert (best.runs, best.group_by, best.events) == (None, None, "$.messages[*]")
    assert len(best.views) == 6


def test_events_that_are_runs_are_told_by_the_lists_inside_them(tmp_path: Path) -> None:
    ranked = found(tmp_path, {"all.json": chats()})
    outer = next(one for one in ranked if one.events == "$[*]")
    assert outer.inner > 0.8
    assert next(one for one in ranked if one.events == "$.messages[*]").inner < 0.2


def test_a_history_that_every_request_repeats_is_not_new(tmp_path: Path) -> None:
    runs = [{"id": run["run_id"], "calls": [{"sent": run["messages"][:k]} for k in range(1, 9)]} for run in chats()]
    ranked = found(tmp_path, {"a.json": runs})
    assert all(one.novelty < 0.6 for one in ranked if one.event_places[0].endswith("sent[*]"))
