"""Verdicts in words: sentences of a judge that stand in the last record of a run and hardly anywhere else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from prefixguard.evaluation.leaks import own_results
from prefixguard.induce.checks.evidence import Evidence
from prefixguard.induce.checks.finding import Finding, Severity
from prefixguard.induce.checks.waivers import Suspicion
from prefixguard.stepview import StepRecord

#: Share of runs whose last record has the phrase, below which nothing is said.
RARE = 0.03
#: How much more frequent it must be in last records than in those before.
FOCUS = 5.0
#: Runs of each outcome from which what a phrase tells can be measured.
FEWEST = 10


@dataclass(frozen=True, slots=True)
class Phrase:
    """says: for messages. is_verdict: nothing but a judge speaks so; otherwise it must also tell the outcome."""

    says: str
    pattern: re.Pattern[str]
    is_verdict: bool


def _phrase(says: str, pattern: str, is_verdict: bool = True) -> Phrase:
    return Phrase(says, re.compile(pattern), is_verdict)


_BE = r"(?:was |is |has |has been )?"
_ENDED = r"(?:success\w*|fail\w*|passed|resolved|solved|accomplished|succeeded|completed)"
_VERDICT = r"(?:PASS(?:ED)?|FAIL(?:ED|URE)?|SUCCESS|CORRECT|INCORRECT|RESOLVED|UNRESOLVED)"

PHRASES: tuple[Phrase, ...] = (
    _phrase("answer is correct", r"(?i)\b(?:answer|solution|result|response) (?:is|was) (?:in)?correct\b"),
    _phrase(
        "your score",
        r"(?i)\b(?:your|final|total|episode|task|overall|evaluation)[ _](?:final )?(?:score|reward|return|grade)\b"
        r"(?:[^\n:=]{0,12}(?:\([^()\n]{0,40}\))?\s{0,3}[:=]|\s(?:is|was|of))\s{0,3}-?\d[\d.]{0,8}",
    ),
    _phrase("reward: 1", r"(?i)\breward\b[\"']?\s{0,3}[:=]\s{0,3}-?\d[\d.]{0,8}"),
    _phrase(
        "correct answer:",
        r"(?i)\b(?:correct|expected|reference|gold(?:en)?|true) (?:answer|output|solution|actions?|result)s?\b[\"']?"
        r"\s{0,3}(?:[:=]|is\b|was\b)",
    ),
    _phrase("ground truth", r"(?i)\bground[ _-]truth\b"),
    _phrase("[Result] (PASS)", r"(?i)\[result\]|\((?:PASS|FAIL)\)"),
    _phrase(
        "verdict",
        r"(?i)\b(?:verdict|judge?ment|evaluation|verifier)\b\W{0,12}(?:is\W{0,3})?"
        r"(?:pass|fail|correct|incorrect|success|resolved)",
    ),
    _phrase(
        "the run succeeded", rf"(?i)\b(?:run|trial|episode|trajectory|task|mission|goal)[ _]{_BE}{_ENDED}\b", False
    ),
    _phrase("PASS", rf"(?m)^\W{{0,6}}{_VERDICT}\W{{0,6}}$", False),
    _phrase(
        "success: true",
        r"(?i)\b(?:success(?:ful)?|passed|resolved|solved|correct)\b[\"']?\s{0,3}[:=]\s{0,3}(?:true|false|yes|no|[01])\b",
        False,
    ),
    _phrase("exit reason", r"(?i)\b(?:exit|termination|stop|finish)[ _](?:reason|status)\b", False),
    _phrase(
        "cut off by the harness",
        r"(?i)\b(?:exit|forced|early|max|exceeded)[ _](?:max )?"
        r"(?:cost|context|format|api|stop|submit|turns?|steps?|limits?|timeout)\b",
        False,
    ),
    _phrase("###STOP###", r"#{2,}[A-Z_]{3,}#{2,}|<\|?(?:STOP|END|DONE|EOS|TERMINATE)\|?>|^TERMINATE$", False),
)

_FIELDS = ("observation", "result", "action", "tool")


def find_phrases(evidence: Evidence) -> Iterator[Suspicion]:
    """Phrases in last records, and in first ones where they tell the outcome."""
    own = () if evidence.spec.get("view") == "raw" else ("action",)  # the control has all text in one field
    for field in _FIELDS:
        for phrase in PHRASES:
            if field in own and not phrase.is_verdict:
                continue  # an agent may well say that it is done
            yield from _find(evidence, phrase, field, field in own)


def _find(evidence: Evidence, phrase: Phrase, field: str, is_own: bool) -> Iterator[Suspicion]:
    runs = [seen for seen in evidence.seen if seen.wide]
    earlier = sum(len(seen.wide) - 1 for seen in runs)
    last = [_match(seen.wide[-1], field, phrase) for seen in runs]
    n_last = sum(one is not None for one in last)
    if n_last and n_last >= RARE * len(runs):
        before = sum(_match(record, field, phrase) is not None for seen in runs for record in seen.wide[:-1])
        rate, rate_before = n_last / len(runs), before / max(1, earlier)
        if rate >= FOCUS * rate_before:
            tells = _tells([seen.won for seen in runs], last)
            finding = _last(phrase, field, is_own, n_last, len(runs), rate_before, tells)
            if finding.severity == "error" and not phrase.is_verdict and field == "result":
                own = own_results((seen.wide for seen in runs), ["said"], lambda text: _said(phrase, text))
                if own:  # a tool says whether it worked, as a live monitor sees it
                    finding = replace(finding, severity="warning")
            yield Suspicion(finding)
    if field == "observation":
        first = [_match(seen.wide[0], field, phrase) for seen in runs if len(seen.wide) > 1]
        tells = _tells([seen.won for seen in runs if len(seen.wide) > 1], first)
        if tells is not None and tells >= 0.7:
            numbers = {"tells_outcome": tells, "runs": float(sum(one is not None for one in first))}
            what = f"the first observation says {phrase.says!r}; it tells how the run ends ({tells:.2f})."
            remedy = "Cut it from `run.preamble`, or from what the first event observes."
            yield Suspicion(Finding("leaks.verdict", "error", what, field, numbers, remedy))


def _match(record: StepRecord, field: str, phrase: Phrase) -> str | None:
    found = phrase.pattern.search(getattr(record, field))
    return None if found is None else found[0].lower()


def _said(phrase: Phrase, text: str) -> set[str]:
    return {"said"} if phrase.pattern.search(text) else set()


def _last(phrase: Phrase, field: str, is_own: bool, n: int, runs: int, before: float, tells: float | None) -> Finding:
    severity: Severity
    if tells is None:  # too few runs to measure
        severity = "error" if phrase.is_verdict and not is_own else "note"
    elif is_own:
        severity = "warning" if tells >= 0.8 else "note"
    elif phrase.is_verdict:
        severity = "error" if tells >= 0.6 else "warning"
    else:
        severity = "error" if tells >= 0.9 else "warning" if tells >= 0.65 else "note"
    measured = "" if tells is None else f", and it tells the outcome ({tells:.2f}; 0.5 is nothing)"
    return Finding(
        "leaks.verdict",
        severity,
        f"the {field} of the last record says {phrase.says!r} in {n} of {runs} runs, in {before:.1%} of the records "
        f"before{measured}.",
        field,
        {"runs": n, "share": n / runs, "before": before, **({} if tells is None else {"tells_outcome": tells})},
        'Cut it where it is read ({"cut": RE, "of": ...}) and let `run.outcome` read it.',
    )


def _tells(won: list[bool | None], said: list[str | None]) -> float | None:
    """Balanced accuracy of the outcome told by what is said, each saying counted for its commoner outcome.

    None below FEWEST runs of an outcome.
    """
    ends = Counter(one for one in won if one is not None)
    if ends[True] < FEWEST or ends[False] < FEWEST:
        return None
    table: dict[str | None, Counter[bool]] = {}
    for outcome, one in zip(won, said, strict=True):
        if outcome is not None:
            table.setdefault(one, Counter())[outcome] += 1
    if len(table) > 20:  # sayings with a number: what is rare would tell by chance
        few = {one: counts for one, counts in table.items() if sum(counts.values()) >= 5}
        table = few or table
    right = {True: 0.0, False: 0.0}
    for counts in table.values():
        side = counts[True] / ends[True] > counts[False] / ends[False]
        right[side] += counts[side] / ends[side]
    return (right[True] + right[False]) / 2
