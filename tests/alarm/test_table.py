import json

import numpy as np
import pytest

from prefixguard.alarm import AlarmPolicy, alarm_table, table_from_json, table_to_json
from prefixguard.errors import BundleError


def test_table_has_a_row_a_budget_and_refuses_row_by_row():
    table = alarm_table(np.linspace(0, 1, 50), AlarmPolicy(), watch=0.4)
    assert list(table) == [0.01, 0.05, 0.10]
    assert table[0.01].alarm is None
    assert table[0.05].alarm > table[0.10].alarm
    assert {row.watch for row in table.values()} == {0.4}


def test_table_comes_back_equal_through_json():
    table = alarm_table(np.linspace(0, 1, 50), AlarmPolicy())
    assert table_from_json(json.loads(json.dumps(table_to_json(table)))) == table


@pytest.mark.parametrize("rows", [[{"budget": 0.1}], [3], [{"alarm": 0.1}], 7])
def test_a_damaged_table_is_refused_with_its_place(rows):
    with pytest.raises(BundleError, match=r"b/manifest.json: its alarm table cannot be read .* Calibrate the monitor"):
        table_from_json(rows, "b/manifest.json")
