"""What an adapter comes to, in plain words: a sentence to end with, and what can be done next."""

from __future__ import annotations

from prefixguard.induce.checks import CheckReport

#: Less of the text than this is worth a word.
_LITTLE = 0.5


def verdict(check: CheckReport) -> str:
    """One sentence: runs, calls and their results, and of how many runs the outcome is known.

    Counts of calls are those of the runs that were looked at closely, at most 400.
    """
    figures = check.figures
    runs = int(figures.get("runs", 0))
    if not runs:
        return "Reads no run."
    parts = [_count(runs, "run")]
    looked = int(figures.get("runs_looked_at", runs))
    calls = int(figures.get("calls", 0))
    if calls:
        of = "" if looked >= runs else f" in the {looked} looked at"
        parts.append(f"{_count(calls, 'call')}{of}, {_answered(check, calls)}")
    else:
        parts.append(f"{_count(int(figures.get('records', 0)), 'step')}, no call of a tool")
    if figures.get("coverage", 1.0) < _LITTLE:
        parts.append(f"{figures['coverage']:.0%} of the text")
    unknown = runs - round(figures.get("outcomes_known", 0.0) * runs)
    if not unknown:
        ends = "outcomes all known"
    elif unknown == runs:
        ends = "no outcome known"
    else:
        ends = f"outcome of {unknown} of {runs} runs unknown"
    return f"Reads {', '.join(parts)}; {ends}."


def can_train(check: CheckReport) -> bool:
    """Did some runs succeed and others fail? Nothing can be learnt otherwise."""
    return bool(check.figures.get("runs_succeeded") and check.figures.get("runs_failed"))


def outcome_remedy(check: CheckReport) -> str:
    """Why nothing can be trained yet and what to do, or what could still be better; empty where all is well."""
    known = check.figures.get("outcomes_known", 0.0)
    told = (
        "say where it is told (--hint outcome=PATH), or give a file of outcomes by run (--labels FILE), "
        "with --overwrite"
    )
    if not known:
        return f"No outcome is known, so nothing can be trained through this adapter yet: {told}."
    if not can_train(check):
        one = "succeeded" if check.figures.get("runs_succeeded") else "failed"
        return f"All runs with an outcome {one}, and training needs both. If that is wrong, {told}."
    if known < 1:
        return f"Runs of unknown outcome are not trained on. If they have one, {told}."
    return ""


def _answered(check: CheckReport, calls: int) -> str:
    share = check.figures.get("calls_joined")
    if share is None or share == 0:
        return "none with a result"
    # the share leaves out a last call of a run that nothing can have answered any more
    open_ = int(check.figures.get("calls_open_at_end", 0))
    with_result = round(share * (calls - open_))
    return "all with results" if with_result == calls - open_ else f"{with_result} with results"


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
