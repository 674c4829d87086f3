from __future__ import annotations

from pathlib import Path

import pytest

from prefixguard.stepview import list_adapters, load_adapter, read_runs, side_by_side

GOLDEN = Path(__file__).parents[2] / "stepview_adapters" / "golden"


@pytest.mark.parametrize("name", list_adapters())
def test_records_are_those_of_the_whole_run_each_beside_its_events(name: str) -> None:
    runs = GOLDEN / name / "runs"
    shown = list(side_by_side(runs, name))
    assert [one.run for one in shown] == list(read_runs(runs, load_adapter(name)))
    for one in shown:
        assert tuple(record for exchange in one.exchanges for record in exchange.records) == one.run.records
        assert all(exchange.events for exchange in one.exchanges[:-1])
