"""What moved the outcome logit at a step, by the graph of reasons that stands in a bundle beside its model.

The graph gives the logit of variants of a step: context features at their typical values, terms left out. Features that
are changed together are one variant, so that what two of them say is not counted twice. The graph of releases before
0.4.0 says by how much each feature and each term moved the logit, and nothing else; what several moved it by is then
the sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.bundle import MOST_TRIED
from prefixguard.encoder import SparseRow
from prefixguard.runtime.host import TURN

Floats = NDArray[np.float32]
_VARIANTS = {"outcome": "tensor(float)"}
_CONTRIBUTIONS = {"context_contributions": "tensor(float)", "term_contributions": "tensor(float)"}
_FIRST = np.zeros(1, np.int64)
#: In the place of an empty row, which has no place that could be tried.
_NOTHING = SparseRow(_FIRST, np.zeros(1, np.float32))


def run_of(session: Any) -> Callable[[list[str], dict[str, Any], None], Any]:
    """The call behind `InferenceSession.run`, which looks at names and owners of all inputs again at every step."""
    run: Callable[[list[str], dict[str, Any], None], Any] = getattr(session, "_sess", session).run
    return run


class ReasonsGraph:
    """The graph of a bundle. outputs: what it gives, names and types. Nothing in it changes."""

    __slots__ = ("_run", "outputs")

    def __init__(self, session: Any) -> None:
        """session: of onnxruntime, for a file that was checked when the bundle was opened."""
        self._run = run_of(session)
        is_of_variants = any(one.name == "varied" for one in session.get_inputs())
        self.outputs = _VARIANTS if is_of_variants else _CONTRIBUTIONS

    def pushes(self, row: SparseRow, context: Floats, state: Floats, sets: Floats) -> list[float]:
        """See `StepModel.pushes`."""
        if self.outputs is _CONTRIBUTIONS:
            of_context, of_terms = self.contributions(row, context, state)
            moved = sets @ np.append(of_context, of_terms.sum())
        else:
            varied = np.zeros((1 + len(sets), sets.shape[1]), np.float32)
            varied[1:] = sets
            outcome = self._outcomes(row, context, state, varied, _FIRST, np.zeros((len(varied), 1), np.float32))
            moved = outcome[0] - outcome[1:]
        pushes: list[float] = moved.tolist()
        return pushes

    def contributions(self, row: SparseRow, context: Floats, state: Floats) -> tuple[Floats, Floats]:
        """By how much each context feature (d,) and each entry of the row (nnz,) moved the outcome logit; of the
        entries those of highest weight are tried, at most 32, the others are given as 0."""
        if self.outputs is _CONTRIBUTIONS:
            TURN.give()
            feed = {"indices": row.indices, "values": row.values, "context": context, "state": state}
            of_context, of_terms = self._run(list(_CONTRIBUTIONS), feed, None)
            return of_context, of_terms
        d, tried = len(context), np.argsort(-row.values, kind="stable")[:MOST_TRIED]
        n = 1 + d + len(tried)
        varied = np.eye(n, d + 1, -1, dtype=np.float32)
        varied[:, d] = 0
        without = np.eye(n, max(len(tried), 1), -1 - d, dtype=np.float32)
        outcome = self._outcomes(row, context, state, varied, tried if len(tried) else _FIRST, without)
        moved, of_terms = outcome[0] - outcome[1:], np.zeros_like(row.values)
        of_terms[tried] = moved[d:]
        return moved[:d], of_terms

    def _outcomes(
        self, row: SparseRow, context: Floats, state: Floats, varied: Floats, tried: NDArray[np.int64], without: Floats
    ) -> Floats:
        """The outcome logit of each variant, (n,)."""
        TURN.give()  # the longest part of a step, nearly all of it in onnxruntime: other threads may work beside it
        row = row if len(row.indices) else _NOTHING
        feed = {
            "indices": row.indices, "values": row.values, "context": context, "state": state, "varied": varied,
            "tried": tried, "without": without,
        }  # fmt: skip
        outcome: Floats = self._run(list(_VARIANTS), feed, None)[0]
        return outcome
