"""The frozen monitor folder: written in one piece, verified before it is parsed."""

from prefixguard.bundle.alarm_performance import AlarmCount, AlarmPerformance
from prefixguard.bundle.automaton import (
    N_RISKS,
    UNSEEN,
    Automaton,
    automaton_from_bytes,
    automaton_to_bytes,
    cap_imminent,
)
from prefixguard.bundle.behaviour_map import BehaviourMap, BehaviourSymbol
from prefixguard.bundle.calibration import Beta, Calibration, Platt, RiskMap, apply_map
from prefixguard.bundle.card import write_card
from prefixguard.bundle.files import replace_file
from prefixguard.bundle.manifest import SCORES
from prefixguard.bundle.onnx_check import MOST_TRIED
from prefixguard.bundle.reading import Bundle, open_bundle, read_signature
from prefixguard.bundle.signature import Key, KeyPair, Signature, Trust, new_key
from prefixguard.bundle.state_names import leading_symbols, state_names
from prefixguard.bundle.symbol_map import ModelMap, SymbolMap, TreeMap, TypedMap, WordScore
from prefixguard.bundle.writing import BundleParts, Signed, check_target, parts_of, sign, write_bundle

__all__ = [
    "MOST_TRIED",
    "N_RISKS",
    "SCORES",
    "UNSEEN",
    "AlarmCount",
    "AlarmPerformance",
    "Automaton",
    "BehaviourMap",
    "BehaviourSymbol",
    "Beta",
    "Bundle",
    "BundleParts",
    "Calibration",
    "Key",
    "KeyPair",
    "ModelMap",
    "Platt",
    "RiskMap",
    "Signature",
    "Signed",
    "SymbolMap",
    "TreeMap",
    "Trust",
    "TypedMap",
    "WordScore",
    "apply_map",
    "automaton_from_bytes",
    "automaton_to_bytes",
    "cap_imminent",
    "check_target",
    "leading_symbols",
    "new_key",
    "open_bundle",
    "parts_of",
    "read_signature",
    "replace_file",
    "sign",
    "state_names",
    "write_bundle",
    "write_card",
]
