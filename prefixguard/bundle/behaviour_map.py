"""The symbol of a step is the first of a list that holds at it, each of them one behaviour or several at once.

The list is data of the bundle. A symbol may ask how often each of its behaviours was seen. A step at which none of the
list holds has the last symbol.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.behaviours import BY_NAME, CATALOGUE_SHA256, NONE_HELD, PLACES
from prefixguard.bundle.strict_json import listed, wholes
from prefixguard.encoder import SparseRow
from prefixguard.errors import ConfigError

#: Most symbols of behaviours, most behaviours that one asks for, and the greatest count.
MOST_BEHAVIOUR_SYMBOLS = 1024
MOST_AT_ONCE = 32
_MOST_COUNT = 255


@dataclass(frozen=True, slots=True)
class BehaviourSymbol:
    """One symbol. asked: names of behaviours in the catalogue, each once, with how often each must have been seen, 1 to
    255; all of them hold at the step.

    >>> BehaviourSymbol((("reads", 1), ("call_failed", 1))).gloss, BehaviourSymbol((("errors_in_a_row", 8),)).gloss
    ('reads, call failed', 'errors in a row: 8 or more')
    """

    asked: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        """Raises ConfigError for none or too many behaviours, one that the catalogue does not have or that is there
        twice, and a count that nothing reaches."""
        if not 0 < len({name for name, _ in self.asked}) == len(self.asked) <= MOST_AT_ONCE:
            raise ConfigError(f"symbol map: a symbol asks for 1 to {MOST_AT_ONCE} behaviours, each once.")
        for name, count in self.asked:
            if name not in BY_NAME:
                raise ConfigError(
                    f"symbol map: {str(name)[:40]!r} is no behaviour that this release knows. Upgrade prefixguard, or "
                    "export the monitor again."
                )
            if type(count) is not int or not 1 <= count <= _MOST_COUNT:
                raise ConfigError(f"symbol map: {name} counts from 1 to {_MOST_COUNT}, not {str(count)[:20]}.")

    @property
    def gloss(self) -> str:
        """A few words."""
        titles = ((BY_NAME[name].title, count) for name, count in self.asked)
        return ", ".join(title if count == 1 else f"{title}: {count} or more" for title, count in titles)

    @property
    def advice(self) -> str:
        """What the agent's developers can do about it: of its behaviours, the first advice; "" where none has any."""
        return next((BY_NAME[name].advice for name, _ in self.asked if BY_NAME[name].advice), "")

    @property
    def sentence(self) -> str:
        """What is the case, in the words of the catalogue; after each sentence the name that readings say."""
        return " ".join(_named(name) + ("" if n == 1 else f" So far {n} or more.") for name, n in self.asked)


def _named(behaviour: str) -> str:
    return f"{BY_NAME[behaviour].sentence.removesuffix('.')} ({behaviour})."


@dataclass(frozen=True, slots=True)
class BehaviourMap:
    """symbols: in their order, the first that holds is the step's; each once. A step at which none holds has the last
    symbol, which is not in the list. catalogue: the SHA-256 of the catalogue whose behaviours they are, for the same
    name can hold at other steps in another release; "" where a bundle does not say.

    >>> of = BehaviourMap((BehaviourSymbol((("reads", 1), ("call_failed", 1))), BehaviourSymbol((("reads", 1),))))
    >>> of.n_symbols, of.glosses[-1]
    (3, 'no other symbol')
    """

    symbols: tuple[BehaviourSymbol, ...]
    catalogue: str = CATALOGUE_SHA256
    _asked: tuple[tuple[tuple[int, int], ...], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raises ConfigError for too many symbols, and for one that is there twice."""
        if len(self.symbols) >= MOST_BEHAVIOUR_SYMBOLS or len(set(self.symbols)) != len(self.symbols):
            raise ConfigError(f"symbol map: behaviours must differ, and be fewer than {MOST_BEHAVIOUR_SYMBOLS:,}.")
        asked = [tuple((PLACES[name], count) for name, count in symbol.asked) for symbol in self.symbols]
        object.__setattr__(self, "_asked", tuple(asked))

    @property
    def n_symbols(self) -> int:
        """One a behaviour of the list, and one for all other steps."""
        return len(self.symbols) + 1

    @property
    def glosses(self) -> tuple[str, ...]:
        """A few words a symbol."""
        return (*(symbol.gloss for symbol in self.symbols), "no other symbol")

    def symbol(self, tool: str, row: SparseRow, context: NDArray[np.float32], held: bytes = NONE_HELD) -> int:
        """See `SymbolMap`."""
        for number, asked in enumerate(self._asked):
            if all(held[place] >= count for place, count in asked):
                return number
        return len(self._asked)

    def to_json(self) -> dict[str, Any]:
        """See `SymbolMap`."""
        said = {"catalogue": self.catalogue} if self.catalogue else {}
        rows = [[list(one) for one in symbol.asked] for symbol in self.symbols]
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
    symbols = [BehaviourSymbol(tuple(_asked(row))) for row in rows]
    return BehaviourMap(tuple(symbols), document.get("catalogue", ""))


def _asked(row: Any) -> Iterator[tuple[str, int]]:
    """What a symbol asks for: pairs of a name and a count. Earlier bundles have a behaviour, its count and what the
    step must be besides, "" for anything."""
    if isinstance(row, list) and len(row) == 3 and isinstance(row[0], str):
        row = [row[:2], *([[row[2], 1]] if row[2] != "" else [])]
    for pair in listed(row, "a symbol's behaviours"):
        name, count = listed(pair, "a behaviour of the symbol map", 2)
        if not isinstance(name, str):
            raise ValueError("a behaviour of the symbol map is not a name and a count")
        yield name, wholes([count], "a count of the symbol map", 1, _MOST_COUNT + 1)[0]
