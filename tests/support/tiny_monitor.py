"""A monitor made by hand: an ONNX step model of the bundle's contract, a few words of vocabulary, a chat adapter.

Its numbers are chosen, not trained, so that tests can say what must come out:
    outcome logit = -2 + sum over terms of weight * value + 1.0 * errors + 1.5 * call_seen + tanh-state
so failing tools, repeated calls and the word "error" in a result raise it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from prefixguard.alarm import AlarmPolicy, Thresholds
from prefixguard.bundle import BundleParts, Calibration, Platt
from prefixguard.context import FEATURES
from prefixguard.encoder import Vocabulary, ngram_names, ngrams, tokenize
from prefixguard.stepview import Adapter, StepRecord, serialize

STATE = 8
SYMBOLS = 4
BIAS = (-3.0, -2.0)
#: Weight of context features in the two logits; the others weigh nothing.
CONTEXT_WEIGHTS = {"errors": (0.5, 1.0), "call_seen": (0.5, 1.5), "step": (0.05, 0.01)}
TERM_WEIGHTS = {"result:error": 2.0, "result:not found": 1.0, "action:sorry": 0.5, "result:ok": -0.5, "tool:find": 0.1}

CHAT = {
    "schema": "prefixguard/adapter/v1",
    "name": "tiny_chat",
    "version": "1.0.0",
    "description": "Chat-completions history, for tests.",
    "container": {"format": "json", "runs": "$[*]"},
    "run": {
        "id": "$.run_id",
        "task": "$.task_id",
        "outcome": {"of": "$.reward", "type": "number", "success": {"ge": 1.0}, "failure": {"lt": 1.0}},
    },
    "events": "$.messages[*]",
    "rules": [
        {"when": {"@.role": "system"}, "emit": "skip"},
        {"when": {"@.role": "user"}, "emit": "observe", "observation": {"text": "@.content"}},
        {
            "when": {"@.role": "assistant", "@.tool_calls": {"present": True}},
            "emit": "call",
            "each": "@.tool_calls[*]",
            "action": {"text": "^.content"},
            "call_id": "@.id",
            "tool": "@.function.name",
            "arguments": {"json": "@.function.arguments"},
        },
        {"when": {"@.role": "assistant"}, "emit": "say", "action": {"text": "@.content"}},
        {
            "when": {"@.role": "tool"},
            "emit": "result",
            "call_id": "@.tool_call_id",
            "result": {"text": "@.content"},
        },
    ],
    "status": [{"when": {"result": {"re": "(?i)^\\s*(error|traceback)"}}, "is": "error"}, {"is": "ok"}],
    "budgets": {"observation": [1200, 800], "action": [1200, 800], "arguments": [1500, 500], "result": [1200, 800]},
    "hidden": ["$.reward"],
}


def vocabulary() -> Vocabulary:
    """Columns for TERM_WEIGHTS, idf 1, in order of name."""
    record = StepRecord(1, "agent", "", "find", "", "", "sorry", "ok error not found", "ok")
    tokens = tokenize(serialize(record))
    hashes = dict(zip(ngram_names(tokens), ngrams(tokens).tolist(), strict=True))
    terms = sorted(TERM_WEIGHTS)
    return Vocabulary(terms, np.array([hashes[t] for t in terms], np.uint64), np.ones(len(terms), np.float32))


def _context_weights() -> np.ndarray:
    names = [feature.name for feature in FEATURES]
    weights = np.zeros((len(names), 2), np.float32)
    for name, pair in CONTEXT_WEIGHTS.items():
        weights[names.index(name)] = pair
    return weights


def _term_weights() -> np.ndarray:
    return np.array([[TERM_WEIGHTS[t] / 2, TERM_WEIGHTS[t]] for t in sorted(TERM_WEIGHTS)], np.float32)


def _graph(
    nodes: list[Any], outputs: list[Any], constants: dict[str, np.ndarray], more_inputs: Sequence[Any] = ()
) -> bytes:
    d = len(FEATURES)
    inputs = [
        helper.make_tensor_value_info("indices", TensorProto.INT64, ["nnz"]),
        helper.make_tensor_value_info("values", TensorProto.FLOAT, ["nnz"]),
        helper.make_tensor_value_info("context", TensorProto.FLOAT, [d]),
        helper.make_tensor_value_info("state", TensorProto.FLOAT, [STATE]),
        *more_inputs,
    ]
    initializers = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


_EMBED = [
    helper.make_node("Gather", ["terms", "indices"], ["gathered"]),
    helper.make_node("Unsqueeze", ["values", "one"], ["column"]),
    helper.make_node("Mul", ["gathered", "column"], ["weighted"]),
]


def model(scale: float = 1.0) -> bytes:
    """The step. scale: on the term weights; NaN makes a model that loads only if nobody looks."""
    rng = np.random.default_rng(7)
    constants = {
        "terms": _term_weights() * np.float32(scale),
        "weights": _context_weights(),
        "bias": np.array(BIAS, np.float32),
        "carry": (np.eye(STATE) * 0.5).astype(np.float32),
        "enter": rng.normal(size=(2, STATE)).astype(np.float32) * np.float32(0.1),
        "leave": rng.normal(size=(STATE, 2)).astype(np.float32) * np.float32(0.1),
        "alphabet": rng.normal(size=(2, SYMBOLS)).astype(np.float32),
        "one": np.array([1], np.int64),
        "zero": np.array([0], np.int64),
    }
    nodes = [
        *_EMBED,
        helper.make_node("ReduceSum", ["weighted", "zero"], ["text"], keepdims=0),
        helper.make_node("MatMul", ["context", "weights"], ["history"]),
        helper.make_node("Add", ["text", "history"], ["evidence"]),
        helper.make_node("MatMul", ["state", "carry"], ["kept"]),
        helper.make_node("MatMul", ["evidence", "enter"], ["entered"]),
        helper.make_node("Add", ["kept", "entered"], ["moved"]),
        helper.make_node("Tanh", ["moved"], ["state_out"]),
        helper.make_node("MatMul", ["state_out", "leave"], ["recalled"]),
        helper.make_node("Add", ["evidence", "recalled"], ["raw"]),
        helper.make_node("Add", ["raw", "bias"], ["logits"]),
        helper.make_node("MatMul", ["evidence", "alphabet"], ["scores"]),
        helper.make_node("ArgMax", ["scores"], ["symbol"], axis=0, keepdims=0),
    ]
    outputs = [
        helper.make_tensor_value_info("logits", TensorProto.FLOAT, [2]),
        helper.make_tensor_value_info("symbol", TensorProto.INT64, []),
        helper.make_tensor_value_info("state_out", TensorProto.FLOAT, [STATE]),
    ]
    return _graph(nodes, outputs, constants)


def reasons() -> bytes:
    """What moved the outcome logit: weight times value (the small state left aside)."""
    constants = {
        "terms": np.ascontiguousarray(_term_weights()[:, 1]),
        "weights": np.ascontiguousarray(_context_weights()[:, 1]),
        "nothing": np.zeros(STATE, np.float32),
        "zero": np.array([0], np.int64),
    }
    nodes = [
        helper.make_node("Gather", ["terms", "indices"], ["gathered"]),
        helper.make_node("Mul", ["gathered", "values"], ["term_contributions"]),
        helper.make_node("Mul", ["state", "nothing"], ["ignored"]),
        helper.make_node("ReduceSum", ["ignored", "zero"], ["naught"], keepdims=0),
        helper.make_node("Mul", ["context", "weights"], ["moved"]),
        helper.make_node("Add", ["moved", "naught"], ["context_contributions"]),
    ]
    outputs = [
        helper.make_tensor_value_info("context_contributions", TensorProto.FLOAT, [len(FEATURES)]),
        helper.make_tensor_value_info("term_contributions", TensorProto.FLOAT, ["nnz"]),
    ]
    return _graph(nodes, outputs, constants)


def variants() -> bytes:
    """What moved it as `reasons` says, as the logits of variants; medians are all 0 in `parts`."""
    d = len(FEATURES)
    constants = {
        "terms": np.ascontiguousarray(_term_weights()[:, 1]),
        "weights": np.ascontiguousarray(_context_weights()[:, 1:]),
        "nothing": np.zeros(STATE, np.float32),
        "whole": np.ones(1, np.float32),
        "zero": np.array([0], np.int64),
        "one": np.array([1], np.int64),
        "sizes": np.array([d, 1], np.int64),
    }
    nodes = [
        helper.make_node("Split", ["varied", "sizes"], ["changed", "wordless"], axis=1),
        helper.make_node("Sub", ["whole", "changed"], ["others"]),
        helper.make_node("Mul", ["context", "others"], ["rows"]),
        helper.make_node("MatMul", ["rows", "weights"], ["history"]),
        helper.make_node("Gather", ["terms", "indices"], ["gathered"]),
        helper.make_node("Mul", ["gathered", "values"], ["weighted"]),
        helper.make_node("ReduceSum", ["weighted", "zero"], ["text"], keepdims=1),
        helper.make_node("Sub", ["whole", "wordless"], ["worded"]),
        helper.make_node("Mul", ["text", "worded"], ["said"]),
        helper.make_node("Gather", ["weighted", "tried"], ["each"]),
        helper.make_node("Unsqueeze", ["each", "one"], ["column"]),
        helper.make_node("MatMul", ["without", "column"], ["left_out"]),
        helper.make_node("Sub", ["said", "left_out"], ["kept"]),
        helper.make_node("Mul", ["state", "nothing"], ["ignored"]),
        helper.make_node("ReduceSum", ["ignored", "zero"], ["naught"], keepdims=1),
        helper.make_node("Add", ["kept", "history"], ["both"]),
        helper.make_node("Add", ["both", "naught"], ["logits"]),
        helper.make_node("Squeeze", ["logits", "one"], ["outcome"]),
    ]
    more = [
        helper.make_tensor_value_info("varied", TensorProto.FLOAT, ["variants", d + 1]),
        helper.make_tensor_value_info("tried", TensorProto.INT64, ["tried"]),
        helper.make_tensor_value_info("without", TensorProto.FLOAT, ["variants", "tried"]),
    ]
    outputs = [helper.make_tensor_value_info("outcome", TensorProto.FLOAT, ["variants"])]
    return _graph(nodes, outputs, constants, more)


def parts(**changes: Any) -> BundleParts:
    """Parts of the tiny bundle; keywords replace fields."""
    names = np.array([feature.name for feature in FEATURES])
    fields: dict[str, Any] = {
        "adapter": Adapter.from_bytes(json.dumps(CHAT).encode(), "tiny_chat").to_bytes(),
        "vocabulary": vocabulary().to_bytes(),
        "context_arrays": {"typical": np.zeros(len(FEATURES), np.float32), "names": names},
        "model": model(),
        "reasons": reasons(),
        "calibration": Calibration(
            imminent=Platt(1.0, 0.0),
            outcome=Platt(1.0, 0.0),
            thresholds=Thresholds(alarm=0.7, watch=0.3, n_runs=40, allowed=1, needed=22, reason=None),
            policy=AlarmPolicy(),
        ),
        "info": {
            "backend": "by hand",
            "horizon": 3,
            "seed": 13,
            "data": {"runs": 0},
            "metrics": {"outcome_auroc": 0.5},
            "training_seconds": 1.25,
        },
    }
    return BundleParts(**(fields | changes))


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def say(text: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def call(number: int, tool: str = "find", arguments: str = '{"id": 1}', text: str | None = None) -> dict[str, Any]:
    function = {"name": tool, "arguments": arguments}
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
    }


def result(number: int, text: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text}


def failing_run() -> list[dict[str, Any]]:
    """A run whose agent makes the same failing call four times: 5 steps, the risk rises at each."""
    events = [user("Where is my order?"), call(0, "look", '{"id": 7}'), result(0, "ok here it is")]
    for i in range(1, 5):
        events += [call(i), result(i, "Error: order not found")]
    return events


def calm_run(n: int = 4) -> list[dict[str, Any]]:
    """A run of n different calls, all of which work."""
    events = [user("Please check these.")]
    for i in range(n):
        events += [call(i, "look", json.dumps({"id": 100 + i})), result(i, f"ok item {i}")]
    return events
