"""Division that answers NaN, not a warning, where there is nothing to divide by."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.float64]


def ratio(above: npt.ArrayLike, below: npt.ArrayLike, where: npt.ArrayLike | None = None) -> Float:
    """above / below, elementwise, float64; NaN where `below` is not positive (or `where` is false).

    >>> ratio([1.0, 1.0], [4.0, 0.0])
    array([0.25,  nan])
    """
    top, bottom = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    usable = bottom > 0 if where is None else np.asarray(where, dtype=np.bool_)
    out: Float = np.full(np.broadcast_shapes(top.shape, bottom.shape), np.nan)
    np.divide(top, bottom, out=out, where=usable)
    return out
