"""The frozen monitor folder: written in one piece, verified before it is parsed."""

from prefixguard.bundle.automaton import N_RISKS, UNSEEN, Automaton
from prefixguard.bundle.automaton_file import automaton_from_bytes, automaton_to_bytes
from prefixguard.bundle.calibration import Beta, Calibration, Platt, RiskMap, apply_map
from prefixguard.bundle.card import write_card
from prefixguard.bundle.parts import Bundle, BundleParts
from prefixguard.bundle.reading import open_bundle, read_signature
from prefixguard.bundle.remaking import parts_of
from prefixguard.bundle.signature import Key, Signature, Trust
from prefixguard.bundle.signing import KeyPair, Signed, new_key, sign
from prefixguard.bundle.symbol_map import ModelMap, SymbolMap, TreeMap, TypedMap, WordScore
from prefixguard.bundle.writing import check_target, write_bundle

__all__ = [
    "N_RISKS",
    "UNSEEN",
    "Automaton",
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
    "check_target",
    "new_key",
    "open_bundle",
    "parts_of",
    "read_signature",
    "sign",
    "write_bundle",
    "write_card",
]
