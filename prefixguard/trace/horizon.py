"""Labels of prefixes: is the failure close?

Source: PrefixGuard 3. The horizon is inclusive: the last step and the H steps before it are positive, so a failed run
has at most H + 1 positives.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from prefixguard.errors import ConfigError


def remaining_steps(n_steps: int) -> npt.NDArray[np.int64]:
    """Steps left after each prefix: T - t for t = 1..T. Shape (T,).

    >>> remaining_steps(4)
    array([3, 2, 1, 0])
    """
    if n_steps < 0:
        raise ConfigError(f"a run cannot have {n_steps} steps.")
    return np.arange(n_steps - 1, -1, -1, dtype=np.int64)


def imminent_labels(n_steps: int, failed: bool, horizon: int) -> npt.NDArray[np.uint8]:
    """Label of each prefix: 1 iff the run failed and at most `horizon` steps remain. uint8, shape (T,).

    n_steps: T, 0 or more.
    failed: the run's outcome is FAILURE. A run whose outcome is UNKNOWN has no labels: leave it out before.
    horizon: H, 0 or more; 0 marks the last step only.
    Raises ConfigError if `horizon` or `n_steps` is negative.

    >>> imminent_labels(6, failed=True, horizon=3)
    array([0, 0, 1, 1, 1, 1], dtype=uint8)
    >>> imminent_labels(2, failed=True, horizon=3)
    array([1, 1], dtype=uint8)
    >>> imminent_labels(3, failed=False, horizon=3)
    array([0, 0, 0], dtype=uint8)
    """
    if horizon < 0:
        raise ConfigError(f"horizon is {horizon}: it counts steps before the end, so use 0 or more (default 3).")
    remaining = remaining_steps(n_steps)
    if not failed:
        return np.zeros(n_steps, dtype=np.uint8)
    return (remaining <= horizon).astype(np.uint8)
