"""The parts of an opened bundle, to write it again with something of it changed."""

from __future__ import annotations

from prefixguard.bundle import layout
from prefixguard.bundle.automaton_file import automaton_to_bytes
from prefixguard.bundle.manifest import RESERVED
from prefixguard.bundle.parts import Bundle, BundleParts
from prefixguard.bundle.reading import read_pictures


def parts_of(bundle: Bundle) -> BundleParts:
    """What `write_bundle` makes this bundle of again; its card is written anew.

    Raises BundleError where a picture is gone or damaged since the bundle was opened.
    """
    automaton = None
    if bundle.automaton is not None and bundle.symbol_map is not None:
        automaton = automaton_to_bytes(bundle.automaton, bundle.symbol_map, bundle.glosses)
    return BundleParts(
        adapter=bundle.adapter.to_bytes(),
        vocabulary=bundle.vocabulary.to_bytes(),
        context_arrays=dict(bundle.arrays),
        model=bundle.model_bytes,
        reasons=bundle.reasons_bytes,
        calibration=bundle.calibration,
        info={name: value for name, value in bundle.manifest.items() if name not in RESERVED},
        automaton=automaton,
        pictures=read_pictures(bundle) if bundle.kind == layout.AUTOMATON else {},
    )
