"""Rows that have to be trained, beside which a monitor is shown. Needs what training needs."""

from prefixguard.evaluation.controls.beside import controls_beside
from prefixguard.evaluation.controls.raw_text import as_raw, raw_control
from prefixguard.evaluation.controls.rows import CONTROLS, Control, control_rows
from prefixguard.evaluation.controls.sides import ControlSides, sides_of
from prefixguard.evaluation.controls.trained import TrainedControls

__all__ = [
    "CONTROLS",
    "Control",
    "ControlSides",
    "TrainedControls",
    "as_raw",
    "control_rows",
    "controls_beside",
    "raw_control",
    "sides_of",
]
