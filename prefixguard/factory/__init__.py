"""Labelled runs, and auditors of one's own trained on them."""

from prefixguard.factory.building import build
from prefixguard.factory.collecting import collect
from prefixguard.factory.corpus_report import CorpusReport
from prefixguard.factory.importing import SETS, PublishedSet, as_messages, import_set
from prefixguard.factory.injecting import inject
from prefixguard.factory.labelled import (
    CORPUS_ADAPTER,
    LabelledRun,
    MistakeLabel,
    bare_run,
    corpus_labels,
    read_corpus,
    records_of,
    write_corpus,
)
from prefixguard.factory.replaying import replay
from prefixguard.factory.skips import Skips

__all__ = [
    "CORPUS_ADAPTER",
    "SETS",
    "CorpusReport",
    "LabelledRun",
    "MistakeLabel",
    "PublishedSet",
    "Skips",
    "as_messages",
    "bare_run",
    "build",
    "collect",
    "corpus_labels",
    "import_set",
    "inject",
    "read_corpus",
    "records_of",
    "replay",
    "write_corpus",
]
