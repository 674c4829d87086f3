"""The sample pack: bounded, deterministic, complete in keys, and open about what it cuts."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prefixguard.errors import ConfigError
from prefixguard.induce.model import Pack, sample_pack
from prefixguard.induce.samples import open_samples

Make = Callable[[int], dict[str, Any]]


def write(folder: Path, name: str, value: Any) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")


def packed(folder: Path, tokens: int = 12_000) -> Pack:
    return sample_pack(open_samples(folder), tokens)


def test_a_small_set_is_shown_whole(folder: Path) -> None:
    pack = packed(folder)
    for key in ("run", "job", "log", "who", "uses", "does", "with", "broken", "verdict", "points"):
        assert f".{key}" in pack.text
    assert "runs/3.json" in pack.text and "'machine'" in pack.text
    assert pack.tokens == -(-len(pack.text) // 4) <= 12_000


@pytest.mark.parametrize("tokens", [500, 800, 1500, 4000, 12_000])
def test_the_budget_holds(tmp_path: Path, tokens: int, run_of: Make) -> None:
    for i in range(12):
        run = run_of(i)
        run["log"] = run["log"] * 10
        run["log"][3]["text"] = "long " * 20_000
        write(tmp_path, f"runs/{i}.json", run)
        write(tmp_path, f"reports/{i}/report.json", {"resolved": bool(i % 2), **{f"k{j}": j for j in range(50)}})
    write(tmp_path, "notes.log", "step 1: look\nstep 2: act\n" * 5000)
    pack = packed(tmp_path, tokens)
    assert pack.tokens <= tokens and len(pack.text) <= 4 * tokens


def test_the_same_samples_give_the_same_pack(tmp_path: Path, folder: Path) -> None:
    write(folder, "z.log", "== a ==\nstep 1\n== b ==\nstep 2\n" * 50)
    assert packed(folder) == packed(folder)


def test_long_values_are_cut_with_a_mark_that_says_how_much(folder: Path, run_of: Make) -> None:
    run = run_of(0)
    run["log"][0]["text"] = "begin " + "x" * 50_000 + " the very end"
    write(folder / "alone", "0.json", run)
    text = packed(folder / "alone").text
    assert "of 50,019 characters cut" in text and "begin " in text and "the very end" in text


def test_lists_show_the_first_the_last_every_kind_errors_and_parallel_calls(tmp_path: Path) -> None:
    plain = [{"role": "a", "text": f"step {i}", "uses": [{"n": i}]} for i in range(200)]
    plain[101] = {"role": "rare", "text": "once", "uses": []}
    plain[120]["uses"] = [{"n": 1}, {"n": 2}, {"n": 3}]
    plain[150]["text"] = "Error: no such thing"
    plain[199] = {"role": "a", "text": "finished", "uses": []}
    write(tmp_path, "one.json", {"events": plain})
    text = packed(tmp_path, 2500).text
    for shown in (
        "step 0",
        '"rare"',
        '[{"n": 1}, {"n": 2}, {"n": 3}]',
        "Error: no such thing",
        "finished",
        "left out>",
    ):
        assert shown in text, shown


def test_a_kind_that_is_in_no_excerpt_is_shown_apart(tmp_path: Path) -> None:
    for i in range(30):
        events = [{"role": role, "text": "t" * 300} for role in ("x", "y") * 30]
        if i == 17:
            events[40] = {"role": "odd", "text": "only here", "extra": {"deep": True}}
        write(tmp_path, f"{i:02}.json", {"events": events})
    assert "only here" in packed(tmp_path, 3000).text


def test_an_object_of_runs_is_a_table(tmp_path: Path) -> None:
    write(tmp_path, "all.json", {str(i): {"task": i, "acts": ["a", "b", "c"], "score": 1.0} for i in range(300)})
    text = packed(tmp_path, 2000).text
    assert ".*  object" in text and ".acts  array" in text and "more keys like these" in text


def test_text_logs_show_how_their_lines_begin(tmp_path: Path) -> None:
    write(tmp_path, "a.log", "".join(f"Question: q{i}\nThought 1: t\nAction 1: Search[x]\n" for i in range(400)))
    text = packed(tmp_path, 1500).text
    assert "400 x 'Question:'" in text and "Thought 0:" in text and "characters cut; goes on in line" in text


def test_companions_zip_members_and_lines_are_shown(tmp_path: Path) -> None:
    write(tmp_path, "runs/a.jsonl", "".join(json.dumps({"trace": i % 3, "kind": "k"}) + "\n" for i in range(60)))
    write(tmp_path, "summary.json", {"resolved": ["a", "b"]})
    with zipfile.ZipFile(tmp_path / "log.zip", "w") as archive:
        archive.writestr("samples/1.json", json.dumps({"scores": {"accuracy": 1}}))
    text = packed(tmp_path).text
    for shown in ("runs/a.jsonl", ".trace", "summary.json", ".resolved", "log.zip", "accuracy"):
        assert shown in text, shown


def test_secrets_are_masked_in_packs(folder: Path, run_of: Make) -> None:
    secret = "ghp_" + "a1B2" * 9
    run = run_of(0)
    run["log"][0]["text"] = "z" * 699 + " " + secret + " " + "z" * 5000
    run["log"][1]["password"] = "letmein"
    write(folder, "runs/0.json", run)
    write(folder, "a.log", f"token {secret}\n" * 9)
    for tokens in (700, 1000, 2000, 4000, 12_000):
        text = packed(folder, tokens).text
        assert "letmein" not in text and secret[:16] not in text and secret[-16:] not in text


@pytest.mark.parametrize("tokens", [0, -1, 499, 10**9])
def test_budgets_out_of_range_are_refused(folder: Path, tokens: int) -> None:
    with pytest.raises(ConfigError, match="sample pack"):
        packed(folder, tokens)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8), inner, max_size=6),
    max_leaves=40,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(JSON.filter(lambda value: isinstance(value, dict | list)), min_size=1, max_size=3))
def test_any_json_is_packed_within_its_budget(tmp_path: Path, values: list[Any]) -> None:
    for old in tmp_path.iterdir():
        old.unlink()
    for i, value in enumerate(values):
        write(tmp_path, f"{i}.json", json.dumps(value))
    assert packed(tmp_path, 500).tokens <= 500


def test_runs_by_number_are_a_table_however_few(tmp_path: Path) -> None:
    for i in range(3):
        write(tmp_path, f"{i}.json", {str(7 * i): {"ask": f"q{i}", "turns": ["a", "b"]}})
    text = packed(tmp_path).text
    assert "\n .*  object" in text and '["7"]' not in text


def test_calls_spelled_as_python_are_told(tmp_path: Path) -> None:
    for i in range(4):
        write(tmp_path, f"{i}.json", {"args": f"{{'n': {i}}}" if i == 0 else f'{{"n": {i}}}'})
    assert "text of JSON (25% spelled as Python)" in packed(tmp_path).text


def test_lines_of_a_log_that_come_again_are_told(tmp_path: Path) -> None:
    runs = [
        f"Question: what is {i}?\nThought 1: look for {i}\n"
        + "word " * 300
        + f"\nSeen 2: Answer is {'RIGHT' if i % 3 else 'WRONG'}\n"
        for i in range(40)
    ]
    write(tmp_path, "all.log", "".join(runs))
    text = packed(tmp_path, 1500).text
    assert "26 x 'Seen 0: Answer is RIGHT'" in text and "14 x 'Seen 0: Answer is WRONG'" in text


def test_noise_with_a_time_before_it_is_told_of_all_files(tmp_path: Path) -> None:
    for i in range(4):
        write(
            tmp_path, f"{i}.log", "\n".join(f"step {k}: look" for k in range(30)) + f"\n04:1{i}:59 - Proxy:ERROR: no\n"
        )
    text = packed(tmp_path, 1500).text
    assert "4 x '0:0:0 - Proxy:ERROR:', such as: '04:10:59 - Proxy:ERROR: no'" in text


def test_messages_are_shown_where_their_blocks_hold_the_text(tmp_path: Path) -> None:
    blocks = [[{"type": "text", "text": f"block {i} {k}" * 5} for k in range(3)] for i in range(12)]
    write(tmp_path, "one.json", {"messages": [{"content": content} for content in blocks]})
    text = packed(tmp_path).text
    assert all(f"block {i} 0" in text for i in range(12))


def test_both_layouts_of_a_set_are_shown(tmp_path: Path) -> None:
    for i in range(8):
        log = f"Thought: look {i}\nAction: find" if i % 2 else f"<think>look {i}</think><call>find</call>"
        kind = {"style": "tags"} if i % 2 == 0 else {"style": "lines"}
        write(tmp_path, f"{i}.json", {"log": log, **kind})
    text = packed(tmp_path).text
    assert "<call>find</call>" in text and "Action: find" in text


def test_what_stands_twice_is_shown_once(tmp_path: Path) -> None:
    events = [{"role": role, "content": f"said {i} by {role}", "meta": {"n": i}} for i in range(9) for role in "ab"]
    write(tmp_path, "one.json", {"messages": events, "copy": {"messages": events}})
    text = packed(tmp_path).text
    assert text.count("said 1 by a") == 1 and "<shown already, at $.messages>" in text
    assert text.count(".role") == 1 and "inside as $.messages" in text


def test_endings_and_errors_are_shown(tmp_path: Path) -> None:
    for name in "ab":
        events = [{"role": "tool", "content": f"fine {i}", "at": i} for i in range(300)]
        events[200]["content"] = "Traceback: no such table"
        events[299]["content"] = "the end"
        write(tmp_path, f"{name}.json", {"events": events, "notes": "n" * 3000})
    text = packed(tmp_path, 1000).text
    assert "Traceback: no such table" in text and "the end" in text and "fine 0" in text


def test_companions_get_a_tenth_at_most(tmp_path: Path, run_of: Make) -> None:
    for i in range(9):
        run = run_of(i)
        run["log"] *= 20
        write(tmp_path, f"runs/{i}.json", run)
        write(tmp_path, f"out/{i}/test_output.txt", f"collected {i}\n" + f"PASSED test {i}\n" * 9000)
        write(tmp_path, f"out/{i}/report.json", {"resolved": True, **{f"k{j}": "x" * 300 for j in range(90)}})
    for tokens in (2000, 12_000):
        pack = packed(tmp_path, tokens)
        parts = sorted(pack.text.split("\n\n# "), key=lambda part: ("like out/" in part, part))
        beside = [part for part in parts if part.startswith("9 files like out/")]
        assert len(beside) == 2 and sum(map(len, beside)) <= 0.1 * 4 * tokens
        assert len(parts[1]) > 0.7 * len(pack.text) and parts[1].startswith("9 files like runs/")
