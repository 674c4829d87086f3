"""Golden samples: small, still read as the runs they are from, and without what looks like a secret."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from prefixguard.induce.golden import golden_samples, record_lines, write_files
from prefixguard.stepview import Adapter, list_adapters, load_adapter, read_runs

SHIPPED = Path(__file__).parents[2] / "stepview_adapters" / "golden"


def spec(**parts: Any) -> dict[str, Any]:
    return {
        "schema": "prefixguard/adapter/v1",
        "name": "mine",
        "version": "1.0.0",
        "container": {"format": "json", "runs": "$.all[*]"},
        "run": {"id": "$.id", "outcome": {"of": "$.won", "success": {"eq": True}, "failure": {"eq": False}}},
        "events": "$.steps[*]",
        "rules": [
            {"emit": "step", "tool": "@.did", "arguments": {"json": "@.with"}, "action": {"text": "@.text"}},
        ],
        **parts,
    }


def run(i: int, text: str = "fine", steps: int = 3) -> dict[str, Any]:
    step = {"did": "go", "with": '{"to": "here"}', "text": text}
    return {"id": f"r{i}", "won": i % 2 == 0, "steps": [step] * steps}


def again(golden: Any, adapter: Adapter, folder: Path) -> bytes:
    write_files(folder, golden.files)
    return b"".join(
        json.dumps(line, ensure_ascii=False).encode() + b"\n"
        for one in read_runs(folder, adapter, strict=True)
        for line in record_lines(one)
    )


@pytest.mark.parametrize("name", list_adapters())
def test_shipped_formats_can_be_cut_and_give_what_is_expected(name: str, tmp_path: Path) -> None:
    adapter = load_adapter(name)
    golden = golden_samples(SHIPPED / name / "runs", adapter)
    assert golden.files and golden.runs >= 1, golden.notes
    assert again(golden, adapter, tmp_path) == golden.expected
    assert golden_samples(SHIPPED / name / "runs", adapter) == golden, "the same samples give the same bytes"


def test_few_runs_of_both_outcomes_are_kept_and_long_texts_cut(tmp_path: Path) -> None:
    adapter = Adapter(spec())
    runs = [run(i, "word " * (2000 if i < 5 else 400)) for i in range(40)]
    (tmp_path / "a.json").write_text(json.dumps({"all": runs, "more": {"all": "x" * 90_000}}))
    (tmp_path / "other.json").write_text(json.dumps({"all": [run(99, "word " * 3000)]}))
    golden = golden_samples(tmp_path, adapter)
    assert list(golden.files) == ["a.json"]
    kept = json.loads(golden.files["a.json"])
    assert len(kept["all"]) == golden.runs == 4
    assert {one["won"] for one in kept["all"]} == {True, False}
    assert sum(map(len, golden.files.values())) < 8000
    assert again(golden, adapter, tmp_path / "again") == golden.expected


def test_a_cut_that_would_change_the_runs_is_undone(tmp_path: Path) -> None:
    long = {"did": "go", "with": json.dumps({"to": [1] * 300}), "text": "t"}
    (tmp_path / "a.json").write_text(json.dumps({"all": [{"id": "r", "won": True, "steps": [long]}]}))
    cut = spec(status=[{"when": {"action": {"re": "(?s)^.{900}"}}, "is": "error"}, {"is": "ok"}])
    golden = golden_samples(tmp_path, Adapter(spec()))
    assert "1,1" in golden.expected.decode() and "[...]" not in golden.expected.decode(), "no longer JSON"
    long["text"] = "y" * 1900
    (tmp_path / "a.json").write_text(json.dumps({"all": [{"id": "r", "won": True, "steps": [long]}]}))
    assert '"status": "error"' in golden_samples(tmp_path, Adapter(cut)).expected.decode()


def test_likely_secrets_are_masked_everywhere(tmp_path: Path) -> None:
    secret = "sk-abcdefghijklmnopqrstuvwxyz123456"
    (tmp_path / "a.json").write_text(json.dumps({"all": [run(1, f"key {secret}"), run(2, "mail me@example.org")]}))
    golden = golden_samples(tmp_path, Adapter(spec()))
    held = b"".join(golden.files.values()) + golden.expected
    assert secret.encode() not in held and b"me@example.org" not in held
    assert golden.masked == 2


@pytest.mark.parametrize("form", ["jsonl", "grouped", "zip", "object"])
def test_other_containers_are_cut_too(form: str, tmp_path: Path) -> None:
    runs = [run(i, "t" * (50 + i)) for i in range(12)]
    container: dict[str, Any] = {"format": "jsonl"}
    parts: dict[str, Any] = {}
    name = "a.jsonl"
    data = "".join(json.dumps(one) + "\n" for one in runs).encode()
    if form == "grouped":
        container = {"format": "jsonl", "group_by": "@.id"}
        parts = {"run": {"outcome": {"of": "$.events[-1].won", "success": {"eq": True}, "failure": {"eq": False}}}}
        parts["events"] = "$.events[*]"
        rows = [{"id": one["id"], "won": one["won"], **step} for one in runs for step in one["steps"]]
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    elif form == "zip":
        container, name = {"format": "zip"}, "a.zip"
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for one in runs:
                archive.writestr(f"{one['id']}.json", json.dumps(one))
        data = (tmp_path / name).read_bytes()
    elif form == "object":
        container, name = {"format": "json", "runs": "$.*"}, "a.json"
        data = json.dumps({one["id"]: one for one in runs}).encode()
    (tmp_path / name).write_bytes(data)
    adapter = Adapter(spec(container=container, **parts))
    golden = golden_samples(tmp_path, adapter)
    assert golden.runs == 4 and len(golden.files[name]) < len(data)
    assert again(golden, adapter, tmp_path / "again") == golden.expected


def test_what_stays_too_large_is_left_out_and_said(tmp_path: Path) -> None:
    """Arguments that are no JSON any more where they are cut, more of them than may be kept."""
    steps = [{"did": "go", "with": json.dumps({"k": [i] * 300}), "text": "é"} for i in range(1_000, 1_900)]
    huge = {"id": "r", "won": True, "steps": steps}
    (tmp_path / "a.json").write_text(json.dumps({"all": [huge]}))
    golden = golden_samples(tmp_path, Adapter(spec()))
    assert not golden.files and "the smallest runs still take" in golden.notes[0]


def test_a_file_of_lines_with_one_line_stays_one(tmp_path: Path) -> None:
    adapter = Adapter(spec(container={"format": "jsonl"}))
    (tmp_path / "a.jsonl").write_text(json.dumps(run(1)) + "\n")
    golden = golden_samples(tmp_path, adapter)
    assert golden.runs == 1 and golden.files["a.jsonl"].count(b"\n") == 1
    assert again(golden, adapter, tmp_path / "again") == golden.expected
