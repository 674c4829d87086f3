"""`replay`: the decisive step of natural failures, found by playing them again."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from typing import Any

from prefixguard.errors import ConfigError, DataError, ReplayError
from prefixguard.escalate import Endpoint
from prefixguard.factory.contrast import candidates, evidence, first_cause, point_of_no_return
from prefixguard.factory.corpus_report import CorpusReport
from prefixguard.factory.environments import Environments, ReplayableEnvironment, fault_of, outage_of
from prefixguard.factory.kept_answers import SPENT, KeptAnswers
from prefixguard.factory.labelled import LabelledRun, MistakeLabel, read_corpus
from prefixguard.factory.out_place import file_for
from prefixguard.factory.outages import Outages
from prefixguard.factory.proposers import PROPOSAL_SCHEMA, ModelProposer, OracleProposer, Proposer
from prefixguard.factory.skips import Skips
from prefixguard.store import Kept, OnProgress, Store
from prefixguard.trace import Outcome

#: Continuations of each action.
ROLLS = 16
#: The least contrast that is blamed.
MARGIN = 0.05


def replay(
    corpus: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    rolls: int = ROLLS,
    margin: float = MARGIN,
    seed: int = 13,
    proposer: Endpoint | None = None,
    reference: bool = False,
    budget_tokens: int | None = None,
    python: str = "",
    on_progress: OnProgress | None = None,
) -> CorpusReport:
    """Find the decisive step of failures, by playing them again with one action changed.

    Somebody proposes corrections: the environment itself where it knows, or a language model. Each is played, and so is
    what the agent did there, with the same chances. Labels are the first cause (the earliest step whose correction
    alone changes the outcome, else the one whose correction is worth most) and the point of no return (the earliest
    step after which nothing succeeded). A failure of which no correction is worth the margin is left out, and counted.

    corpus : labelled runs; failures without labels are taken, each in the environment that made it.
    out : the corpus that is written, JSON lines. What is done is kept beside it until the end.
    rolls : continuations of each action, 1 or more.
    margin : the least difference of success that is blamed, above 0.
    seed : names the chances of the continuations.
    proposer: a language model that proposes corrections. None: the environment does.
    reference : show the model what would have reached the goal, where the environment says so. It is kept which.
    budget_tokens : for the model, sent and received; failures that come after it is spent are left out.
    python : the interpreter of an environment that runs in a process of its own.
    on_progress: told the number of failures that are done, and of all.
    Raises ConfigError, DataError where the corpus has no such failure, EndpointError, OutputError.
    """
    if rolls < 1 or not 0 < margin <= 1:
        raise ConfigError(f"rolls {rolls}, margin {margin}: rolls 1 or more, the margin above 0 and at most 1.")
    out, skips = file_for(out, [corpus]), Skips()
    outages = Outages(out)
    failures = [run for run in read_corpus(corpus, skips) if run.source == "natural"]
    if not failures:
        raise DataError(f"{os.fspath(corpus)}: no failure without labels. Make some: prefixguard factory collect")
    who = [None if proposer is None else proposer.shown, reference]
    work = Store(out.with_name(f"{out.name}.kept"), {"seed": seed, "rolls": rolls, "margin": margin, "proposer": who})
    proposes: Proposer = OracleProposer()
    if proposer is not None:
        answers = KeptAnswers(proposer, work, PROPOSAL_SCHEMA, budget_tokens)
        proposes = ModelProposer(answers, reference=reference)
    found, rules = list[LabelledRun](), Counter[str]()
    with Environments(python) as worlds:
        for number, run in enumerate(failures):
            kept = work.get("replayed", run=run.digest)
            if kept is None:
                kept = Kept(_replayed(worlds, run, proposes, rolls, margin, str(seed)))
                if kept.facts.get("fault") != SPENT and not outage_of(kept.facts):
                    work.put(kept, "replayed", run=run.digest)
            if "fault" in kept.facts:
                skips.add(str(kept.facts["fault"]), run.run_id, str(kept.facts.get("cause", "")))
            else:
                found.append(LabelledRun.from_json(json.loads(kept.facts["run"])))
                rules.update(mistake.rule for mistake in found[-1].mistakes)
            outages.count(outage_of(kept.facts))
            if on_progress is not None:
                on_progress(number + 1, len(failures))
    notes = outages.write(found)
    if proposer is None and not outages.left:
        work.clear()
    return CorpusReport(out, {"failures": len(failures), "labelled": len(found), "rules": dict(rules)}, skips, notes)


def _replayed(
    worlds: Environments, run: LabelledRun, proposer: Proposer, rolls: int, margin: float, salt: str
) -> dict[str, Any]:
    """The labelled run as text, or why there is none."""
    try:
        world = worlds.of(run)
        world.replay(run, len(world.decisions(run)))
        if world.verify() is Outcome.SUCCESS:
            return {"fault": "it succeeded, as the environment says"}
        proposals, fault = proposer.propose(run, world)
        if fault:
            return {"fault": fault}
        return _labelled(world, run, proposer.name, rolls, margin, salt, proposals)
    except ReplayError as exc:
        return fault_of(exc)


def _labelled(
    world: ReplayableEnvironment, run: LabelledRun, who: str, rolls: int, margin: float, salt: str, proposals: Any
) -> dict[str, Any]:
    found = candidates(world, run, proposals, rolls=rolls, salt=salt)
    cause, last = first_cause(found, margin), point_of_no_return(found)
    if cause is None:
        return {"fault": "no correction changed the outcome"}
    if not world.decisions(run)[cause.place].is_shown:
        return {"fault": "no record up to the mistake shows that it is one"}
    records = run.records()
    rules = [(cause, "first_cause"), (last, "point_of_no_return")]
    if world.chances == "none":  # a reference goes on, not the agent: an early slip of the agent costs it nothing
        rules = [(last or cause, "point_of_no_return")]
    labels = [
        MistakeLabel(one.step, records[one.step - 1].agent or None, _kind_of(world, run, one.place), rule)
        for one, rule in rules
        if one is not None
    ]
    told = {"rolls": rolls, "margin": margin, "proposer": who, "candidates": evidence(found)}
    made = {**run.provenance, "replay": told}
    labelled = replace(run, source="replayed", mistakes=tuple(labels), provenance=made)
    return {"run": json.dumps(labelled.as_json())}


def _kind_of(world: ReplayableEnvironment, run: LabelledRun, place: int) -> str:
    """The kind of fault that was made there, where the world has a word for it."""
    return str(world.decisions(run)[place].action.get("fault") or "")
