"""Does the reading make sense: are there calls, are tools tools and runs runs, does a result reach its call?

An adapter can read every byte, the same way every time, and still be useless: one run of ten transcripts, a "tool"
called Thought, a log whose calls are part of what was said. What a monitor could not learn from is an error here; what
may be as the format is, a warning.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from statistics import median
from typing import Any

from prefixguard.induce.checks.evidence import Evidence
from prefixguard.induce.checks.finding import Finding
from prefixguard.induce.checks.waivers import settled
from prefixguard.stepview import StepRecord
from prefixguard.trace import Outcome

#: Documents from which on it means something that one run holds nearly all records, or that each holds as many runs.
_SOME, _MANY = 3, 5
#: Share of the records that is nearly all, and of texts or events that is most of them.
_NEARLY_ALL, _MOST = 0.9, 0.5
#: Calls from which on it means something that few have a result, and the share that is few.
_CALLS, _ANSWERED = 5, 0.2
#: Records without a tool that hold arguments or a result: less than this share is an accident.
_HARDLY = 0.05
#: Share of the raw text that reaches a record: less is an error.
LITTLE = 0.1
#: Lines of an event that may be a transcript of its own.
_LINES = 5
#: The beginning of an object in JSON.
_OBJECT = re.compile(r'\{\s*"[\w -]{1,60}"\s*:')
_PART_OF_A_STEP = re.compile(
    r"(?i)^[\W_]*(thoughts?|thinking|reasoning|observations?|actions?|action inputs?|questions?|user|human"
    r"|assistant|agent|ai|system|tools?|steps?)[\W_]*\d*[\W_]*$"
)


def check_sense(evidence: Evidence) -> list[Finding]:
    """What makes an adapter useless although every other check may pass. Waived by the record field, where one is
    named: `tool`, `result`."""
    won, lost = evidence.outcomes.get(Outcome.SUCCESS, 0), evidence.outcomes.get(Outcome.FAILURE, 0)
    evidence.figures.update(runs_succeeded=won, runs_failed=lost)
    records = [record for seen in evidence.seen for record in seen.run.records]
    if not records:
        return []
    found = [*_tools(records), *_answers(evidence, records)]
    return [*settled(((one, None) for one in found), evidence), *_runs(evidence), *_text(evidence)]


def is_call(record: StepRecord) -> bool:
    """Did the agent call a tool here?"""
    return record.actor == "agent" and record.tool not in ("", "respond")


def _tools(records: list[StepRecord]) -> Iterator[Finding]:
    calls = Counter(record.tool for record in records if is_call(record))
    if not calls:
        yield _no_tool(records)
        return
    parts = sorted(tool for tool in calls if _PART_OF_A_STEP.match(tool))
    share = sum(calls[tool] for tool in parts) / calls.total()
    if share >= _MOST:
        yield Finding(
            "sense.tool",
            # Beside real tools it may be a way to say which kind of speech this is.
            "error" if share >= _NEARLY_ALL else "warning",
            f"{share:.0%} of the calls are of {', '.join(map(repr, parts[:3]))}, which is the name of a part of a step "
            "and no tool.",
            "tool",
            {"calls": calls.total(), "share": share},
            "Read the tool from inside that text, or where it is named.",
        )


def _no_tool(records: list[StepRecord]) -> Finding:
    """No record names a tool. Plain chat is like that; what holds arguments, results or JSON is none."""
    told = sum(bool(record.arguments or record.result) for record in records) / len(records)
    spelled = sum(_OBJECT.search(f"{one.observation} {one.action}") is not None for one in records) / len(records)
    remedy = "Say where the tool is named: --hint tool=PATH."
    if told >= _HARDLY:
        what = f"no step names a tool, although {told:.0%} of them hold arguments or a result."
        return Finding("sense.no_tool", "error", what, "tool", {"records": len(records), "share": told}, remedy)
    if spelled >= _MOST:
        what = f"no step names a tool, and what is said holds JSON in {spelled:.0%} of them: calls are taken for talk."
        return Finding("sense.no_tool", "error", what, "tool", {"records": len(records), "share": spelled}, remedy)
    what = "no step calls a tool. That is right only where the agent does nothing but talk."
    return Finding("sense.no_tool", "warning", what, "tool", {"records": len(records)}, remedy)


def _answers(evidence: Evidence, records: list[StepRecord]) -> Iterator[Finding]:
    calls = [record for record in records if is_call(record)]
    share = sum(record.result != "" for record in calls) / max(1, len(calls))
    if len(calls) < _CALLS or share >= _ANSWERED:
        return
    late = evidence.report.late_results * len(records) / max(1, evidence.report.records)
    came = late >= _MOST * len(calls)
    without = sum(record.result == "" for record in calls)
    what = f"{without} of {len(calls)} calls have no result"
    why = f", and {late:.0f} results belong to no call." if came else ": what the agent saw after it acted is not read."
    yield Finding(
        "sense.no_result",
        "error" if came else "warning",
        what + why,
        "result",
        {"calls": len(calls), "share": share},
        "Say where results are (--hint result=PATH), or where calls and results have their ids (--hint call_id=PATH).",
    )


def _runs(evidence: Evidence) -> Iterator[Finding]:
    report = evidence.report
    sizes = sorted(len(seen.run.records) for seen in evidence.seen)
    few = report.runs <= report.documents / 2
    if report.documents >= _SOME and few and sizes[-1] >= _NEARLY_ALL * sum(sizes):
        yield Finding(
            "sense.one_run",
            "error" if report.documents >= _MANY else "warning",
            f"one run holds {sizes[-1] / sum(sizes):.0%} of the steps of {report.documents} documents.",
            "container",
            {"documents": report.documents, "runs": report.runs},
            "Say where runs begin: --hint runs=PATH. If it is one run in many files, give samples of several runs.",
        )
    elif report.runs == 1 and (events := evidence.seen[0].events) and _are_runs(events):
        yield Finding(
            "sense.one_run",
            "error",
            f"the one run has {len(events)} events, each with an id and a text of many lines: each looks like a run.",
            "events",
            {"events": len(events)},
            "Read each as a run whose text is split into events (`events.split`).",
        )
    yield from _cut_up(evidence)


def _are_runs(events: tuple[Any, ...]) -> bool:
    """Events that are transcripts themselves: each with a short value that no other has, and a text of many lines."""
    rows = [event for event in events if isinstance(event, dict)]
    if len(rows) < _SOME or len(rows) < len(events):
        return False
    texts = [max((one.count("\n") for one in row.values() if isinstance(one, str)), default=0) for row in rows]
    if sum(lines >= _LINES for lines in texts) < _NEARLY_ALL * len(rows):
        return False
    names = [name for name in rows[0] if re.search(r"(?i)(id|uuid|uid|key|name|number)$", name)]
    return any(len({str(row.get(name)) for row in rows}) == len(rows) for name in names)


def _cut_up(evidence: Evidence) -> Iterator[Finding]:
    """Texts that each give the same number of runs, of which one is always a scrap: a heading was taken for a run."""
    if evidence.adapter.program.events.split is None or evidence.report.runs > len(evidence.seen):
        return
    files: dict[str, list[int]] = defaultdict(list)
    for seen in evidence.seen:
        files[seen.run.source.rpartition(" run ")[0] or seen.run.source].append(len(seen.events))
    counts = Counter(map(len, files.values()))
    usual, n = counts.most_common(1)[0]
    if len(files) < _SOME or usual < 2 or n < _NEARLY_ALL * len(files):
        return
    middles = [median(sizes[i] for sizes in files.values() if len(sizes) == usual) for i in range(usual)]
    scrap = min(middles) <= max(middles) / 3
    yield Finding(
        "sense.runs_per_file",
        "error" if scrap else "warning",
        f"each of {len(files)} files gives {usual} runs{', one of them always a scrap' if scrap else ''}: "
        "a file looks like one run whose text was cut up.",
        "container",
        {"files": len(files), "runs": usual},
        "Read a file as one run, and give its heading to `run`.",
    )


def _text(evidence: Evidence) -> Iterator[Finding]:
    if any(record.score is not None for seen in evidence.seen for record in seen.run.records):
        return  # a score has no text
    coverage = evidence.figures.get("coverage")
    raw, hidden = evidence.figures.get("raw_characters", 0), evidence.figures.get("hidden_characters", 0)
    if coverage is not None and coverage < LITTLE and raw > LITTLE * (raw + hidden):
        yield Finding(
            "sense.text",
            "error",
            f"only {coverage:.0%} of the text reaches a step.",
            "rules",
            {"coverage": coverage},
            "Look at the places that are named beside this, and say what they are with --hint.",
        )
