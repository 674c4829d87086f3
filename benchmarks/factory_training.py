"""Do the stages of `factory train` train? A tiny model on a CPU, on runs of the simulation, three seeds.

One corpus (collect, inject, replay); each seed splits it anew (build), and trains sft, bppo and grpo, each from the
stage before, and hypotheses. Figures are of held-out families, greedy replies; the last table is an audit over the
endpoint. Ablations: grpo of the first seed without one part of the reward; sft on one source of labels.

The options of the tiny model and the constants of the reward were chosen on runs of world 0 of the simulation. The
figures are of another world, which was not looked at before they were chosen.

    python benchmarks/factory_training.py --out benchmarks/results/factory_training
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from prefixguard.auditor import HypothesisLabel
from prefixguard.auditor.audit_table import AuditRow
from prefixguard.factory import build, collect, evaluate, inject, replay
from prefixguard.factory.auditor_training import plan_of, train_as_planned
from prefixguard.factory.factory_demo import VISIBLE
from prefixguard.factory.rewards import RewardConstants
from prefixguard.factory.skips import Skips
from prefixguard.factory.training.models import load
from prefixguard.factory.training.replies import replies_of
from prefixguard.factory.training_rows import TrainingRow, read_rows

SEEDS = (1, 2, 3)
WORLD = "simulation:23"
#: A step beside the right one is worth little: one beyond the prefix is no verdict, so else naming an earlier one pays.
CONSTANTS = RewardConstants(sigma=0.5)
FIGURES = ("reward", "valid", "right", "step", "agent")
#: What is to be better than what, and in which figures.
STEPS = (
    ("base", "sft", ("reward", "step", "agent")),
    ("sft", "bppo", ("reward", "step", "agent")),
    ("bppo", "grpo", ("reward", "step", "agent")),
    ("hypotheses base", "hypotheses", ("reward", "agent")),
)
#: Of the stages table: title and figure.
AUDITED = {"F1": "exact_f1", "FAR": "false_alarm_rate", "Step-Acc": "step_accuracy", "Agent-Acc": "agent_accuracy"}
_RUNS, _TASKS, _FAULTS, _ROLLS = 3000, 750, 150, 2


def corpora(folder: Path, *, replayed: bool = False) -> dict[str, Path]:
    """Runs, injected faults, and failures of half of the runs replayed, those whose mistake is of a visible kind."""
    found = {name: folder / f"{name}.jsonl" for name in ("runs", "injected", "replayed")}
    if not found["runs"].exists():
        collect(WORLD, found["runs"], count=_RUNS, tasks=_TASKS)
    if not found["injected"].exists():
        inject(found["runs"], found["injected"], per_kind=_FAULTS, per_run=3, kinds=tuple(VISIBLE))
    if replayed and not found["replayed"].exists():
        lines = found["runs"].read_text().splitlines(keepends=True)
        (folder / "some.jsonl").write_text("".join(lines[: len(lines) // 2]))
        replay(folder / "some.jsonl", folder / "all.jsonl", rolls=_ROLLS)
        lines = (folder / "all.jsonl").read_text().splitlines(keepends=True)
        kept = (line for line in lines if json.loads(line)["labels"][0]["kind"] in VISIBLE)
        found["replayed"].write_text("".join(kept))
    return found


def figures(model: Path, rows: Sequence[TrainingRow]) -> dict[str, float]:
    """Of greedy replies to held-out rows."""
    loaded, replies = load(str(model), trainable=False), list[str]()
    for begin in range(0, len(rows), 64):
        prompts = [row.prompt for row in rows[begin : begin + 64]]
        replies += [one for (one,) in replies_of(loaded, prompts, n=1, temperature=0, reply_tokens=16, seed=0)]
    return reply_figures(rows, replies)


def reply_figures(rows: Sequence[TrainingRow], replies: Sequence[str]) -> dict[str, float]:
    """What replies are worth, one a row: mean reward, and shares.

    valid: replies that pass the gate. step, agent: of rows with a mistake, those whose step or agent is right. right:
    of all rows, the right class, or label of a hypothesis. NaN where no row counts.
    """
    sums, counts = defaultdict[str, float](float), Counter[str]()

    def add(name: str, value: float) -> None:
        sums[name] += value
        counts[name] += 1

    for row, reply in zip(rows, replies, strict=True):
        add("reward", row.reward(reply, constants=CONSTANTS))
        if row.label is not None:
            answer = row.answer(reply)
            add("valid", answer.label is not HypothesisLabel.ERROR)
            add("right", answer.label is row.label)
            if row.label is HypothesisLabel.ENTAIL:
                add("agent", set(answer.agents) == set(row.agents))
            continue
        verdict = row.verdict(reply)
        add("valid", verdict.fault == "")
        add("right", verdict.outcome.value == ("safe" if row.gold_step is None else "alarm"))
        if row.gold_step is not None:
            add("step", verdict.step == row.gold_step)
            add("agent", verdict.agent is not None and verdict.agent == row.own_agent)
    return {name: sums[name] / counts[name] if counts[name] else float("nan") for name in FIGURES}


def stage(name: str, rows: Path, out: Path, base: str | Path, seed: int, **changed: Any) -> Path:
    """Train one, unless it is there, and keep the processor time that it took."""
    began, kept = time.process_time(), out / "processor_seconds.json"
    plan = replace(plan_of(name, base=str(base), recipe=None, method=None, seed=seed), **changed)
    if not kept.exists():
        train_as_planned(plan, rows, out=out)
        kept.write_text(json.dumps(round(time.process_time() - began, 1)))
    return out


def one_seed(folder: Path, seed: int) -> dict[str, Any]:
    """All stages of one seed."""
    found = corpora(folder)
    rows = folder / f"rows-{seed}"
    if not rows.exists():
        build([found["injected"], found["runs"]], out=rows, kinds=VISIBLE, test_share=0.3, seed=seed)
    held_out = {kind: read_rows(rows / f"test-{kind}.jsonl", Skips()) for kind in ("verdicts", "hypotheses")}
    train = rows / "train-verdicts.jsonl"
    result: dict[str, Any] = {"seed": seed, "rows": json.loads((rows / "manifest.json").read_text())["rows"]}
    base: str | Path = "tiny"
    for name in ("sft", "bppo", "grpo"):
        out = stage(name, train, folder / f"{name}-{seed}", base, seed, constants=CONSTANTS)
        result[name] = {"processor_seconds": json.loads((out / "processor_seconds.json").read_text())}
        if base == "tiny":
            result["base"] = figures(out / "base", held_out["verdicts"])
        result[name] |= figures(out, held_out["verdicts"])
        base = out
    verifier = stage("hypotheses", rows / "train-hypotheses.jsonl", folder / f"hypotheses-{seed}", "tiny", seed)
    result["hypotheses"] = {"processor_seconds": json.loads((verifier / "processor_seconds.json").read_text())}
    result["hypotheses base"] = figures(verifier / "base", held_out["hypotheses"])
    result["hypotheses"] |= figures(verifier, held_out["hypotheses"])
    return result


def ablations(folder: Path, seed: int) -> dict[str, dict[str, float]]:
    """Parts of the reward, and sources of labels."""
    rows, found = folder / f"rows-{seed}", corpora(folder, replayed=True)
    held_out = read_rows(rows / "test-verdicts.jsonl", Skips())
    result = {}
    for name, constants in (
        ("no step reward", replace(CONSTANTS, step=0.0, agent=1.0)),
        ("no agent reward", replace(CONSTANTS, step=1.0, agent=0.0)),
    ):
        out = folder / name.replace(" ", "-")
        train = rows / "train-verdicts.jsonl"
        result[name] = figures(stage("grpo", train, out, folder / f"bppo-{seed}", seed, constants=constants), held_out)
    both = folder / "rows-both"
    if not both.exists():
        build([found["injected"], found["replayed"], found["runs"]], out=both, test_share=0.3, seed=seed)
    result |= sources(folder, found, both, seed)
    return result


def sources(folder: Path, found: Mapping[str, Path], both: Path, seed: int) -> dict[str, dict[str, float]]:
    """sft on one source of labels, and on both; measured on held-out rows of both."""
    held_out, result = read_rows(both / "test-verdicts.jsonl", Skips()), dict[str, dict[str, float]]()
    chosen = {"injected only": {"injected"}, "replayed only": {"replayed"}, "injected and replayed": None}
    origin = {
        json.loads(line)["run_id"]: name
        for name in ("injected", "replayed")
        for line in found[name].read_text().splitlines()
    }
    lines = [json.loads(line) for line in (both / "train-verdicts.jsonl").read_text().splitlines()]
    for name, wanted in chosen.items():
        kept = [one for one in lines if wanted is None or origin.get(one["run_id"], "safe") in wanted | {"safe"}]
        path = folder / f"{name.replace(' ', '-')}.jsonl"
        path.write_text("".join(json.dumps(one) + "\n" for one in kept))
        sft = stage("sft", path, folder / f"{path.stem}-sft", "tiny", seed)
        result[name] = figures(sft, held_out) | {"rows": len(kept)}
    return result


def spread(values: Sequence[float]) -> str:
    """Mean, and the least and the most."""
    return f"{statistics.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def compared(seeds: Sequence[Mapping[str, Any]]) -> str:
    """In which figures a stage is no better than the one before, in the mean of the seeds, and in how many seeds."""
    missed, worse = list[str](), list[str]()
    for before, after, figures_ in STEPS:
        for figure in figures_:
            pairs = [(one[before][figure], one[after][figure]) for one in seeds]
            old, new = (statistics.mean(side) for side in zip(*pairs, strict=True))
            if new <= old:
                missed.append(f"{figure} of {after} ({old:.3f} before, {new:.3f})")
            elif count := sum(new <= old for old, new in pairs):
                worse.append(f"{figure} of {after} in {count}")
    said = f"Missed: {'; '.join(missed)}." if missed else "Missed: nothing in the means."
    said += f" Better in the mean, and not in every seed: {'; '.join(worse)}." if worse else ""
    seconds = sum(one[name]["processor_seconds"] for one in seeds for name in ("sft", "bppo", "grpo", "hypotheses"))
    return f"{said} All trainings together: {seconds:,.0f} seconds of processor time."


def markdown(result: Mapping[str, Any]) -> str:
    """The tables."""
    text = (
        "# Training of tiny auditors\n\n"
        f"Prefixes of held-out families, greedy replies: means of {len(result['seeds'])} seeds (least to most). "
        "Step and agent: of prefixes that end in the mistake.\n\n"
    )
    text += f"| | {' | '.join(FIGURES)} |\n|---|{'---|' * len(FIGURES)}\n"
    for name in ("base", "sft", "bppo", "grpo", "hypotheses base", "hypotheses"):
        rows = [one[name] for one in result["seeds"]]
        values = ([row[figure] for row in rows] for figure in FIGURES)
        cells = [spread(value) if value[0] == value[0] else "" for value in values]
        text += f"| {name} | {' | '.join(cells)} |\n"
    text += f"\n{compared(result['seeds'])}\n"
    if ablated := result.get("ablations"):
        text += (
            "\n## Ablations\n\nOne seed. grpo: without a part of the reward. sft: on one source of labels, measured on "
            "prefixes of both.\n\n"
        )
        text += f"| | {' | '.join(FIGURES)} | rows |\n|---|{'---|' * len(FIGURES)}---|\n"
        shown = {"grpo, whole reward": result["seeds"][0]["grpo"]}
        shown |= {f"{'sft' if 'rows' in row else 'grpo'}, {name}": row for name, row in ablated.items()}
        for name, row in shown.items():
            cells = [f"{row[figure]:.3f}" for figure in FIGURES]
            text += f"| {name} | {' | '.join(cells)} | {row.get('rows', '')} |\n"
    if audit := result.get("audit"):
        text += (
            f"\n## Stages, audited over the endpoint\n\nSeed {result['seeds'][0]['seed']}, whole runs step by step: "
            f"{audit['runs']} runs, {audit['failed']} failed. The last knows nothing, and is the best of those.\n\n"
            f"| | {' | '.join(AUDITED)} |\n|---|{'---|' * len(AUDITED)}\n"
        )
        for name, row in audit["systems"].items():
            text += f"| {name} | {' | '.join(f'{row[figure]:.3f}' for figure in AUDITED.values())} |\n"
    return text


def _exact(row: AuditRow) -> float:
    return row.figures.exact_f1 if row.figures.exact_f1 == row.figures.exact_f1 else -1.0


def main() -> None:
    """Measure and write; what is done is kept in --work."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/factory_training"))
    parser.add_argument("--work", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--audited", type=int, default=16)
    given = parser.parse_args()
    folder = given.work or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {"seeds": []}

    def write() -> None:
        given.out.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
        given.out.with_suffix(".md").write_text(markdown(result))

    for seed in given.seeds:
        result["seeds"].append(one_seed(folder, seed))
        write()
    first = given.seeds[0]
    result["ablations"] = ablations(folder, first)
    write()
    table = evaluate(
        [folder / f"sft-{first}" / "base", *(folder / f"{name}-{first}" for name in ("sft", "bppo", "grpo"))],
        corpus=[folder / "injected.jsonl", folder / "runs.jsonl"],
        rows=folder / f"rows-{first}" / "test-verdicts.jsonl",
        limit=given.audited,
        reply_tokens=32,
    )
    trivial = max((row for row in table.rows if row.trivial and not row.hindsight), key=_exact)
    result["audit"] = {
        "runs": table.runs,
        "failed": round(table.rows[0].figures.counts.unsafe),
        "systems": {
            row.name: {figure: getattr(row.figures, figure) for figure in AUDITED.values()}
            for row in (*(row for row in table.rows if not row.trivial), trivial)
        },
    }
    write()
    print(markdown(result))


if __name__ == "__main__":
    main()
