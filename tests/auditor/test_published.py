"""Published figures: complete, in range, and never without a caveat."""

from __future__ import annotations

import json
import math

import pytest

from prefixguard.auditor import published_rows
from prefixguard.errors import ConfigError


def test_every_row_has_a_source_and_a_caveat_and_shares_in_range() -> None:
    rows = published_rows()
    for row in rows:
        assert row.source
        assert row.caveats
        shares = [row.agent, row.step, row.exact_f1, row.false_alarm_rate]
        known = [share for share in shares if not math.isnan(share)]
        assert known
        assert all(0 < share < 1 for share in known)
        json.dumps(row.as_json(), allow_nan=False)
    assert len({(row.system, row.test, row.caveats) for row in rows}) == len(rows)


def test_rows_are_chosen_by_test_set() -> None:
    hand = published_rows("whoandwhen/hand-crafted")
    best = {row.step for row in hand if row.system == "Claude-Sonnet-4"}
    assert best == {0.1724, 0.1897}
    assert {row.test for row in published_rows("aftraj")} == {"aftraj"}
    with pytest.raises(ConfigError, match='no published figures of "mast"'):
        published_rows("mast")


def test_the_row_that_counts_only_alarmed_runs_says_so() -> None:
    (row,) = [row for row in published_rows("whoandwhen/short") if row.system == "AgentForesight-7B"]
    assert any("only the runs in which the system raised an alarm" in caveat for caveat in row.caveats)
