"""What is kept comes back; what is damaged, another's or an ERROR does not."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.errors import ConfigError
from prefixguard.escalate.verdict import AuditResult, Verdict, VerdictCache, VerdictOutcome, as_cached, question_key
from prefixguard.stepview import StepRecord
from prefixguard.store import Store

ALARM = Verdict(VerdictOutcome.ALARM, 3, "Planner", "wrong file", "no such file", True, 0.75, notes=("fenced",))
ANSWER = AuditResult(ALARM, "key", False, 900, 40, False, 0.01, 1.5, 2, "<answer>…</answer>", "stop")
STEP = StepRecord(1, "agent", "Planner", "ls", "{}", "Look!", "I look.", "a b", "ok")


def only_file(cache: VerdictCache) -> Path:
    (file,) = (path for path in cache.path.rglob("*") if path.is_file())
    return file


@pytest.mark.parametrize(
    "verdict",
    [ALARM, Verdict(VerdictOutcome.SAFE, reason="\ud800 all well \x00"), Verdict(VerdictOutcome.ABSTAIN, confidence=0)],
)
def test_a_verdict_comes_back_and_costs_nothing(tmp_path: Path, verdict: Verdict) -> None:
    cache = VerdictCache(tmp_path / "new" / "folder")
    answer = replace(ANSWER, verdict=verdict)
    assert cache.get("key") is None
    cache.put("key", answer)
    assert cache.get("key") == as_cached(answer)
    assert (as_cached(answer).tokens_in, as_cached(answer).cost, as_cached(answer).reply) == (0, 0.0, answer.reply)
    assert cache.write_failed == 0


def test_a_key_of_any_form_stays_in_the_folder(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path / "cache")
    for key in ("../../out", "/etc/passwd", "a" * 5000, "", "\x00", "\ud800"):
        cache.put(key, ANSWER)
        found = cache.get(key)
        assert found is not None and found.key == key
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_an_error_is_never_kept(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path)
    cache.put("key", replace(ANSWER, verdict=Verdict(VerdictOutcome.ERROR, fault="timeout", detail="no answer")))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "prefixguard/judged/v9"},
        {"key": "another"},
        {"outcome": "error"},
        {"outcome": "maybe"},
        {"step": None},
        {"step": True},
        {"step": 0},
        {"step": "3"},
        {"outcome": "safe"},
        {"confidence": 1.5},
        {"confidence": True},
        {"notes": "fenced"},
        {"notes": [1]},
        {"reply": None},
        {"seconds": "1"},
        {"seconds": 10**400},
        {"quote_found": 1},
    ],
)
def test_a_file_that_is_not_ours_is_passed_over_and_replaced(tmp_path: Path, change: dict[str, Any]) -> None:
    cache = VerdictCache(tmp_path)
    as_0_3_kept_it(tmp_path, change)
    assert cache.get("key") is None
    cache.put("key", ANSWER)
    assert cache.get("key") is not None


def as_0_3_kept_it(folder: Path, change: dict[str, Any]) -> None:
    name = hashlib.sha256(b"key").hexdigest()
    file = folder / name[:2] / name[2:4] / f"{name[4:]}.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"schema": "prefixguard/judged/v1", **ANSWER.as_json()} | change))


def test_what_release_0_3_kept_is_read(tmp_path: Path) -> None:
    as_0_3_kept_it(tmp_path, {})
    assert VerdictCache(tmp_path).get("key") == as_cached(ANSWER)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=40), st.integers(0, 400))
def test_damaged_bytes_are_no_verdict_and_no_error(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int
) -> None:
    cache = VerdictCache(tmp_path_factory.mktemp("cache"))
    cache.put("key", ANSWER)
    file = only_file(cache)
    whole = file.read_bytes()
    for data in (noise, whole[:at], b"[" * 100_000, whole + b"}"):
        file.write_bytes(data)
        assert cache.get("key") is None or data == whole


def test_no_part_files_stay_and_no_secret_fields_are_written(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path)
    for _ in range(3):
        cache.put("key", ANSWER)
    assert only_file(cache).suffix == ".kept"
    ((asked, kept),) = Store(tmp_path).each("verdict")
    assert asked == {"key": "key"} and kept.facts.keys() == {"schema", *ANSWER.as_json()}


def test_a_folder_that_cannot_be_written_costs_the_cache_only(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path / "cache")
    (tmp_path / "cache").rmdir()
    (tmp_path / "cache").write_text("a file is in the way")
    cache.put("key", ANSWER)
    assert (cache.write_failed, cache.get("key")) == (1, None)
    with pytest.raises(ConfigError, match="Name another folder"):
        VerdictCache(tmp_path / "cache")


def test_many_writers_leave_one_whole_file(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path)
    seen: list[AuditResult | None] = []

    def work() -> None:
        for _ in range(50):
            cache.put("key", ANSWER)
            seen.append(cache.get("key"))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [as_cached(ANSWER)] * 300
    assert only_file(cache).suffix == ".kept"


def test_every_part_of_a_question_is_in_its_key() -> None:
    base = question_key([STEP], "m", "v")
    changes: list[dict[str, Any]] = [
        {"index": 2},
        {"actor": "user"},
        {"agent": "Coder"},
        {"tool": "cat"},
        {"arguments": "[]"},
        {"observation": ""},
        {"action": ""},
        {"result": ""},
        {"status": "error"},
    ]
    others = [
        question_key([], "m", "v"),
        question_key([STEP, STEP], "m", "v"),
        question_key([STEP], "m2", "v"),
        question_key([STEP], "m", "v2"),
        question_key([STEP], "mv", ""),
        *(question_key([replace(STEP, **change)], "m", "v") for change in changes),
    ]
    assert len({base, *others}) == 1 + len(others)
    assert question_key([replace(STEP, event=7)], "m", "v") == base
