"""Where a name says nothing, the lines say whether a document is one JSON value or one a line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prefixguard.stepview import load_adapter, read_runs


def _runs(n: int) -> list[dict[str, Any]]:
    return [
        {"run_id": f"r{i}", "outcome": "success", "messages": [{"role": "assistant", "content": "x" * 20_000}]}
        for i in range(n)
    ]


FORMS = {
    "a run a line": "\n".join(json.dumps(r) for r in _runs(3)) + "\n",
    "blank lines between": "\n\n".join(json.dumps(r) for r in _runs(3)),
    "an array on one line": json.dumps(_runs(3)),
    "an array over many lines": json.dumps(_runs(3), indent=1),
    "under a key": json.dumps({"runs": _runs(3)}, indent=1) + "\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_standard_input_and_files_of_any_name(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = load_adapter("openai_chat")
    path = tmp_path / "runs.log"
    path.write_text(FORMS[form])
    assert [r.run_id for r in read_runs(path, adapter)] == ["r0", "r1", "r2"]
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(FORMS[form].encode())))
    assert [r.run_id for r in read_runs("-", adapter)] == ["r0", "r1", "r2"]


def test_one_run_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(json.dumps(_runs(1)[0]).encode() + b"\n")))
    assert [r.run_id for r in read_runs("-", load_adapter("openai_chat"))] == ["r0"]
