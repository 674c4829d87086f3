"""A corpus of the simulation, made once a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from prefixguard.factory import LabelledRun, collect, read_corpus


@pytest.fixture(scope="session")
def corpus_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """160 runs of 40 tasks: safe ones, and failures without labels."""
    path = tmp_path_factory.mktemp("factory") / "corpus.jsonl"
    collect("simulation:3", path, count=160, tasks=40)
    return path


@pytest.fixture(scope="session")
def corpus(corpus_file: Path) -> list[LabelledRun]:
    return list(read_corpus(corpus_file))
