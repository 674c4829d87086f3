"""The compiled step gives what the networks give: batch = step by step = ONNX, also for an empty row."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
import torch

from prefixguard.encoder import SparseRow
from prefixguard.learn.compile import compile_monitor
from prefixguard.learn.trainer import collate
from prefixguard.runtime.reasons_graph import ReasonsGraph


@pytest.fixture(scope="module")
def sessions(tiny_monitor):
    model, reasons = compile_monitor(tiny_monitor.fitted)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return ort.InferenceSession(model, options), ort.InferenceSession(reasons, options)


def _steps(tiny_monitor, run):
    corpus, rows = tiny_monitor.corpus, tiny_monitor.rows
    indices, values, counts = rows.run(run)
    ends = np.cumsum(counts)
    for t, (start, end) in enumerate(zip(ends - counts, ends, strict=True)):
        yield indices[start:end], values[start:end], corpus.context[corpus.first[run] + t]


def test_onnx_step_equals_batched_networks_on_every_prefix(tiny_monitor, sessions):
    """Within 1e-5: float32 sums in another order, over whole runs."""
    runs = np.arange(len(tiny_monitor.corpus))
    expected = tiny_monitor.fitted.logits(tiny_monitor.corpus, tiny_monitor.rows, runs)
    step = sessions[0]
    size = step.get_inputs()[3].shape[0]
    worst = 0.0
    for run in runs.tolist():
        state = np.zeros(size, np.float32)
        for t, (i, v, c) in enumerate(_steps(tiny_monitor, run)):
            logits, _, state = step.run(None, {"indices": i, "values": v, "context": c, "state": state})
            worst = max(worst, float(np.abs(logits - expected[run][t]).max()))
    assert worst < 1e-5


def test_an_empty_row_is_normal(tiny_monitor, sessions):
    context = tiny_monitor.corpus.context[0]
    state = np.zeros(sessions[0].get_inputs()[3].shape[0], np.float32)
    feed = {"indices": np.empty(0, np.int64), "values": np.empty(0, np.float32), "context": context, "state": state}
    logits, symbol, new = sessions[0].run(None, feed)
    assert np.isfinite(logits).all() and symbol.shape == () and np.isfinite(new).all()
    of_context, of_terms = ReasonsGraph(sessions[1]).contributions(SparseRow(*list(feed.values())[:2]), context, state)
    assert of_context.shape == context.shape and of_terms.shape == (0,) and np.isfinite(of_context).all()


def test_a_contribution_is_what_the_change_alone_does(tiny_monitor, sessions):
    """Leaving a term out, or setting a context feature to its typical value, with the state of a run under way."""
    step, reasons = sessions[0], ReasonsGraph(sessions[1])
    typical = tiny_monitor.fitted.scale.typical
    d = len(typical)
    sets = np.zeros((5, d + 1), np.float32)  # the last one but one is empty
    sets[0, [2, 5, 7]] = sets[1, ::3] = sets[2, d] = sets[4, [4, d]] = 1
    state = np.zeros(step.get_inputs()[3].shape[0], np.float32)
    for i, v, c in list(_steps(tiny_monitor, 0))[:5]:
        feed = {"indices": i, "values": v, "context": c, "state": state}
        logits, _, after = step.run(None, feed)
        of_context, of_terms = reasons.contributions(SparseRow(i, v), c, state)
        tried = np.argsort(-v, kind="stable")[:32]
        assert np.count_nonzero(of_terms) <= len(tried)
        for j in tried.tolist():
            without = {**feed, "indices": np.delete(i, j), "values": np.delete(v, j)}
            assert logits[1] - step.run(None, without)[0][1] == pytest.approx(of_terms[j], abs=1e-5)
        for j in range(len(c)):
            changed = c.copy()
            changed[j] = typical[j]
            assert logits[1] - step.run(None, {**feed, "context": changed})[0][1] == pytest.approx(
                of_context[j], abs=1e-5
            )
        for one, moved in zip(sets, reasons.pushes(SparseRow(i, v), c, state, sets), strict=True):
            n = 0 if one[d] else len(i)
            without = {**feed, "context": np.where(one[:d] == 1, typical, c), "indices": i[:n], "values": v[:n]}
            assert logits[1] - step.run(None, without)[0][1] == pytest.approx(moved, abs=1e-5)
        state = after


def test_the_same_weights_give_the_same_bytes_and_name_no_file(tiny_monitor):
    one, two = compile_monitor(tiny_monitor.fitted), compile_monitor(tiny_monitor.fitted)
    assert one == two
    assert b".py" not in one[0] and b".py" not in one[1]


def test_symbols_of_the_step_are_the_symbol_network_s(tiny_monitor, sessions):
    network = tiny_monitor.fitted.symbol.network.cpu().eval()
    state = np.zeros(sessions[0].get_inputs()[3].shape[0], np.float32)
    for run in (1, 2, 3):
        with torch.no_grad():
            _, p = network(collate(tiny_monitor.corpus, tiny_monitor.rows, np.array([run])), 0.25)
        for t, (i, v, c) in enumerate(_steps(tiny_monitor, run)):
            symbol = sessions[0].run(None, {"indices": i, "values": v, "context": c, "state": state})[1]
            assert int(symbol) == int(p[0, t].argmax())
