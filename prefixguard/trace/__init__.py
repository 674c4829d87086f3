"""Runs, how they ended, and which of them is used for what."""

from prefixguard.trace.documents import Document, Documents, glob_pattern, open_documents, standard_input
from prefixguard.trace.labels import Label, LabelBook, LabelTally, read_labels
from prefixguard.trace.named_file import is_read_once, open_named, read_named
from prefixguard.trace.run import NO_OFFER, Fault, Mistake, Outcome, Run, RunOffer, imminent_labels, remaining_steps
from prefixguard.trace.split import (
    DEFAULT_SHARES,
    Move,
    Side,
    digest_of,
    link_tasks,
    move_tasks,
    repeat_groups,
    run_digest,
    split_tasks,
    task_hash,
    task_key,
)

__all__ = [
    "DEFAULT_SHARES",
    "NO_OFFER",
    "Document",
    "Documents",
    "Fault",
    "Label",
    "LabelBook",
    "LabelTally",
    "Mistake",
    "Move",
    "Outcome",
    "Run",
    "RunOffer",
    "Side",
    "digest_of",
    "glob_pattern",
    "imminent_labels",
    "is_read_once",
    "link_tasks",
    "move_tasks",
    "open_documents",
    "open_named",
    "read_labels",
    "read_named",
    "remaining_steps",
    "repeat_groups",
    "run_digest",
    "split_tasks",
    "standard_input",
    "task_hash",
    "task_key",
]
