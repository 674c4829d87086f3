"""The way in: samples in, a proposal out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from prefixguard.errors import TraceError
from prefixguard.induce.proposal import Asker, Choice, Option, Proposal, take_first
from prefixguard.induce.samples import Samples
from prefixguard.induce.search.beam import Scored, search
from prefixguard.induce.search.evidence import Candidate, Evidence
from prefixguard.induce.search.explanations import steps_told
from prefixguard.induce.search.families import FAMILIES
from prefixguard.induce.search.given import given_sources, obeying, unfollowed
from prefixguard.induce.search.naming import with_agents
from prefixguard.induce.search.objective import likely_right
from prefixguard.induce.search.run_fields import SURE
from prefixguard.induce.search.run_part import run_part
from prefixguard.induce.search.speakers import Part, part_of
from prefixguard.induce.search.statuses import with_status
from prefixguard.lexicon import Meaning, affinity
from prefixguard.stepview import Adapter
from prefixguard.stepview.text import DEFAULT_BUDGETS

#: A reading below this is none: what speaks alone, without calls, comes to more.
LEAST = 0.5
#: Rules of a dialogue whose speakers have no names that are known.
MOST_SIDES = 3
_ORDER = (
    "schema", "name", "version", "description", "container", "run", "events", "join", "turn", "rules", "status",
    "budgets", "hidden", "waived",
)  # fmt: skip


def propose_by_search(
    samples: Samples, *, name: str, hints: Mapping[str, str] | None = None, ask: Asker = take_first
) -> Proposal:
    """An adapter found by search. TraceError where nothing in the samples reads like runs of an agent.

    hints: what a person knows, see `induce_adapter`. ask: is asked what the samples do not decide.
    """
    evidence = Evidence(samples, dict(hints or {}))
    try:
        found = search(given_sources(_sources(evidence), evidence), evidence)
        if not found or found[0].judgement.total < LEAST or (not hints and _is_chance(found[0], evidence)):
            said = "".join(f", with {key}={evidence.hints[key]}" for key in ("runs", "events") if key in evidence.hints)
            raise TraceError(
                f"{samples.source}: nothing in {len(samples.files)} file(s) looks like the events of an agent's runs"
                f"{said}. Give more samples, or say where they are: --hint events='$.messages[*]'."
            )
        best = replace(found[0], candidate=obeying(found[0].candidate, evidence))
        return _finished(best, evidence, name, dict(hints or {}), ask)
    finally:
        evidence.close()


def _is_chance(best: Scored, evidence: Evidence) -> bool:
    """Do the events only look like those of runs because anything does: nobody calls anything, nobody who speaks is
    called as people, agents or models are, and it is not two sides that take turns in several runs?"""
    rules = [rule for rule in best.candidate.spec["rules"] if rule["emit"] != "skip"]
    if any("arguments" in rule or rule["emit"] == "result" for rule in rules):
        return False
    if any(affinity(rule.get("agent", ""), Meaning.AGENT) >= 0.5 for rule in rules):
        return False
    names = [name for rule in rules for key, value in rule.items() if key != "emit" for name in _names_in(value)]
    said = {part[0] for name in names if (part := part_of(name)) is not None and part[1] >= 0.6}
    if Part.SAY in said and best.judgement.records >= 3:
        return False
    fields = {key for rule in rules for key in rule}
    runs = len(evidence.runs(Adapter(best.candidate.spec)))
    acts = {"action", "tool"} if len(rules) > 1 else {"action"}  # one rule of a name and a text reads any table
    sides = len(rules) <= MOST_SIDES and bool(acts & fields) and bool({"observation", "result"} & fields)
    return not (sides and runs >= 2 and best.judgement.records >= 2.5 * runs)


def _names_in(value: Any) -> Iterator[str]:
    """Texts in a rule, and the last names of its paths."""
    if isinstance(value, str):
        yield re.split(r"[.\[\]\"']+", value.rstrip("]\"'"))[-1]
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _names_in(item)


def _sources(evidence: Evidence) -> Iterator[Iterator[Candidate]]:
    """Of all families in turns."""
    rows = zip_longest(*(family(evidence) for family in FAMILIES))
    return (source for row in rows for source in row if source is not None)


def _finished(best: Scored, evidence: Evidence, name: str, hints: Mapping[str, str], ask: Asker) -> Proposal:
    stated, mapped, left_out = with_status(with_agents(best.candidate.spec, evidence), evidence)
    candidate = replace(best.candidate, spec=stated)
    part = run_part(candidate, evidence, hints=hints, ask=ask)
    spec: dict[str, Any] = {**candidate.spec, **part.extra}
    spec["name"] = name
    spec["description"] = f"Induced without a model from {len(evidence.samples.files)} sample file(s)."
    spec["run"] = dict(part.run)
    spec["rules"] = [*part.rules_before, *spec["rules"]]
    spec["hidden"] = list(part.hidden)
    if part.waived:
        spec["waived"] = list(part.waived)
    spec["budgets"] = {field: list(pair) for field, pair in DEFAULT_BUDGETS.items()}
    spec = {key: spec[key] for key in _ORDER if key in spec}
    terms = ", ".join(f"{name} {value:.2f}" for name, value in best.judgement.terms.items())
    notes = [f"{best.candidate.why}.", f"Read with {best.judgement.total:.2f} of 1: {terms}.", *part.notes]
    notes += [
        f"The hint {key}={evidence.hints[key]} was not followed: no event has that where steps are read."
        for key in unfollowed(spec, evidence)
    ]
    read, unread = steps_told(spec, evidence, best.judgement.total, best.candidate.why)
    mapped, left_out = (*read, *mapped, *part.mapped), (*unread, *left_out, *part.left_out)
    choices = (*_of_steps(best, spec, evidence, ask), *part.choices)
    return Proposal(spec, mapped, left_out, choices, tuple(notes))


def _of_steps(best: Scored, spec: Mapping[str, Any], evidence: Evidence, ask: Asker) -> tuple[Choice, ...]:
    """Are the steps read as they are? Asked where the judgement leaves a doubt, and no person said where they stand.
    TraceError where the answer is no."""
    sure = round(likely_right(best.judgement), 3)
    if sure >= SURE or "events" in evidence.hints:
        return ()
    worst = sorted(best.judgement.terms.items(), key=lambda term: term[1])[:3]
    why = "lowest of what speaks for it: " + ", ".join(f"{name} {value:.2f}" for name, value in worst)
    options = (
        Option("as the first steps show", spec["events"], sure, why),
        Option("none of these", None, round(1 - sure, 3), "they stand elsewhere, or mean something else"),
    )
    choice = Choice("events", options, 0, "the reading that explains most; the evidence stands beside it")
    if ask(choice) == 1:
        raise TraceError(f"{evidence.samples.source}: say where the steps stand: --hint events='$.messages[*]'.")
    return (choice,)
