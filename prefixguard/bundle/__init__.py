"""The frozen monitor folder: written in one piece, verified before it is parsed."""

from prefixguard.bundle.automaton import N_RISKS, UNSEEN, Automaton
from prefixguard.bundle.calibration import Beta, Calibration, Platt, RiskMap, apply_map
from prefixguard.bundle.card import write_card
from prefixguard.bundle.parts import Bundle, BundleParts
from prefixguard.bundle.reading import open_bundle
from prefixguard.bundle.writing import check_target, write_bundle

__all__ = [
    "N_RISKS",
    "UNSEEN",
    "Automaton",
    "Beta",
    "Bundle",
    "BundleParts",
    "Calibration",
    "Platt",
    "RiskMap",
    "apply_map",
    "check_target",
    "open_bundle",
    "write_bundle",
    "write_card",
]
