"""The room's former name works for one release."""

import importlib

import pytest

import prefixguard.simulation


def test_the_former_name_gives_the_same_and_warns() -> None:
    with pytest.warns(FutureWarning, match=r"prefixguard\.lab is prefixguard\.simulation now"):
        former = importlib.reload(importlib.import_module("prefixguard.lab"))
    assert former.generate is prefixguard.simulation.generate
