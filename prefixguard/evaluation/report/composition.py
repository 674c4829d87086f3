"""What the figures rest on: runs, tasks, groups, lengths, what was left out and why, how the data were split."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from prefixguard.evaluation.report.material import ReportInput, name
from prefixguard.results import Block, Cell, Facts, Figure, Key, Pair, Plot, Section, Table, counts, percent

#: Groups that a table lists; the rest are one row.
GROUPS = 20
#: Bars of the histogram of lengths, at most.
BARS = 30


def composition_section(given: ReportInput) -> Section:
    """Facts, lengths, and tables of groups, splits and what was left out, where there are such."""
    table = given.table
    lengths = np.asarray(given.lengths)
    failed = np.asarray(given.failed, dtype=np.bool_)
    tasks = np.unique(np.asarray(given.tasks, dtype=object), return_counts=True)[1]
    low, middle, high = np.quantile(lengths, (0.25, 0.5, 0.75))
    facts = Facts(
        (
            ("Runs", f"{table.runs:,}", f"{table.failed_runs:,} failed ({percent(table.failed_runs / table.runs)})"),
            ("Tasks", f"{table.tasks:,}", f"with {np.median(tasks):g} runs (median), at most {tasks.max():,}"),
            ("Steps", f"{table.prefixes:,}", f"{table.unknown_prefixes:,} of them not judged"),
            ("Length", f"{middle:g}", f"steps (median); quartiles {low:g} and {high:g}, longest {lengths.max():,}"),
        )
    )
    figure, bars = _lengths(lengths, failed)
    tables: list[Block] = list(_tables(given))
    data: dict[str, Any] = {
        "lengths": {"quartiles": [float(low), float(middle), float(high)], "longest": int(lengths.max()), "bars": bars},
        "runs_a_task": {"median": float(np.median(tasks)), "most": int(tasks.max())},
        "groups": [{"group": title, "runs": n, "failed": k} for title, n, k in _groups(given)],
        "sides": {} if given.monitor is None else dict(given.monitor.sides),
    }
    blocks: tuple[Block, ...] = (facts, figure, *([Pair(tuple(tables))] if tables else []))
    return Section("composition", "What the figures rest on", blocks, data)


def _lengths(lengths: np.ndarray[Any, Any], failed: np.ndarray[Any, Any]) -> tuple[Figure, list[dict[str, int]]]:
    """Lengths of failed runs above the line, of successful ones below."""
    width = max(1, math.ceil(int(lengths.max()) / BARS))
    n = (int(lengths.max()) - 1) // width + 1
    above = np.bincount((lengths[failed] - 1) // width, minlength=n)
    below = np.bincount((lengths[~failed] - 1) // width, minlength=n)
    top = counts(float(max(above.max(), below.max())), 4)
    plot = Plot((0.0, float(n)), (-top[-1][0], top[-1][0]), width=720, height=240)
    every = max(1, -(-n // (12 if width == 1 else 9)))
    names = [str(i + 1) if width == 1 else f"{i * width + 1}–{(i + 1) * width}" for i in range(n)]
    both = [(-value, said) for value, said in reversed(top[1:])] + top
    plot.axes([(i + 0.5, names[i]) for i in range(0, n, every)], both, "steps of a run", "runs")
    for i in range(n):
        plot.box((i + 0.06, 0.0), (i + 0.94, float(above[i])), "bar failed")
        plot.box((i + 0.06, -float(below[i])), (i + 0.94, 0.0), "bar well")
    medians = [
        f"{np.median(part):g} steps in the middle" if len(part) else "none"
        for part in (lengths[failed], lengths[~failed])
    ]
    keys = (Key("bar failed", "failed runs, above"), Key("bar well", "successful runs, below"))
    bars = [
        {"from": i * width + 1, "to": (i + 1) * width, "failed": int(above[i]), "successful": int(below[i])}
        for i in range(n)
    ]
    alt = f"Lengths of runs. Failed: {medians[0]}; successful: {medians[1]}; longest {int(lengths.max())}."
    return Figure(plot.svg(), alt, "How long runs are", keys, broad=True), bars


def _groups(given: ReportInput) -> list[tuple[str, int, int]]:
    """Name, runs and failed runs of each group, most runs first."""
    if given.groups is None:
        return []
    found: dict[str, list[int]] = {}
    for group, failed in zip(given.groups, given.failed, strict=True):
        entry = found.setdefault(group, [0, 0])
        entry[0] += 1
        entry[1] += bool(failed)
    return sorted(((group, n, k) for group, (n, k) in found.items()), key=lambda entry: (-entry[1], entry[0]))


def _tables(given: ReportInput) -> Iterator[Table]:
    groups = _groups(given)
    if groups:
        shown = groups[:GROUPS]
        rest = groups[GROUPS:]
        if rest:
            shown.append((f"{len(rest)} others", sum(n for _, n, _ in rest), sum(k for _, _, k in rest)))
        what = given.table.grouped_by or "group"
        yield Table.of(
            f"Runs by {what}",
            (what.capitalize(), "runs", "failed", "share"),
            tuple(
                (Cell(name(title) or "–"), Cell(f"{n:,}"), Cell(f"{k:,}"), Cell(percent(k / n)))
                for title, n, k in shown
            ),
        )
    out = given.table.left_out
    reasons = [(f"task or repeat used for {use}", count) for use, count in out.by_use.items() if count]
    reasons += [("outcome not known", out.without_outcome), ("no step", out.empty)]
    if out.in_sample:
        reasons.append(("counted although in sample", out.in_sample))
    yield Table.of(
        f"Runs left out: {out.runs:,}",
        ("Why", "runs"),
        tuple((Cell(why), Cell(f"{count:,}")) for why, count in reasons if count) or ((Cell("none"), Cell("0")),),
    )
    if given.monitor is not None and given.monitor.sides:
        yield Table.of(
            "Runs the monitor was made from, by use",
            ("Use", "runs"),
            tuple((Cell(name(side)), Cell(f"{count:,}")) for side, count in given.monitor.sides.items()),
        )
