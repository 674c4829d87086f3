"""A layer looked up in a table gives what the product with the whole encoding gives, for a step and its variants."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.learn.context_layer import StepContext, VariedContext
from prefixguard.learn.graph import Graph
from prefixguard.learn.network import ContextEncoding
from prefixguard.learn.scaling import fit_scale

_D, _OUT = 5, 7
#: As it is; each feature typical; several; all.
_VARIED = np.concatenate((np.zeros((1, _D)), np.eye(_D), [[1, 0, 1, 0, 1]], np.ones((1, _D)))).astype(np.float32)
_RNG = np.random.default_rng(13)
#: A step index, a count, a share that is 0 as a rule, a number that never changes, a logarithm with a long tail.
_SEEN = np.stack(
    (
        np.tile(np.arange(1, 41), 10),
        _RNG.poisson(3, 400),
        _RNG.random(400) * (_RNG.random(400) < 0.2),
        np.full(400, 2.5),
        _RNG.exponential(1, 400) ** 3,
    ),
    axis=1,
).astype(np.float32)
_SCALE = fit_scale(_SEEN, np.full(10, 40), np.arange(10) % 3 == 0, horizon=3, bins=8)
_WEIGHT = _RNG.normal(size=(_SCALE.size, _OUT)).astype(np.float32)
_BIAS = _RNG.normal(size=_OUT).astype(np.float32)


def _session(varied: bool) -> ort.InferenceSession:
    g = Graph()
    context = VariedContext(g, "context", _SCALE.typical, "varied") if varied else StepContext(g, "context")
    outputs = [("layer", context.layer(_SCALE, "a", _WEIGHT, _BIAS), "float32", ["n", _OUT])]
    more = [("varied", "float32", ["n", _D])] if varied else []
    data = g.build([("context", "float32", [_D]), *more], [*outputs, ("rows", context.rows, "float32", ["n", _D])])
    return ort.InferenceSession(data, providers=["CPUExecutionProvider"])


_STEP, _VARIANTS = _session(False), _session(True)


def _expected(contexts: np.ndarray) -> np.ndarray:
    return ContextEncoding(_SCALE)(torch.from_numpy(contexts)).numpy().astype(np.float64) @ _WEIGHT + _BIAS


@given(
    st.integers(0, len(_SEEN) - 1), st.lists(st.floats(-1e6, 1e6, width=32), min_size=_D - 1, max_size=_D - 1),
    st.integers(1, 1000), st.integers(0, 31),
)  # fmt: skip
def test_a_layer_is_the_product_with_the_encoding(row, strange, step, mixed):
    """Of contexts as they were seen, strange ones, and all between: within 1e-5 of sums of some ten."""
    context = _SEEN[row].copy()
    given = np.array([step, *strange], dtype=np.float32)
    chosen = [bool(mixed >> i & 1) for i in range(_D)]
    context[chosen] = given[chosen]
    layer, rows = _STEP.run(None, {"context": context})
    np.testing.assert_array_equal(rows, context[None])
    np.testing.assert_allclose(layer, _expected(rows), atol=1e-5)


@pytest.mark.parametrize("row", [0, 17, 39, 399])
def test_variants_are_those_of_the_rows(row):
    """Features that are typical are, the others are as they were, to the bit."""
    context = _SEEN[row]
    layer, rows = _VARIANTS.run(None, {"context": context, "varied": _VARIED})
    np.testing.assert_array_equal(rows, np.where(_VARIED == 1, _SCALE.typical, context))
    np.testing.assert_allclose(layer, _expected(rows), atol=2e-5)
