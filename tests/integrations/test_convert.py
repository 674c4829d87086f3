"""Old traces as events: the same steps, tasks and outcomes, through any adapter."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from prefixguard import parse
from prefixguard.errors import ConfigError, OutputError
from prefixguard.integrations.converting import convert

ROOT = Path(__file__).parent.parent.parent / "stepview_adapters" / "golden"
NAMES = sorted(path.name for path in ROOT.iterdir() if (path / "runs").is_dir())


def same_steps(source: Path, adapter: str, folder: Path, most: int | None = None) -> None:
    done = convert(source, adapter, folder)
    read = {run.run_id: run for run in parse(folder, "events")}
    assert len(read) == done.runs
    numbers: dict[str, int] = {}
    for old in islice(parse(source, adapter), most):
        n = numbers[old.run_id] = numbers.get(old.run_id, 0) + 1
        new = read[f"{old.run_id}{f'-{n}' * (n > 1)}/main"]
        assert (new.task_id, new.outcome) == (old.task_id, old.outcome)
        fields = ("actor", "agent", "tool", "arguments", "observation", "action", "result", "status")
        assert [[getattr(s, f) for f in fields] for s in new.records] == [
            [getattr(s, f) for f in fields] for s in old.records
        ]


@pytest.mark.parametrize("adapter", NAMES)
def test_steps_of_every_shipped_adapter(adapter: str, tmp_path: Path) -> None:
    same_steps(ROOT / adapter / "runs", adapter, tmp_path / "out")


def test_what_is_refused(lab_file: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be converted to 'otlp': say events"):
        convert(lab_file, "openai_chat", tmp_path / "out", to="otlp")
    (tmp_path / "x").write_text("")
    with pytest.raises(OutputError, match=r"not empty\. Name a new folder"):
        convert(lab_file, "openai_chat", tmp_path)
