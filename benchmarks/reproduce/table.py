"""Figures of both readings of a set, beside the published ones; as JSON values and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.metrics import Prefixes, Ranking, Resamples, end_oracle, interval, step_index
from reproduce.benchmark import Benchmark
from reproduce.material import READINGS
from reproduce.rows import DFA, FITTED, HORIZON, PAPER

RESAMPLES = 500
_FEWEST_TASKS = 5  # of the test side; an interval over fewer says nothing
INDEX, ORACLE = "step index", "end oracle (not causal)"
RAW = "raw-text control"


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """One reading of a set, measured.

    lengths, failed, tasks: of the test runs. scores: row -> one array (steps, 2) a seed. states: of the DFA, a seed.
    facts: counts of what was read. missing: row -> why it could not be fitted.
    """

    lengths: Sequence[int]
    failed: Sequence[bool]
    tasks: Sequence[str]
    scores: Mapping[str, Sequence[NDArray[np.float64]]]
    states: Sequence[int]
    facts: Mapping[str, Any]
    missing: Mapping[str, str]

    def auprc(self) -> dict[str, NDArray[np.float64]]:
        """AUPRC of the imminent risk by row: plain, then under each resample of tasks; mean over seeds."""
        prefixes = Prefixes.of(self.lengths, self.failed, self.tasks)
        targets = prefixes.imminent_labels(HORIZON)
        weights = Resamples.draw(prefixes.n_tasks, n=RESAMPLES, seed=13).weights
        rows = {row: [scores[:, 0] for scores in seeds] for row, seeds in self.scores.items() if seeds}
        rows |= {INDEX: [step_index(prefixes)], ORACLE: [end_oracle(prefixes)]}
        out = {}
        for row, seeds in rows.items():
            each = []
            for scores in seeds:
                ranking = Ranking(targets, scores, units=prefixes.units)
                plain = np.atleast_1d(ranking.average_precision())
                each.append(np.concatenate((plain, np.atleast_1d(ranking.average_precision(weights)))))
            out[row] = np.mean(each, axis=0)
        return out

    @property
    def prevalence(self) -> float:
        """Share of test prefixes that are imminent: the AUPRC of a constant."""
        return float(Prefixes.of(self.lengths, self.failed, self.tasks).imminent_labels(HORIZON).mean())


def compare(benchmark: Benchmark, readings: Mapping[str, Reading], protocol: Mapping[str, Any]) -> dict[str, Any]:
    """Both readings of a set as plain values; NaN is None."""
    figures = {name: reading.auprc() for name, reading in readings.items()}
    enough = all(len(set(reading.tasks)) >= _FEWEST_TASKS for reading in readings.values())
    rows: dict[str, Any] = {}
    for row in (*FITTED, INDEX, ORACLE):
        entry: dict[str, Any] = {"published": _published(benchmark, row)}
        for name in READINGS:
            values = figures.get(name, {}).get(row)
            reading = readings.get(name)
            entry[name] = {
                "auprc": None if values is None else _number(values[0]),
                "interval": None if values is None or not enough else _pair(interval(values[1:])),
            }
            if reading is not None and row in reading.missing:
                entry[name]["missing"] = reading.missing[row]
            if row == DFA and reading is not None:
                entry[name]["states"] = list(reading.states)
        pair = [figures.get(name, {}).get(row) for name in READINGS]
        if pair[0] is not None and pair[1] is not None:
            gain = pair[0] - pair[1]
            # The same tasks stand behind both readings, so a resample draws the same ones for both.
            paired = enough and readings["leaked"].tasks == readings["clean"].tasks
            entry["gain"] = {"auprc": _number(gain[0]), "interval": _pair(interval(gain[1:])) if paired else None}
        rows[row] = entry
    return {
        "set": benchmark.name,
        "title": benchmark.title,
        "leak": benchmark.leak,
        "rows_published": benchmark.rows,
        "split": benchmark.split.text(),
        "protocol": dict(protocol),
        "readings": {n: {**r.facts, "prevalence": _number(r.prevalence)} for n, r in readings.items()},
        "published": {
            PAPER: benchmark.published.strongest,
            RAW: benchmark.published.raw_text,
            DFA: benchmark.published.dfa,
            "dfa_states": benchmark.published.dfa_states,
        },
        "rows": rows,
    }


def to_markdown(result: Mapping[str, Any]) -> str:
    """A set's table."""
    shown = result["readings"].get("clean") or next(iter(result["readings"].values()))
    lines = [
        f"### {result['title']}",
        "",
        f"{shown['runs']:,} runs of {shown['tasks']:,} tasks were read (the paper had {result['rows_published']:,}); "
        f"test side {shown['test_runs']:,} runs of {shown['test_tasks']:,} tasks, {shown['test_failed']:,} failed. "
        f"Split {result['split']}. H = {HORIZON}. Seeds {', '.join(map(str, result['protocol']['seeds']))}"
        f"{'; quick' if result['protocol']['quick'] else ''}. The leak: {result['leak']}.",
        "",
        "| AUPRC imminent | with the leak | without | the leak's worth | published |",
        "| --- | --- | --- | --- | --- |",
    ]
    published = result["published"]
    for row, entry in result["rows"].items():
        name = row
        if row == PAPER:
            name = "paper's setting (published: its strongest backend)"
        elif row == DFA:
            states = [str(n) for reading in READINGS for n in entry[reading].get("states", ())]
            name = f"DFA: RPNI on learned symbols ({', '.join(states) or 'no'} states)"
        said = "" if entry["published"] is None else f"{entry['published']:.3f}"
        if row == DFA:
            said += f" ({published['dfa_states']} states)"
        cells = [_cell(entry[reading]) for reading in READINGS]
        lines.append(f"| {name} | {cells[0]} | {cells[1]} | {_cell(entry.get('gain', {}), sign=True)} | {said} |")
    lines.append(f"| {RAW} | | | | {published[RAW]:.3f} |")
    worth = [result["readings"].get(name, {}).get("prevalence") for name in READINGS]
    cells = ["" if value is None else f"{value:.3f}" for value in worth]
    lines.append(f"| a constant (prevalence) | {cells[0]} | {cells[1]} | | |")
    lines += ["", *notes(result)]
    return "\n".join(lines)


def notes(result: Mapping[str, Any]) -> list[str]:
    """What has to be known to read the table, a line each."""
    out = []
    read = {name: facts["runs"] for name, facts in result["readings"].items()}
    if any(n != result["rows_published"] for n in read.values()):
        out.append(
            f"- Not the paper's rows: {', '.join(f'{n:,} ({name})' for name, n in read.items())} instead of "
            f"{result['rows_published']:,}. Published figures stand beside, not against."
        )
    if any(facts["test_tasks"] < _FEWEST_TASKS for facts in result["readings"].values()):
        out.append(f"- Fewer than {_FEWEST_TASKS} tasks on the test side: no intervals.")
    for name, facts in result["readings"].items():
        left = [f"{n:,} {what}" for what, n in facts["left_out"].items() if n]
        if left:
            out.append(f"- Left out ({name}): {', '.join(left)}.")
    for row, entry in result["rows"].items():
        for name in READINGS:
            if "missing" in entry[name]:
                out.append(f"- {row} ({name}): {entry[name]['missing']}")
    return out


def _published(benchmark: Benchmark, row: str) -> float | None:
    return {PAPER: benchmark.published.strongest, DFA: benchmark.published.dfa}.get(row)


def _cell(entry: Mapping[str, Any], *, sign: bool = False) -> str:
    value, pair = entry.get("auprc"), entry.get("interval")
    if value is None:
        return ""
    form = "+.3f" if sign else ".3f"
    return f"{value:{form}}" + ("" if pair is None else f" ({pair[0]:{form}}, {pair[1]:{form}})")


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 4)


def _pair(pair: tuple[float, float] | None) -> list[float] | None:
    return None if pair is None else [round(pair[0], 4), round(pair[1], 4)]
