"""`collect`: runs of an environment's agents, those that are safe and those that failed."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from prefixguard.errors import ConfigError, ReplayError
from prefixguard.escalate import Endpoint
from prefixguard.factory.corpus_report import CorpusReport
from prefixguard.factory.environments import ReplayableEnvironment, open_environment
from prefixguard.factory.kept_answers import KeptAnswers
from prefixguard.factory.labelled import LabelledRun, write_corpus
from prefixguard.factory.safe_runs import COHERENCE_SCHEMA, unsafe
from prefixguard.factory.skips import Skips
from prefixguard.store import Kept, OnProgress, Store
from prefixguard.trace import Outcome


def collect(
    environment: str,
    out: str | os.PathLike[str],
    *,
    count: int = 200,
    tasks: int = 50,
    seed: int = 13,
    agent: str = "",
    judge: Endpoint | None = None,
    budget_tokens: int | None = None,
    python: str = "",
    on_progress: OnProgress | None = None,
) -> CorpusReport:
    """Play runs in an environment, and keep those that are safe, and those that failed.

    A run that succeeded is safe where nothing speaks against it: no error of a tool, nothing cut off, nothing that the
    environment knows, and, where a judge is named, no step that the judge calls pointless. What is left out is counted
    by reason. Failures are kept without labels (source "natural"): `replay` looks for their mistakes.

    environment : simulation[:WORLD], textworld, tau2-retail, tau2-airline, or the http:// address of one's own.
    out : the corpus that is written, JSON lines. What is done is kept beside it until the end.
    count : runs that are played.
    tasks : of that many tasks, in turn.
    seed : decides all chances.
    agent : who plays; "" the usual agents.
    judge: asked whether every step of a safe run serves its goal. None: nobody is asked.
    budget_tokens : for the judge, sent and received; runs that come after it is spent are not called safe.
    python : the interpreter of an environment that runs in a process of its own.
    on_progress: told the number of runs that are played, and of all.
    Raises ConfigError, ReplayError where the environment does not begin, EndpointError, OutputError.
    """
    if count < 1 or tasks < 1:
        raise ConfigError(f"count {count}, tasks {tasks}: each 1 or more.")
    out, world = Path(out), open_environment(environment, python)
    work = Store(out.with_name(f"{out.name}.kept"), {"environment": world.spec, "seed": seed, "agent": agent})
    asked = None if judge is None else KeptAnswers(judge, work, COHERENCE_SCHEMA, budget_tokens)
    names, skips, counts, found = world.tasks(tasks), Skips(), Counter[str](), list[LabelledRun]()
    try:
        for number in range(count):
            task, trial = names[number % len(names)], number // len(names)
            kept = work.get("played", task=task, trial=trial)
            if kept is None:
                kept = Kept(_played(world, task, f"{seed}/{trial}", agent))
                work.put(kept, "played", task=task, trial=trial)
            run, fault = _sorted_out(kept.facts, world, asked)
            if run is None:
                skips.add(fault, f"{task}, trial {trial}")
            else:
                counts[run.source] += 1
                found.append(run)
            if on_progress is not None:
                on_progress(number + 1, count)
    finally:
        world.close()
    write_corpus(out, found)
    if judge is None:
        work.clear()
    return CorpusReport(out, {"played": count, "safe": counts["safe"], "failures": counts["natural"]}, skips)


def family_of(world: ReplayableEnvironment, task: str) -> str:
    """What must stand on one side of a split: the task, in its environment."""
    return ":".join([*(str(value) for value in world.spec.values()), task])


def _played(world: ReplayableEnvironment, task: str, seed: str, agent: str) -> dict[str, Any]:
    try:
        world.reset(task, seed, agent)
        world.continuation(None)
        # as text: the store would put keys into another order
        return {"run": json.dumps(world.trace()), "provenance": json.dumps(world.provenance())}
    except ReplayError as exc:
        return {"fault": str(exc)}


def _sorted_out(facts: Any, world: ReplayableEnvironment, judge: KeptAnswers | None) -> tuple[LabelledRun | None, str]:
    """The run as it goes into the corpus; or None, and why not."""
    if "fault" in facts:
        return None, "the environment failed"
    run, made = json.loads(facts["run"]), json.loads(facts["provenance"])
    if run["outcome"] == Outcome.UNKNOWN:
        return None, "outcome: the environment does not say how it ended"
    source = "safe" if run["outcome"] == Outcome.SUCCESS else "natural"
    licence, family = world.licence, family_of(world, run["task_id"])
    labelled = LabelledRun(run, source, family=family, provenance=made, licence=licence)
    against = unsafe(labelled, world, judge) if source == "safe" else ""
    return (None, against) if against else (labelled, "")
