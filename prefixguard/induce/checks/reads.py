"""Was the set read: runs, documents, events that no rule took, outcomes and tasks."""

from __future__ import annotations

from prefixguard.induce.checks.evidence import Evidence
from prefixguard.induce.checks.finding import Finding, Severity
from prefixguard.stepview import NO_GROUP
from prefixguard.trace import Outcome

#: Unread runs, of all, past which it is an error.
TOO_MANY_UNREAD = 0.5
#: Lines without a value to group by, of all lines: up to the first they are headings, past the second an error.
_HEADINGS, _TOO_MANY_LINES = 0.1, 0.5
_NAMED = 5


def check_reads(evidence: Evidence) -> list[Finding]:
    """What reading the whole set met."""
    report = evidence.report
    figures = evidence.figures
    empty = sum(report.empty.values())
    unread = sum(not reason.endswith(NO_GROUP) for _, reason in report.skipped)
    found = max(1, report.runs + empty + unread)
    figures.update(
        documents=report.documents, runs=report.runs, records=report.records, runs_looked_at=len(evidence.seen)
    )
    figures.update(runs_empty=empty, unread=unread, events_skipped=sum(report.events_skipped.values()))
    figures["runs_read"] = report.runs / found
    figures["results_late"] = report.late_results
    known = evidence.outcomes.get(Outcome.SUCCESS, 0) + evidence.outcomes.get(Outcome.FAILURE, 0)
    figures["outcomes_known"] = known / max(1, report.runs)
    figures["tasks_known"] = 1 - evidence.without_task / max(1, report.runs)
    return [
        *_unread(evidence, found),
        *_ungrouped(evidence),
        *_empty(evidence, empty, found),
        *_counts(evidence),
        *_ends(evidence, known),
    ]


def _unread(evidence: Evidence, found: int) -> list[Finding]:
    skipped = [(where, reason) for where, reason in evidence.report.skipped if not reason.endswith(NO_GROUP)]
    if not skipped:
        return []
    share = len(skipped) / found
    where, reason = skipped[0]
    return [
        Finding(
            "reads.unread",
            "error" if share > TOO_MANY_UNREAD else "warning",
            f"{len(skipped)} document(s) or run(s) could not be read; the first: {reason}",
            where,
            {"unread": len(skipped), "share": share},
            "Narrow `container.files` if these are no runs; otherwise mend the part of the spec that the reason names.",
        )
    ]


def _ungrouped(evidence: Evidence) -> list[Finding]:
    """Lines that belong to no run: a heading or a summary a file is nothing to worry about, most lines are."""
    report = evidence.report
    places = [where for where, reason in report.skipped if reason.endswith(NO_GROUP)]
    if not places:
        return []
    share = len(places) / (len(places) + report.events)
    a_file = len(places) / max(1, report.documents)
    headings = share <= _HEADINGS or (share < _TOO_MANY_LINES and a_file <= 1)
    severity: Severity = "note" if headings else "warning" if share <= _TOO_MANY_LINES else "error"
    return [
        Finding(
            "reads.ungrouped",
            severity,
            f"{len(places)} line(s) have no value to group by, so they belong to no run.",
            places[0],
            {"lines": len(places), "share": share, "a_document": a_file},
            "If they are part of a run, group by something that all lines have: "
            'another field, {"first": [...]}, or {"file": "stem"}.',
        )
    ]


def _empty(evidence: Evidence, empty: int, found: int) -> list[Finding]:
    if not empty:
        return []
    share = empty / found
    by_outcome = ", ".join(f"{n} {outcome}" for outcome, n in sorted(evidence.report.empty.items()))
    return [
        Finding(
            "reads.empty",
            "warning" if share > 0.2 else "note",
            f"{empty} run(s) gave no record ({by_outcome}).",
            "rules",
            {"empty": empty, "share": share},
            "They may be runs that crashed at once. If they have events, a rule has to take them.",
        )
    ]


def _counts(evidence: Evidence) -> list[Finding]:
    report = evidence.report
    notes = [Finding("reads.labels", "warning", said, remedy="Mend the labels.") for said in report.labels.notes()]
    if report.duplicate_ids:
        notes.append(
            Finding(
                "reads.ids",
                "warning",
                f"{report.duplicate_ids} run(s) have an id that another run has.",
                "run.id",
                {"runs": report.duplicate_ids, "share": report.duplicate_ids / max(1, report.runs)},
                'Build `run.id` from more fields, for instance with {"join": [{"file": "path"}, "$.id"]}.',
            )
        )
    if report.bad_bytes:
        notes.append(
            Finding(
                "reads.bytes", "note", f"{report.bad_bytes} byte(s) are not UTF-8.", "", {"bytes": report.bad_bytes}
            )
        )
    skipped = sorted(report.events_skipped.items(), key=lambda kv: (-kv[1], kv[0]))
    if skipped:
        named = ", ".join(f"{n} {kind}" for kind, n in skipped[:_NAMED])
        more = f" and {len(skipped) - _NAMED} more kinds" if len(skipped) > _NAMED else ""
        total = sum(n for _, n in skipped)
        notes.append(
            Finding(
                "reads.skipped",
                "note",
                f"no rule takes {total} event(s): {named}{more}.",
                "rules",
                {"events": total, "kinds": len(skipped)},
                'Give them a rule; {"emit": "skip"} says that leaving them out is meant.',
            )
        )
    return notes


def _ends(evidence: Evidence, known: int) -> list[Finding]:
    report = evidence.report
    notes = []
    unknown = report.runs - known
    if unknown:
        notes.append(
            Finding(
                "reads.outcome",
                "note" if known else "warning",
                f"{unknown} of {report.runs} run(s) have no known outcome.",
                "run.outcome",
                {"runs": unknown, "share": unknown / report.runs},
                "Say under `run.outcome` where it is told, or give a file of labels; the rest is not trained on.",
            )
        )
    if report.companions_missing:
        notes.append(
            Finding(
                "reads.companions",
                "warning" if report.companions_missing > report.runs / 2 else "note",
                f"{report.companions_missing} outcome(s) should stand in a companion file that is not there.",
                "run.outcome",
                {"runs": report.companions_missing},
                'Check the template of {"sibling": ...}, and that RUNS is a folder that holds those files too.',
            )
        )
    if evidence.without_task:
        notes.append(
            Finding(
                "reads.task",
                "note",
                f"{evidence.without_task} of {report.runs} run(s) have no task: splits go by run there.",
                "run.task",
                {"runs": evidence.without_task, "share": evidence.without_task / report.runs},
                "Say under `run.task` what was asked: an id, or the text of the question.",
            )
        )
    return notes
