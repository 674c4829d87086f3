"""Fit a vocabulary: the most frequent n-grams that occur in enough tasks.

Counting is exact while at most `max_distinct` different n-grams are held; above that the rarest are dropped (and the
result says so), which bounds memory: 36 bytes a distinct n-gram, twice that at most while a batch is merged; 0.6 GB
at the default bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.encoder.tokens import ngram_names, ngrams, tokenize
from prefixguard.encoder.vocabulary import Vocabulary
from prefixguard.errors import ConfigError

#: Yields (task number, serialised record); records of one task stand together. Called twice.
Documents = Callable[[], Iterable[tuple[int, bytes]]]

_FLUSH = 1 << 20  # n-gram occurrences gathered before they are merged into the table


@dataclass(frozen=True, slots=True)
class FitReport:
    """What counting saw.

    documents: records read. distinct: different n-grams held at the end.
    dropped_below: an n-gram that occurred at most this often may have been dropped while counting, and any count may
        be short by up to as much; 0 means exact.
    """

    documents: int
    distinct: int
    dropped_below: int


#: Of each n-gram: occurrences, documents and tasks; the last task it occurred in, and how often it may have been lost.
_COLUMNS = {"tf": np.int64, "df": np.int64, "tasks": np.int32, "last_task": np.int32, "lost": np.int32}


class _Counts:
    """Sorted table of n-gram hashes with term, document and task counts.

    Above `max_distinct` entries the rarest are dropped. What an n-gram may have lost before it came (back) into the
    table is kept beside its count and reckoned in when the rarest are sought: otherwise one that comes back between
    any two prunings would be dropped every time, however often it occurs (lossy counting, Manku and Motwani 2002).
    """

    def __init__(self, max_distinct: int) -> None:
        self.max_distinct = max_distinct
        self.dropped_below = 0
        self.hashes = np.empty(0, np.uint64)
        self.columns: dict[str, NDArray[Any]] = {name: np.empty(0, dtype) for name, dtype in _COLUMNS.items()}

    def add(self, h: NDArray[np.uint64], doc: NDArray[np.int64], task: NDArray[np.int32]) -> None:
        """Merge occurrences; doc and task ascend along each array and from call to call."""
        if len(h) == 0:
            return
        order = np.argsort(h, kind="stable")  # stable: doc and task still ascend within one n-gram
        h, doc, task = h[order], doc[order], task[order]
        new_hash = np.concatenate(([True], h[1:] != h[:-1]))
        new_doc = new_hash | np.concatenate(([True], doc[1:] != doc[:-1]))
        new_task = new_hash | np.concatenate(([True], task[1:] != task[:-1]))
        at = np.flatnonzero(new_hash)
        hashes = h[at]
        tf = np.diff(at, append=len(h))
        df = np.add.reduceat(new_doc.astype(np.int64), at)
        tasks = np.add.reduceat(new_task.astype(np.int32), at)
        first_task, last_task = task[at], task[np.append(at[1:], len(h)) - 1]

        known, at = _find(self.hashes, hashes)
        new = at + np.cumsum(~known) - ~known  # places in the merged table
        is_old = np.ones(len(self.hashes) + np.count_nonzero(~known), dtype=np.bool_)
        is_old[new[~known]] = False
        self.hashes = _spread(self.hashes, is_old, 0)
        self.hashes[new] = hashes
        columns, fill = self.columns, {"last_task": -1, "lost": self.dropped_below}
        for name in columns:  # one column after the other, so that only one is in memory twice
            columns[name] = _spread(columns[name], is_old, fill.get(name, 0))
        columns["tf"][new] += tf
        columns["df"][new] += df
        columns["tasks"][new] += tasks - (columns["last_task"][new] == first_task)  # a task that goes on counts once
        columns["last_task"][new] = last_task
        if len(self.hashes) > self.max_distinct:
            # Drop all that can have occurred at most `dropped_below` times, raised to the least that helps.
            most = columns["tf"] + columns["lost"]
            n_over = len(most) - self.max_distinct
            self.dropped_below = int(np.partition(most, n_over - 1)[n_over - 1])
            keep = most > self.dropped_below
            self.hashes = self.hashes[keep]
            for name in columns:
                columns[name] = columns[name][keep]


def _find(table: NDArray[np.uint64], h: NDArray[np.uint64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which of `h` are in the ascending table, and where each is or would have to be."""
    at = table.searchsorted(h)
    known = at < len(table)
    known[known] = table[at[known]] == h[known]
    return known, at


def _spread(column: NDArray[Any], to: NDArray[np.bool_], fill: int) -> NDArray[Any]:
    """A column with the entries of `column`, in order, where `to` is set and `fill` elsewhere."""
    out = np.full(len(to), fill, dtype=column.dtype)
    out[to] = column
    return out


def fit_vocabulary(
    documents: Documents, *, max_features: int = 4096, min_tasks: int = 3, max_distinct: int = 8_000_000
) -> tuple[Vocabulary, FitReport]:
    """Choose the `max_features` n-grams of highest total count among those that occur in at least `min_tasks` tasks.

    Ties at the cut are broken by the term's name, ascending. Read twice: once to count, once to name the chosen.
    min_tasks keeps what belongs to a customer or a case (a name, an order number) from becoming a feature.
    Raises ConfigError for options out of range. Source: PrefixGuard 4.2; scikit-learn's smooth idf.
    """
    for option, value in (("max_features", max_features), ("min_tasks", min_tasks), ("max_distinct", max_distinct)):
        if value < 1:
            raise ConfigError(f"{option} is {value}; it must be at least 1.")
    counts = _Counts(max_distinct)
    gathered: list[NDArray[np.uint64]] = []
    sizes: list[tuple[int, int, int]] = []
    n_gathered = n_documents = 0

    def flush() -> None:
        nonlocal n_gathered
        if gathered:
            lengths, docs, tasks = np.array(sizes, dtype=np.int64).T
            counts.add(np.concatenate(gathered), np.repeat(docs, lengths), np.repeat(tasks.astype(np.int32), lengths))
        gathered.clear()
        sizes.clear()
        n_gathered = 0

    for task, document in documents():
        h = ngrams(tokenize(document))
        gathered.append(h)
        sizes.append((len(h), n_documents, task))
        n_documents += 1
        n_gathered += len(h)
        if n_gathered >= _FLUSH:
            flush()
    flush()

    report = FitReport(n_documents, len(counts.hashes), counts.dropped_below)
    eligible = np.flatnonzero(counts.columns["tasks"] >= min_tasks)
    if len(eligible) > max_features:
        tf = counts.columns["tf"][eligible]
        cut = np.partition(tf, len(tf) - max_features)[len(tf) - max_features]
        eligible = eligible[tf >= cut]  # with every tie at the cut; names decide below
    chosen, tf, df = counts.hashes[eligible], counts.columns["tf"][eligible], counts.columns["df"][eligible]
    names = _name(documents, chosen)
    order = sorted(range(len(chosen)), key=lambda i: (-tf[i], names[i]))[:max_features]
    order.sort(key=lambda i: names[i])
    idf = np.log((1 + n_documents) / (1 + df[order])) + 1
    return Vocabulary([names[i] for i in order], chosen[order], idf.astype(np.float32)), report


def _name(documents: Documents, chosen: NDArray[np.uint64]) -> list[str]:
    """Names of the chosen n-grams (hashes ascending), from a second reading that stops when all are found."""
    names: list[str] = [""] * len(chosen)
    missing = np.ones(len(chosen), dtype=np.bool_)
    n_missing = len(chosen)
    if n_missing == 0:
        return names
    for _, document in documents():
        tokens = tokenize(document)
        h = ngrams(tokens)
        at = np.searchsorted(chosen, h)
        at[at == len(chosen)] = 0
        fresh = np.flatnonzero(missing[at] & (chosen[at] == h))
        if len(fresh) == 0:
            continue
        words = ngram_names(tokens)
        for i in fresh.tolist():
            j = int(at[i])
            if missing[j]:
                missing[j], names[j] = False, words[i]
                n_missing -= 1
        if n_missing == 0:
            break
    return names
