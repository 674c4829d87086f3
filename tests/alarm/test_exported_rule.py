"""The alarm rule stands in `AlarmState`; the interpreters that an export carries give the same levels."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import prefixguard.automata.json_table as exported
from prefixguard.alarm import AlarmPolicy, AlarmState, Thresholds
from prefixguard.automata.json_table.run import walk

#: A table of eleven states, one for each risk from 0 to 1 in tenths; symbol k leads to state k.
RISKS = [k / 10 for k in range(11)]
#: A coarse grid, so that risks and thresholds tie often.
grid = st.sampled_from(RISKS)
policies = st.builds(AlarmPolicy, consecutive=st.integers(1, 4), release=st.none() | grid, cooldown=st.integers(0, 4))
thresholds = st.builds(lambda alarm, watch: Thresholds(alarm, watch, 9, 0, 9, None), st.none() | grid, grid)
DRIVER = """
import { walk } from %s;
import { readFileSync } from "node:fs";
for (const line of readFileSync(0, "utf8").trim().split("\\n")) {
  const { table, run } = JSON.parse(line);
  console.log(JSON.stringify(walk(table, run, null).map((step) => step.level)));
}
"""


def table(mine: Thresholds, policy: AlarmPolicy) -> dict[str, Any]:
    release = policy.release
    if release is not None and mine.alarm is not None:
        release = min(release, mine.alarm)
    return {
        "tools": None, "start": 0, "clock": [], "fallback": [-1] * 11, "transitions": [list(range(11))] * 11,
        "risks": [[[0.0, risk]] for risk in RISKS], "alarm": mine.alarm, "watch": mine.watched_from,
        "release": release, "consecutive": policy.consecutive, "cooldown": policy.cooldown,
    }  # fmt: skip


def by_the_rule(symbols: list[int], mine: Thresholds, policy: AlarmPolicy) -> list[str]:
    state = AlarmState(policy, mine)
    return [state.step(RISKS[k]).value for k in symbols]


@given(st.lists(st.integers(0, 10), max_size=25), thresholds, policies)
def test_the_python_interpreter_keeps_the_rule(symbols: list[int], mine: Thresholds, policy: AlarmPolicy) -> None:
    said = [step["level"] for step in walk(table(mine, policy), [float(k) for k in symbols])]
    assert said == by_the_rule(symbols, mine, policy)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_javascript_interpreter_keeps_the_rule(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)

    def chance(share: float) -> float | None:
        return None if rng.random() < share else RISKS[int(rng.integers(11))]

    cases = []
    for _ in range(500):
        mine = Thresholds(chance(0.1), chance(0.0) or 0.0, 9, 0, 9, None)
        policy = AlarmPolicy(consecutive=int(rng.integers(1, 5)), release=chance(0.4), cooldown=int(rng.integers(0, 5)))
        cases.append((rng.integers(0, 11, 30).tolist(), mine, policy))
    script = tmp_path / "levels.mjs"
    script.write_text(DRIVER % json.dumps((Path(exported.__file__).parent / "run.mjs").as_uri()))
    lines = "\n".join(json.dumps({"table": table(mine, policy), "run": run}) for run, mine, policy in cases)
    done = subprocess.run(["node", str(script)], input=lines.encode(), capture_output=True, check=True)
    expected = [by_the_rule(*case) for case in cases]
    assert [json.loads(line) for line in done.stdout.splitlines()] == expected
    assert sum("ALARM" in levels for levels in expected) > 100
