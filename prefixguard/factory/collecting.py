"""`collect`: runs of an environment's agents, those that are safe and those that failed."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from prefixguard.errors import ConfigError, ReplayError
from prefixguard.escalate import Endpoint
from prefixguard.factory.corpus_report import CorpusReport
from prefixguard.factory.environments import (
    WORLD_FAILED,
    RemoteEnvironment,
    ReplayableEnvironment,
    fault_of,
    open_environment,
    outage_of,
    recorded_runs,
)
from prefixguard.factory.kept_answers import KeptAnswers
from prefixguard.factory.labelled import LabelledRun
from prefixguard.factory.out_place import file_for
from prefixguard.factory.outages import Outages
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
    recorded: str | os.PathLike[str] | None = None,
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
    recorded : take these recorded runs of the environment instead of playing any (tau2: a file or folder of its
        results). One is kept only where it plays again without drift, and the environment agrees with its outcome.
    judge: asked whether every step of a safe run serves its goal. None: nobody is asked.
    budget_tokens : for the judge, sent and received; runs that come after it is spent are not called safe.
    python : the interpreter of an environment that runs in a process of its own.
    on_progress: told the number of runs that are played, and of all.
    Raises ConfigError, ReplayError where the environment does not begin, EndpointError, OutputError.
    """
    if count < 1 or tasks < 1:
        raise ConfigError(f"count {count}, tasks {tasks}: each 1 or more.")
    out = file_for(out, [recorded])
    world, outages = open_environment(environment, python), Outages(out)
    work = Store(out.with_name(f"{out.name}.kept"), {"environment": world.spec, "seed": seed, "agent": agent})
    asked = None if judge is None else KeptAnswers(judge, work, COHERENCE_SCHEMA, budget_tokens)
    skips, counts, found = Skips(), Counter[str](), list[LabelledRun]()
    try:
        if recorded is None:
            runs = _played(world, work, count, tasks, seed, agent)
        else:
            runs, count = _executed(world, work, recorded, skips), 0
        for number, (place, run, why) in enumerate(runs):
            fault, cause = str(why.get("fault", "")), str(why.get("cause", ""))
            if run is not None and run.source == "safe":
                fault = unsafe(run, world, asked)
            if run is None or fault:
                skips.add(fault, place, cause)
            else:
                counts[run.source] += 1
                found.append(run)
            outages.count(outage_of(why))
            if on_progress is not None:
                on_progress(number + 1, count)
    finally:
        world.close()
    notes = outages.write(found)
    if judge is None and not outages.left:
        work.clear()
    played = len(found) + skips.total
    return CorpusReport(out, {"runs": played, "safe": counts["safe"], "failures": counts["natural"]}, skips, notes)


def _played(
    world: ReplayableEnvironment, work: Store, count: int, tasks: int, seed: int, agent: str
) -> Iterator[tuple[str, LabelledRun | None, Mapping[str, Any]]]:
    """Runs of the environment's agents: where, the run, and why there is none."""
    names = world.tasks(tasks)
    if not names:
        raise ReplayError(f"the environment {world.name} has no tasks.")
    for number in range(count):
        task, trial = names[number % len(names)], number // len(names)
        kept = work.get("played", task=task, trial=trial)
        if kept is None:
            facts = _one(world, task, f"{seed}/{trial}", agent)
            kept = Kept(facts)
            if "fault" not in facts:  # it may be tried again
                work.put(kept, "played", task=task, trial=trial)
        if "fault" in kept.facts:
            yield f"{task}, trial {trial}", None, kept.facts
        else:
            yield f"{task}, trial {trial}", LabelledRun.from_json(json.loads(kept.facts["run"])), {}


def _one(world: ReplayableEnvironment, task: str, seed: str, agent: str) -> dict[str, Any]:
    """A run as text (the store would put keys into another order), or why there is none."""
    try:
        world.reset(task, seed, agent)
        if world.continuation(None) is Outcome.UNKNOWN:
            return {"fault": "outcome: the environment does not say how it ended"}
        trace, made = world.trace(), world.provenance()
    except ReplayError as exc:
        return {"fault": WORLD_FAILED, "cause": str(exc)}
    source = "safe" if trace["outcome"] == Outcome.SUCCESS else "natural"
    family = ":".join([*(str(value) for value in world.spec.values()), task])
    run = LabelledRun(trace, source, family=family, provenance=made, licence=world.licence)
    return {"run": json.dumps(run.as_json())}


def _executed(
    world: ReplayableEnvironment, work: Store, recorded: str | os.PathLike[str], skips: Skips
) -> Iterator[tuple[str, LabelledRun | None, Mapping[str, Any]]]:
    """Recorded runs that play again, and of whose outcome the environment says the same."""
    if not isinstance(world, RemoteEnvironment) or not world.name.startswith("tau2-"):
        raise ConfigError(f"recorded runs are read for tau2-retail and tau2-airline, not for {world.name}.")
    for run in recorded_runs(recorded, world, skips):
        kept = work.get("executed", run=run.digest)
        if kept is None:
            kept = Kept(_disagreement(world, run))
            if not outage_of(kept.facts):
                work.put(kept, "executed", run=run.digest)
        source = "safe" if run.run["outcome"] == Outcome.SUCCESS else "natural"
        yield run.run_id, None if "fault" in kept.facts else replace(run, source=source), kept.facts


def _disagreement(world: ReplayableEnvironment, run: LabelledRun) -> dict[str, Any]:
    """Why a recorded run is not used; empty where it may be."""
    try:
        world.replay(run, len(world.decisions(run)))
        outcome = world.verify()
    except ReplayError as exc:
        return fault_of(exc)
    if outcome == run.run["outcome"]:
        return {}
    return {"fault": f"recorded as {run.run['outcome']}, the environment says {outcome}"}
