"""What the figures rest on (runs, tasks, groups, lengths, what was left out), and what it takes to make them again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from prefixguard.alarm import Thresholds
from prefixguard.evaluation.report.given import TEXT_LETTERS, ReportInput, name
from prefixguard.evaluation.report.sections import Made
from prefixguard.results import (
    Block,
    Facts,
    Figure,
    Key,
    Pair,
    TableBlock,
    Verbatim,
    bar_chart,
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


def composition_section(given: ReportInput) -> Made:
    """Facts, lengths, and tables of groups, splits and what was left out, where there are such."""
    table, behind = given.table, given.behind
    lengths, failed = np.asarray(behind.lengths), np.asarray(behind.failed, dtype=np.bool_)
    tasks = np.array([*Counter(behind.tasks).values()])
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
    groups, sides = _groups(given), (given.manifest.get("data") or {}).get("by_side") or {}
    by_side = {str(side): int(count) for side, count in sides.items()}
    data = {
        "lengths": {"quartiles": [float(low), float(middle), float(high)], "longest": int(lengths.max()), "bars": bars},
        "runs_a_task": {"median": float(np.median(tasks)), "most": int(tasks.max())},
        "groups": [{"group": title, "runs": n, "failed": k} for title, n, k in groups],
        "sides": by_side,
    }
    return (facts, figure, Pair(tuple(_tables(given, groups, by_side)))), data


def _lengths(lengths: np.ndarray[Any, Any], failed: np.ndarray[Any, Any]) -> tuple[Figure, list[dict[str, int]]]:
    """Lengths of failed runs above the line, of successful ones below."""
    width = max(1, math.ceil(int(lengths.max()) / BARS))
    n = (int(lengths.max()) - 1) // width + 1
    above, below = (np.bincount((lengths[part] - 1) // width, minlength=n) for part in (failed, ~failed))
    ticks = counts(float(max(above.max(), below.max())), 4)
    drawing = bar_chart(
        [str(i + 1) if width == 1 else f"{i * width + 1}–{(i + 1) * width}" for i in range(n)],
        [[(0.0, float(above[i]), "bar failed"), (-float(below[i]), 0.0, "bar well")] for i in range(n)],
        [(-value, said) for value, said in reversed(ticks[1:])] + ticks,
        "steps of a run",
        "runs",
        height=240,
        names_shown=12 if width == 1 else 9,
    )
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
    return Figure(drawing, alt, "How long runs are", keys, broad=True), bars


def _groups(given: ReportInput) -> list[tuple[str, int, int]]:
    """Name, runs and failed runs of each group, most runs first."""
    groups, failed = given.behind.groups or (), given.behind.failed
    lost = Counter(group for group, fails in zip(groups, failed, strict=False) if fails)
    found = [(group, n, lost[group]) for group, n in Counter(groups).items()]
    return sorted(found, key=lambda entry: (-entry[1], entry[0]))


def _tables(given: ReportInput, groups: list[tuple[str, int, int]], sides: dict[str, int]) -> Iterator[TableBlock]:
    if groups:
        shown, rest = groups[:GROUPS], groups[GROUPS:]
        if rest:
            shown.append((f"{len(rest)} others", sum(n for _, n, _ in rest), sum(k for _, _, k in rest)))
        what = given.table.grouped_by or "group"
        rows = [[name(title) or "–", f"{n:,}", f"{k:,}", percent(k / n)] for title, n, k in shown]
        yield TableBlock.of(f"Runs by {what}", [what.capitalize(), "runs", "failed", "share"], rows)
    out = given.table.left_out
    reasons = {
        **{f"task or repeat used for {use}": count for use, count in out.by_use.items()},
        "outcome not known": out.without_outcome,
        "no step": out.empty,
        "counted although in sample": out.in_sample,
    }
    left = [[why, f"{count:,}"] for why, count in reasons.items() if count]
    yield TableBlock.of(f"Runs left out: {out.runs:,}", ["Why", "runs"], left or [["none", "0"]])
    if sides:
        rows = [[name(side), f"{count:,}"] for side, count in sides.items()]
        yield TableBlock.of("Runs the monitor was made from, by use", ["Use", "runs"], rows)


def reproduction_section(given: ReportInput) -> Made:
    """The command, what it was run on, and the thresholds that were in force."""
    facts, by_group = dict(_facts(given)), given.alarm_groups
    blocks: list[Block] = [Verbatim(visible(given.command), "Command")] if given.command else []
    rows = [[what, plain(value, TEXT_LETTERS)] for what, value in facts.items()]
    blocks.append(TableBlock.of("Monitor, data and versions", ("What", "value"), rows, words={1}))
    blocks += _thresholds(given)
    data = {
        "command": given.command,
        "facts": facts,
        "policy": plain_value(given.policy),
        "thresholds": [
            {"budget": budget, "alarm": one.alarm, "watch": one.watch, "runs": one.n_runs, "needed": one.needed}
            for budget, one in sorted(given.thresholds.items())
        ],
        "thresholds_by_group": None if by_group is None else by_group.as_json(),
    }
    return tuple(blocks), data


def _facts(given: ReportInput) -> Iterator[tuple[str, str]]:
    manifest, policy = given.manifest, given.policy
    adapter, data = manifest.get("adapter") or {}, manifest.get("data") or {}
    through = [str(adapter.get("name", "")), str(adapter.get("version", ""))]
    through += [f"(sha256 {str(adapter['sha256'])[:12]})"] if adapter.get("sha256") else []
    made = [f"{data[key]:,} {key}" for key in ("runs", "tasks", "steps", "failed") if isinstance(data.get(key), int)]
    more = "" if policy.release is None else f", released below {number(policy.release)}"
    more += "" if not policy.cooldown else f", {policy.cooldown} steps of cool-down"
    steps = "1 step" if policy.consecutive == 1 else f"{policy.consecutive} steps in a row"
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
        "horizon": f"{given.table.horizon} steps",
        "alarm": f"{100 * policy.budget:g} % at {100 * policy.confidence:g} % confidence, after {steps}{more}",
    }
    yield from ((what, str(value)) for what, value in said.items() if value not in (None, ""))
    yield from ((str(what), str(value)) for what, value in given.facts.items())


def _thresholds(given: ReportInput) -> Iterator[TableBlock]:
    """The thresholds by budget, and those by group."""
    counted = ("calibration runs", "needed at least")
    if given.thresholds:
        rows = [
            [f"{100 * budget:g} %", _alarm(one, "refused"), number(one.watch), *_runs(one)]
            for budget, one in sorted(given.thresholds.items())
        ]
        head = ("Budget", "alarm above", "watch above", *counted)
        yield TableBlock.of("Thresholds on the risk of failing at all", head, rows)
    if given.alarm_groups is not None:
        groups = given.alarm_groups.thresholds
        by = name(groups.by)
        rows = [[name(value), _alarm(one, "the common one"), *_runs(one)] for value, one in groups.of.items()]
        caption = f"Thresholds by {by}, at a budget of {100 * given.policy.budget:g} %"
        yield TableBlock.of(caption, (by.capitalize(), "alarm above", *counted), rows)


def _alarm(one: Thresholds, without: str) -> str:
    return without if one.alarm is None else number(one.alarm)


def _runs(one: Thresholds) -> tuple[str, str]:
    return f"{one.n_runs:,}", f"{one.needed:,}"
