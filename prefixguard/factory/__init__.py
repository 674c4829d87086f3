"""Labelled runs, and auditors of one's own trained on them."""

from prefixguard.factory.annotating import annotate
from prefixguard.factory.auditor_training import TrainingReport, train
from prefixguard.factory.building import build
from prefixguard.factory.collecting import collect
from prefixguard.factory.corpus_report import CorpusReport
from prefixguard.factory.factory_demo import FactoryDemo, demo
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
from prefixguard.factory.rewards import RewardConstants, hypothesis, multi_granular, three_axis
from prefixguard.factory.skips import Skips
from prefixguard.factory.stage_table import evaluate
from prefixguard.factory.training_plan import TrainingPlan, read_recipe

__all__ = [
    "CORPUS_ADAPTER",
    "SETS",
    "CorpusReport",
    "FactoryDemo",
    "LabelledRun",
    "MistakeLabel",
    "PublishedSet",
    "RewardConstants",
    "Skips",
    "TrainingPlan",
    "TrainingReport",
    "annotate",
    "as_messages",
    "bare_run",
    "build",
    "collect",
    "corpus_labels",
    "demo",
    "evaluate",
    "hypothesis",
    "import_set",
    "inject",
    "multi_granular",
    "read_corpus",
    "read_recipe",
    "records_of",
    "replay",
    "three_axis",
    "train",
    "write_corpus",
]
