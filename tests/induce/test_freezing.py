"""What freezing writes, where, and what it refuses to overwrite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prefixguard.errors import ConfigError, OutputError
from prefixguard.induce.freezing import check_name, freeze, name_for, pretty
from prefixguard.induce.golden import Golden
from prefixguard.stepview import Adapter, list_adapters, load_adapter

SPEC: dict[str, Any] = {
    "rules": [{"emit": "say", "action": {"text": "@.text"}}],
    "events": "$.steps[*]",
    "container": {"runs": "$[*]", "format": "json"},
    "version": "1.0.0",
    "schema": "prefixguard/adapter/v1",
    "name": "mine",
}
GOLDEN = Golden({"a.json": b"[]", "sub/b.json": b"[1]"}, b'{"step": 1}\n', 1)


def written(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_everything_lies_where_it_should_and_opens(tmp_path: Path) -> None:
    adapter = Adapter(SPEC)
    frozen = freeze(adapter, {"schema": "r"}, "# page\n", GOLDEN, tmp_path / "out", transcript='{"said": 1}\n')
    assert list(written(tmp_path / "out")) == [
        "golden/mine/expected.jsonl",
        "golden/mine/runs/a.json",
        "golden/mine/runs/sub/b.json",
        "mine.json",
        "mine.report.json",
        "mine.report.md",
        "mine.transcript.jsonl",
    ]
    opened = load_adapter(frozen.adapter)
    assert opened.sha256 == frozen.sha256 == adapter.sha256
    assert all(path.exists() for path in frozen.all) and len(frozen.all) == 5


def test_the_same_adapter_is_the_same_bytes(tmp_path: Path) -> None:
    freeze(Adapter(SPEC), {"a": 1}, "x", GOLDEN, tmp_path / "one")
    shuffled = json.loads(json.dumps(dict(sorted(SPEC.items()))))
    freeze(Adapter(shuffled), {"a": 1}, "x", GOLDEN, tmp_path / "two")
    assert written(tmp_path / "one") == written(tmp_path / "two")


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    freeze(Adapter(SPEC), {}, "old", GOLDEN, tmp_path, transcript="x\n")
    before = written(tmp_path)
    changed = Adapter({**SPEC, "version": "1.0.1"})
    with pytest.raises(OutputError, match=r"is there already\. A frozen adapter is not changed"):
        freeze(changed, {}, "new", GOLDEN, tmp_path)
    assert written(tmp_path) == before
    freeze(changed, {}, "new", Golden({"c.json": b"1"}, b""), tmp_path, overwrite=True)
    after = written(tmp_path)
    assert after["mine.report.md"] == b"new" and "golden/mine/runs/c.json" in after
    assert "golden/mine/runs/a.json" not in after and "mine.transcript.jsonl" not in after, "nothing of the old is left"
    freeze(changed, {}, "new", Golden({}, b""), tmp_path, overwrite=True)
    assert not (tmp_path / "golden" / "mine").exists()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="is a file; adapters go into a folder"):
        freeze(Adapter(SPEC), {}, "", GOLDEN, tmp_path / "file")


def test_when_the_disk_is_full_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> None:
        if path.name == "mine.json":
            raise OSError(28, "No space left on device")
        path.write_bytes(data)

    monkeypatch.setattr("prefixguard.induce.freezing._write", full)
    with pytest.raises(OutputError, match=r"No space left on device.*Make room"):
        freeze(Adapter(SPEC), {}, "", GOLDEN, tmp_path)
    assert written(tmp_path) == {}


@pytest.mark.parametrize("name", ["", "A", "../x", "a/b", "a.b", "raw", "nul", "1a", "a" * 61, "ä", "a\n"])
def test_names_that_are_none(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="an adapter cannot be called"):
        check_name(name)
    if name:
        with pytest.raises(ConfigError):
            freeze(Adapter({**SPEC, "name": name}), {}, "", GOLDEN, tmp_path / "in" / "out")
        assert written(tmp_path) == {}


def test_names_from_samples() -> None:
    assert [name_for(one) for one in ("x/Run Logs", "../..", "/", "raw/", "7up.json", "logs/*.jsonl")] == [
        "run_logs", "induced", "induced", "induced", "induced", "logs",
    ]  # fmt: skip


def test_pretty_is_json_of_the_same_spec_and_narrow() -> None:
    for name in list_adapters():
        spec = json.loads(load_adapter(name).to_bytes())
        text = pretty(spec)
        assert json.loads(text) == spec
        assert Adapter.from_bytes(text.encode(), name).sha256 == load_adapter(name).sha256
        long = [line.strip() for line in text.splitlines() if len(line) > 130]
        assert all(not line.startswith(("{", "[")) for line in long), "an object on a line that is too long"
        assert text.splitlines()[1].lstrip().startswith('"schema"')
