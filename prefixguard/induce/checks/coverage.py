"""How much of the raw text reaches a record, which fields are filled, and what reaches nothing."""

from __future__ import annotations

from collections import defaultdict

from prefixguard.evaluation.leaks.raw import MOST_WORDS as WORDS_OF_A_LEAF
from prefixguard.evaluation.leaks.raw import RecordWords, SeenRun, is_within
from prefixguard.induce.checks.evidence import Evidence
from prefixguard.induce.checks.finding import Finding
from prefixguard.stepview import FIELDS, DataPlace, PlaceReading, overlaps

#: Words of raw text that are compared in all.
MOST_WORDS = 2_000_000
#: Share of the text of a place past which leaving it out is worth a warning.
MUCH = 0.10
_LISTED = 12


class _Tally:
    def __init__(self) -> None:
        self.text: dict[str, float] = defaultdict(float)
        self.reached: dict[str, float] = defaultdict(float)

    def add(self, name: str, size: int, share: float) -> None:
        self.text[name] += size
        self.reached[name] += size * share

    def share(self, name: str) -> float:
        return self.reached[name] / self.text[name] if self.text[name] else 1.0


def check_coverage(evidence: Evidence) -> list[Finding]:
    """Shares of raw text, by kind of event and by place; fill rates."""
    _fill_rates(evidence)
    by_place, by_kind, hidden = _Tally(), _Tally(), 0.0
    left = MOST_WORDS
    program = evidence.adapter.program
    told = program.readings
    outcome = [one for one in told.outcome if not _is_shared(one.place, told.record)]
    unseen = [*told.hidden, *outcome]
    kept_out: dict[DataPlace, bool] = {}
    for seen in _spread(evidence.seen):
        if left <= 0:
            break
        inside = RecordWords(seen.wide)
        for leaf in evidence.leaves(seen):
            if not isinstance(leaf.value, str) or not leaf.value:
                continue
            if leaf.place not in kept_out:
                kept_out[leaf.place] = is_within(leaf.place, unseen)
            size = len(leaf.value)
            if _is_bookkeeping(leaf.value):
                continue
            if kept_out[leaf.place]:
                hidden += size
                continue
            share = inside.share(leaf.value)
            left -= min(WORDS_OF_A_LEAF, size // 6 + 1)
            by_place.add(evidence.spell(leaf.place), size, share)
            by_kind.add(leaf.kind, size, share)
    total = sum(by_place.text.values())
    evidence.figures["raw_characters"] = int(total)
    evidence.figures["hidden_characters"] = int(hidden)
    if not total:
        return [Finding("coverage", "warning", "there is no text in the raw runs but what is hidden.", "hidden")]
    evidence.figures["coverage"] = sum(by_place.reached.values()) / total
    return [*_kinds(evidence, by_kind, total), *_places(by_place, total)]


def _is_shared(place: DataPlace, record: list[PlaceReading]) -> bool:
    """Do records read this place too, what it stands in, or a part of it?"""
    return any(one.looks_inside and overlaps(one.place, place) for one in record)


def _is_bookkeeping(text: str) -> bool:
    """Identifiers, hashes and times: one word with digits in it. That they reach no record is no loss."""
    return len(text) < 200 and not any(map(str.isspace, text)) and any(map(str.isdigit, text)) and text[0] not in "{["


def _spread(seen: tuple[SeenRun, ...]) -> list[SeenRun]:
    """The runs in an order whose every beginning is spread over the set."""
    step = 7
    return [one for start in range(step) for one in seen[start::step]]


def _kinds(evidence: Evidence, by_kind: _Tally, total: float) -> list[Finding]:
    found = []
    untaken = {kind.removeprefix("skipped: ") for kind in evidence.report.events_skipped}
    for kind, size in sorted(by_kind.text.items(), key=lambda kv: (-kv[1], kv[0]))[:_LISTED]:
        reached = by_kind.share(kind)
        numbers = {"share_of_text": size / total, "reached": reached}
        lost = size * (1 - reached) / total
        if reached < 0.5 and lost > MUCH / 2:
            by = "no rule takes" if kind in untaken else "rules leave out most of"
            found.append(
                Finding(
                    "coverage.kind",
                    "warning" if lost > MUCH and kind in untaken else "note",
                    f"{by} the events of kind {kind!r}: {size / total:.0%} of all raw text, {reached:.0%} of it "
                    "reaches a record.",
                    kind,
                    numbers,
                    "Give them a rule that reads them; or skip them if the agent does not see them.",
                )
            )
    return found


def _places(by_place: _Tally, total: float) -> list[Finding]:
    found = []
    lost = {name: size - by_place.reached[name] for name, size in by_place.text.items()}
    for name, size in sorted(lost.items(), key=lambda kv: (-kv[1], kv[0]))[:_LISTED]:
        share, reached = by_place.text[name] / total, by_place.share(name)
        if reached > 0.5 or size / total < 0.005:
            continue
        found.append(
            Finding(
                "coverage.place",
                "note",
                f"{name} holds {share:.1%} of the raw text; {reached:.0%} of it reaches a record.",
                name,
                {"share_of_text": share, "reached": reached},
                "Read it if the agent sees it; name it under `hidden` if it is written after the run.",
            )
        )
    coverage = sum(by_place.reached.values()) / total
    if coverage < 0.5:
        found.append(
            Finding(
                "coverage",
                "warning",
                f"{coverage:.0%} of the raw text reaches a record.",
                "rules",
                {"coverage": coverage},
                "Look at the places and kinds that are named beside this.",
            )
        )
    return found


def _fill_rates(evidence: Evidence) -> None:
    records = [record for seen in evidence.seen for record in seen.run.records]
    total = max(1, len(records))
    for name in FIELDS:
        empty = "unknown" if name == "status" else ""
        evidence.fields[name] = sum(getattr(record, name) != empty for record in records) / total
    evidence.fields["agent"] = sum(record.agent != "" for record in records) / total
    evidence.figures["tools_named"] = evidence.fields["tool"]
    acts = sum(bool(record.action or record.arguments or record.tool not in ("", "respond")) for record in records)
    evidence.figures["acts_filled"] = acts / total
    calls = [record for record in records if record.tool not in ("", "respond")]
    if calls:
        evidence.figures["calls"] = len(calls)
        evidence.figures["arguments_filled"] = sum(record.arguments != "" for record in calls) / len(calls)
