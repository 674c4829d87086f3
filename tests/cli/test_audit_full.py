"""`prefixguard audit` prints one block of its table; `--full` the whole of it. JSON has everything either way."""

from __future__ import annotations

import json
from pathlib import Path

from prefixguard.simulation import generate

MONITOR = Path(__file__).parents[2] / "monitors" / "lab"


def test_one_block_and_the_whole_table(cli, tmp_path: Path) -> None:
    runs = tmp_path / "runs.jsonl"
    runs.write_text("".join(json.dumps(run) + "\n" for run in generate(9, 31, trials=1)))
    said = [cli("audit", runs, "--monitor", MONITOR, "--json", *more) for more in ((), ("--full",))]
    assert [one.code for one in said] == [0, 0]
    short, full = (one.err for one in said)
    for row in ("monitor", "best step elsewhere", "most active agent", "alarm at once"):
        assert f"\n{row} " in short and f"\n{row} " in full
    for title in ("median step elsewhere", "minus each other", "When, and at what cost"):
        assert title not in short and title in full
    assert "--full" in short and "--full" not in full
    assert json.loads(said[0].out) == json.loads(said[1].out)
    assert len(json.loads(said[0].out)["table"]["systems"]) > 15
