"""The interval of a share that is none or all of its tasks: resamples are all the same there, and claim to know."""

from __future__ import annotations


def exact_interval(share: float, n_tasks: int) -> tuple[float, float]:
    """The exact 95 % interval of none (`share` 0), or all (1), of so many tasks. Source: Clopper and Pearson 1934.

    >>> [round(end, 3) for end in exact_interval(0.0, 21)]
    [0.0, 0.161]
    """
    reach = 1.0 - 0.025 ** (1.0 / max(n_tasks, 1))
    return (0.0, reach) if share < 0.5 else (1.0 - reach, 1.0)
