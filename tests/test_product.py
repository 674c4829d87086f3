"""The folders that are shipped, monitors/lab and automata/lab, are what `make product` builds.

On the machine that built them they come out the same, byte for byte; elsewhere, where sums of floats may round
otherwise, what they say of fresh runs agrees within the tolerances below.
"""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import prefixguard
from prefixguard.automata.page import SCRIPTS
from prefixguard.bundle import open_bundle
from prefixguard.learn import TrainConfig, read_toml
from prefixguard.metrics import Prefixes, average_precision
from prefixguard.runtime import Monitor, load
from prefixguard.simulation import generate, write_runs
from prefixguard.stepview import load_adapter, read_runs

ROOT = Path(__file__).parent.parent
MONITOR, AUTOMATON = ROOT / "monitors" / "lab", ROOT / "automata" / "lab"
RUNS, SEED = 1200, 13
#: Elsewhere: mean difference of the outcome risk over all steps, and difference of the imminent AUPRC.
RISK, AUPRC = 0.05, 0.08


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> list:
    """200 runs of the simulation that nothing was made from."""
    path = tmp_path_factory.mktemp("product") / "fresh.jsonl"
    import orjson

    path.write_bytes(b"".join(orjson.dumps(run) + b"\n" for run in islice(generate(RUNS + 200, SEED), RUNS, None)))
    return list(read_runs(path, load_adapter("openai_chat")))


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Both folders built anew, as the Makefile says."""
    folder = tmp_path_factory.mktemp("rebuilt")
    write_runs(folder / "lab.jsonl", RUNS, SEED)
    config = TrainConfig.from_mapping(read_toml(ROOT / "monitors" / "lab.toml")["train"], "lab.toml")
    prefixguard.train(folder / "lab.jsonl", out=folder / "monitors" / "lab", adapter="openai_chat", config=config)
    states = re.search(r"--max-states (\d+) --out automata/lab", (ROOT / "Makefile").read_text())
    assert states is not None
    prefixguard.export(
        folder / "monitors" / "lab", folder / "lab.jsonl", out=folder / "automata" / "lab", max_states=int(states[1])
    )
    return folder / "monitors" / "lab", folder / "automata" / "lab"


def test_the_shipped_automaton_is_that_of_the_shipped_monitor() -> None:
    monitor, automaton = open_bundle(MONITOR), open_bundle(AUTOMATON)
    assert automaton.manifest["teacher"]["id"] == monitor.id
    assert (automaton.kind, monitor.kind) == ("automaton", "onnx")
    for name in ("automaton.html", "automaton.svg", "automaton.dot", "GLOSSARY.md"):
        assert (AUTOMATON / name).stat().st_size > 1000


def test_the_shipped_page_is_that_of_today_s_scripts() -> None:
    page = (AUTOMATON / "automaton.html").read_text(encoding="utf-8")
    for name in SCRIPTS:
        assert (ROOT / "prefixguard" / "automata" / "page" / name).read_text(encoding="utf-8") in page, (
            f"{name} has changed: make product"
        )


@pytest.mark.slow
def test_building_them_anew_gives_the_same(rebuilt: tuple[Path, Path], fresh: list) -> None:
    for shipped, anew in zip((MONITOR, AUTOMATON), rebuilt, strict=True):
        _agree(load(shipped), load(anew), fresh)


def _agree(shipped: Monitor, anew: Monitor, fresh: list) -> None:
    if shipped.bundle.id == anew.bundle.id:
        return
    risks = [
        [[(r.imminent_risk, r.outcome_risk) for r in m.score_run(run.records)] for run in fresh]
        for m in (shipped, anew)
    ]
    theirs, ours = (np.concatenate([np.array(run) for run in each]) for each in risks)
    assert np.abs(theirs - ours)[:, 1].mean() < RISK
    failed = [run.outcome is prefixguard.Outcome.FAILURE for run in fresh]
    prefixes = Prefixes.of([len(run.records) for run in fresh], failed, [str(run.task_id) for run in fresh])
    labels = prefixes.imminent_labels(3)
    assert abs(average_precision(labels, theirs[:, 0]) - average_precision(labels, ours[:, 0])) < AUPRC
