"""Does all raw text reach a record, and once: what is left out, which fields are filled, and what is said twice."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator

from prefixguard.evaluation.leaks.raw import MOST_WORDS as WORDS_OF_A_LEAF
from prefixguard.evaluation.leaks.raw import RecordWords, SeenRun, is_within
from prefixguard.induce.checks.evidence import Evidence, parts_of
from prefixguard.induce.checks.finding import Finding, Severity, finding
from prefixguard.stepview import FIELDS, DataPlace, StepRecord, overlaps

#: Words of raw text that are compared in all.
MOST_WORDS = 2_000_000
#: Share of the text of a kind of event past which leaving it out is worth a warning.
MUCH = 0.10
_LISTED = 12
#: Shorter texts repeat by themselves.
SHORT = 24
#: Share of records that say something twice, past which it is worth a warning.
MUCH_TWICE = 0.05
#: Head of a text that is compared.
_HEAD = 400
#: Texts of a run that are looked up among all its raw texts, and how deep in an event those may lie.
_LOOKED_UP, _DEEPEST = 50, 12
#: Fields that may say the same as another of their record, and as one of the next record.
_IN_A_RECORD = tuple(itertools.combinations(("observation", "action", "arguments", "result"), 2))
_IN_THE_NEXT = (
    ("result", "observation"),
    ("observation", "observation"),
    ("result", "result"),
    ("action", "action"),
    ("action", "observation"),
)

#: Characters of raw text, and how many of them reach a record, by name.
_Tally = dict[str, tuple[float, float]]


def check_coverage(evidence: Evidence) -> Iterator[Finding]:
    """Shares of raw text, by kind of event and by place; fill rates."""
    _fill_rates(evidence)
    by_place: _Tally = defaultdict(lambda: (0.0, 0.0))
    by_kind: _Tally = defaultdict(lambda: (0.0, 0.0))
    left = MOST_WORDS
    hidden = 0
    told = evidence.adapter.program.readings
    # what records read too, or what it stands in, or a part of it, is not kept from them
    shared = [one.place for one in told.record if one.looks_inside]
    unseen = [*told.hidden, *(one for one in told.outcome if not any(overlaps(one.place, place) for place in shared))]
    kept_out: dict[DataPlace, bool] = {}
    for seen in (one for start in range(7) for one in evidence.seen[start::7]):  # any beginning is spread over the set
        if left <= 0:
            break
        inside = RecordWords(seen.wide)
        for leaf in evidence.leaves(seen):
            if not isinstance(leaf.value, str) or not leaf.value or _is_bookkeeping(leaf.value):
                continue
            if leaf.place not in kept_out:
                kept_out[leaf.place] = is_within(leaf.place, unseen)
            size = len(leaf.value)
            if kept_out[leaf.place]:
                hidden += size
                continue
            in_records = size * inside.share(leaf.value)
            left -= min(WORDS_OF_A_LEAF, size // 6 + 1)
            for tally, name in ((by_place, evidence.spell(leaf.place)), (by_kind, leaf.kind)):
                tally[name] = tally[name][0] + size, tally[name][1] + in_records
    total = sum(size for size, _ in by_place.values())
    evidence.figures.update(raw_characters=int(total), hidden_characters=hidden)
    if not total:
        yield Finding("coverage", "warning", "there is no text in the raw runs but what is hidden.", "hidden")
        return
    evidence.figures["coverage"] = coverage = sum(reached for _, reached in by_place.values()) / total
    yield from _kinds(by_kind, total, set(evidence.report.events_skipped))
    for name, (there, reached) in sorted(by_place.items(), key=lambda kv: (kv[1][1] - kv[1][0], kv[0]))[:_LISTED]:
        share, inside_share = there / total, reached / there
        if inside_share <= 0.5 and (there - reached) / total >= 0.005:
            what = f"{name} holds {share:.1%} of the raw text; {inside_share:.0%} of it reaches a record."
            yield finding("coverage.place", "note", what, name, share_of_text=share, reached=inside_share)
    if coverage < 0.5:
        what = f"{coverage:.0%} of the raw text reaches a record."
        yield finding("coverage", "warning", what, "rules", coverage=coverage)


def _is_bookkeeping(text: str) -> bool:
    """Identifiers, hashes and times: one word with digits in it. That they reach no record is no loss."""
    return len(text) < 200 and not any(map(str.isspace, text)) and any(map(str.isdigit, text)) and text[0] not in "{["


def _kinds(by_kind: _Tally, total: float, untaken: set[str]) -> Iterator[Finding]:
    for kind, (size, in_records) in sorted(by_kind.items(), key=lambda kv: (-kv[1][0], kv[0]))[:_LISTED]:
        share, reached, lost = size / total, in_records / size, (size - in_records) / total
        if reached < 0.5 and lost > MUCH / 2:
            by = "no rule takes" if kind in untaken else "rules leave out most of"
            severity: Severity = "warning" if lost > MUCH and kind in untaken else "note"
            what = f"{by} the events of kind {kind!r}: {share:.0%} of all raw text, {reached:.0%} of it reaches a "
            what += "record."
            yield finding("coverage.kind", severity, what, kind, share_of_text=share, reached=reached)


def _fill_rates(evidence: Evidence) -> None:
    records = evidence.records
    total = max(1, len(records))
    for name in (*FIELDS, "agent"):
        empty = "unknown" if name == "status" else ""
        evidence.fields[name] = sum(getattr(record, name) != empty for record in records) / total
    acts = sum(bool(record.action or record.arguments or record.tool not in ("", "respond")) for record in records)
    calls = [record for record in records if record.tool not in ("", "respond")]
    evidence.figures.update(tools_named=evidence.fields["tool"], acts_filled=acts / total)
    if calls:
        filled = sum(record.arguments != "" for record in calls) / len(calls)
        evidence.figures.update(calls=len(calls), arguments_filled=filled)


def check_doubling(evidence: Evidence) -> Iterator[Finding]:
    """Texts that stand in two places of neighbouring records although the raw run has them once; and histories that
    every event repeats."""
    pairs: Counter[tuple[str, str]] = Counter()
    doubled = records = growing = long_runs = 0
    for seen in evidence.seen:
        found = list(_twice(seen))
        records += len(seen.wide)
        doubled += len({at for at, _, _ in found})
        pairs.update({(first, second) for _, first, second in found})
        grows = _grows(seen.wide)
        long_runs += grows is not None
        growing += grows is True
    share = doubled / max(1, records)
    evidence.figures["said_once"] = 1 - share
    if share > MUCH_TWICE:
        first, second = max(pairs, key=lambda pair: (pairs[pair], pair))
        what = f"{doubled} of {records} records say a text again that the raw run has once: {first} and {second}."
        yield finding("doubling.text", "warning", what, second, records=doubled, share=share)
    if long_runs and growing / long_runs > 0.5:
        evidence.figures["said_once"] = min(1 - share, 0.2)
        what = (
            f"in {growing} of {long_runs} runs every observation repeats the one before it and adds to it: events hold "
            "the history so far."
        )
        yield finding("doubling.history", "warning", what, "observation", runs=growing, share=growing / long_runs)


def _twice(seen: SeenRun) -> Iterator[tuple[int, str, str]]:
    """(record, field, field): a text of a record that stands again in another field or in the next record."""
    raw: Counter[str] | None = None
    looked_up = 0
    for record in seen.wide:
        for first, second in _IN_A_RECORD:
            text = getattr(record, first)
            if len(text) >= SHORT and text == getattr(record, second):
                yield record.index, first, second
    for record, then in itertools.pairwise(seen.wide):
        for first, second in _IN_THE_NEXT if then.event != record.event else ():
            text = getattr(record, first)[:_HEAD].strip()
            if len(text) < SHORT or text not in getattr(then, second) or looked_up >= _LOOKED_UP:
                continue
            looked_up += 1
            if raw is None:
                parts = (part for event in seen.events for part in parts_of(event, _DEEPEST))
                raw = Counter(part for part in parts if isinstance(part, str) and len(part) >= SHORT)
            if sum(n for whole, n in raw.items() if text in whole) < 2:
                yield then.index, f"{first} of a record", f"{second} of the next"
                break


def _grows(records: tuple[StepRecord, ...]) -> bool | None:
    """Does every observation hold the one before it and more? None for runs too short to say."""
    texts = [record.observation for record in records if len(record.observation) >= SHORT]
    if len(texts) < 3:
        return None
    holds = [
        len(later) > len(text) and text[:_HEAD] in later and text[-_HEAD:] in later
        for text, later in itertools.pairwise(texts)
    ]
    return sum(holds) >= 0.8 * len(holds)
