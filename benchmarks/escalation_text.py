"""The tables of `escalation.py` as markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_FIGURES = (
    ("step_accuracy", "Step-Acc"),
    ("exact_f1", "Exact-F1"),
    ("false_alarm_rate", "false alarms"),
    ("errors", "runs without a verdict"),
    ("failed_calls", "calls without a verdict"),
)


def to_markdown(found: Mapping[str, Any]) -> str:
    """All tables with what they mean."""
    parts = [
        "# The escalation tier, end to end",
        "A scripted auditor of known skill behind a real HTTP server on loopback, asked by the product's own client, "
        "prompts, parser, walk and gate, on fresh runs of the simulated shop. It measures the tier, not any model. "
        f"Made by `benchmarks/escalation.py`, seed {found['seed']}, in {found['seconds']:.0f} s on two busy cores.",
        "## Measured and scripted",
        "Expected: what the script's law gives on exactly these runs (every prefix is asked until the first alarm; on "
        "a sound run of n steps a false alarm of p a call gives 1 - (1 - p)^n). z: measured minus expected in standard "
        "deviations of that law; 0 where nothing is left to chance. Retries, time-outs and parsing lie between the "
        "script and the figures.",
        _audits(found["audits"]),
        _largest(found["audits"]),
        "## Ledger",
        "Live runs, four threads at once, through `Escalator`. offered = answered + cached + dropped + failed held "
        "exactly in every row. Attempts counted are the requests that the server received, exactly, but for what was "
        "closed on its way.",
        _ledger(found["ledger"]),
        "## Cascades",
        _cascades(found),
    ]
    return "\n\n".join(parts) + "\n"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _audits(audits: Iterable[Mapping[str, Any]]) -> str:
    rows = []
    for one in audits:
        cells = [one["mode"], f"{one['calls']:,}", f"{one['requests']:,}"]
        for name, _ in _FIGURES:
            figure = one["figures"][name]
            cells.append(f"{_percent(figure['measured'])} / {_percent(figure['expected'])} ({figure['z']:+.1f})")
        rows.append(cells)
    return _table(["auditor", "calls", "requests", *(f"{head}: measured / expected (z)" for _, head in _FIGURES)], rows)


def _largest(audits: Iterable[Mapping[str, Any]]) -> str:
    audits = list(audits)
    values = [abs(one["figures"][name]["z"]) for one in audits for name, _ in _FIGURES if one["figures"][name]["sd"]]
    beyond = sum(value > 1.96 for value in values)
    return (
        f"{audits[0]['runs']} runs, {audits[0]['failed_runs']} of them failed. Of {len(values)} figures that chance "
        f"moves, {beyond} lie beyond 1.96 standard deviations (by chance alone about {0.05 * len(values):.0f}; figures "
        f"of a row are not independent); the largest is {max(values):.1f}. Run by run, "
        f"{sum(one['differing_rows'] for one in audits):,} of {sum(one['runs'] for one in audits):,} verdicts differ "
        "from what the script's coins give without a server: what z shows is the luck of these coins."
    )


def _ledger(ledgers: Iterable[Mapping[str, Any]]) -> str:
    names = ("offered", "answered", "cached", "dropped", "failed", "attempts", "requests")
    rows = []
    for one in ledgers:
        reasons = "; ".join(
            f"{end}: " + ", ".join(f"{reason} {count:,}" for reason, count in one[f"{end}_by_reason"].items())
            for end in ("dropped", "failed")
            if one[f"{end}_by_reason"]
        )
        rows.append([one["load"], *(f"{one[name]:,}" for name in names), reasons])
    return _table(["endpoint and policy", *names, "why"], rows)


def _cascades(found: Mapping[str, Any]) -> str:
    told, prices = found["cascades"], found["prices"]
    always = [point for point in told["curves"] if point["share"] == 1.0]
    parts = [
        f"{told['runs']} fresh runs, {told['failed_runs']} failed, {told['steps']:,} steps; marks chosen by "
        f"`escalation_mark` on {told['calibration_runs']} other runs so that at most the stated share of steps is "
        "above; every step above is asked about until the first alarm. Skill: the share of failed runs in which the "
        "auditor names the decisive step once it is shown (it says nothing in the others); false alarms: of every "
        "question on a prefix without a decisive mistake. 95 % over tasks.",
        f"Money: stated examples, not measurements. Hosted: {prices['in_per_million']} / {prices['out_per_million']} "
        f"a million tokens in / out. Local 7B: {prices['gpu_hour']} a GPU-hour, {prices['gpu_reads_a_second']:,} "
        f"prompt tokens and {prices['gpu_writes_a_second']:,} reply tokens a second in batches, always busy. A reply "
        f"has {prices['reply_tokens']} tokens; a prompt a fourth of its characters.",
        "### All auditors",
        "Exact-F1 / false alarms at each share.",
    ]
    shares = [mark["share"] for mark in told["marks"]]
    head = ["skill", "false alarms a call", *(f"{share:.1%} of steps" for share in shares)]
    rows = []
    for one in always:
        points = [p for p in told["curves"] if (p["hit"], p["false_alarm"]) == (one["hit"], one["false_alarm"])]
        cells = [f"{_percent(p['exact_f1'])} / {_percent(p['false_alarm_rate'])}" for p in points]
        rows.append([f"{one['hit']:.1f}", f"{one['false_alarm']:.1%}", *cells])
    parts.append(_table(head, rows))
    for hit, false_alarm in ((0.9, 0.024), (0.7, 0.01)):
        parts += [f"### Skill {hit}, false alarms {false_alarm:.1%} a call", _curve(told["curves"], hit, false_alarm)]
    checks = "; ".join(
        f"mark {one['mark']:.3f}: {one['calls']:,} calls, Exact-F1 {_percent(one['exact_f1'])} (replayed "
        f"{_percent(one['exact_f1_replayed'])}), false alarms {_percent(one['false_alarm_rate'])} (replayed "
        f"{_percent(one['false_alarm_rate_replayed'])}), {one['differing_rows']} of {one['rows']} rows differ"
        for one in told["over_http"]
    )
    parts.append(f"Two points of the first curve audited over HTTP behind the gate: {checks}.")
    return "\n\n".join(parts)


def _curve(curves: Iterable[Mapping[str, Any]], hit: float, false_alarm: float) -> str:
    head = ["share allowed", "mark", "escalated", "calls a run", "Exact-F1", "Step-Acc", "false alarms",
            "hosted, 1,000 runs", "local, 1,000 runs"]  # fmt: skip
    rows = []
    for point in curves:
        if (point["hit"], point["false_alarm"]) != (hit, false_alarm):
            continue
        rows.append(
            [
                f"{point['share']:.1%}",
                f"{point['mark']:.3f}",
                f"{point['escalated_share']:.1%}",
                f"{point['calls_a_run']:.2f}",
                f"{_percent(point['exact_f1'])} {_range(point['exact_f1_interval'])}".rstrip(),
                _percent(point["step_accuracy"]),
                f"{_percent(point['false_alarm_rate'])} {_range(point['false_alarm_interval'])}".rstrip(),
                f"{point['api_per_1000_runs']:.2f}",
                f"{point['gpu_per_1000_runs']:.2f}",
            ]
        )
    return _table(head, rows)


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _range(interval: Iterable[float] | None) -> str:
    return "" if interval is None else "({})".format(" to ".join(f"{100 * value:.1f}" for value in interval))
