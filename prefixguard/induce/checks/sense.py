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

from prefixguard.induce.checks.evidence import Evidence, is_call
from prefixguard.induce.checks.finding import Finding, Severity, finding, settled
from prefixguard.stepview import StepRecord

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


def check_sense(evidence: Evidence) -> Iterator[Finding]:
    """What makes an adapter useless although every other check may pass. Waived by the record field, where one is
    named: `tool`, `result`."""
    records = evidence.records
    if not records:
        return
    calls = [record for record in records if is_call(record)]
    for one in (*(_tools(calls) if calls else _no_tool(records)), *_answers(evidence, calls, len(records))):
        yield settled(one, evidence)
    yield from _runs(evidence)
    yield from _cut_up(evidence)
    # a score has no text
    coverage = None if any(record.score is not None for record in records) else evidence.figures.get("coverage")
    raw, hidden = evidence.figures.get("raw_characters", 0), evidence.figures.get("hidden_characters", 0)
    if coverage is not None and coverage < LITTLE and raw > LITTLE * (raw + hidden):
        what = f"only {coverage:.0%} of the text reaches a step."
        yield finding("sense.text", "error", what, "rules", coverage=coverage)


def _tools(calls: list[StepRecord]) -> Iterator[Finding]:
    of_tool = Counter(record.tool for record in calls)
    parts = sorted(tool for tool in of_tool if _PART_OF_A_STEP.match(tool))
    share = sum(of_tool[tool] for tool in parts) / len(calls)
    if share >= _MOST:
        # Beside real tools it may be a way to say which kind of speech this is.
        severity: Severity = "error" if share >= _NEARLY_ALL else "warning"
        what = (
            f"{share:.0%} of the calls are of {', '.join(map(repr, parts[:3]))}, which is the name of a part of a step "
            "and no tool."
        )
        yield finding("sense.tool", severity, what, "tool", calls=len(calls), share=share)


def _no_tool(records: list[StepRecord]) -> Iterator[Finding]:
    """No record names a tool. Plain chat is like that; what holds arguments, results or JSON is none."""
    n = len(records)
    told = sum(bool(record.arguments or record.result) for record in records) / n
    spelled = sum(_OBJECT.search(f"{one.observation} {one.action}") is not None for one in records) / n
    if told >= _HARDLY:
        what = f"no step names a tool, although {told:.0%} of them hold arguments or a result."
        yield finding("sense.no_tool", "error", what, "tool", records=n, share=told)
    elif spelled >= _MOST:
        what = f"no step names a tool, and what is said holds JSON in {spelled:.0%} of them: calls are taken for talk."
        yield finding("sense.no_tool", "error", what, "tool", records=n, share=spelled)
    else:
        what = "no step calls a tool. That is right only where the agent does nothing but talk."
        yield finding("sense.no_tool", "warning", what, "tool", records=n)


def _answers(evidence: Evidence, calls: list[StepRecord], records: int) -> Iterator[Finding]:
    answered = sum(record.result != "" for record in calls)
    if len(calls) < _CALLS or answered >= _ANSWERED * len(calls):
        return
    late = evidence.report.late_results * records / max(1, evidence.report.records)
    came = late >= _MOST * len(calls)
    why = f", and {late:.0f} results belong to no call." if came else ": what the agent saw after it acted is not read."
    what = f"{len(calls) - answered} of {len(calls)} calls have no result{why}"
    share = answered / len(calls)
    yield finding("sense.no_result", "error" if came else "warning", what, "result", calls=len(calls), share=share)


def _runs(evidence: Evidence) -> Iterator[Finding]:
    documents, runs = evidence.report.documents, evidence.report.runs
    share = max(len(seen.run.records) for seen in evidence.seen) / len(evidence.records)
    events = evidence.seen[0].events
    if documents >= _SOME and runs <= documents / 2 and share >= _NEARLY_ALL:
        severity: Severity = "error" if documents >= _MANY else "warning"
        what = f"one run holds {share:.0%} of the steps of {documents} documents."
        yield finding("sense.one_run", severity, what, "container", documents=documents, runs=runs)
    elif runs == 1 and _are_runs(events):
        what = f"the one run has {len(events)} events, each with an id and a text of many lines: each looks like a run."
        remedy = "Read each as a run whose text is split into events (`events.split`)."
        yield Finding("sense.one_run", "error", what, "events", {"events": len(events)}, remedy)


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
    is_scrap = min(middles) <= max(middles) / 3
    scrap = ", one of them always a scrap" if is_scrap else ""
    what = f"each of {len(files)} files gives {usual} runs{scrap}: a file looks like one run whose text was cut up."
    severity: Severity = "error" if is_scrap else "warning"
    yield finding("sense.runs_per_file", severity, what, "container", files=len(files), runs=usual)
