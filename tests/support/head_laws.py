"""The laws that every backend keeps, in one list, and `check_head`, which tries them all on a fitted monitor.

A law is a short function whose docstring is the law. It tells what breaks it, with what was measured and the bound, or
None where it is kept. Laws look at a few runs only, so that they cost seconds on any corpus; the first laws are those
that later ones rest on.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prefixguard.alarm import AlarmPolicy, Thresholds
from prefixguard.bundle import BundleParts, Calibration, Platt, open_bundle, write_bundle
from prefixguard.context import FEATURES
from prefixguard.encoder import SparseRow
from prefixguard.errors import DataError
from prefixguard.learn.calibrate import model_logits
from prefixguard.learn.compile import compile_monitor
from prefixguard.learn.corpus import Corpus, Rows, labels
from prefixguard.learn.fit import FittedMonitor
from prefixguard.learn.trainer import FittedNetwork, collate, loss_of
from prefixguard.runtime import Step, StepModel, open_model
from prefixguard.stepview import Spool, load_adapter

#: By how much two logits may differ that are to be the same: float32 sums in another order. Of the larger of 1 and
#: the logit.
ON_CPU = 1e-5
#: The same where torch computes on CUDA, whose recurrent kernels may round factors to 10 bits (TF32).
ON_CUDA = 1e-2
_RUNS, _STEPS = 12, 120  # runs looked at, and steps of each

Logits = list[NDArray[np.float64]]


class BrokenLawError(AssertionError):
    """A backend does not keep a law that all backends keep."""


@dataclass(frozen=True)
class Subject:
    """A monitor on trial. Made by `Subject.of`.

    corpus: the runs looked at and nothing else, cut to their first 120 steps. rows: theirs. model: the monitor
    compiled, written and opened. refit: fits it again from the beginning; None where nobody can.
    """

    fitted: FittedMonitor
    corpus: Corpus
    rows: Rows
    model: StepModel
    refit: Callable[[], FittedMonitor] | None = None

    @classmethod
    def of(
        cls,
        fitted: FittedMonitor,
        corpus: Corpus,
        *,
        runs: NDArray[np.int64] | None = None,
        refit: Callable[[], FittedMonitor] | None = None,
    ) -> Subject:
        """runs: as at `check_head`. Raises DataError for fewer than two runs, BundleError where it does not open."""
        chosen = spread(corpus) if runs is None else runs
        if len(chosen) < 2:
            raise DataError(f"{len(chosen)} runs to try the laws on. Give at least two: some compare runs.")
        looked_at = splice(corpus, chosen, [run_steps(corpus, r)[:_STEPS] for r in chosen.tolist()])
        return cls(fitted, looked_at, looked_at.encode(fitted.vocabulary), opened(fitted), refit)

    @property
    def runs(self) -> NDArray[np.int64]:
        """Numbers of all runs looked at."""
        return np.arange(len(self.corpus))

    def logits(self, corpus: Corpus | None = None) -> Logits:
        """What the monitor says of these runs before it is compiled, all at once."""
        if corpus is None:
            return self.fitted.logits(self.corpus, self.rows, self.runs)
        return self.fitted.logits(corpus, corpus.encode(self.fitted.vocabulary), np.arange(len(corpus)))

    def steps(self, run: int) -> Iterator[tuple[str, SparseRow, NDArray[np.float32]]]:
        """Tool, row and context of each step of a run."""
        indices, values, counts = self.rows.run(run)
        ends = np.cumsum(counts)
        for step, a, b in zip(run_steps(self.corpus, run), ends - counts, ends, strict=True):
            yield self.corpus.tool(int(step)), SparseRow(indices[a:b], values[a:b]), self.corpus.context[step]

    def watched(self, run: int) -> list[Step]:
        """What the opened model says of each step of a run."""
        said, state = [], self.model.initial
        for tool, row, context in self.steps(run):
            said.append(self.model.step(tool, row, context, state))
            state = said[-1].state
        return said

    def networks(self) -> list[tuple[str, torch.nn.Module]]:
        """The networks that were trained, each with a name: the heads' members, then that of the symbols."""
        found = []
        for i, head in enumerate(self.fitted.heads):
            members: Sequence[FittedNetwork] = getattr(head, "members", ())
            found += [(f"head {i}, member {j}", member.network) for j, member in enumerate(members)]
        return found if self.fitted.symbol is None else [*found, ("symbols", self.fitted.symbol.network)]

    @property
    def on_cuda(self) -> bool:
        """Whether torch computes some of it on CUDA."""
        return any(p.is_cuda for _, network in self.networks() for p in network.parameters())

    def unlike(self, found: Logits, expected: Logits, *, exact: bool = False) -> str | None:
        """Where two lists of logits that are to be the same are not, or None. exact: to the last bit, on a CPU.

        An array of `found` may be shorter than its partner: the rest is not compared.
        """
        bound = ON_CUDA if self.on_cuda else 0.0 if exact else ON_CPU
        for run, a, b in zip(self.corpus.run_ids, found, expected, strict=True):
            b = b[: len(a)]
            wrong = ~(np.abs(a - b) <= bound * np.maximum(1, np.abs(b)))  # NaN is wrong too
            if a.shape != b.shape or wrong.any():
                t = int(wrong.any(axis=1).argmax()) if a.shape == b.shape else 0
                gap = np.abs(a[t] - b[t]).max()
                return f"run {run!r}, step {t + 1}: logits {a[t]} and {b[t]} differ by {gap:.3g}, bound {bound:g}."
        return None


def spread(corpus: Corpus) -> NDArray[np.int64]:
    """Twelve runs, or all where there are fewer: the shortest, the longest, and evenly between by length."""
    order = np.argsort(corpus.lengths, kind="stable")
    return np.asarray(order[np.unique(np.linspace(0, len(order) - 1, _RUNS).astype(np.int64))] if len(order) else order)


def splice(corpus: Corpus, runs: NDArray[np.int64], pieces: Sequence[NDArray[np.int64]]) -> Corpus:
    """A corpus of runs with other steps: run i is called and ended as `runs[i]` and consists of the steps pieces[i]."""
    documents = Spool()
    for step in np.concatenate(pieces).tolist():
        documents.append(corpus.documents.read(step, step + 1))
    numbers = runs.tolist()
    return Corpus(
        run_ids=[corpus.run_ids[r] for r in numbers],
        task_ids=[corpus.task_ids[r] for r in numbers],
        digests=[corpus.digests[r] for r in numbers],
        groups=[corpus.groups[r] for r in numbers],
        failed=corpus.failed[runs],
        first=np.concatenate(([0], np.cumsum([len(piece) for piece in pieces]))).astype(np.int64),
        context=corpus.context[np.concatenate(pieces)],
        documents=documents,
    )


def without_text(rows: Rows, runs: NDArray[np.int64]) -> Rows:
    """The rows of all runs of a corpus, those of steps 1, 3, 5, ... emptied. runs: all numbers, in order."""
    spool, every = Spool(), []
    for r in runs.tolist():
        indices, values, counts = rows.run(r)
        full = np.arange(len(counts)) % 2 == 1
        keep = np.repeat(full, counts)
        of_index = np.uint16 if rows.index_bytes == 2 else np.int32
        spool.append(indices[keep].astype(of_index).tobytes() + values[keep].tobytes())
        every.append(np.where(full, counts, 0).astype(np.int32))
    return Rows(spool, np.concatenate(every), rows.first, rows.index_bytes, rows.n_columns)


def opened(fitted: FittedMonitor) -> StepModel:
    """The monitor compiled, written as a bundle and opened; uncalibrated, and without its adapter."""
    model, reasons = compile_monitor(fitted)
    arrays = {"typical": fitted.scale.typical, "names": np.array([f.name for f in FEATURES])}
    identity = Calibration(Platt(1.0, 0.0), Platt(1.0, 0.0), Thresholds(None, 1.0, 0, 0, 0, "no runs"), AlarmPolicy())
    adapter = load_adapter("openai_chat")  # the laws begin where texts have become rows: any adapter will do
    parts = BundleParts(adapter.to_bytes(), fitted.vocabulary.to_bytes(), arrays, model, reasons, identity)
    folder = Path(tempfile.mkdtemp(prefix="prefixguard-"))
    try:
        write_bundle(folder / "bundle", parts)
        return open_model(open_bundle(folder / "bundle"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_steps(corpus: Corpus, run: int) -> NDArray[np.int64]:
    """Numbers of the steps of a run."""
    return np.arange(corpus.first[run], corpus.first[run + 1])


#: Fewest symbols in use, as the perplexity of their use; or this share of the alphabet, where that is more.
FEWEST_SYMBOLS, SYMBOL_SHARE = 2.0, 0.1
#: Steps of the long run.
LONG = 512
#: Least size of a gradient that reaches a weight.
GRADIENT = 1e-9

Law = Callable[["Subject"], str | None]


def check_head(
    fitted: FittedMonitor,
    corpus: Corpus,
    *,
    runs: NDArray[np.int64] | None = None,
    refit: Callable[[], FittedMonitor] | None = None,
) -> None:
    """Try all laws on a fitted monitor; the first that is broken is told.

    runs: run numbers to try them on, at least two. None: twelve of the corpus, from the shortest to the longest.
    refit: fits the monitor again from the beginning; without it, that training is deterministic is not tried.
    Raises BrokenLawError, whose message names the law, what was measured and the bound; DataError for too few runs;
    BundleError where the compiled monitor does not open.
    """
    subject = Subject.of(fitted, corpus, runs=runs, refit=refit)
    for law in LAWS:
        said = law(subject)
        if said is not None:
            raise BrokenLawError(f"broken law: {name_of(law)}: {said}")


def name_of(law: Law) -> str:
    """How messages call a law.

    >>> name_of(the_future_does_not_matter)
    'the future does not matter'
    """
    return law.__name__.replace("_", " ")


def same_input_same_answer(s: Subject) -> str | None:
    """Asking twice gives the same bits, and compiling twice the same bytes."""
    said = s.unlike(s.logits(), s.logits(), exact=True)
    if said is None and compile_monitor(s.fitted) != compile_monitor(s.fitted):
        return "compiled twice, the bytes differ, bound 0."
    return said


def fitting_again_gives_the_same_bytes(s: Subject) -> str | None:
    """The same runs and configuration fit the same monitor, to the byte. On a CPU: CUDA adds in an open order."""
    if s.refit is None or s.on_cuda:
        return None
    wrong = [a != b for a, b in zip(compile_monitor(s.fitted), compile_monitor(s.refit()), strict=True)]
    return f"{sum(wrong)} of the 2 compiled graphs differ after fitting again, bound 0." if any(wrong) else None


def inputs_stay_as_they_are(s: Subject) -> str | None:
    """Neither asking nor stepping changes the corpus, a row, or the state handed in."""
    context, counts = s.corpus.context.copy(), s.rows.counts.copy()
    s.logits()
    changed = np.count_nonzero(s.corpus.context != context) + np.count_nonzero(s.rows.counts != counts)
    if changed:
        return f"asking changed {changed} numbers of the corpus, bound 0."
    for tool, row, vector in s.steps(0):
        given = [row.indices, row.values, vector, s.model.initial]
        before = [np.array(x) for x in given]
        s.model.step(tool, row, vector, s.model.initial)
        if any(not np.array_equal(a, b) for a, b in zip(given, before, strict=True)):
            return f"run {s.corpus.run_ids[0]!r}: a step changed what it was given."
    return None


def the_future_does_not_matter(s: Subject) -> str | None:
    """Logits of a prefix stay when what follows is cut off, and when it is replaced by another run's steps."""
    steps = [run_steps(s.corpus, r) for r in s.runs.tolist()]
    n = len(steps)
    cuts = [1 + (len(own) - 1) * j // n for j, own in enumerate(steps)]  # early in some runs, late in others
    whole = [logits[:cut] for logits, cut in zip(s.logits(), cuts, strict=True)]
    kept = [own[:cut] for own, cut in zip(steps, cuts, strict=True)]
    others = [np.resize(steps[(j + 1) % n][::-1], len(own) - len(kept[j])) for j, own in enumerate(steps)]
    replaced = [np.concatenate(pair) for pair in zip(kept, others, strict=True)]
    for what, pieces in (("the rest cut off", kept), ("the rest replaced", replaced)):
        said = s.unlike(whole, s.logits(splice(s.corpus, s.runs, pieces)))
        if said is not None:
            return f"{what}: {said}"
    return None


def neither_padding_nor_order_matters(s: Subject) -> str | None:
    """A run is judged alike alone, among others of any length, and wherever it stands among them."""
    together = s.logits()
    backwards = s.fitted.logits(s.corpus, s.rows, s.runs[::-1])[::-1]
    alone = [s.fitted.logits(s.corpus, s.rows, s.runs[r : r + 1])[0] for r in s.runs.tolist()]
    for what, found in (("in another order", backwards), ("alone", alone)):
        said = s.unlike(found, together)
        if said is not None:
            return f"{what}: {said}"
    return None


def step_by_step_is_the_batch(s: Subject) -> str | None:
    """The opened bundle, one step at a time, says on every prefix what the fitted heads say of whole runs."""
    return s.unlike([model_logits(s.model, s.corpus, s.rows, r) for r in s.runs.tolist()], s.logits())


def an_empty_row_is_normal(s: Subject) -> str | None:
    """Steps without a known term, the first included, are judged in finite numbers, batch and step by step alike."""
    rows = without_text(s.rows, s.runs)
    batch = s.fitted.logits(s.corpus, rows, s.runs)
    lost = sum(int(np.count_nonzero(~np.isfinite(logits))) for logits in batch)
    if lost:
        return f"{lost} logits are not finite where every second row is empty, bound 0."
    return s.unlike([model_logits(s.model, s.corpus, rows, r) for r in s.runs.tolist()], batch)


def the_state_is_bounded(s: Subject) -> str | None:
    """What is kept of a run has one size and stays finite however long the run is; and so do its logits."""
    size, state = s.model.initial.nbytes, s.model.initial
    longest = list(s.steps(int(s.corpus.lengths.argmax())))
    for t in range(LONG):
        said = s.model.step(*longest[t % len(longest)], state)
        state = said.state
        if state.nbytes != size:
            return f"the state has {state.nbytes} bytes after step {t + 1}, bound {size}."
        odd = np.count_nonzero(~np.isfinite([said.imminent, said.outcome, *state]))
        if odd:
            return f"{odd} numbers of state and logits are not finite after step {t + 1} of {LONG}, bound 0."
    return None


def sessions_do_not_see_each_other(s: Subject) -> str | None:
    """Runs watched at once on one opened model, a step of each in turn, are judged as each alone, to the bit."""
    alone = [s.watched(r) for r in s.runs.tolist()]
    waiting = {r: (iter(list(s.steps(r))), s.model.initial) for r in s.runs.tolist()}
    t = 0
    while waiting:
        for r, (steps, state) in list(waiting.items()):
            step = next(steps, None)
            if step is None:
                del waiting[r]
                continue
            said = s.model.step(*step, state)
            waiting[r] = (steps, said.state)
            if said[:3] != alone[r][t][:3]:
                found = f"{said[:3]} among others and {alone[r][t][:3]} alone"
                return f"run {s.corpus.run_ids[r]!r}, step {t + 1}: {found}; they must be equal."
        t += 1
    return None


def reasons_are_what_a_change_does(s: Subject) -> str | None:
    """What a context feature moved the outcome logit by is what setting it to its typical value moves it by; what all
    terms moved it by, what an empty row does."""
    typical, state = s.fitted.scale.typical, s.model.initial
    sets = np.eye(len(typical) + 1, dtype=np.float32)
    if getattr(s.model, "pushes", None) is None or s.model.pushes(*next(iter(s.steps(0)))[1:], state, sets) is None:
        return "the opened model gives no reasons."
    names = [*(feature.name for feature in FEATURES), "all terms"]
    nothing = SparseRow(np.empty(0, np.int64), np.empty(0, np.float32))
    for t, (tool, row, context) in enumerate(list(s.steps(0))[:4]):
        said = s.model.step(tool, row, context, state)
        for j, push in enumerate(s.model.pushes(row, context, state, sets)):
            changed, is_term = context.copy(), j == len(context)
            if not is_term:
                changed[j] = typical[j]
            moved = said.outcome - s.model.step(tool, nothing if is_term else row, changed, state).outcome
            # Both are differences of two logits, each within the bound.
            bound = 2 * ON_CPU * max(1.0, abs(said.outcome))
            if not abs(moved - push) <= bound:
                return f"step {t + 1}, {names[j]}: said {push:.6g}, the change does {moved:.6g}, bound {bound:g}."
        state = said.state
    return None


def the_gradient_reaches_the_symbols(s: Subject) -> str | None:
    """The training loss has a finite gradient at every weight of a network, and at every single symbol."""
    for name, network in s.networks():
        for weight, gradient in _gradients(s, network):
            sizes = [0.0] if gradient is None else [float(gradient.abs().sum())]
            if gradient is not None and weight == "symbols.weight":  # one row a symbol
                sizes = gradient.abs().sum(dim=1).tolist()
            reached = sum(GRADIENT <= size < np.inf for size in sizes)
            if reached < len(sizes):
                sizes_said = f"least {min(sizes):.3g}, greatest {max(sizes):.3g}, bound {GRADIENT:g}"
                return f"{name}: {weight}: gradient at {reached} of {len(sizes)} rows or weights ({sizes_said})."
    return None


def symbols_do_not_collapse(s: Subject) -> str | None:
    """The symbols in use, counted by the perplexity of their use, are at least two, and a tenth of the alphabet."""
    symbols = [step.symbol for r in s.runs.tolist() for step in s.watched(r)]
    bound = max(FEWEST_SYMBOLS, SYMBOL_SHARE * s.fitted.config.symbols)
    share = np.unique(symbols, return_counts=True)[1] / len(symbols)
    perplexity = float(np.exp(-(share * np.log(share)).sum()))
    if perplexity < bound:
        return f"perplexity {perplexity:.3g} of the symbols of {len(symbols)} steps, bound {bound:g}."
    return None


#: All laws, in the order in which `check_head` tries them.
LAWS: tuple[Law, ...] = (
    inputs_stay_as_they_are,
    same_input_same_answer,
    the_future_does_not_matter,
    neither_padding_nor_order_matters,
    step_by_step_is_the_batch,
    an_empty_row_is_normal,
    the_state_is_bounded,
    sessions_do_not_see_each_other,
    reasons_are_what_a_change_does,
    the_gradient_reaches_the_symbols,
    symbols_do_not_collapse,
    fitting_again_gives_the_same_bytes,
)


def _gradients(s: Subject, network: torch.nn.Module) -> list[tuple[str, Tensor | None]]:
    """Of the training loss at the network's weights, by name; the network and torch's randomness stay as they were."""
    named = [(name, p) for name, p in network.named_parameters() if p.requires_grad]
    device = named[0][1].device
    config, batch = s.fitted.config, collate(s.corpus, s.rows, s.runs).to(device)
    target = np.zeros((*batch.mask.shape, 2), dtype=np.float32)
    target[batch.mask.cpu().numpy()] = labels(s.corpus, config.horizon)
    was_training = network.training
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), torch.enable_grad():
        torch.manual_seed(config.seed)
        network.train()
        logits, p = network(batch, config.tau_start)
        loss = loss_of(logits, p, torch.from_numpy(target).to(device), batch.mask, config.balance)
        found = torch.autograd.grad(loss, [p for _, p in named], allow_unused=True)
    network.train(was_training)
    return [(name, gradient) for (name, _), gradient in zip(named, found, strict=True)]
