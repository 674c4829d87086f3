"""What first alerts save of seconds, tokens and dollars: sums over steps, unknown where nobody says, price tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prefixguard.alarm import AlarmPolicy, Thresholds
from prefixguard.errors import ConfigError
from prefixguard.evaluation import evaluate_scores
from prefixguard.evaluation.prices import Prices, took_by
from prefixguard.metrics import Resamples, first_alerts
from prefixguard.stepview import Signals, StepRecord

NAN = float("nan")


def step(**took: float) -> StepRecord:
    return StepRecord(1, "agent", "", "", "", "", "x", "", "ok", signals=Signals(**took) if took else None)


def table(path: Path, found: Any) -> Path:
    path.write_text(found if isinstance(found, str) else json.dumps(found))
    return path


def test_savings_are_sums_after_the_first_alert() -> None:
    scores = [[0.1, 0.9, 0.9], [0.9, 0.1], [0.1, 0.1], [0.9, 0.9]]
    failed = [True, True, True, False]
    took = {"seconds": [[1.0, 2.0, 4.0], [NAN, NAN], [3.0, NAN], [5.0, 7.0]], "dollars": [[NAN] * 3, [NAN] * 2] * 2}
    took["dollars"] = [[NAN] * len(one) for one in scores]
    drawn = Resamples.draw(4, n=50, seed=1)
    found = first_alerts(scores, failed, np.arange(4), 0.5, AlarmPolicy(), horizon=1, resamples=drawn, took=took)
    ((name, one),) = found.saved.items()  # of dollars nobody says anything
    assert name == "seconds" and one.share == pytest.approx(4 / 10) and one.interval is not None
    assert (one.each, one.lost, one.known, one.runs) == (pytest.approx(2.0), 7.0, 2, 3)
    without = first_alerts(scores, failed, np.arange(4), 0.5, AlarmPolicy(), horizon=1, resamples=drawn)
    assert without.saved == {} and without.intervals == found.intervals


def test_the_table_says_what_is_saved_and_what_is_unknown() -> None:
    scores = [[0.9, 0.9]] * 4
    has = {0.1: Thresholds(0.5, 1.0, 40, 0, 22, None)}
    took = {"seconds": [[2.0, 3.0], [NAN, NAN], [2.0, 3.0], [1.0, 1.0]]}
    given: Any = {"failed": [True, True, False, False], "tasks": list("abcd"), "thresholds": has, "resamples": 20}
    said = evaluate_scores(scores, scores, **given, took=took)
    assert "What first alerts save of failed runs" in said.to_text() and "1 of 2" in said.to_text()
    assert "Runs that do not say it are unknown" in said.to_text()
    saved = said.as_json()["first_alert"][0]["saved"]["seconds"]
    assert saved["share"] == pytest.approx(3 / 5) and saved["lost"] == 2.0
    without = evaluate_scores(scores, scores, **given)
    assert "save of failed runs" not in without.to_text() and without.as_json()["first_alert"][0]["saved"] == {}


def test_the_trace_has_the_first_word_and_a_price_table_the_second(tmp_path: Path) -> None:
    prices = Prices.read(table(tmp_path / "p.json", {"m": {"in": 1, "out": 10}, "*": {"in": 2.0, "out": 20}}))
    steps = [
        step(tokens_in=1e6, tokens_out=1e5),
        step(tokens_in=1e6, tokens_out=0, dollars=7.0),
        step(tokens_out=5),
        step(),
    ]
    for groups, first in (({"model": "m"}, 2.0), ({"agent": "m"}, 2.0), ({"model": "other"}, 4.0), ({}, 4.0)):
        took = took_by(steps, groups, prices)
        assert took["dollars"][:2].tolist() == [first, 7.0] and np.isnan(took["dollars"][2:]).all()
        assert took["tokens"][:3].tolist() == [1.1e6, 1e6, 5.0] and np.isnan(took["tokens"][3])
        assert np.isnan(took["seconds"]).all()
    assert np.isnan(took_by(steps, {}, None)["dollars"][0])
    only = Prices.read(table(tmp_path / "q.json", {"m": {"in": 0, "out": 0}}))
    assert only.dollars(Signals(tokens_in=1.0, tokens_out=1.0), {"model": "x"}) is None
    assert only.dollars(Signals(tokens_in=1.0, tokens_out=1.0), {"model": "m"}) == 0.0
    assert took_by([], {}, None)["seconds"].shape == (0,)


def test_what_was_priced_and_what_not_is_said(tmp_path: Path) -> None:
    prices = Prices.read(table(tmp_path / "p.json", {"m": {"in": 1, "out": 10}}))
    tokens, silent = [step(tokens_in=1.0, tokens_out=2.0)], [step(seconds=1.0)]
    given = [("m", tokens), ("m", silent), ("x1", tokens), ("x2", tokens), ("x3", silent), ("x4", tokens), ("", tokens)]
    given.append(("x5", [step(dollars=1.0)]))
    named = [({"model": name} if name else {}, steps) for name, steps in given]
    runs = [(groups, took_by(steps, groups, prices)["dollars"]) for groups, steps in named]
    assert prices.note(runs) == (
        "Prices: 2 of 8 runs have dollars, of their own or by the table. 1 say no tokens in and out. 5 are of models "
        'that the table does not name (no name, x1, x2, and 2 more): add them, or "*" for any other.'
    )
    assert prices.note(runs[:1]) == "Prices: 1 of 1 runs have dollars, of their own or by the table."


@pytest.mark.parametrize(
    "found",
    [
        "{", "[]", "{}", "3", '{"m": 3}', '{"m": {"in": 1}}', '{"m": {"in": 1, "out": 2, "x": 3}}',
        '{"m": {"in": -1, "out": 2}}', '{"m": {"in": NaN, "out": 2}}', '{"m": {"in": 1e400, "out": 2}}',
        '{"m": {"in": true, "out": 2}}', '{"m": {"in": "1", "out": 2}}', "[" * 100_000, "\xff",
        json.dumps({f"m{i}": {"in": 1, "out": 1} for i in range(10_001)}),
    ],
)  # fmt: skip
def test_a_table_that_is_wrong_is_refused_in_a_sentence(tmp_path: Path, found: str) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(found.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"p\.json.*(Give dollars of a million tokens|JSON)"):
        Prices.read(path)
    with pytest.raises(ConfigError, match="Give dollars"):
        Prices.read(tmp_path / "none.json")
