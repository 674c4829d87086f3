"""What of a run is not visible while it is live: all but what is known at its start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from prefixguard.induce.offline.places import Place, spell
from prefixguard.induce.offline.run_places import Node, Places
from prefixguard.lexicon import Meaning, affinity

_AFTER = (Meaning.AFTER_END, Meaning.HARNESS, Meaning.OUTCOME, Meaning.MISTAKE)
_BEFORE = (Meaning.SETUP, Meaning.GROUP, Meaning.MODEL, Meaning.AGENT, Meaning.TASK_ID, Meaning.RUN_ID)


def hidden_places(places: Places, keep: Sequence[Any], named: Sequence[Any] = ()) -> list[tuple[str, str]]:
    """Paths for `hidden` and why, in the order of the places. keep: specs that records read (the preamble); what holds
    the events or one of these is not hidden whole, only what else lies in it. named: ids and groups, which need no
    hiding of their own."""
    kept = {column.place for column in places.columns if column.spec in keep and str(column.spec).startswith("$")}
    found = list(_hide("$", places.run, (), [*places.events, *kept]))
    if places.runs:
        kept = {column.place for column in places.columns if column.spec in keep and str(column.spec).startswith("%")}
        found.extend(_hide("%", places.document, (), [places.runs, *kept]))
    return [(path, why) for path, why in found if path not in named]


def _hide(root: str, node: Node, place: Place, keep: Sequence[Place]) -> Iterator[tuple[str, str]]:
    if place:
        if any(_inside(place, one) for one in keep):
            return
        if not any(_inside(one, place) for one in keep):
            verdict = _verdict(root, node, place)
            if verdict is not None:
                yield spell(root, place), verdict
                return
            if not node.inner:
                return
    for name in node.inner:
        yield from _hide(root, node.inner[name], (*place, name), keep)


def _inside(inner: Place, outer: Place) -> bool:
    """Is the first place the second, or in it? None stands for any name."""
    if len(inner) < len(outer):
        return False
    return all(a is None or b is None or a == b for a, b in zip(inner, outer, strict=False))


def _verdict(root: str, node: Node, place: Place) -> str | None:
    """Why the whole place is hidden; None where it is visible, or holds visible places beside hidden ones."""
    path = spell(root, place)
    late = max(_AFTER, key=lambda meaning: affinity(path, meaning))
    after, before = affinity(path, late), max(affinity(path, meaning) for meaning in _BEFORE)
    if after >= 0.5 and after > before - 0.1:
        return {
            Meaning.AFTER_END: "known only when the run is over",
            Meaning.HARNESS: "known to the harness only",
            Meaning.OUTCOME: "tells the outcome",
            Meaning.MISTAKE: "tells where the run went wrong",
        }[late]
    if node.is_list and affinity(path, Meaning.SETUP) < 0.9:
        return "a table that no step shows"
    leaves = list(_leaves(node, place))
    if not node.inner:
        return None if before >= 0.6 else "not known to be there at the start of a run"
    told = [(_bad(spell(root, leaf)), _good(spell(root, leaf))) for leaf in leaves]
    if any(bad for bad, _ in told) and len(place) >= 1 and root == "$":
        return "holds what is known only afterwards, or to the harness"
    if not any(good for _, good in told):
        return "not known to be there at the start of a run"
    return None


def _bad(path: str) -> bool:
    return any(affinity(path, meaning) >= 0.6 for meaning in _AFTER) and not _good(path)


def _good(path: str) -> bool:
    before = max(affinity(path, meaning) for meaning in _BEFORE)
    return before >= 0.6 and before > max(affinity(path, meaning) for meaning in _AFTER)


def _leaves(node: Node, place: Place) -> Iterator[Place]:
    if not node.inner:
        yield place
    for name, inner in node.inner.items():
        yield from _leaves(inner, (*place, name))
