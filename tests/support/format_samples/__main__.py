"""Writes the samples where the tests look for them."""

from pathlib import Path

from . import write_all

write_all(Path(__file__).parents[2] / "induce")
