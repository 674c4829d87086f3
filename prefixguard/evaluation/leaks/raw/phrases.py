"""Verdicts in words: sentences of a judge that stand in the last record of a run and hardly anywhere else."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prefixguard.evaluation.leaks.confirmation import own_results
from prefixguard.evaluation.leaks.finding import LeakFinding, Severity
from prefixguard.evaluation.leaks.raw.runs import RawRuns, SeenRun

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


def find_phrases(raw: RawRuns) -> Iterator[LeakFinding]:
    """Phrases in last records, and in first ones where they tell the outcome."""
    own = () if raw.spec.get("view") == "raw" else ("action",)  # the control has all text in one field
    runs = [seen for seen in raw.seen if seen.wide]
    for field in _FIELDS:
        for phrase in PHRASES:
            if phrase.is_verdict or field not in own:  # an agent may well say that it is done
                yield from _last(phrase, field, field in own, runs)
                if field == "observation":
                    yield from _first(phrase, [seen for seen in runs if len(seen.wide) > 1])


def _match(phrase: Phrase, text: str) -> str | None:
    found = phrase.pattern.search(text)
    return None if found is None else found[0].lower()


def _last(phrase: Phrase, field: str, is_own: bool, runs: Sequence[SeenRun]) -> Iterator[LeakFinding]:
    last = [_match(phrase, getattr(seen.wide[-1], field)) for seen in runs]
    n = sum(one is not None for one in last)
    if not n or n < RARE * len(runs):
        return
    texts = [getattr(record, field) for seen in runs for record in seen.wide[:-1]]
    rate, before = n / len(runs), sum(phrase.pattern.search(text) is not None for text in texts) / max(1, len(texts))
    if rate < FOCUS * before:
        return
    tells = _tells(runs, last)
    severity: Severity
    if tells is None:  # too few runs to measure
        severity = "error" if phrase.is_verdict and not is_own else "note"
    else:
        error, warning = (2.0, 0.8) if is_own else (0.6, 0.0) if phrase.is_verdict else (0.9, 0.65)
        severity = "error" if tells >= error else "warning" if tells >= warning else "note"
    if severity == "error" and not phrase.is_verdict and field == "result":

        def says(text: str) -> set[str]:
            return {"it"} if phrase.pattern.search(text) else set()

        if own_results((seen.wide for seen in runs), ["it"], says):
            severity = "warning"  # a tool says whether it worked, as a live monitor sees it
    measured = "" if tells is None else f", and it tells the outcome ({tells:.2f}; 0.5 is nothing)"
    text = (
        f"the {field} of the last record says {phrase.says!r} in {n} of {len(runs)} runs, in {before:.1%} of the "
        f"records before{measured}."
    )
    figures = {"runs": n, "share": rate, "before": before, **({} if tells is None else {"tells_outcome": tells})}
    remedy = 'Cut it where it is read ({"cut": RE, "of": ...}) and let `run.outcome` read it.'
    yield LeakFinding("verdict", field, "", severity, figures, text, remedy=remedy)


def _first(phrase: Phrase, runs: Sequence[SeenRun]) -> Iterator[LeakFinding]:
    first = [_match(phrase, seen.wide[0].observation) for seen in runs]
    tells = _tells(runs, first)
    if tells is not None and tells >= 0.7:
        figures = {"tells_outcome": tells, "runs": float(sum(one is not None for one in first))}
        text = f"the first observation says {phrase.says!r}; it tells how the run ends ({tells:.2f})."
        remedy = "Cut it from `run.preamble`, or from what the first event observes."
        yield LeakFinding("verdict", "observation", "", "error", figures, text, remedy=remedy)


def _tells(runs: Sequence[SeenRun], said: Sequence[str | None]) -> float | None:
    """Balanced accuracy of the outcome told by what is said, each saying counted for its commoner outcome.

    None below FEWEST runs of an outcome.
    """
    ends = Counter(seen.won for seen in runs)
    if ends[True] < FEWEST or ends[False] < FEWEST:
        return None
    table: dict[str | None, Counter[bool]] = defaultdict(Counter)
    for seen, one in zip(runs, said, strict=True):
        if seen.won is not None:
            table[one][seen.won] += 1
    if len(table) > 20:  # sayings with a number: what is rare would tell by chance
        table = {one: counts for one, counts in table.items() if counts.total() >= 5} or table
    right = {True: 0.0, False: 0.0}
    for counts in table.values():
        side = counts[True] / ends[True] > counts[False] / ends[False]
        right[side] += counts[side] / ends[side]
    return (right[True] + right[False]) / 2
