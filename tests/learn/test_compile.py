"""The compiled step gives what the networks give: batch = step by step = ONNX, also for an empty row."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
import torch

from prefixguard.learn.compile import ReasonModel, StepModel, compile_monitor, step_model


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


def test_onnx_equals_torch_step_with_reasons(tiny_monitor, sessions):
    torch_step = step_model(tiny_monitor.fitted)
    torch_reasons = ReasonModel(torch_step, torch.from_numpy(tiny_monitor.fitted.scale.typical.copy())).eval()
    state = np.random.default_rng(0).normal(size=sum(torch_step.state_sizes)).astype(np.float32)
    for i, v, c in _steps(tiny_monitor, 0):
        feed = {"indices": i, "values": v, "context": c, "state": state}
        tensors = [torch.from_numpy(np.array(x)) for x in feed.values()]
        with torch.no_grad():
            for mine, theirs in zip(sessions[0].run(None, feed), torch_step(*tensors), strict=True):
                np.testing.assert_allclose(mine, theirs.numpy(), atol=1e-5)
            for mine, theirs in zip(sessions[1].run(None, feed), torch_reasons(*tensors), strict=True):
                np.testing.assert_allclose(mine, theirs.numpy(), atol=2e-5)


def test_an_empty_row_is_normal(tiny_monitor, sessions):
    context = tiny_monitor.corpus.context[0]
    state = np.zeros(sessions[0].get_inputs()[3].shape[0], np.float32)
    feed = {"indices": np.empty(0, np.int64), "values": np.empty(0, np.float32), "context": context, "state": state}
    logits, symbol, new = sessions[0].run(None, feed)
    assert np.isfinite(logits).all() and symbol.shape == () and np.isfinite(new).all()
    of_context, of_terms = sessions[1].run(None, feed)
    assert of_context.shape == context.shape and of_terms.shape == (0,)


def test_a_contribution_is_what_leaving_the_term_out_changes(tiny_monitor, sessions):
    i, v, c = next(_steps(tiny_monitor, 0))
    state = np.zeros(sessions[0].get_inputs()[3].shape[0], np.float32)
    feed = {"indices": i, "values": v, "context": c, "state": state}
    whole = sessions[0].run(None, feed)[0][1]
    _, of_terms = sessions[1].run(None, feed)
    for j in range(min(5, len(i))):
        without = {**feed, "indices": np.delete(i, j), "values": np.delete(v, j)}
        assert whole - sessions[0].run(None, without)[0][1] == pytest.approx(of_terms[j], abs=1e-5)


def test_the_same_weights_give_the_same_bytes_and_name_no_file(tiny_monitor):
    one, two = compile_monitor(tiny_monitor.fitted), compile_monitor(tiny_monitor.fitted)
    assert one == two
    assert b".py" not in one[0] and b".py" not in one[1]


def test_symbols_of_the_step_are_the_symbol_network_s(tiny_monitor, sessions):
    step = step_model(tiny_monitor.fitted)
    assert isinstance(step, StepModel)
    state = np.zeros(sessions[0].get_inputs()[3].shape[0], np.float32)
    for i, v, c in _steps(tiny_monitor, 1):
        symbol = sessions[0].run(None, {"indices": i, "values": v, "context": c, "state": state})[1]
        e = (step.symbol.columns[torch.from_numpy(i)] * torch.tensor(v)[:, None]).sum(0, keepdim=True)
        with torch.no_grad():
            logits = step.symbol.symbol_logits(e, step.encoding(torch.tensor(c)[None]))
        assert int(symbol) == int(logits.argmax())
