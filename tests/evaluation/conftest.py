"""Trainings that take a moment."""

from __future__ import annotations

from functools import partial

import pytest

from prefixguard.learn import trees


@pytest.fixture
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "fit_trees", partial(trees.fit_trees, rounds=15))
