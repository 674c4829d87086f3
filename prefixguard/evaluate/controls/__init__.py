"""Rows that have to be trained, beside which a monitor is shown. Needs what training needs."""

from prefixguard.evaluate.controls.beside import controls_beside
from prefixguard.evaluate.controls.raw_text import as_raw, raw_control
from prefixguard.evaluate.controls.rows import CONTROLS, Control, control_rows
from prefixguard.evaluate.controls.sides import ControlSides, sides_of
from prefixguard.evaluate.controls.trained import TrainedControls

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
