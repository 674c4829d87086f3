"""On which side of a split every family stands, whatever corpora its runs come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prefixguard.trace import Side, link_tasks, split_tasks


@dataclass(frozen=True, slots=True)
class SplitEntry:
    """What a split needs to know of a run. task: "" where unknown. digest: of its steps. split: side that its set
    gives it, "" for none."""

    family: str
    task: str
    digest: str
    split: str
    may_train: bool


def sides_of(entries: Sequence[SplitEntry], test_share: float, seed: int) -> Mapping[str, str]:
    """Family to "train" or "test".

    Families that share a task, or the very same steps, stand on one side. A group with a run that may not be trained
    on, or that its set tests on, is on the test side; one with a run that its set trains on is on the train side if no
    run of it is of the former kind; the rest is split by hash, `test_share` of it to the test side.
    """
    both = [*((one.family, f"task {one.task}" if one.task else f"family {one.family}") for one in entries)]
    both += [(one.family, f"steps {one.digest}") for one in entries]
    linked = link_tasks([family for family, _ in both], [key for _, key in both])
    group = {family: family for family, _ in both}
    group |= {family: members[0] for members in linked for family in members}
    given: dict[str, str] = {}
    for one in entries:
        if one.split == "test" or not one.may_train:
            given[group[one.family]] = "test"
        elif one.split == "train":
            given.setdefault(group[one.family], "train")
    free = sorted({name for name in group.values() if name not in given})
    drawn = split_tasks(free, seed=seed, shares={Side.TRAIN: 1 - test_share, Side.TEST: test_share}) if free else {}
    given |= {name: "test" if side is Side.TEST else "train" for name, side in drawn.items()}
    return {family: given[name] for family, name in group.items()}
