"""Heuristic baselines that have to be trained, for comparison with a monitor. Needs the packages for training."""

from prefixguard.evaluation.controls.fits import as_raw
from prefixguard.evaluation.controls.rows import (
    CONTROLS,
    Control,
    TrainedControls,
    control_rows,
    controls_beside,
    scored_row,
)
from prefixguard.evaluation.controls.sides import ControlSides, sides_of

__all__ = [
    "CONTROLS",
    "Control",
    "ControlSides",
    "TrainedControls",
    "as_raw",
    "control_rows",
    "controls_beside",
    "scored_row",
    "sides_of",
]
