"""Which behaviours of the catalogue hold at a step, and how often each was seen: one byte a behaviour."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prefixguard.behaviours.behaviour import BehaviourFinding
from prefixguard.behaviours.catalogue import BY_NAME

#: Place of each behaviour among the bytes: its place in the catalogue.
PLACES: Final = {name: place for place, name in enumerate(BY_NAME)}
#: Of a step at which no behaviour holds.
NONE_HELD: Final = bytes(len(PLACES))
_MOST: Final = 255


def held(findings: Iterable[BehaviourFinding]) -> bytes:
    """The count of every behaviour of the catalogue, at most 255; 0 where it does not hold. What somebody declared
    besides the catalogue is left out.

    >>> held(())[PLACES["reads"]], held([BehaviourFinding(BY_NAME["reads"], 1, 900)])[PLACES["reads"]]
    (0, 255)
    """
    counts = bytearray(NONE_HELD)
    for finding in findings:
        place = PLACES.get(finding.behaviour.name)
        if place is not None:
            counts[place] = min(finding.count, _MOST)
    return bytes(counts)
