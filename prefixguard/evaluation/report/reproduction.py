"""Everything needed to make the same figures again."""

from __future__ import annotations

from collections.abc import Iterator

from prefixguard.alarm import GroupThresholds
from prefixguard.evaluation.report.material import TEXT_LETTERS, ReportInput, name
from prefixguard.results import Block, Cell, Section, Table, Verbatim, number, visible
from prefixguard.runtime import plain


def reproduction_section(given: ReportInput) -> Section:
    """The command, what it was run on, and the thresholds that were in force."""
    facts = list(_facts(given))
    blocks: list[Block] = []
    if given.command:
        blocks.append(Verbatim(visible(given.command), "Command"))
    rows = tuple((Cell(what), Cell(plain(value, TEXT_LETTERS))) for what, value in facts)
    blocks.append(Table.of("Monitor, data and versions", ("What", "value"), rows, words={1}))
    if given.thresholds:
        blocks.append(_thresholds(given))
    if given.alarm_groups is not None:
        blocks.append(_by_group(given.alarm_groups.thresholds, given.policy.budget))
    data = {
        "command": given.command,
        "facts": dict(facts),
        "policy": {
            "budget": given.policy.budget,
            "confidence": given.policy.confidence,
            "consecutive": given.policy.consecutive,
            "release": given.policy.release,
            "cooldown": given.policy.cooldown,
        },
        "thresholds": [
            {"budget": budget, "alarm": mark.alarm, "watch": mark.watch, "runs": mark.n_runs, "needed": mark.needed}
            for budget, mark in sorted(given.thresholds.items())
        ],
        "thresholds_by_group": None if given.alarm_groups is None else given.alarm_groups.as_json(),
    }
    return Section("reproduction", "To make it again", tuple(blocks), data)


def _facts(given: ReportInput) -> Iterator[tuple[str, str]]:
    monitor = given.monitor
    if monitor is not None:
        yield "monitor", monitor.name
        named = (
            ("id of its bundle", monitor.id),
            ("kind", monitor.kind),
            ("backend", monitor.backend),
            ("adapter", monitor.adapter),
            ("format", monitor.schema),
            ("split", monitor.split),
        )
        yield from ((what, value) for what, value in named if value)
        if monitor.seed is not None:
            yield "seed of the training", str(monitor.seed)
        if monitor.libraries:
            yield "trained with", ", ".join(f"{key} {value}" for key, value in sorted(monitor.libraries.items()))
        made = [f"{monitor.data[key]:,} {key}" for key in ("runs", "tasks", "steps", "failed") if key in monitor.data]
        if made:
            yield "made from", ", ".join(made)
    yield "horizon", f"{given.table.horizon} steps"
    policy = given.policy
    more = "" if policy.release is None else f", released below {number(policy.release)}"
    more += "" if not policy.cooldown else f", {policy.cooldown} steps of cool-down"
    steps = "1 step" if policy.consecutive == 1 else f"{policy.consecutive} steps in a row"
    yield "alarm", f"{100 * policy.budget:g} % at {100 * policy.confidence:g} % confidence, after {steps}{more}"
    yield from ((str(what), str(value)) for what, value in given.facts.items())


def _thresholds(given: ReportInput) -> Table:
    rows = tuple(
        (
            Cell(f"{100 * budget:g} %"),
            Cell("refused" if mark.alarm is None else number(mark.alarm)),
            Cell(number(mark.watch)),
            Cell(f"{mark.n_runs:,}"),
            Cell(f"{mark.needed:,}"),
        )
        for budget, mark in sorted(given.thresholds.items())
    )
    head = ("Budget", "alarm above", "watch above", "calibration runs", "needed at least")
    return Table.of("Thresholds on the risk of failing at all", head, rows)


def _by_group(groups: GroupThresholds, budget: float) -> Table:
    rows = tuple(
        (
            Cell(name(value)),
            Cell("the common one" if one.alarm is None else number(one.alarm)),
            Cell(f"{one.n_runs:,}"),
            Cell(f"{one.needed:,}"),
        )
        for value, one in groups.of.items()
    )
    by = name(groups.by)
    head = (by.capitalize(), "alarm above", "calibration runs", "needed at least")
    return Table.of(f"Thresholds by {by}, at a budget of {100 * budget:g} %", head, rows)
