"""The paper's splits."""

import hashlib
from collections import Counter

import pytest
from reproduce.sets import BENCHMARKS
from reproduce.splits import TaskSplit, TrajectorySplit, bucket

from prefixguard.errors import ConfigError
from prefixguard.trace import Side


def test_a_bucket_is_the_head_of_the_hash():
    for task, seed in (("tau2-airline-3", 1), ("27", 13)):
        assert bucket(task, seed) == int(hashlib.sha256(f"{seed}:{task}".encode()).hexdigest()[:16], 16) / 2**64


def test_a_task_is_on_one_side_whatever_else_there_is():
    split = TaskSplit(seed=1, validation=0.15, test=0.15)
    tasks = [f"t{n}" for n in range(500)]
    sides = dict(zip(tasks, split.sides(tasks), strict=True))
    assert split.sides(["t7", "t3", "t7"]) == [sides["t7"], sides["t3"], sides["t7"]]
    shares = {side: n / 500 for side, n in Counter(sides.values()).items()}
    assert shares == {side: pytest.approx(share, abs=0.05) for side, share in
                      ((Side.TRAIN, 0.7), (Side.VALIDATION, 0.15), (Side.TEST, 0.15))}  # fmt: skip
    for task, side in sides.items():
        place = bucket(task, 1)
        assert side is (Side.TRAIN if place < 0.7 else Side.VALIDATION if place < 0.85 else Side.TEST)


def test_webarena_takes_calibration_out_of_training():
    split = BENCHMARKS["webarena"].split
    tasks = [str(n) for n in range(812)]
    counts = Counter(split.sides(tasks))
    assert counts[Side.CALIBRATION] / 812 == pytest.approx(0.16, abs=0.04)
    outer = TaskSplit(seed=13, validation=0.1, test=0.1).sides(tasks)
    for inner_side, outer_side in zip(split.sides(tasks), outer, strict=True):
        assert inner_side is outer_side or (inner_side, outer_side) == (Side.CALIBRATION, Side.TRAIN)


def test_by_trajectory_every_task_is_on_every_side():
    split = TrajectorySplit(seed=1, calibration=0.1, validation=0.1, test=0.1)
    tasks = [f"clock-{n % 3}" for n in range(90)] + ["rare"] * 3
    sides = split.sides(tasks)
    of_task = Counter(zip(tasks, sides, strict=True))
    for task in ("clock-0", "clock-1", "clock-2"):
        assert [of_task[task, side] for side in Side if side is not Side.ALARM] == [21, 3, 3, 3]
    assert of_task["rare", Side.TRAIN] == 3
    assert split.sides(tasks) == sides, "by seed"
    assert TrajectorySplit(seed=2, calibration=0.1, validation=0.1, test=0.1).sides(tasks) != sides


def test_the_papers_seeds_and_shares():
    told = {name: (b.rows, b.split.text().split(",")[1].strip(), b.symbols) for name, b in BENCHMARKS.items()}
    assert told == {
        "webarena": (4430, "seed 13", 16),
        "tau2": (10832, "seed 1", 16),
        "skillsbench": (10951, "seed 13", 16),
        "terminalbench": (34397, "seed 1", 32),
    }


def test_shares_that_are_none_are_refused():
    with pytest.raises(ConfigError, match="together below 1"):
        TaskSplit(seed=1, validation=0.5, test=0.5)
