"""What the figures rest on (runs, tasks, groups, lengths, what was left out), and what it takes to make them again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from prefixguard.alarm import GroupThresholds
from prefixguard.evaluation.report.material import TEXT_LETTERS, ReportInput, name
from prefixguard.results import (
    Block,
    Facts,
    Figure,
    Key,
    Pair,
    Plot,
    Section,
    Table,
    Verbatim,
    counts,
    number,
    percent,
    plain_value,
    visible,
)
from prefixguard.runtime import plain

#: Groups that a table lists; the rest are one row.
GROUPS = 20
#: Bars of the histogram of lengths, at most.
BARS = 30


def composition_section(given: ReportInput) -> Section:
    """Facts, lengths, and tables of groups, splits and what was left out, where there are such."""
    table = given.table
    lengths = np.asarray(given.behind.lengths)
    failed = np.asarray(given.behind.failed, dtype=np.bool_)
    tasks = np.unique(np.asarray(given.behind.tasks, dtype=object), return_counts=True)[1]
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
        "sides": _sides(given),
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
    if given.behind.groups is None:
        return []
    found: dict[str, list[int]] = {}
    for group, failed in zip(given.behind.groups, given.behind.failed, strict=True):
        entry = found.setdefault(group, [0, 0])
        entry[0] += 1
        entry[1] += bool(failed)
    return sorted(((group, n, k) for group, (n, k) in found.items()), key=lambda entry: (-entry[1], entry[0]))


def _tables(given: ReportInput) -> Iterator[Table]:
    groups = _groups(given)
    if groups:
        shown, rest = groups[:GROUPS], groups[GROUPS:]
        if rest:
            shown.append((f"{len(rest)} others", sum(n for _, n, _ in rest), sum(k for _, _, k in rest)))
        what = given.table.grouped_by or "group"
        rows = [[name(title) or "–", f"{n:,}", f"{k:,}", percent(k / n)] for title, n, k in shown]
        yield Table.of(f"Runs by {what}", [what.capitalize(), "runs", "failed", "share"], rows)
    out = given.table.left_out
    reasons = [(f"task or repeat used for {use}", count) for use, count in out.by_use.items()]
    reasons += [("outcome not known", out.without_outcome), ("no step", out.empty)]
    reasons.append(("counted although in sample", out.in_sample))
    left = [[why, f"{count:,}"] for why, count in reasons if count]
    yield Table.of(f"Runs left out: {out.runs:,}", ["Why", "runs"], left or [["none", "0"]])
    if sides := [[name(side), f"{count:,}"] for side, count in _sides(given).items()]:
        yield Table.of("Runs the monitor was made from, by use", ["Use", "runs"], sides)


def _sides(given: ReportInput) -> dict[str, int]:
    """Runs that the monitor was made from, by use."""
    return {str(side): int(count) for side, count in ((given.manifest.get("data") or {}).get("by_side") or {}).items()}


def reproduction_section(given: ReportInput) -> Section:
    """The command, what it was run on, and the thresholds that were in force."""
    facts = list(_facts(given))
    blocks: list[Block] = []
    if given.command:
        blocks.append(Verbatim(visible(given.command), "Command"))
    rows = [[what, plain(value, TEXT_LETTERS)] for what, value in facts]
    blocks.append(Table.of("Monitor, data and versions", ("What", "value"), rows, words={1}))
    if given.thresholds:
        blocks.append(_thresholds(given))
    if given.alarm_groups is not None:
        blocks.append(_group_thresholds(given.alarm_groups.thresholds, given.policy.budget))
    data = {
        "command": given.command,
        "facts": dict(facts),
        "policy": plain_value(given.policy),
        "thresholds": [
            {"budget": budget, "alarm": mark.alarm, "watch": mark.watch, "runs": mark.n_runs, "needed": mark.needed}
            for budget, mark in sorted(given.thresholds.items())
        ],
        "thresholds_by_group": None if given.alarm_groups is None else given.alarm_groups.as_json(),
    }
    return Section("reproduction", "To make it again", tuple(blocks), data)


def _facts(given: ReportInput) -> Iterator[tuple[str, str]]:
    manifest = given.manifest
    adapter, data = manifest.get("adapter") or {}, manifest.get("data") or {}
    through = [str(adapter.get("name", "")), str(adapter.get("version", ""))]
    through += [f"(sha256 {str(adapter['sha256'])[:12]})"] if adapter.get("sha256") else []
    made = [f"{data[key]:,} {key}" for key in ("runs", "tasks", "steps", "failed") if isinstance(data.get(key), int)]
    said = {
        "monitor": given.monitor,
        "id of its bundle": manifest.get("id"),
        "kind": manifest.get("kind"),
        "backend": manifest.get("backend"),
        "adapter": " ".join(word for word in through if word),
        "format": manifest.get("schema"),
        "split": (manifest.get("split") or {}).get("rule"),
        "seed of the training": manifest.get("seed"),
        "trained with": ", ".join(f"{key} {value}" for key, value in sorted((manifest.get("libraries") or {}).items())),
        "made from": ", ".join(made),
    }
    yield from ((what, str(value)) for what, value in said.items() if value not in (None, ""))
    yield "horizon", f"{given.table.horizon} steps"
    policy = given.policy
    more = "" if policy.release is None else f", released below {number(policy.release)}"
    more += "" if not policy.cooldown else f", {policy.cooldown} steps of cool-down"
    steps = "1 step" if policy.consecutive == 1 else f"{policy.consecutive} steps in a row"
    yield "alarm", f"{100 * policy.budget:g} % at {100 * policy.confidence:g} % confidence, after {steps}{more}"
    yield from ((str(what), str(value)) for what, value in given.facts.items())


def _thresholds(given: ReportInput) -> Table:
    rows = [
        [
            f"{100 * budget:g} %",
            "refused" if found.alarm is None else number(found.alarm),
            number(found.watch),
            f"{found.n_runs:,}",
            f"{found.needed:,}",
        ]
        for budget, found in sorted(given.thresholds.items())
    ]
    head = ("Budget", "alarm above", "watch above", "calibration runs", "needed at least")
    return Table.of("Thresholds on the risk of failing at all", head, rows)


def _group_thresholds(groups: GroupThresholds, budget: float) -> Table:
    rows = [
        [
            name(value),
            "the common one" if one.alarm is None else number(one.alarm),
            f"{one.n_runs:,}",
            f"{one.needed:,}",
        ]
        for value, one in groups.of.items()
    ]
    by = name(groups.by)
    head = (by.capitalize(), "alarm above", "calibration runs", "needed at least")
    return Table.of(f"Thresholds by {by}, at a budget of {100 * budget:g} %", head, rows)
