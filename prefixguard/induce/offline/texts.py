"""The text of a unit: which of its places is what was said, and how the spec reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from prefixguard.induce.offline.arrays import parse_inside
from prefixguard.induce.offline.places import Place, find
from prefixguard.induce.offline.speakers import Part
from prefixguard.induce.offline.units import Column, Unit, part_of_unit
from prefixguard.lexicon import Meaning, affinity


@dataclass(slots=True)
class Said:
    """A text and how it is read.

    value: of the spec, from @. path: the place, where it is one plain path; None where it is put together. texts:
    of each element. mixed: path of a place that holds a text in some events and blocks in others. blocks: value that
    reads the blocks. covered: places that it reads. other: path of what stands there instead (an error for a result).
    score: how surely this is what was said.
    """

    value: Any
    path: str | None
    texts: list[str]
    covered: tuple[Place, ...]
    score: float
    mixed: str | None = None
    blocks: Any = None
    other: str | None = None

    @property
    def size(self) -> int:
        """Characters of all texts."""
        return sum(map(len, self.texts))


_NOT_TEXT = (Meaning.MODEL, Meaning.TIME, Meaning.RUN_ID, Meaning.CALL_ID, Meaning.ROLE, Meaning.STATUS)


def said_in(
    unit: Unit,
    nested: Sequence[Unit],
    meaning: Meaning,
    *,
    without: Sequence[Place] = (),
    beside_call: bool = False,
    lists: Sequence[Place] = (),
    prefer: Place | None = None,
) -> Said | None:
    """What the unit says.

    nested: units inside it whose texts may be blocks of it. meaning: TEXT or RESULT. without: places that are something
    else already. lists: places whose elements are calls or results: where such a place holds a text instead, it is
    said. prefer: the place where other kinds say what they say.
    """
    best: tuple[float, str, Said] | None = None
    texts = (column for column in unit.columns.values() if not column.whole and _may_be_text(column, meaning))
    total = sum(column.size for column in texts) or 1
    blocks = {
        place: found
        for place, found in _blocks(unit, nested).items()
        if not unit.columns[place].json or found[2].size >= 0.5 * unit.columns[place].size or meaning is Meaning.TEXT
    }  # JSON that came back is a result as it is, not a list of things said
    for place, column in unit.columns.items():
        if any(place[: len(w)] == w or w[: len(place)] == place for w in without if w):
            continue
        if None in place or column.present < 0.02 or not _may_be_text(column, meaning):
            continue
        share = column.size / total
        named = max(affinity(column.name, meaning), 0.6 * affinity(column.name, Meaning.TEXT))
        other = 0.0 if _wordy(column) else max(affinity(column.name, other) for other in _NOT_TEXT)
        thought = affinity(column.name, Meaning.THOUGHT)
        wrong = max(affinity(step or "", Meaning.ERROR) for step in place) if place and meaning is Meaning.TEXT else 0.0
        if affinity(column.name, Meaning.OUTCOME) >= 0.85 or (
            column.json and place not in blocks and meaning is Meaning.TEXT
        ):
            continue
        score = 0.6 * named + 0.5 * min(1.0, share) + 0.25 * min(1.0, column.present)
        score -= 0.5 * (other - named if other >= 0.8 and other > named else 0.0) + 0.4 * (
            wrong if wrong >= named else 0.0
        )
        score -= 0.5 * (thought if thought > named else 0.0) + 0.06 * len(place)
        score -= 0.3 * max(0.0, affinity(column.name, Meaning.AFTER_END) - 0.6)
        strings = sum(isinstance(value, str) for value in column.values)
        if column.whole and strings == 0 and place not in blocks and meaning is not Meaning.RESULT:
            continue
        score += 0.6 * (place == prefer)
        if column.distinct < 2 and len(column.values) > 4 and place not in blocks:
            continue  # the same in all
        score -= 0.3 * (meaning is Meaning.RESULT and column.is_name and named < 0.6)
        if place in blocks:
            score -= 0.8 * (1 - _novelty(blocks[place][2]))
        if column.whole and place not in blocks and strings == 0:
            score -= 0.1 if meaning is Meaning.RESULT else 0.25
        score -= 0.4 * (beside_call and named < 0.4)
        if score < (0.35 if not beside_call else 0.5):
            continue
        said = _said(unit, column, blocks.get(place), score)
        if place in lists and place not in blocks:
            if not strings:
                continue
            said.mixed, said.path = column.name, None
            said.texts = [value if isinstance(value, str) else "" for value in column.values]
        if best is None or (-score, column.name) < (-best[0], best[1]):
            best = score, column.name, said
    if best is None:
        return None
    if meaning is Meaning.RESULT:
        complete(unit, best[2])
    return best[2]


def _wordy(column: Column) -> bool:
    """Are most texts of four words and more? Ids, times and names of models are not, whatever they are called."""
    texts = [text for text in column.texts if text][:200]
    return not column.whole and sum(text[:200].count(" ") >= 3 for text in texts) > 0.6 * len(texts)


def complete(unit: Unit, said: Said) -> None:
    """Where a result is missing, an error may stand in its place."""
    missing = [i for i, text in enumerate(said.texts) if not text]
    if said.mixed is not None or len(said.texts) != len(unit.elements) or len(missing) < 0.02 * len(said.texts):
        return
    for column in sorted(unit.columns.values(), key=lambda c: (len(c.place), c.name)):
        if affinity(column.name, Meaning.ERROR) < 0.9 or column.place in said.covered:
            continue
        filled = sum(bool(column.texts[i]) for i in missing)
        if filled and filled >= 0.9 * sum(map(bool, column.texts)):
            said.other = column.name
            said.texts = [a or b for a, b in zip(said.texts, column.texts, strict=True)]
            return


def _may_be_text(column: Column, meaning: Meaning) -> bool:
    if column.whole:
        return any(isinstance(value, list) or (meaning is Meaning.RESULT and value) for value in column.values)
    texts = [text for text in column.texts if text]
    if not texts or not any(isinstance(value, str) for value in column.values):
        return meaning is Meaning.RESULT and bool(texts) and affinity(column.name, meaning) > 0.6
    if column.is_name and column.distinct <= 8 < len(texts) and affinity(column.name, Meaning.TEXT) < 1:
        return False  # a field of few names
    if column.distinct >= 0.9 * len(texts) and len(texts) > 4 and all(" " not in text for text in texts):
        return affinity(column.name, meaning) > 0.8  # ids, hashes, times
    return True


def _blocks(unit: Unit, nested: Sequence[Unit]) -> dict[Place, tuple[Any, Unit, Column]]:
    """Lists of blocks inside the unit: place of the list to the value that reads their texts."""
    found: dict[Place, tuple[float, Any, Unit, Column]] = {}
    for inner in nested:
        if inner.depth <= unit.depth:
            continue
        told = part_of_unit(inner)
        if told is not None and told[0] in (Part.THOUGHT, Part.CALL, Part.RESULT):
            continue
        if isinstance(inner.each, str) and affinity(inner.each, Meaning.OUTCOME) >= 0.85:
            continue
        place = next((p for p in unit.columns if p and p == inner.holder[: len(p)] and _holds(unit.columns[p])), None)
        if place is None:
            continue
        for column in inner.columns.values():
            if column.whole or not any(isinstance(value, str) for value in column.values):
                continue
            if column.is_id and affinity(column.name, Meaning.TEXT) < 0.9:
                continue
            score = affinity(column.name, Meaning.TEXT) + min(1.0, column.size / 200) - 0.1 * len(column.place)
            score -= max(affinity(column.name, other) for other in _NOT_TEXT)
            score += 0.5 * column.distinct / max(1, len(column.values))
            score -= 0.5 * (column.distinct < 2 < len(column.values))
            if score > 0.3 and (place not in found or score > found[place][0]):
                leaf = column.name[1:]
                each = _from(unit, inner)
                if each is None:
                    continue
                value = {**each, "path": each["path"] + leaf} if isinstance(each, dict) else each + leaf
                found[place] = score, value, inner, column
    return {place: (value, inner, column) for place, (_, value, inner, column) in found.items()}


def _from(unit: Unit, inner: Unit) -> Any:
    """How the inner unit's elements are got at from an element of the outer; None where that cannot be said."""
    if unit.each is None:
        return inner.each
    if not isinstance(unit.each, str) or not isinstance(inner.each, str) or not inner.each.startswith(unit.each):
        return None
    return "@" + inner.each[len(unit.each) :]


def _inside(value: Any, place: Place) -> str:
    """Texts of the blocks in a list, or in the JSON that a string holds."""
    if isinstance(value, str):
        value = parse_inside(value)
    return "\n".join(one for one in find(value, place) if isinstance(one, str) and one)


def _holds(column: Column) -> bool:
    return column.json or any(isinstance(value, list) for value in column.values)


def _novelty(column: Column) -> float:
    """Share of the texts that are not said before."""
    texts = [text for text in column.texts if len(text) >= 16]
    return len(set(texts)) / len(texts) if texts else 1.0


def _said(unit: Unit, column: Column, blocks: tuple[Any, Unit, Column] | None, score: float) -> Said:
    path = column.name
    if blocks is None:
        return Said({"text": path}, path, column.texts, (column.place,), score)
    value, inner, leaf = blocks
    below = inner.holder[len(unit.holder) + len(column.place) :]
    texts = [_inside(one, (None, *below, *((None,) if below else ()), *leaf.place)) for one in column.values]
    strings = not column.json and any(isinstance(one, str) and one for one in column.values)
    said = [one if isinstance(one, str) else text for one, text in zip(column.values, texts, strict=True)]
    plain = isinstance(value, str) and "[" not in value
    return Said(
        {"text": value},
        None if strings or not plain else value,
        said if strings else texts,
        (column.place,),
        score,
        mixed=path if strings else None,
        blocks={"text": value},
    )
