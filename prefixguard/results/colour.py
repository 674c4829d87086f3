"""Colours of risks, the same in every picture and report: a colour means a risk, not a rank among those at hand.

The scale runs from pale blue over amber to dark red-brown and gets darker all the way, so that it keeps its order in
grey print and under every kind of colour blindness.
"""

from __future__ import annotations

from bisect import bisect_left

#: Colours of these risks; between them they are mixed.
SCALE = (
    (0.00, (0xE9, 0xF3, 0xFC)),
    (0.10, (0xF8, 0xE7, 0xB8)),
    (0.20, (0xF8, 0xD1, 0x7A)),
    (0.30, (0xF3, 0xAE, 0x4A)),
    (0.42, (0xE6, 0x84, 0x2F)),
    (0.55, (0xCC, 0x5A, 0x1E)),
    (0.70, (0xA8, 0x34, 0x12)),
    (0.90, (0x68, 0x18, 0x0A)),
)


def colour_of(risk: float) -> str:
    """Colour of a risk in [0, 1].

    >>> colour_of(0.0), colour_of(0.2), colour_of(1.0)
    ('#e9f3fc', '#f8d17a', '#68180a')
    """
    place = bisect_left([at for at, _ in SCALE], risk)
    if place in (0, len(SCALE)):
        return _hex(SCALE[min(place, len(SCALE) - 1)][1])
    (low, one), (high, other) = SCALE[place - 1], SCALE[place]
    part = (risk - low) / (high - low)
    return _hex(tuple(round(a + part * (b - a)) for a, b in zip(one, other, strict=True)))


def ink_on(colour: str) -> str:
    """Black or white, whichever reads better; one of both always has a contrast of 4.5 or more."""
    return "#000000" if luminance(colour) > 0.179 else "#ffffff"


def luminance(colour: str) -> float:
    """Relative luminance of "#rrggbb", in [0, 1]. Source: Web Content Accessibility Guidelines 2.2, its definition.

    >>> luminance("#000000"), luminance("#ffffff")
    (0.0, 1.0)
    """
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _hex(colour: tuple[int, ...]) -> str:
    return "#" + "".join(f"{part:02x}" for part in colour)
