"""Results of induction.py as Markdown."""

from __future__ import annotations

from typing import Any

_FIGURES = (
    ("runs", "runs"), ("records", "records"), ("records_joined", "joined"), ("tools", "tools"),
    ("tools_renamed", "renamed"), ("arguments", "arguments"), ("results", "results"), ("status", "status"),
    ("observations", "observation"), ("actions", "action"), ("outcomes", "outcomes"), ("tasks", "tasks"),
)  # fmt: skip
#: What an induced adapter has to reach: records, tools and outcomes.
AIM = 0.95


def reached(one: dict[str, Any]) -> bool:
    """Records (split speech joined) and tools at the aim, and all but no outcome wrong."""
    values = [one.get(name) for name in ("runs", "records_joined", "tools", "outcomes")]
    return (
        "error" not in one and all(value is not None and value >= AIM for value in values) and one["outcomes"] >= 0.99
    )


def text(results: dict[str, dict[str, Any]]) -> str:
    """All tables that there are results for."""
    out = ["# Adapters written offline, beside those written by hand", ""]
    for part, title in (
        ("sets", "Real sets, the shipped adapter hidden"),
        ("formats", "Public formats, against their truth"),
    ):
        if part in results:
            done = results[part]
            good = sum(map(reached, done.values()))
            out += [f"## {title}: {good} of {len(done)} reach the aim", "", *_agreements(done), ""]
    if "mutations" in results:
        out += ["## Mutated", "", *_mutations(results["mutations"]), ""]
    if "train" in results:
        out += [
            "## AUPRC through the shipped and the induced adapter",
            "",
            *_trained(results["train"], "shipped", "induced"),
            "",
        ]
    if "raw" in results:
        out += [
            "## AUPRC through raw text and the shipped adapter",
            "",
            *_trained(results["raw"], "raw", "StepView"),
            "",
        ]
    return "\n".join(out)


def _cell(value: Any) -> str:
    return (
        "" if value is None else "yes" if value is True else f"{value:.3f}" if isinstance(value, float) else str(value)
    )


def _agreements(done: dict[str, Any]) -> list[str]:
    lines = [
        f"| | {' | '.join(title for _, title in _FIGURES)} | identical | aim |",
        f"| --- |{' --- |' * (len(_FIGURES) + 2)}",
    ]
    for name, one in done.items():
        if "error" in one:
            lines.append(f"| {name} | {one['error'].replace('|', '/')[:160]} |{' |' * (len(_FIGURES))} no |")
            continue
        cells = " | ".join(_cell(one.get(key)) for key, _ in _FIGURES)
        lines.append(f"| {name} | {cells} | {'yes' if one['identical'] else ''} | {'yes' if reached(one) else 'no'} |")
    return lines


def _mutations(done: dict[str, Any]) -> list[str]:
    """A row a source, a column a mutation: records / tools / outcomes."""
    kinds = list(dict.fromkeys(key.split()[1] for key in done))
    names = list(dict.fromkeys(key.split()[0] for key in done))
    order = [
        "none",
        "rename_keys",
        "nest",
        "split_files",
        "drop_call_ids",
        "shuffle_fields",
        "noise_fields",
        "move_outcome",
    ]
    kinds.sort(key=order.index)
    lines = [
        "records (split speech joined) / tools / results / outcomes; a dash: nothing to change. Without ids nobody",
        "can tell results that come in another order than their calls: a right adapter gets 0.97 / 0.98 / 0.90 there.",
        "",
        f"| | {' | '.join(kinds)} |",
        f"| --- |{' --- |' * len(kinds)}",
    ]
    sums: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
    for name in names:
        cells = []
        for kind in kinds:
            one = done.get(f"{name} {kind}", {"changed": 0})
            if "error" in one:
                cells.append("fails")
                sums[kind].append({})
            elif "records" not in one:
                cells.append("-")
            else:
                cells.append(
                    " / ".join(_two(one.get(key)) for key in ("records_joined", "tools", "results", "outcomes"))
                )
                sums[kind].append(one)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    means = []
    for kind in kinds:
        rows = sums[kind]
        cell = " / ".join(
            _two(_mean([row.get(key, 0.0) for row in rows]))
            for key in ("records_joined", "tools", "results", "outcomes")
        )
        means.append(f"**{cell}**, {sum(map(reached, rows))} of {len(rows)}")
    lines.append(f"| mean, reach the aim | {' | '.join(means)} |")
    return lines


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _two(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _trained(done: dict[str, Any], first: str, second: str) -> list[str]:
    lines = [f"| set | runs | {first} | {second} | difference (95 %) |", "| --- | --- | --- | --- | --- |"]
    for name, one in done.items():
        if "error" in one:
            lines.append(f"| {name} | | | | {one['error'][:120]} |")
        elif one["identical"]:
            lines.append(f"| {name} | {one['runs']:,} | | | identical records |")
        else:
            low, high = one["interval"] or (float("nan"), float("nan"))
            lines.append(
                f"| {name} | {one['runs']:,} | {one['first']:.3f} | {one['second']:.3f} "
                f"| {one['difference']:+.3f} ({low:+.3f}, {high:+.3f}) |"
            )
    return lines
