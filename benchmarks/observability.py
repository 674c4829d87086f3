"""The scale of observability against worlds in which the observable share is known.

    python benchmarks/observability.py [--runs 20000] [--seeds 3]

Writes benchmarks/results/observability.{md,json} and prints the tables. Seeds everywhere, no times in the results, six
digits: the same bytes every time. About half a minute of one core.

Three worlds:

- memoryless: a run ends after each step with the same chance, and fails or not by a coin. A seeded share q of the
  positive prefixes scores above everything, all other scores are noise. The premise of phi holds, so phi should be what
  is measured.
- capped: the same, but runs are cut at a step cap and a run that is cut has failed. Nothing else changes; positives now
  sit at known steps, and a clock that sees nothing passes phi. So it does for the outcome label, though by less.
- simulation: support dialogues (`prefixguard.simulation`). Here q is the share of failed runs' prefixes at which the
  true risk is 1: the run is lost and the trace shows it. A score that sees just that is held against phi; the true risk
  itself also ranks what is not decided yet, so it may pass phi: hidden failures are not quite like successes.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from prefixguard.metrics import Prefixes, average_precision, phi
from prefixguard.simulation import generate

HERE = Path(__file__).parent
HORIZON = 3
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
HAZARD = 0.07  # chance to end after each step: 14 steps a run on average
FAILS = 0.4  # chance to fail, of a run that is not cut
CAPS = (15, 30)
STEP = 8  # the fixed step index
SIMULATED_RUNS = 2000
LAB_CAPS = (14, 20)

Float = npt.NDArray[np.float64]


def world(n_runs: int, seed: int, cap: int | None) -> Prefixes:
    """Runs of the memoryless world, or of the capped one."""
    rng = np.random.default_rng([seed, 0 if cap is None else cap])
    lengths = rng.geometric(HAZARD, n_runs)
    failed = rng.random(n_runs) < FAILS
    if cap is not None:
        failed |= lengths > cap
        lengths = np.minimum(lengths, cap)
    return Prefixes.of(lengths.tolist(), failed.tolist(), [str(i) for i in range(n_runs)])


def places(prefixes: Prefixes) -> dict[str, tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]]:
    """The labels, and the prefixes among which each is looked at."""
    everywhere = np.ones(len(prefixes), dtype=np.bool_)
    imminent = prefixes.imminent_labels(HORIZON)
    return {
        "outcome, all steps": (prefixes.outcome_labels, everywhere),
        "imminent, all steps": (imminent, everywhere),
        f"imminent, step {STEP}": (imminent, prefixes.step == STEP),
    }


def simulate(n_runs: int, seeds: int, cap: int | None) -> list[dict[str, Any]]:
    """A row a place and q; figures are means over seeds."""
    measured: dict[tuple[str, float], list[tuple[float, ...]]] = {}
    for seed in range(seeds):
        prefixes = world(n_runs, seed, cap)
        rng = np.random.default_rng([seed, 1])
        noise, marks = rng.random(len(prefixes)), rng.random(len(prefixes))
        for name, (labels, rows) in places(prefixes).items():
            y, steps = labels[rows], prefixes.step[rows].astype(np.float64)
            clock = average_precision(y, steps)
            for q in SHARES:
                seen = 2.0 * ((y == 1) & (marks[rows] < q))
                blind_else = average_precision(y, seen + noise[rows])
                # What is not seen is ordered by the clock; noise below its unit breaks its ties.
                clock_else = average_precision(y, 1000.0 * seen + steps + noise[rows])
                bound = phi(float(y.mean()), q)
                measured.setdefault((name, q), []).append((float(y.mean()), bound, blind_else, clock, clock_else))
    rows_out = []
    for (name, q), figures in measured.items():
        prevalence, bound, blind_else, clock, clock_else = np.mean(figures, axis=0).tolist()
        gaps = [abs(figure[2] - figure[1]) for figure in figures]
        rows_out.append(
            {
                "cap": cap,
                "place": name,
                "observable": q,
                "prevalence": prevalence,
                "phi": bound,
                "measured": blind_else,
                "largest_gap": max(gaps),
                "clock": clock,
                "measured_with_clock": clock_else,
            }
        )
    return rows_out


def lab_outcome(n_runs: int, seed: int) -> dict[str, Any]:
    """The outcome label there, lengths open: what is decided and visible, phi of its share, and the true risk."""
    runs = list(generate(n_runs, seed))
    risks = [np.array(run["metadata"]["true_risk"]) for run in runs]
    prefixes = Prefixes.of(
        [len(risk) for risk in risks], [run["outcome"] == "failure" for run in runs], [run["task_id"] for run in runs]
    )
    risk, labels = np.concatenate(risks), prefixes.outcome_labels
    decided = risk == 1.0
    q = float(decided[labels == 1].mean())
    prevalence = float(labels.mean())
    # Equal scores would share one place on the curve; phi is about a mix in random order.
    noise = np.random.default_rng(seed).random(len(prefixes))
    return {
        "runs": n_runs,
        "seed": seed,
        "decided_successes": int(decided[labels == 0].sum()),
        "prevalence": prevalence,
        "observable": q,
        "phi": phi(prevalence, q),
        "sees_what_is_decided": average_precision(labels, decided + noise / 2),
        "true_risk": average_precision(labels, risk),
        "clock": average_precision(labels, prefixes.step),
    }


def lab_imminent(n_runs: int, seed: int) -> list[dict[str, Any]]:
    """The imminent label in the simulation with open lengths and with step caps: what a clock alone reaches."""
    open_ended = [len(run["metadata"]["true_risk"]) for run in generate(n_runs, seed)]
    rows = []
    for cap in (None, *LAB_CAPS):
        runs = generate(n_runs, seed, max_steps=cap)
        failed, tasks = zip(*((run["outcome"] == "failure", run["task_id"]) for run in runs), strict=True)
        # The same seed plays the same steps up to the cap.
        lengths = open_ended if cap is None else [min(n, cap) for n in open_ended]
        prefixes = Prefixes.of(lengths, failed, tasks)
        labels = prefixes.imminent_labels(HORIZON)
        at_step = prefixes.step == STEP
        rows.append(
            {
                "cap": cap,
                "cut": 0.0 if cap is None else float(np.mean([n > cap for n in open_ended])),
                "failed": float(np.mean(failed)),
                "prevalence": float(labels.mean()),
                "phi_half": phi(float(labels.mean()), 0.5),
                "clock": average_precision(labels, prefixes.step),
                "prevalence_at_step": float(labels[at_step].mean()),
                "clock_at_step": average_precision(labels[at_step], prefixes.step[at_step]),
            }
        )
    return rows


def measure(n_runs: int, seeds: int, lab_runs: int) -> dict[str, Any]:
    """All of it, as plain values."""
    return {
        "horizon": HORIZON,
        "hazard": HAZARD,
        "fails": FAILS,
        "runs": n_runs,
        "seeds": seeds,
        "step": STEP,
        "memoryless": simulate(n_runs, seeds, None),
        "capped": [row for cap in CAPS for row in simulate(n_runs, seeds, cap)],
        "lab_outcome": lab_outcome(lab_runs, 13),
        "lab_imminent": lab_imminent(lab_runs, 13),
    }


def rounded(value: Any) -> Any:
    """Plain values with numbers to six digits; the order of a sum moves the sixteenth."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 6) if isinstance(value, float) else value


def to_markdown(result: dict[str, Any]) -> str:
    def decimals(*values: float) -> str:
        return " | ".join(f"{value:.3f}" for value in values)

    lines = [
        "# Observability: the scale against worlds in which q is known",
        "",
        f"{result['runs']:,} runs a seed, {result['seeds']} seeds, H = {result['horizon']}; a run ends after each step "
        f"with chance {result['hazard']:g} and fails with chance {result['fails']:g}. Made by "
        "`python benchmarks/observability.py`. Measured: AUPRC of a score that puts the observable positives first "
        "and everything else in random order; gap: the largest over seeds between it and phi.",
        "",
        "## Memoryless lengths: phi is what is measured",
        "",
        "| label | q | prevalence | phi | measured | gap | clock alone |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in result["memoryless"]:
        figures = (row[name] for name in ("prevalence", "phi", "measured", "largest_gap", "clock"))
        lines.append(f"| {row['place']} | {row['observable']:g} | {decimals(*figures)} |")
    lines += [
        "",
        "## A step cap breaks it",
        "",
        "Runs are cut at the cap and count as failed. The last column puts observable positives first and orders the "
        "rest by the clock: it passes phi, which is then no bound, by far for the imminent label over all steps, and "
        "for the outcome label too. At one step index it holds.",
        "",
        "| cap | label | q | prevalence | phi | measured | clock alone | observable, then clock |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in result["capped"]:
        if row["observable"] in (0.0, 0.25, 0.75):
            figures = (row[name] for name in ("prevalence", "phi", "measured", "clock", "measured_with_clock"))
            lines.append(f"| {row['cap']} | {row['place']} | {row['observable']:g} | {decimals(*figures)} |")
    lab = result["lab_outcome"]
    lines += [
        "",
        "## The simulation: outcome label over all steps, lengths open",
        "",
        f"{lab['runs']:,} runs, seed {lab['seed']}. At {100 * lab['observable']:.1f} % of the prefixes of failed runs "
        f"the run is lost in plain sight (q; {lab['decided_successes']} prefixes of successes look so).",
        "",
        "| | AUPRC |",
        "| --- | ---: |",
        f"| prevalence | {lab['prevalence']:.3f} |",
        f"| clock alone | {lab['clock']:.3f} |",
        f"| a score that sees what is decided, nothing else | {lab['sees_what_is_decided']:.3f} |",
        f"| phi at that q | {lab['phi']:.3f} |",
        f"| the true risk | {lab['true_risk']:.3f} |",
        "",
        "The true risk passes phi: before a run is lost, agents and tasks that lose oftener can be told from others, "
        "so what is not decided yet is not distributed like successes. A crossing is no estimate of q.",
        "",
        "## The simulation: a clock alone on the imminent label",
        "",
        "Lengths have a hump here even where they are open, so over all steps the clock stands above the prevalence.",
        "",
        "| cap | runs cut | failed | prevalence | clock, all steps | phi at q = .5 "
        f"| prevalence at step {result['step']} | clock there |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in result["lab_imminent"]:
        shares = f"{100 * row['cut']:.0f} % | {100 * row['failed']:.0f} %"
        names = ("prevalence", "clock", "phi_half", "prevalence_at_step", "clock_at_step")
        lines.append(f"| {row['cap'] or 'none'} | {shares} | {decimals(*(row[name] for name in names))} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20_000, help="of the simulated worlds, a seed")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--lab-runs", type=int, default=SIMULATED_RUNS)
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the results")
    options = parser.parse_args()
    result = rounded(measure(options.runs, options.seeds, options.lab_runs))
    table = to_markdown(result)
    print(table)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "observability.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    (options.out / "observability.md").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
