"""A monitor reads through the adapter it was trained through, and through no other."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import tiny_monitor

import prefixguard
from prefixguard.errors import OtherAdapterError
from prefixguard.runtime import Monitor, load, watch
from prefixguard.stepview import Adapter


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Runs; the monitor's own adapter, spelled otherwise; one that differs in a version only."""
    (tmp_path / "runs.json").write_text(json.dumps([{"run_id": "a", "messages": tiny_monitor.calm_run(3)}]))
    (tmp_path / "same.json").write_text(json.dumps(dict(reversed(tiny_monitor.CHAT.items())), indent=3))
    (tmp_path / "other.json").write_text(json.dumps({**tiny_monitor.CHAT, "version": "1.0.1"}))
    return tmp_path


def test_the_same_adapter_by_any_spelling_is_its_own(bundle_path: Path, files: Path) -> None:
    load(bundle_path, adapter=files / "same.json")
    (one,) = prefixguard.score(bundle_path, files / "runs.json", adapter=files / "same.json")
    assert len(one.readings) == 3


def test_another_is_refused_with_both_hashes_and_the_ways_on(bundle_path: Path, files: Path, monitor: Monitor) -> None:
    own, other = monitor.bundle.adapter, Adapter({**tiny_monitor.CHAT, "version": "1.0.1"})
    path = str(files / "other.json")
    for attempt in (
        lambda: load(bundle_path, adapter=path),
        lambda: list(prefixguard.score(bundle_path, files / "runs.json", adapter=path)),
        lambda: prefixguard.evaluate(monitor, files / "runs.json", adapter=path),
        lambda: list(watch(monitor, io.BytesIO(b""), adapter=path)),
        lambda: monitor.refuse_other("raw:" + str(files / "same.json")),
    ):
        with pytest.raises(OtherAdapterError) as caught:
            attempt()
        said = str(caught.value)
        assert f"trained through adapter tiny_chat 1.0.0 (sha256 {own.sha256[:12]})" in said
        for way in ("Name no adapter", "the same hash", "prefixguard train RUNS --adapter"):
            assert way in said
    with pytest.raises(OtherAdapterError, match=f"sha256 {other.sha256[:12]}"):
        monitor.refuse_other(other)


def test_no_adapter_is_no_question(monitor: Monitor) -> None:
    monitor.refuse_other(None)
