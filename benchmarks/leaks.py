"""Does the leak audit find leaks in real runs, and nothing in clean ones?

    python benchmarks/leaks.py .traces --sets webshop_react tau2 tau_bench

Each set is read through its shipped adapter, at most 800 runs of it. First it is audited as it is: every finding is
listed, for a person to judge. Then each leak that is known from public importers, or could be, is planted into every
run (and the verdict in the status also into eight of ten), and the audit must say kind, field and token as an error;
for task names, which say nothing about an outcome by themselves, a warning counts. Writes leaks.json and leaks.md.
Sets whose outcomes are of one kind alone get the leaks of text and names. A set is kept as soon as it is done, and not
done again unless asked. About two minutes a set.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from prefixguard.evaluation.leaks import LeakAudit, LeakFinding, audit_leaks
from prefixguard.stepview import StepRecord, load_adapter, read_runs
from prefixguard.trace import Outcome, Run

#: set -> shipped adapter
SETS = {
    "tau_bench": "tau_bench",
    "tau2": "tau2",
    "webshop_react": "webshop_react",
    "minisweagent": "mini_swe_agent",
    "sweagent": "sweagent",
    "intercode": "intercode",
    "reflexion": "react_log",
    "terminal_bench": "terminal_log",
    "mind2web_abp": "online_mind2web",
    "whoandwhen": "whoandwhen",
    "sentinel": "sentinel",
}
#: Runs of a set that are audited.
MOST_RUNS = 800
SEED = 13

Records = tuple[StepRecord, ...]
Planting = Callable[[Run[StepRecord]], Run[StepRecord]]


@dataclass(frozen=True, slots=True)
class Plant:
    """A leak to plant. into: gives the run that has it. kinds, field, token: what must be said; token: a part of it,
    any of them. needs_outcome: only where outcomes differ. warning_counts: does a warning do?"""

    name: str
    says: str
    into: Planting
    kinds: tuple[str, ...]
    field: str
    token: tuple[str, ...]
    needs_outcome: bool = True
    warning_counts: bool = False


def unit(run: Run[StepRecord], what: str) -> float:
    """A number in [0, 1) that depends on the run and on what it is for."""
    return int(hashlib.sha256(f"{SEED}:{what}:{run.run_id}".encode()).hexdigest()[:12], 16) / 16**12


def _won(run: Run[StepRecord]) -> bool:
    return run.outcome is Outcome.SUCCESS


def _changed(run: Run[StepRecord], at: int, field: str, text: str) -> Run[StepRecord]:
    """The run with a text behind a field of one record; instead of it for a status."""
    records = list(run.records)
    old = "" if field == "status" else getattr(records[at], field)
    records[at] = replace(records[at], **{field: f"{old}\n{text}" if old else text})
    return replace(run, records=tuple(records))


def _only_judged(plant: Planting) -> Planting:
    return lambda run: run if run.outcome is Outcome.UNKNOWN else plant(run)


def status(run: Run[StepRecord]) -> Run[StepRecord]:
    """The verdict as the last step's status."""
    return _changed(run, -1, "status", "success" if _won(run) else "failure")


def status_in_order(run: Run[StepRecord]) -> Run[StepRecord]:
    """The same, spelled as statuses are."""
    return _changed(run, -1, "status", "ok" if _won(run) else "error")


def reward(run: Run[StepRecord]) -> Run[StepRecord]:
    """A reward behind the last result."""
    return _changed(run, -1, "result", f'{{"reward": {1.0 if _won(run) else 0.0}}}')


def graded_reward(run: Run[StepRecord]) -> Run[StepRecord]:
    """A reward between 0 and 1, of which the outcome is a threshold."""
    grade = 0.7 + 0.3 * unit(run, "grade") if _won(run) else 0.69 * unit(run, "grade")
    return _changed(run, -1, "result", f"final score: {grade:.4f}")


def verdict_line(run: Run[StepRecord]) -> Run[StepRecord]:
    """A log's line of the verdict in the last observation."""
    return _changed(run, -1, "observation", "[Result] (PASS)" if _won(run) else "[Result] (FAIL)")


def judge_record(run: Run[StepRecord]) -> Run[StepRecord]:
    """A record of the judge behind the run's."""
    said = "The answer is correct." if _won(run) else "The answer is incorrect."
    last = StepRecord(len(run.records) + 1, "system", "", "", "", "", "", said, "unknown")
    return replace(run, records=(*run.records, last))


def reward_info(run: Run[StepRecord]) -> Run[StepRecord]:
    """What a simulation keeps beside its messages, in the last result."""
    kept = {"termination_reason": "agent_stop", "reward_info": {"reward": float(_won(run)), "db_check": _won(run)}}
    return _changed(run, -1, "result", json.dumps(kept))


def early_verdict(run: Run[StepRecord]) -> Run[StepRecord]:
    """The verdict in the first observation."""
    return _changed(run, 0, "observation", f"is_resolved: {_won(run)}")


_MODELS = ("gpt-4o-2024-08-06", "claude-3-5-sonnet", "llama-3.1-70b", "qwen2.5-coder")


def model_name(run: Run[StepRecord]) -> Run[StepRecord]:
    """The model's name before every action; a made-up one, which the groups say too."""
    name = _MODELS[int(len(_MODELS) * unit(run, "model"))]
    records = tuple(replace(record, action=f"[{name}] {record.action}") for record in run.records)
    return replace(run, records=records, groups=MappingProxyType({**run.groups, "model": name}))


def model_in_prompt(run: Run[StepRecord]) -> Run[StepRecord]:
    """The model's name in the first observation; no group says it."""
    return _changed(run, 0, "observation", f"agent_llm={_MODELS[int(len(_MODELS) * unit(run, 'model'))]}")


def trial_name(run: Run[StepRecord]) -> Run[StepRecord]:
    """The trial and its file in the first observation, as a side channel writes them."""
    trial = f"trial-{int(1e8 * unit(run, 'trial')):08d}"
    named = replace(run, run_id=f"{trial}/{run.run_id}")
    return _changed(named, 0, "observation", f"trial_name={trial} file={named.run_id}")


def task_name(run: Run[StepRecord]) -> Run[StepRecord]:
    """The task's id in the first observation."""
    task = f"{run.task_id or run.run_id}-{hashlib.sha256(str(run.task_id).encode()).hexdigest()[:6]}".replace(" ", "_")
    return _changed(replace(run, task_id=task), 0, "observation", f"task {task}")


def _text(record: StepRecord) -> str:
    return "\n".join(filter(None, (record.action, record.tool, record.arguments, record.result)))


def nested_pages(run: Run[StepRecord]) -> Run[StepRecord]:
    """Every observation holds all that comes after it: a page whose blocks are not closed."""
    records: list[StepRecord] = []
    rest = ""
    for record in reversed(run.records):
        records.append(replace(record, observation=f"{record.observation}\n{rest}" if rest else record.observation))
        rest = f"{record.observation}\n{_text(record)}\n{rest}"[:20_000]
    return replace(run, records=tuple(reversed(records)))


def next_record(run: Run[StepRecord]) -> Run[StepRecord]:
    """Every result holds the next record's text: a window that is one too wide."""
    pairs = zip(run.records, run.records[1:], strict=False)
    records = [replace(a, result=f"{a.result}\n{b.observation}\n{_text(b)}") for a, b in pairs]
    return replace(run, records=(*records, run.records[-1]))


def script(run: Run[StepRecord]) -> Run[StepRecord]:
    """The simulator's instructions in the first observation, with what the user will say."""
    says = [record.observation for record in run.records[1:] if record.observation] or ["Ask for a refund."]
    hidden = {"user_scenario": {"instructions": {"reason_for_call": says[0], "task_instructions": " ".join(says)}}}
    return _changed(run, 0, "observation", json.dumps(hidden, ensure_ascii=False))


def total_steps(run: Run[StepRecord]) -> Run[StepRecord]:
    """The number of steps of the run in every observation."""
    records = tuple(
        replace(record, observation=f"total_steps: {len(run.records)}\n{record.observation}") for record in run.records
    )
    return replace(run, records=records)


def steps_left(run: Run[StepRecord]) -> Run[StepRecord]:
    """A count-down in every result."""
    records = tuple(
        replace(record, result=f"{record.result}\nsteps left: {len(run.records) - i}")
        for i, record in enumerate(run.records)
    )
    return replace(run, records=records)


_TELLS = ("token", "last_step")
_FUTURE = ("whole_rest", "later_text")
PLANTS: tuple[Plant, ...] = (
    Plant("status", "verdict in the last status", status, _TELLS, "status", ("success", "failure")),
    Plant("status_ok_error", "verdict as ok or error", status_in_order, _TELLS, "status", ("ok", "error")),
    Plant("reward", "reward in the last result", reward, _TELLS, "result", ("reward 1.0", "reward 0.0")),
    Plant("graded_reward", "graded score in the last result", graded_reward, ("number",), "result", ("score",)),
    Plant(
        "verdict_line", "verdict line in the last observation", verdict_line, _TELLS, "observation", ("pass", "fail")
    ),
    Plant("judge_record", "a record of the judge at the end", judge_record, _TELLS, "result", ("correct",)),
    Plant(
        "reward_info",
        "harness's fields in the last result",
        reward_info,
        (*_TELLS, "hidden_text"),
        "result",
        ("reward", "db_check", "termination_reason"),
    ),
    Plant("early_verdict", "verdict in the first observation", early_verdict, ("token",), "observation", ("resolved",)),
    Plant("model_name", "model's name in every action", model_name, ("identifier",), "action", _MODELS, False),
    Plant(
        "model_in_prompt",
        "model's name in the first observation, in no group",
        model_in_prompt,
        ("identifier",),
        "observation",
        _MODELS,
        False,
    ),
    Plant(
        "trial_name",
        "trial and file in the first observation",
        trial_name,
        ("identifier",),
        "observation",
        ("trial-",),
        False,
    ),
    Plant(
        "task_name",
        "task's id in the first observation",
        task_name,
        ("identifier",),
        "observation",
        ("task",),
        False,
        True,
    ),
    Plant("nested_pages", "all later pages in every observation", nested_pages, _FUTURE, "observation", ("",), False),
    Plant("next_record", "the next record in every result", next_record, _FUTURE, "result", ("",), False),
    Plant(
        "script",
        "simulator's script in the first observation",
        script,
        ("hidden_text",),
        "observation",
        ("reason_for_call", "user_scenario", "task_instructions"),
        False,
    ),
    Plant(
        "total_steps",
        "number of steps in every observation",
        total_steps,
        ("run_length",),
        "observation",
        ("total_steps",),
        False,
    ),
    Plant("steps_left", "count-down in every result", steps_left, ("run_length",), "result", ("left",), False),
)


def planted(runs: Sequence[Run[StepRecord]], plant: Plant, rate: float = 1.0) -> Iterator[Run[StepRecord]]:
    """The runs with a leak in so many of them."""
    into = _only_judged(plant.into) if plant.needs_outcome else plant.into
    for run in runs:
        yield into(run) if unit(run, f"rate {plant.name}") < rate else run


def found(audit: LeakAudit, plant: Plant, clean: LeakAudit | None = None) -> LeakFinding | None:
    """The finding that names the leak; None where there is none, or where the clean runs have the same."""
    before = {(one.kind, one.field, one.token, one.severity) for one in clean.findings} if clean is not None else set()
    for one in audit.findings:
        named = one.kind in plant.kinds and one.field == plant.field and any(t in one.token for t in plant.token)
        grave = one.severity == "error" or plant.warning_counts
        if named and grave and (one.kind, one.field, one.token, one.severity) not in before:
            return one
    return None


def read(traces: Path, name: str) -> list[Run[StepRecord]]:
    """At most MOST_RUNS of a set, drawn by hash."""
    runs: list[Run[StepRecord]] = list(read_runs(traces / name, load_adapter(SETS[name])))
    drawn = sorted(runs, key=lambda run: (unit(run, "sample"), run.run_id))[:MOST_RUNS]
    return sorted((run for run in drawn if run.records), key=lambda run: run.run_id)


def run_set(name: str, traces: Path) -> dict:
    """Clean findings and planted leaks of a set."""
    runs = read(traces, name)
    began = time.process_time()
    clean = audit_leaks(runs, seed=SEED)
    seconds = time.process_time() - began
    rows = []
    for plant in PLANTS:
        for rate in (1.0, 0.8) if plant.name == "status" else (1.0,):
            if plant.needs_outcome and not _differ(runs):
                rows.append({"leak": plant.name, "rate": rate, "found": None, "finding": None})
                continue
            audit = audit_leaks(planted(runs, plant, rate), seed=SEED)
            hit = found(audit, plant, clean)
            rows.append({"leak": plant.name, "rate": rate, "found": hit is not None, "finding": hit and hit.as_json()})
            print(f"{name}: {plant.name} {rate}: {hit.text if hit else 'NOT FOUND'}", file=sys.stderr, flush=True)
    return {
        "set": name,
        "seconds": round(seconds, 1),
        "characters": sum(len(_text(record)) + len(record.observation) for run in runs for record in run.records),
        "clean": clean.as_json(),
        "planted": rows,
    }


def _differ(runs: Sequence[Run[StepRecord]]) -> bool:
    count = Counter(run.outcome for run in runs)
    return min(count[Outcome.SUCCESS], count[Outcome.FAILURE]) > 0


def text(results: Sequence[dict]) -> str:
    """Everything as Markdown."""
    lines = [
        "# Leak audit on real runs",
        "",
        "`python benchmarks/leaks.py RUNS`. Errors on clean runs are false unless the set truly leaks; warnings are",
        "listed below. Planted: found when an error names kind, field and token (a warning, for the task's id).",
        "",
        "| set | runs | failed | tasks | errors, clean | warnings, clean | leaks found | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for result in results:
        clean = result["clean"]
        tried = [row for row in result["planted"] if row["found"] is not None]
        severities = Counter(one["severity"] for one in clean["findings"])
        lines.append(
            f"| {result['set']} | {clean['runs']} | {clean['failed']} | {clean['tasks']} | {severities['error']} "
            f"| {severities['warning']} | {sum(row['found'] for row in tried)} of {len(tried)} | {result['seconds']} |"
        )
    names = [result["set"] for result in results]
    lines += ["", "## Planted leaks", "", f"| leak | {' | '.join(names)} |", f"| --- |{' --- |' * len(names)}"]
    says = {plant.name: plant.says for plant in PLANTS}
    marks = {True: "found", False: "**missed**", None: "–"}
    for i, row in enumerate(results[0]["planted"]):
        rate = "" if row["rate"] == 1.0 else f", in {row['rate']:.0%} of the runs"
        cells = " | ".join(marks[result["planted"][i]["found"]] for result in results)
        lines.append(f"| {says[row['leak']]}{rate} | {cells} |")
    lines += ["", "– : the set has outcomes of one kind alone.", "", "## Findings on clean runs", ""]
    for result in results:
        lines += [f"### {result['set']}", ""]
        lines += [f"- {one['severity']}, {one['kind']}: {one['text']}" for one in result["clean"]["findings"]]
        lines += [f"- {note}" for note in result["clean"]["notes"]]
        if not result["clean"]["findings"]:
            lines.append("- nothing")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, help="folder that holds the sets")
    parser.add_argument("--sets", nargs="*", choices=list(SETS), default=list(SETS))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--again", action="store_true", help="also sets that are already in leaks.json")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / "leaks.json"
    done = {one["set"]: one for one in json.loads(path.read_text())} if path.exists() else {}
    for name in args.sets:
        if name not in done or args.again:
            done[name] = run_set(name, args.traces)
        results = [done[known] for known in SETS if known in done]
        path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        (args.out / "leaks.md").write_text(text(results))
    print(text([done[name] for name in args.sets]))


if __name__ == "__main__":
    main()
