"""The symbol of a step is the first of a list of behaviours that holds at it.

The list is data of the bundle: what stands first matters most. A symbol may ask that a behaviour was seen often enough,
and which consequence the step has. A step at which none of the list holds has the last symbol.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.behaviours import BY_NAME, CATALOGUE_SHA256, CONSEQUENCES, NONE_HELD, PLACES
from prefixguard.bundle.strict_json import listed, wholes
from prefixguard.encoder import SparseRow
from prefixguard.errors import ConfigError

#: Most symbols of behaviours, and the greatest count that one may ask for.
MOST_BEHAVIOUR_SYMBOLS = 1024
_MOST_COUNT = 255


@dataclass(frozen=True, slots=True)
class BehaviourSymbol:
    """One symbol. behaviour: its name in the catalogue. at_least: how often it must have been seen, 1 to 255.
    consequence: what the step must be besides; "": anything.

    >>> BehaviourSymbol("call_failed", 1, "reads").gloss, BehaviourSymbol("errors_in_a_row", 8).gloss
    ('reads, call failed', 'errors in a row: 8 or more')
    """

    behaviour: str
    at_least: int = 1
    consequence: str = ""

    def __post_init__(self) -> None:
        """Raises ConfigError for a behaviour that the catalogue does not have, a count that nothing reaches, and what
        is no consequence."""
        if self.behaviour not in BY_NAME:
            raise ConfigError(
                f"symbol map: {str(self.behaviour)[:40]!r} is no behaviour that this release knows. Upgrade "
                "prefixguard, or export the monitor again."
            )
        if type(self.at_least) is not int or not 1 <= self.at_least <= _MOST_COUNT:
            count = str(self.at_least)[:20]
            raise ConfigError(f"symbol map: {self.behaviour} counts from 1 to {_MOST_COUNT}, not {count}.")
        if self.consequence and self.consequence not in CONSEQUENCES:
            raise ConfigError(f"symbol map: {str(self.consequence)[:40]!r} is no consequence of a step.")

    @property
    def gloss(self) -> str:
        """A few words."""
        said = BY_NAME[self.behaviour].title
        if self.at_least > 1:
            said = f"{said}: {self.at_least} or more"
        return f"{BY_NAME[self.consequence].title}, {said}" if self.consequence else said

    @property
    def advice(self) -> str:
        """What its developers can do about it; "" where it is no fault."""
        return BY_NAME[self.behaviour].advice

    @property
    def sentence(self) -> str:
        """What is the case, in the words of the catalogue; after each sentence the name that readings say."""
        said = _named(self.behaviour)
        if self.at_least > 1:
            said += f" So far {self.at_least} or more."
        return f"{_named(self.consequence)} {said}" if self.consequence else said


def _named(behaviour: str) -> str:
    return f"{BY_NAME[behaviour].sentence.removesuffix('.')} ({behaviour})."


@dataclass(frozen=True, slots=True)
class BehaviourMap:
    """symbols: in their order, the one that matters most first; each once. A step at which none holds has the last
    symbol, which is not in the list. catalogue: the SHA-256 of the catalogue whose behaviours they are, for the same
    name can hold at other steps in another release; "" where a bundle does not say.

    >>> of = BehaviourMap((BehaviourSymbol("call_failed", 1, "reads"), BehaviourSymbol("reads")))
    >>> of.n_symbols, of.glosses[-1]
    (3, 'anything else')
    """

    symbols: tuple[BehaviourSymbol, ...]
    catalogue: str = CATALOGUE_SHA256
    _asked: tuple[tuple[int, int, int], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raises ConfigError for too many symbols, and for one that is there twice."""
        if len(self.symbols) >= MOST_BEHAVIOUR_SYMBOLS or len(set(self.symbols)) != len(self.symbols):
            raise ConfigError(f"symbol map: behaviours must differ, and be fewer than {MOST_BEHAVIOUR_SYMBOLS:,}.")
        # A behaviour of which no consequence is asked stands twice: it holds where it holds.
        asked = [(PLACES[s.behaviour], s.at_least, PLACES[s.consequence or s.behaviour]) for s in self.symbols]
        object.__setattr__(self, "_asked", tuple(asked))

    @property
    def n_symbols(self) -> int:
        """One a behaviour of the list, and one for all other steps."""
        return len(self.symbols) + 1

    @property
    def glosses(self) -> tuple[str, ...]:
        """A few words a symbol."""
        return (*(symbol.gloss for symbol in self.symbols), "anything else")

    def symbol(self, tool: str, row: SparseRow, context: NDArray[np.float32], held: bytes = NONE_HELD) -> int:
        """See `SymbolMap`."""
        for number, (place, at_least, other) in enumerate(self._asked):
            if held[place] >= at_least and held[other]:
                return number
        return len(self._asked)

    def to_json(self) -> dict[str, Any]:
        """See `SymbolMap`."""
        said = {"catalogue": self.catalogue} if self.catalogue else {}
        rows = [[s.behaviour, s.at_least, s.consequence] for s in self.symbols]
        return {"kind": "behaviours", **said, "symbols": rows}


def of_other_behaviours(document: Any) -> bool:
    """Whether a symbol map was made with the behaviours of another release. False where it does not say, as in bundles
    that were written before it was recorded."""
    if not isinstance(document, dict) or document.get("kind") != "behaviours":
        return False
    return bool(document.get("catalogue", CATALOGUE_SHA256) != CATALOGUE_SHA256)


def behaviour_map_from_json(document: dict[str, Any]) -> BehaviourMap:
    """What `to_json` wrote. Raises ValueError (ConfigError is one) that says what is wrong."""
    if of_other_behaviours(document):
        raise ValueError("the symbol map's behaviours are of another release")
    rows = listed(document["symbols"], "behaviours of the symbol map")
    if len(rows) >= MOST_BEHAVIOUR_SYMBOLS:
        raise ValueError(f"the symbol map has {len(rows):,} behaviours, fewer than {MOST_BEHAVIOUR_SYMBOLS:,} can be")
    symbols = []
    for row in rows:
        behaviour, at_least, consequence = listed(row, "a behaviour of the symbol map", 3)
        if not isinstance(behaviour, str) or not isinstance(consequence, str):
            raise ValueError("a behaviour of the symbol map is not a name, a count and a consequence")
        count = wholes([at_least], "a count of the symbol map", 1, _MOST_COUNT + 1)[0]
        symbols.append(BehaviourSymbol(behaviour, count, consequence))
    return BehaviourMap(tuple(symbols), document.get("catalogue", ""))
