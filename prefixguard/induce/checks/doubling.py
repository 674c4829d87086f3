"""Is anything said twice: by two records, by two fields, or by a history that every event repeats?"""

from __future__ import annotations

import itertools
from collections import Counter

from prefixguard.evaluation.leaks.raw import SeenRun
from prefixguard.induce.checks.evidence import Evidence
from prefixguard.induce.checks.finding import Finding
from prefixguard.stepview import StepRecord

#: Shorter texts repeat by themselves.
SHORT = 24
#: Share of records that say something twice, past which it is worth a warning.
MUCH = 0.05
#: Head of a text that is compared.
_HEAD = 400
#: Texts of a run that are looked up among all its raw texts.
_LOOKED_UP = 50

_FIELDS = ("observation", "action", "arguments", "result")


def check_doubling(evidence: Evidence) -> list[Finding]:
    """Texts that stand in two places of neighbouring records although the raw run has them once."""
    pairs: Counter[tuple[str, str]] = Counter()
    doubled = records = growing = long_runs = 0
    for seen in evidence.seen:
        found = _twice(seen)
        records += len(seen.wide)
        doubled += len({at for at, _, _ in found})
        pairs.update({(first, second): 1 for _, first, second in found} or {})
        grows = _grows(seen.wide)
        long_runs += grows is not None
        growing += grows is True
    evidence.figures["said_once"] = 1 - doubled / max(1, records)
    findings = []
    if records and doubled / records > MUCH:
        (first, second), _ = max(pairs.items(), key=lambda one: (one[1], one[0]))
        findings.append(
            Finding(
                "doubling.text",
                "warning",
                f"{doubled} of {records} records say a text again that the raw run has once: {first} and {second}.",
                second,
                {"records": doubled, "share": doubled / records},
                "Let one rule read it; an event that repeats the one before it is skipped (drop_repeats by its id).",
            )
        )
    if long_runs >= 1 and growing / long_runs > 0.5:
        evidence.figures["said_once"] = min(evidence.figures["said_once"], 0.2)
        findings.append(
            Finding(
                "doubling.history",
                "warning",
                f"in {growing} of {long_runs} runs every observation repeats the one before it and adds to it: events "
                "hold the history so far.",
                "observation",
                {"runs": growing, "share": growing / long_runs},
                "Read only what is new in an event: its last message, not its whole input.",
            )
        )
    return findings


def _twice(seen: SeenRun) -> list[tuple[int, str, str]]:
    """(record, field, field): a text of a record that stands again in another field or in the next record."""
    found: list[tuple[int, str, str]] = []
    raw: Counter[str] | None = None
    looked_up = 0
    for record, then in itertools.pairwise((*seen.wide, None)):
        assert record is not None
        for first, second in itertools.combinations(_FIELDS, 2):
            text = getattr(record, first)
            if len(text) >= SHORT and text == getattr(record, second):
                found.append((record.index, first, second))
        if then is None or then.event == record.event:
            continue
        for first, second in (
            ("result", "observation"),
            ("observation", "observation"),
            ("result", "result"),
            ("action", "action"),
            ("action", "observation"),
        ):
            text = getattr(record, first)[:_HEAD].strip()
            if len(text) < SHORT or text not in getattr(then, second) or looked_up >= _LOOKED_UP:
                continue
            looked_up += 1
            raw = _raw_texts(seen) if raw is None else raw
            if sum(n for whole, n in raw.items() if text in whole) < 2:
                found.append((then.index, f"{first} of a record", f"{second} of the next"))
                break
    return found


def _raw_texts(seen: SeenRun) -> Counter[str]:
    """The texts of the events, each with how often it stands there."""
    texts: Counter[str] = Counter()

    def under(value: object, depth: int) -> None:
        if isinstance(value, str):
            if len(value) >= SHORT:
                texts[value] += 1
        elif depth < 12 and isinstance(value, dict):
            for inner in value.values():
                under(inner, depth + 1)
        elif depth < 12 and isinstance(value, list):
            for inner in value:
                under(inner, depth + 1)

    for event in seen.events:
        under(event, 0)
    return texts


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
