"""Labelled runs, and auditors of one's own trained on them."""

from prefixguard.factory.labelled import (
    LabelledRun,
    MistakeLabel,
    bare_run,
    read_corpus,
    records_of,
    write_corpus,
)
from prefixguard.factory.skips import Skips

__all__ = ["LabelledRun", "MistakeLabel", "Skips", "bare_run", "read_corpus", "records_of", "write_corpus"]
