"""From candidates to the best few: the beam, and small edits of what is in it, within a bound of work."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, product
from typing import Any

from prefixguard.induce.search.evidence import Candidate, Evidence
from prefixguard.induce.search.objective import Judgement, judge
from prefixguard.stepview import Adapter, canonical

#: Candidates that are judged on all runs, and those of them that are edited.
WIDTH, EDITED = 14, 3
#: Edits that are judged on all runs: those that read a part of them best, none of them much worse than before.
LIKELY, _WORSE = 8, 0.03
#: Candidates of one layout among them.
_ALIKE = 2
#: Candidates that are looked at whatever the work, and at most.
LEAST_LOOKED_AT, MOST_LOOKED_AT = 16, 120
#: Work of one search, see `Evidence.work`, half of it for looking at candidates. Work and not time, so that a slow or
#: busy machine finds what a fast and idle one does.
MOST_WORK = 10_000.0
#: Processor time after which a search ends whatever it has found: for samples that are slow to make candidates of.
MOST_SECONDS = 180.0
#: Above this total the sides are as they are; and values that a field may have which tells who wrote a run down.
_CLEAR, _MOST_VIEWS = 0.99, 4
#: What counts as better.
_LEAST_GAIN = 0.002
#: By how much the hope for a source sinks with every candidate of it that is no better.
_LESS_HOPE = 0.004


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate and how well it reads. total: the judgement's, and a little for its prior and for being short."""

    candidate: Candidate
    judgement: Judgement

    @property
    def total(self) -> float:
        return self.judgement.worth + 0.01 * self.candidate.prior - 0.001 * len(self.candidate.spec["rules"])


class _Bound:
    """What a search may still spend."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._until = time.thread_time() + MOST_SECONDS

    def left(self) -> float:
        """Work that is left; 0 once it is spent, or the time is over."""
        return max(0.0, MOST_WORK - self._evidence.work) if time.thread_time() < self._until else 0.0


def search(sources: Iterable[Iterator[Candidate]], evidence: Evidence) -> list[Scored]:
    """The best candidates, best first; edits of them included. Empty where none reads anything. sources: of each the
    candidates, likeliest first."""
    bound = _Bound(evidence)
    quick = sorted(_looked_at(sources, evidence, bound), key=lambda one: -one.total)
    beam: list[Scored] = []
    for one in _spread(quick, WIDTH):
        if one.judgement.total > 0 and (len(beam) < EDITED or bound.left()):
            beam.append(replace(one, judgement=judge(one.candidate.spec, evidence)))
    beam.sort(key=lambda one: -one.total)
    edited = _spread(beam, EDITED)
    climbed = []
    for i, one in enumerate(edited):
        climbed.append(_climb(one, evidence, bound, keep=bound.left() * (1 - 1 / (len(edited) - i))))
    rest = [one for one in beam if not any(one is other for other in edited)]
    ranked = sorted([*climbed, *rest], key=lambda one: -one.total)
    return [*sorted([*ranked[:1], *_turned(ranked[:1], evidence)], key=lambda one: -one.total), *ranked[1:]]


def _turned(best: Sequence[Scored], evidence: Evidence) -> Iterator[Scored]:
    """The best with the sides turned round in the runs of which a field says so: they were written down by the other
    side, for which the agent is the user."""
    for one in best:
        spec = one.candidate.spec
        said, heard = ([rule for rule in spec["rules"] if rule["emit"] == emit] for emit in ("say", "observe"))
        sides = [(a, b) for a, b in product(said, heard) if a.get("when", {}).keys() & b.get("when", {}).keys()]
        if one.judgement.total > _CLEAR:
            continue
        runs = [run.found.run for run in evidence.runs(Adapter(spec))]
        fields: dict[str, Counter[Any]] = defaultdict(Counter)
        for run in runs:
            for name, value in run.items() if isinstance(run, dict) else ():
                if isinstance(value, str | bool) and name.isidentifier():
                    fields[f"$.{name}"][value] += 1
        for path, counts in fields.items():
            if 2 <= len(counts) <= _MOST_VIEWS and counts.total() >= 0.9 * len(runs):
                values = sorted(counts, key=lambda value: counts[value])[:-1]
                for pair, value in product(sides[:3], values):
                    rules = [
                        each
                        for rule in spec["rules"]
                        for each in (*(_other_side(rule, {path: value}) for side in pair if side is rule), rule)
                    ]
                    candidate = replace(one.candidate, spec={**spec, "rules": rules}, blocks=())
                    yield Scored(candidate, judge(candidate.spec, evidence))


def _other_side(rule: Mapping[str, Any], when: Mapping[str, Any]) -> dict[str, Any]:
    said = {"observation": rule["action"]} if rule["emit"] == "say" else {"action": rule["observation"]}
    return {"when": {**rule["when"], **when}, "emit": "observe" if rule["emit"] == "say" else "say", **said}


def _looked_at(sources: Iterable[Iterator[Candidate]], evidence: Evidence, bound: _Bound) -> Iterator[Scored]:
    """Candidates, judged on a part of the runs: the first of every source, then more of those whose candidates read
    best so far."""
    unseen = iter(sources)
    hopes: list[tuple[float, Iterator[Candidate]]] = []
    for n in count():
        is_over = bound.left() <= 0.5 * MOST_WORK or n >= MOST_LOOKED_AT
        if is_over and n >= LEAST_LOOKED_AT:
            return
        source = next(unseen, None) if not is_over or not hopes else None
        hope = 0.0
        if source is None:
            if not hopes:
                return
            hope, source = hopes.pop(max(range(len(hopes)), key=lambda i: hopes[i][0]))
        candidate = next(source, None)
        if candidate is not None:
            scored = Scored(candidate, judge(candidate.spec, evidence, quick=True))
            hopes.append((max(hope - _LESS_HOPE, scored.total), source))
            yield scored


def _spread(ranked: Iterable[Scored], n: int) -> list[Scored]:
    """The best n, at most a few of one layout and family."""
    taken: Counter[str] = Counter()
    out: list[Scored] = []
    for one in ranked:
        spec = one.candidate.spec
        key = canonical([one.candidate.family, spec["container"], spec["events"]])
        if taken[key] < _ALIKE and len(out) < n:
            taken[key] += 1
            out.append(one)
    return out


def _climb(start: Scored, evidence: Evidence, bound: _Bound, keep: float) -> Scored:
    """The best that single edits lead to, one after the other. keep: work that is left for others."""
    best = start
    while bound.left() > keep:
        tried = []
        for candidate in (
            best.candidate, *_others(best.candidate),
            *(replace(best.candidate, spec=s, blocks=()) for s in _late(best)),
        ):  # fmt: skip
            if bound.left() <= keep:
                break
            tried.append(Scored(candidate, judge(candidate.spec, evidence, quick=True)))
        least = tried[0].total - _WORSE if tried else 0.0
        likely = sorted((one for one in tried[1:] if one.total > least), key=lambda one: -one.total)
        judged = [replace(one, judgement=judge(one.candidate.spec, evidence)) for one in likely[:LIKELY]]
        better = max([best, *judged], key=lambda one: one.total)
        if better.total < best.total + _LEAST_GAIN:
            if not best.candidate.blocks:
                return best
            best = replace(best, candidate=replace(best.candidate, blocks=()))
            continue
        if not better.candidate.blocks and best.candidate.blocks:
            better = replace(better, candidate=replace(better.candidate, blocks=best.candidate.blocks))
        best = better
    return best


def _late(best: Scored) -> Iterator[dict[str, Any]]:
    """Edits of rules and joins; of joins alone while whole kinds can still be read otherwise."""
    for spec in edits(best.candidate.spec):
        if not best.candidate.blocks or spec["rules"] == best.candidate.spec["rules"]:
            yield spec


def _others(candidate: Candidate) -> Iterator[Candidate]:
    """The candidate with one kind of events read in another way."""
    for i, block in enumerate(candidate.blocks):
        for other in block[1:]:
            turned = (other, *(one for one in block if one is not other))
            blocks = (*candidate.blocks[:i], turned, *candidate.blocks[i + 1 :])
            rules = [*(dict(rule) for one in blocks for rule in one[0]), {"emit": "skip"}]
            yield replace(candidate, spec={**candidate.spec, "rules": rules}, blocks=blocks)


_SPEECH = {"say": "action", "observe": "observation", "result": "result"}


def edits(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Specs that differ from this one in one thing: what a rule emits, whether speech waits for the call behind it, how
    calls and results join."""
    rules = list(spec["rules"])
    calls = any(rule["emit"] in ("call", "step") for rule in rules)
    for i, rule in enumerate(rules):
        for changed in _rule_edits(rule, calls):
            yield {**spec, "rules": [*rules[:i], *([changed] if changed else []), *rules[i + 1 :]]}
    join = dict(spec.get("join", {}))
    for key, values in (("by", ("id", "order")), ("scope", ("message", "run")), ("else", ("next", "last", "position"))):
        for value in values:
            if join.get(key, values[0]) != value:
                yield {**spec, "join": {**join, key: value}}


def _rule_edits(rule: Mapping[str, Any], calls: bool) -> Iterator[dict[str, Any] | None]:
    emit = rule["emit"]
    base = {key: value for key, value in rule.items() if key in ("when", "each", "then", "agent", "comment")}
    if emit in _SPEECH and _SPEECH[emit] in rule and "each" not in rule:
        for other, field in _SPEECH.items():
            if other != emit:
                yield {**base, "emit": other, field: rule[_SPEECH[emit]]}
        yield {**base, "emit": "skip"}
    if emit == "say" and (calls or rule.get("hold")):
        held = {key: value for key, value in rule.items() if key != "hold"}
        yield held if rule.get("hold") else {**rule, "hold": True}
    if emit == "call" and "call_id" in rule:
        yield {key: value for key, value in rule.items() if key != "call_id"}
    if emit == "step" and "result" in rule:
        yield {**{k: v for k, v in rule.items() if k != "result"}, "emit": "call"}
    if emit in ("call", "step"):
        for name in ("action", "observation", "result"):
            if name in rule and not (emit == "call" and name == "result"):
                less = {key: value for key, value in rule.items() if key != name}
                yield less
                for other in ("action", "observation", "result"):
                    if other != name:
                        swapped = {name: rule[other]} if other in rule else {}
                        turned = {**less, **swapped, other: rule[name]}
                        if other == "result" and emit == "call":  # it came back beside the call
                            turned = {**turned, "emit": "step"}
                            turned.pop("call_id", None)
                        yield turned
