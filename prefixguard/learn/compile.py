"""Compile a fitted monitor to ONNX: one step of all members at once, and the graph that says what moved the risk.

The members' first layers stand side by side in one table, so that a step gathers its terms' rows once. Exported with
torch's own exporter; notes on where the code lay are stripped, so that the same weights give the same bytes.
"""

from __future__ import annotations

import logging
import warnings

import onnx
import torch
from torch import Tensor, nn

from prefixguard.errors import PrefixGuardError
from prefixguard.learn.fit import FittedMonitor
from prefixguard.learn.network import GruNetwork

_OUTCOME = 1


class StepModel(nn.Module):
    """One step of a session.

    (indices (nnz,), values (nnz,), context (d,), state (S,)) -> (logits (2,), symbol (), state (S,)); S is the members'
    GRU widths in a row.
    """

    columns: Tensor

    def __init__(self, members: list[GruNetwork], symbol: GruNetwork, tau: float) -> None:
        super().__init__()
        self.members, self.symbol, self.tau = nn.ModuleList(members), symbol, tau
        self.state_sizes = [m.width for m in members]
        self.text_sizes = [m.columns.shape[1] for m in members]
        table = torch.cat([m.columns.detach() for m in members] + [symbol.columns.detach()], dim=1)
        self.register_buffer("columns", table.contiguous())
        self.encoding = members[0].encoding

    def text(self, indices: Tensor, values: Tensor) -> Tensor:
        """Terms times their rows of the first layer: (nnz, all widths)."""
        return self.columns[indices] * values.unsqueeze(-1)

    def core(self, e: Tensor, c: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """N steps side by side: text (N, widths), context (N, C), state (N, S) -> logits (N, 2), state (N, S)."""
        texts = torch.split(e, [*self.text_sizes, e.shape[-1] - sum(self.text_sizes)], dim=-1)
        states = torch.split(state, self.state_sizes, dim=-1)
        logits, new = [], []
        for member, text, h in zip(self.members, texts[:-1], states, strict=True):
            assert isinstance(member, GruNetwork)  # ModuleList does not say so
            x, h = member.step(text, c, h, self.tau)
            logits.append(x)
            new.append(h)
        return torch.stack(logits).mean(0), torch.cat(new, dim=-1)

    def forward(self, indices: Tensor, values: Tensor, context: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        e = self.text(indices, values).sum(0, keepdim=True)  # (1, widths)
        c = self.encoding(context.unsqueeze(0))  # (1, C)
        logits, new = self.core(e, c, state.unsqueeze(0))
        symbol = self.symbol.symbol_logits(e[:, sum(self.text_sizes) :], c).argmax(-1)
        return logits.squeeze(0), symbol.squeeze(0), new.squeeze(0)


class ReasonModel(nn.Module):
    """What moved the outcome logit at a step: each context feature set to its typical value, each term taken away.

    Same inputs as `StepModel` -> (context contributions (d,), term contributions (nnz,)), positive towards failure.
    """

    typical: Tensor

    def __init__(self, step: StepModel, typical: Tensor) -> None:
        super().__init__()
        self.step = step
        self.register_buffer("typical", typical)

    def forward(self, indices: Tensor, values: Tensor, context: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        terms = self.step.text(indices, values)  # (nnz, widths)
        e = terms.sum(0, keepdim=True)  # (1, widths)
        d, n = context.shape[0], indices.shape[0]
        keep = 1 - torch.eye(d, dtype=context.dtype, device=context.device)
        varied = context * keep + self.typical * (1 - keep)  # (d, d): row j has feature j typical
        c = self.step.encoding(torch.cat((context.unsqueeze(0), varied)))  # (1 + d, C)
        h = state.unsqueeze(0)
        with_context, _ = self.step.core(e.expand(1 + d, -1), c, h.expand(1 + d, -1))
        without_term, _ = self.step.core(e - terms, c[:1].expand(n, -1), h.expand(n, -1))
        base = with_context[0, _OUTCOME]
        return base - with_context[1:, _OUTCOME], base - without_term[:, _OUTCOME]


def step_model(monitor: FittedMonitor) -> StepModel:
    """The step of a fitted monitor as a torch module on the CPU: what the ONNX graph is tested against."""
    networks = [*(m.network for m in monitor.members), monitor.symbol.network]
    for network in networks:
        network.cpu().eval()
        if not isinstance(network, GruNetwork):
            raise PrefixGuardError(f"cannot compile a {type(network).__name__}: no step is defined for it.")
    members = [m.network for m in monitor.members if isinstance(m.network, GruNetwork)]
    symbol = monitor.symbol.network
    assert isinstance(symbol, GruNetwork)
    return StepModel(members, symbol, monitor.config.tau_end).eval()


def compile_monitor(monitor: FittedMonitor) -> tuple[bytes, bytes]:
    """`model.onnx` and `reasons.onnx` as bytes."""
    step = step_model(monitor)
    reasons = ReasonModel(step, torch.from_numpy(monitor.scale.typical.copy())).eval()
    example = (
        torch.tensor([0, 1, 2]),
        torch.tensor([0.5, 0.5, 0.7]),
        torch.from_numpy(monitor.scale.typical.copy()),
        torch.zeros(sum(step.state_sizes)),
    )
    model = _export(step, example, ["logits", "symbol", "state_out"])
    return model, _export(reasons, example, ["context_contributions", "term_contributions"])


def _export(module: nn.Module, example: tuple[Tensor, ...], outputs: list[str]) -> bytes:
    nnz = torch.export.Dim("nnz", min=0, max=1 << 20)
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the exporter's own deprecations are not the user's business
            program = torch.onnx.export(
                module,
                example,
                input_names=["indices", "values", "context", "state"],
                output_names=outputs,
                dynamic_shapes={"indices": {0: nnz}, "values": {0: nnz}, "context": None, "state": None},
                dynamo=True,
                verbose=False,
                optimize=True,
            )
    finally:
        log.setLevel(level)
    if program is None:
        raise PrefixGuardError("torch exported no ONNX program. Report this with the versions of torch and onnxscript.")
    return _strip(program.model_proto)


def _strip(model: onnx.ModelProto) -> bytes:
    """Without what names files, lines and versions: weights and structure alone."""
    model.ClearField("metadata_props")
    model.producer_version = ""
    model.doc_string = ""
    for proto in (model.graph, *model.functions):
        proto.ClearField("metadata_props")
        proto.doc_string = ""
        for node in proto.node:
            node.ClearField("metadata_props")
            node.doc_string = ""
        for value in proto.value_info:
            value.ClearField("metadata_props")
            value.doc_string = ""
    for value in (*model.graph.input, *model.graph.output, *model.graph.initializer):
        value.ClearField("metadata_props")
        value.doc_string = ""
    data: bytes = model.SerializeToString(deterministic=True)
    return data
