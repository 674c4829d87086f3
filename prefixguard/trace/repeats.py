"""Word-for-word repeats of a run.

Published sets hold the same run twice, under two ids and sometimes under two tasks. Such a pair on two sides of a
split is a test question seen in training. Two runs are repeats when their records say the same, ids and times removed:
a record has neither, so equality of the serialised fields of all records, in order, is the test. Position numbers,
source positions and agent names do not count.

What is compared is what the records hold. Records that reach this room were already cut to the budgets of their
adapter, so two runs that differ only inside a cut-out middle count as repeats: the pair then shares a side, which is
the safe mistake. A reader that still has the uncut values can hand over its own digest to `link_tasks` instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Protocol

from prefixguard.trace.split import components

#: The fields of a record that make two steps the same; the record type itself belongs to a later room.
_FIELDS = ("actor", "tool", "arguments", "observation", "action", "result", "status")


class RecordText(Protocol):
    """What a step record shows here: its seven text fields."""

    @property
    def actor(self) -> str: ...
    @property
    def tool(self) -> str: ...
    @property
    def arguments(self) -> str: ...
    @property
    def observation(self) -> str: ...
    @property
    def action(self) -> str: ...
    @property
    def result(self) -> str: ...
    @property
    def status(self) -> str: ...


def run_digest(records: Iterable[RecordText]) -> str:
    """SHA-256 of what a run's records say, as hex; equal for word-for-word repeats and for nothing else.

    Every field is preceded by its length, so that text moved from one field or record to the next gives another digest.
    """
    digest = hashlib.sha256()
    for record in records:
        for name in _FIELDS:
            text = getattr(record, name).encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % len(text))
            digest.update(text)
    return digest.hexdigest()


def repeat_groups(digests: Sequence[str]) -> list[tuple[int, ...]]:
    """Positions of equal runs, one tuple a group of two or more, in order of first appearance.

    >>> repeat_groups(["a", "b", "a", "c", "b", "a"])
    [(0, 2, 5), (1, 4)]
    """
    places: dict[str, list[int]] = {}
    for position, digest in enumerate(digests):
        places.setdefault(digest, []).append(position)
    return [tuple(group) for group in places.values() if len(group) > 1]


def link_tasks(task_ids: Sequence[str], digests: Sequence[str]) -> list[tuple[str, ...]]:
    """Groups of different tasks that hold the same run, merged until disjoint: what `split_tasks` takes as `linked`.

    task_ids, digests: one entry a run, same order.

    >>> link_tasks(["t1", "t2", "t2", "t3", "t4"], ["a", "a", "b", "b", "c"])
    [('t1', 't2', 't3')]
    """
    pairs = [tuple(dict.fromkeys(task_ids[position] for position in group)) for group in repeat_groups(digests)]
    return [group for group in components(task_ids, pairs) if len(group) > 1]
