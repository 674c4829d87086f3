"""Practice runs for the examples: what a scripted agent does for a customer, and how it ends.

A run begins well or badly: where the order cannot be found, the agent now and then asks again with another number, and
now and then repeats itself until it gives up. So past runs tell something about a new one before its end.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from scripted_model import Reply, calls, says


@dataclass(frozen=True)
class PracticeRun:
    """task : what the customer asks. script : the model's replies. success : how the run ends."""

    task_id: str
    task: str
    script: list[Reply]
    success: bool


def find_order(id: str) -> str:
    """Find an order by its number."""
    if id.startswith("X"):
        raise LookupError(f"no order {id}")
    return f"order {id}: paid, not sent"


def refund(id: str) -> str:
    """Pay an order back."""
    return f"order {id} was paid back"


def practice_runs(n: int, seed: int = 7) -> Iterator[PracticeRun]:
    """n runs, each of a task of its own; the same for the same seed."""
    rng = random.Random(seed)
    for k in range(n):
        number, wrong = f"A{k}", f"X{k}"
        script: list[Reply] = [calls(("find_order", {"id": number}), text="I look the order up.")]
        lost = rng.random() < 0.4
        if lost or rng.random() < 0.3:
            script = [calls(("find_order", {"id": wrong})) for _ in range(rng.randint(1, 3))]
        if lost:
            script += [calls(("find_order", {"id": wrong})) for _ in range(rng.randint(3, 6))]
            script.append(says("I am sorry, I cannot find your order."))
        else:
            script += [calls(("find_order", {"id": number})), calls(("refund", {"id": number}))]
            script.append(says(f"Order {number} was paid back."))
        yield PracticeRun(f"task-{k}", f"Please pay order {number} back.", script, not lost)
