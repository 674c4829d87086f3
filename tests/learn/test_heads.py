"""Every backend keeps every law, and every law can be broken: heads broken on purpose, and what is said of them."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import head_laws as laws
import numpy as np
import pytest
import torch
from head_laws import LAWS, BrokenLawError, Subject, check_head, name_of

from prefixguard.errors import DataError
from prefixguard.learn import BACKENDS, FittedMonitor, LearnListener, TrainConfig, fit_monitor
from prefixguard.learn.neural_heads import NetworkHead
from prefixguard.learn.trees import LevelSymbols
from prefixguard.metrics import auroc
from prefixguard.store import Store

POOL, VALIDATION, FRESH = np.arange(48), np.arange(48, 64), np.arange(64, 120)
NEEDS_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device here")


def config_of(backend: str, device: str = "cpu") -> TrainConfig:
    """Tiny, with a window that runs go past, and just enough steps for the symbols to part."""
    return TrainConfig(
        backend=backend, device=device, epochs=8 if backend == "fsm" else 2, symbol_epochs=6, batch_runs=8, members=2,
        teacher=0.0,
        max_features=200, width=8, bypass=4, abstraction_width=8, symbols=6, bins=4, window=4, attention_heads=2,
        states=32,
    )  # fmt: skip


def fit(corpus, backend: str, device: str = "cpu", **options: Any) -> FittedMonitor:
    return fit_monitor(corpus, POOL, config_of(backend, device), validation=VALIDATION, **options)


class Stop(LearnListener):
    """Interrupts in the middle of the first network, or of the trees where there is none."""

    def __init__(self, backend: str) -> None:
        self.without_epochs = {"gbdt": "trees", "healthy": "healthy runs"}.get(backend)

    def on_stage(self, name: str, detail: str = "") -> None:
        if name == self.without_epochs:
            raise KeyboardInterrupt

    def on_epoch(self, network: str, number: int, epochs: int, loss: float, score: float | None) -> None:
        raise KeyboardInterrupt


@pytest.fixture(scope="module", params=BACKENDS)
def subject(request, lab_corpus, tmp_path_factory) -> Iterator[Subject]:
    """BACKENDS: each fitted once. Fitting again is interrupted after its first epoch and taken up."""
    checkpoints = Store(tmp_path_factory.mktemp("training"))

    def again() -> FittedMonitor:
        with pytest.raises(KeyboardInterrupt):
            fit(lab_corpus, request.param, listener=Stop(request.param), checkpoints=checkpoints)
        return fit(lab_corpus, request.param, checkpoints=checkpoints)

    return Subject.of(fit(lab_corpus, request.param), lab_corpus, refit=again)


@pytest.mark.parametrize("law", LAWS, ids=name_of)
def test_every_backend_keeps_every_law(subject, law):
    """The last law here: an interrupted training that was taken up ends with the bytes of one that was not."""
    assert law(subject) is None


# Laws can be broken. Each head below breaks the law it is listed with, and check_head says so.


@pytest.fixture(scope="module")
def sound(lab_corpus) -> FittedMonitor:
    return fit(lab_corpus, "gru")


@dataclasses.dataclass
class Like:
    """A head like another; subclasses break it."""

    head: Any

    def logits(self, corpus, rows, runs):
        return self.head.logits(corpus, rows, runs)

    def part(self, prefix: str) -> Any:
        return self.head.part(prefix)

    def facts(self) -> Mapping[str, Any]:
        return self.head.facts()


class ClearsContext(Like):
    def logits(self, corpus, rows, runs):
        said = super().logits(corpus, rows, runs)
        corpus.context[0] = 0
        return said


class Counts(Like):
    """Says something else each time it is asked."""

    asked = 0

    def logits(self, corpus, rows, runs):
        self.asked += 1
        return [x + 1e-9 * self.asked for x in super().logits(corpus, rows, runs)]


class Peeks(Like):
    """A step also knows a little of the step after it."""

    def logits(self, corpus, rows, runs):
        said = super().logits(corpus, rows, runs)
        return [x + 0.01 * np.concatenate((x[1:], x[-1:])) for x in said]


class KnowsItsPlace(Like):
    def logits(self, corpus, rows, runs):
        return [x + 1e-3 * j for j, x in enumerate(super().logits(corpus, rows, runs))]


class LostWithoutText(Like):
    def logits(self, corpus, rows, runs):
        said = super().logits(corpus, rows, runs)
        for r, x in zip(runs.tolist(), said, strict=True):
            x[rows.run(r)[2] == 0] = np.nan
        return said


@dataclasses.dataclass
class LikePart:
    """The compiled step of a head, likewise."""

    part: Any

    @property
    def adds_in_order(self) -> bool:
        return self.part.adds_in_order

    @property
    def table(self) -> Any:
        return self.part.table

    @property
    def state(self) -> int:
        return self.part.state

    def step(self, g, text, context, state):
        return self.part.step(g, text, context, state)


class ChangedWeight(LikePart):
    def step(self, g, text, context, state):
        logits, after = super().step(g, text, context, state)
        return g.node("Add", logits, g.constant("slip", np.float32(1e-4))), after


class Doubles(LikePart):
    """Keeps one number more, which doubles at every step."""

    @property
    def state(self) -> int:
        return self.part.state + 1

    def step(self, g, text, context, state):
        own, more = g.split(state, [self.part.state, 1])
        logits, after = super().step(g, text, context, own)
        more = g.node("Add", g.node("Add", more, more), g.constant("more", np.float32(1)))
        more = g.node("Expand", more, g.concat([g.node("Shape", logits, start=0, end=1), g.integers(1)]))
        return logits, g.concat([after, more])


class MindsVariants(LikePart):
    """Right for one step, wrong for the variants of it that reasons are read from."""

    def step(self, g, text, context, state):
        logits, after = super().step(g, text, context, state)
        n = g.node("Cast", g.node("Shape", logits, start=0, end=1), to=1)  # float32
        return g.node("Mul", logits, n), after


class NeverTheSame(LikePart):
    made = 0

    def step(self, g, text, context, state):
        NeverTheSame.made += 1
        logits, after = super().step(g, text, context, state)
        return g.node("Add", logits, g.constant("nothing", np.float32(NeverTheSame.made * 1e-9))), after


@dataclasses.dataclass
class WithPart(Like):
    kind: type[LikePart]

    def part(self, prefix: str) -> Any:
        return self.kind(self.head.part(prefix))


def deaf(head: NetworkHead) -> NetworkHead:
    """Its networks' symbols have no gradient."""
    members = []
    for member in head.members:
        network = copy.deepcopy(member.network)
        network.symbol_logits = lambda e, c, n=network: type(n).symbol_logits(n, e, c).detach()
        members.append(dataclasses.replace(member, network=network))
    return dataclasses.replace(head, members=tuple(members))


def one_symbol_deaf(head: NetworkHead) -> NetworkHead:
    """One symbol can never be drawn: its bias is minus infinity, near enough."""
    broken = copy.deepcopy(head)
    with torch.no_grad():
        broken.members[0].network.symbols.bias[2] = -1e4
    return broken


def with_head(make):
    return lambda sound: dataclasses.replace(sound, heads=(make(sound.heads[0]),))


def with_part(kind):
    return with_head(lambda head: WithPart(head, kind))


BROKEN = {
    "clears": (laws.inputs_stay_as_they_are, with_head(ClearsContext), r"changed \d+ numbers of the corpus"),
    "counts": (laws.same_input_same_answer, with_head(Counts), r"differ by 1e-09, bound 0\."),
    "bytes": (laws.same_input_same_answer, with_part(NeverTheSame), r"compiled twice, the bytes differ"),
    "peeks": (laws.the_future_does_not_matter, with_head(Peeks), r"cut off: run '.*', step \d+: .* bound 1e-05"),
    "order": (laws.neither_padding_nor_order_matters, with_head(KnowsItsPlace), r"in another order: .* differ by 0.0"),
    "weight": (laws.step_by_step_is_the_batch, with_part(ChangedWeight), r"differ by 0.0001, bound 1e-05"),
    "textless": (laws.an_empty_row_is_normal, with_head(LostWithoutText), r"\d+ logits are not finite"),
    "doubles": (laws.the_state_is_bounded, with_part(Doubles), r"not finite after step 128 of 512"),
    "variants": (laws.reasons_are_what_a_change_does, with_part(MindsVariants), r"the change does .* bound"),
    "deaf": (
        laws.the_gradient_reaches_the_symbols,
        with_head(deaf),
        r"head 0, member 0: abstraction_bias: gradient at 0 of 1",
    ),
    "one deaf": (
        laws.the_gradient_reaches_the_symbols,
        with_head(one_symbol_deaf),
        r"head 0, member 0: symbols.weight: gradient at 5 of 6 rows",
    ),
    "collapsed": (
        laws.symbols_do_not_collapse,
        lambda sound: dataclasses.replace(sound, symbols=LevelSymbols(np.array([1e9], np.float32))),
        r"perplexity 1 of the symbols of \d+ steps, bound 2\.",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_head_is_told_by_its_law(sound, lab_corpus, name):
    law, breaking, said = BROKEN[name]
    with pytest.raises(BrokenLawError, match=f"^broken law: {name_of(law)}: .*{said}"):
        check_head(breaking(sound), lab_corpus)


def test_a_head_that_keeps_all_laws_passes(sound, lab_corpus):
    check_head(sound, lab_corpus, runs=np.array([3, 70, 8]))


class OneStateForAll:
    """An opened model that keeps the last state itself."""

    def __init__(self, model: Any) -> None:
        self.model, self.initial, self.last = model, model.initial, model.initial

    def step(self, tool, row, context, state):
        self.last = self.model.step(tool, row, context, self.initial if state is self.initial else self.last).state
        return self.model.step(tool, row, context, self.last)


class Grows(OneStateForAll):
    """One whose state gets a number longer at every step."""

    def step(self, tool, row, context, state):
        said = self.model.step(tool, row, context, state[: len(self.initial)])
        return said._replace(state=np.concatenate((said.state, state[len(self.initial) :], [np.float32(0)])))


def test_a_model_that_mixes_sessions_or_grows_is_told(sound, lab_corpus):
    """A compiled graph can do neither; what wraps it could."""
    s = Subject.of(sound, lab_corpus)
    mixed = dataclasses.replace(s, model=OneStateForAll(s.model))
    assert "among others" in laws.sessions_do_not_see_each_other(mixed)
    grown = dataclasses.replace(s, model=Grows(s.model))
    size = s.model.initial.nbytes
    assert laws.the_state_is_bounded(grown) == f"the state has {size + 4} bytes after step 1, bound {size}."


def test_a_training_that_ends_otherwise_the_second_time_is_told(sound, lab_corpus):
    other = with_part(ChangedWeight)(sound)
    with pytest.raises(BrokenLawError, match="fitting again gives the same bytes: 2 of the 2 compiled graphs differ"):
        check_head(sound, lab_corpus, refit=lambda: other)


def test_every_law_is_broken_somewhere_here():
    told = {law for law, _, _ in BROKEN.values()}
    told |= {laws.sessions_do_not_see_each_other, laws.fitting_again_gives_the_same_bytes}
    assert told == set(LAWS)
    assert all(law.__doc__ for law in LAWS)


def test_looking_leaves_no_trace(sound, lab_corpus):
    """Neither the networks, nor torch's randomness, nor the corpus."""
    networks = [m.network for m in sound.heads[0].members]
    before = [{k: v.clone() for k, v in n.state_dict().items()} for n in networks]
    randomness, context = torch.get_rng_state(), lab_corpus.context.copy()
    check_head(sound, lab_corpus)
    assert torch.equal(torch.get_rng_state(), randomness) and np.array_equal(lab_corpus.context, context)
    for network, old in zip(networks, before, strict=True):
        assert not network.training
        assert all(torch.equal(v, old[k]) for k, v in network.state_dict().items())


def test_one_run_is_too_few(sound, lab_corpus):
    with pytest.raises(DataError, match=r"1 runs to try the laws on\. Give at least two"):
        check_head(sound, lab_corpus, runs=np.array([0]))


@NEEDS_CUDA
@pytest.mark.parametrize("backend", BACKENDS)
def test_laws_hold_of_a_monitor_fitted_on_cuda(lab_corpus, backend):
    check_head(fit(lab_corpus, backend, "cuda"), lab_corpus)


@NEEDS_CUDA
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_fit_on_cuda_ranks_as_one_on_the_cpu(lab_corpus, backend):
    """Outcome AUROC over all steps of 56 fresh runs, within 0.1: the devices draw other Gumbel noise and dropout."""
    found = []
    for device in ("cpu", "cuda"):
        fitted = fit(lab_corpus, backend, device)
        logits = fitted.logits(lab_corpus, lab_corpus.encode(fitted.vocabulary), FRESH)
        failed = np.repeat(lab_corpus.failed[FRESH], lab_corpus.lengths[FRESH])
        found.append(auroc(failed, np.concatenate(logits)[:, 1]))
    assert found[1] == pytest.approx(found[0], abs=0.1)
