"""`inject`: one fault put into a safe run, played on from there, and accepted only against a control."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from prefixguard.errors import ConfigError, DataError, ReplayError
from prefixguard.factory.corpus_report import CorpusReport
from prefixguard.factory.environments import (
    WORLD_FAILED,
    Action,
    Decision,
    Environments,
    ReplayableEnvironment,
    fault_of,
    kinds_of,
    outage_of,
)
from prefixguard.factory.labelled import LabelledRun, MistakeLabel, read_corpus, records_of
from prefixguard.factory.out_place import file_for
from prefixguard.factory.outages import Outages
from prefixguard.factory.skips import Skips
from prefixguard.simulation.rng import Rng
from prefixguard.store import Kept, OnProgress, Store
from prefixguard.trace import Outcome


def inject(
    corpus: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    per_kind: int = 20,
    kinds: Sequence[str] | None = None,
    per_run: int = 1,
    tries: int = 4,
    seed: int = 13,
    python: str = "",
    on_progress: OnProgress | None = None,
) -> CorpusReport:
    """Put one fault into each of many safe runs, and play on from there.

    The run up to the fault is played again, the fault is made in place of what the agent did, and the agent goes on.
    The control does what the agent did there, and goes on with the very same chances. An injection is accepted only
    where the control succeeds, the run with the fault fails, and all messages before the agent's action at the fault
    are the same, byte for byte: what differs first is what the agent does. Its label is the step of that action. Kinds
    that were accepted seldom so far are tried first, up to a quota for each.

    corpus : labelled runs; the safe ones are taken, each in the environment that made it.
    out : the corpus that is written, JSON lines. What is done is kept beside it until the end.
    per_kind : faults of each kind that are wanted.
    kinds : only these; without it, all that the environment has.
    per_run : faults that are accepted from one safe run, each in a run of its own.
    tries : of one safe run.
    seed : decides where and what, and the chances after it.
    python : the interpreter of an environment that runs in a process of its own.
    on_progress: told the number of safe runs that are done, and of all.
    Raises ConfigError, DataError where the corpus has no safe run, OutputError.
    """
    if min(per_kind, per_run, tries) < 1:
        raise ConfigError(f"per_kind {per_kind}, per_run {per_run}, tries {tries}: each 1 or more.")
    out, skips = file_for(out, [corpus]), Skips()
    outages = Outages(out)
    safe = [run for run in read_corpus(corpus, skips) if run.source == "safe"]
    if not safe:
        raise DataError(f"{os.fspath(corpus)}: no safe run. Make some: prefixguard factory collect simulation {out}")
    there = sorted({kind for run in safe for kind in kinds_of(run)})
    if unknown := sorted(set(kinds or ()) - set(there)):
        raise ConfigError(f"--kind {unknown[0]}: no fault of that kind can be made here. There are {', '.join(there)}.")
    work = Store(out.with_name(f"{out.name}.kept"), {"seed": seed})
    accepted, tried, found = Counter[str](), Counter[str](), list[LabelledRun]()
    with Environments(python) as worlds:
        for number, run in enumerate(safe):
            try:
                world = worlds.of(run)
                options = _options(world.decisions(run), kinds or (), Rng(f"{seed}/inject/{run.run_id}"))
            except ReplayError as exc:
                why = fault_of(exc)
                skips.add(why["fault"], run.run_id, why["cause"])
                outages.count(outage_of(why))
                continue
            is_left = False
            for _ in range(tries):
                wanted = [kind for kind in options if options[kind] and accepted[kind] < per_kind]
                if not wanted or sum(one.provenance["source_run"] == run.run_id for one in found) >= per_run:
                    break
                kind = min(wanted, key=lambda one: (accepted[one], tried[one], one))
                tried[kind] += 1
                place = options[kind].pop()
                kept = work.get("injected", run=run.digest, place=place, kind=kind)
                if kept is None:
                    kept = Kept(_attempt(world, run, place, kind, f"{seed}/{run.run_id}/{place}"))
                    if not outage_of(kept.facts):
                        work.put(kept, "injected", run=run.digest, place=place, kind=kind)
                outage = outage_of(kept.facts)
                outages.count(outage, first=not is_left)
                if outage:
                    if not is_left:
                        skips.add(WORLD_FAILED, run.run_id, outage)
                    is_left = True
                    continue
                if "fault" in kept.facts:
                    skips.add(str(kept.facts["fault"]), f"{run.run_id}, {kind}", str(kept.facts.get("cause", "")))
                    continue
                accepted[kind] += 1
                found.append(LabelledRun.from_json(json.loads(kept.facts["run"])))
            if on_progress is not None:
                on_progress(number + 1, len(safe))
    notes = outages.write(found)
    if not outages.left:
        work.clear()
    shares = {kind: round(accepted[kind] / tried[kind], 3) for kind in sorted(tried)}
    counts = {"injected": len(found), "accepted": dict(sorted(accepted.items())), "of those tried": shares}
    return CorpusReport(out, counts, skips, notes + _short_of(per_kind, accepted, tried))


def _short_of(per_kind: int, accepted: Mapping[str, int], tried: Iterable[str]) -> tuple[str, ...]:
    short = [f"{kind} {accepted[kind]}" for kind in sorted(tried) if accepted[kind] < per_kind]
    return (f"Fewer than {per_kind} of: {', '.join(short)}. More safe runs give more.",) if short else ()


def _options(decisions: Sequence[Decision], kinds: Sequence[str], rng: Rng) -> dict[str, list[int]]:
    """By kind the places where it can be put, in random order. kinds: only these; empty: all."""
    offered: dict[str, list[int]] = {}
    for place, decision in enumerate(decisions):
        for kind in decision.faults or ():
            if not kinds or kind in kinds:
                offered.setdefault(kind, []).append(place)
    return {kind: rng.some(places, len(places)) for kind, places in sorted(offered.items())}


def _attempt(world: ReplayableEnvironment, run: LabelledRun, place: int, kind: str, salt: str) -> dict[str, Any]:
    """The labelled run as text, or why the fault is rejected."""
    decision = world.decisions(run)[place]
    try:
        control = _played_from(world, run, place, decision.action, salt)
        if control.verify() is not Outcome.SUCCESS:
            return {"fault": "the control run failed too"}
        injected = _played_from(world, run, place, (decision.faults or {})[kind], salt)
        if injected.verify() is not Outcome.FAILURE:
            return {"fault": "the run succeeded in spite of the fault"}
    except ReplayError as exc:
        return fault_of(exc)
    trace, right, at = injected.trace(), control.trace(), decision.step
    records, controlled = records_of(trace), records_of(right)
    if any(records[: at - 1] != other[: at - 1] for other in (run.records(), controlled)):
        return {"fault": "what comes before the fault changed"}
    if len(records) < at or records[at - 1 : at] == controlled[at - 1 : at]:
        return {"fault": "the fault changed no record"}
    if any(not _differs_first(trace, other, at) for other in (run.run, right)):
        return {"fault": "what differs first is no act of the agent at the fault"}
    trace["run_id"] = f"{run.run_id}-{kind}-{at}"
    made = {**injected.provenance(), "source_run": run.run_id, "operator": kind, "place": place}
    label = MistakeLabel(at, records[at - 1].agent or None, kind, "injected")
    labelled = replace(run, run=trace, source="injected", mistakes=(label,), provenance=made)
    return {"run": json.dumps(labelled.as_json())}


def _differs_first(trace: Mapping[str, Any], other: Mapping[str, Any], step: int) -> bool:
    """Whether the first message that differs between two runs is an agent's in both, and holds this step of the first.
    All that the agent had seen when it acted is then the same."""
    ours, theirs = trace["messages"], other["messages"]
    place = next((at for at, (one, two) in enumerate(zip(ours, theirs, strict=False)) if one != two), None)
    if place is None or {ours[place].get("role"), theirs[place].get("role")} != {"assistant"}:
        return False
    before, after = (len(records_of({**trace, "messages": ours[:end]})) for end in (place, place + 1))
    return before < step <= after


def _played_from(
    world: ReplayableEnvironment, run: LabelledRun, place: int, action: Action, salt: str
) -> ReplayableEnvironment:
    """The world at the end of the run that is played again up to a decision, with this action there."""
    again = world.fork()
    again.replay(run, place)
    again.step(action)
    again.continuation(salt)
    return again
