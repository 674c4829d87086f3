"""Names of fields that only a harness writes, standing in the text of records: a script, a verdict, a trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from prefixguard.evaluation.leaks.features import words
from prefixguard.evaluation.leaks.finding import LeakFinding, Severity, shown
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run

#: Field names of published formats that are no part of what an agent is shown.
_SCRIPT = frozenset(
    (
        "user_scenario",
        "user_instruction",
        "reason_for_call",
        "known_info",
        "unknown_info",
        "task_instructions",
        "user_persona",
    )
)
_VERDICT = frozenset(
    (
        "reward_info",
        "reward_breakdown",
        "is_resolved",
        "parser_results",
        "final_metrics",
        "final_reward",
        "termination_reason",
        "mistake_step",
        "mistake_reason",
        "mistake_agent",
        "mistake_type",
        "faulty_agents",
        "injected_agents",
        "is_injected",
        "injection_strategy",
        "mast_annotation",
        "unsafe_source",
        "exit_status",
        "is_correct",
        "evaluation_criteria",
        "gold_answer",
        "expected_actions",
        "evaluation_result",
        "db_check",
    )
)
_NAMES = frozenset(
    (
        "trial_id",
        "trial_name",
        "trial_uri",
        "agent_model",
        "user_model",
        "agent_llm",
        "user_llm",
        "simulation_id",
    )
)
_ALL = _SCRIPT | _VERDICT | _NAMES
_WHAT = (
    (_SCRIPT, "the simulator's script"),
    (_VERDICT, "a verdict"),
    (_NAMES, "the harness's own names"),
)
_FIELDS = ("observation", "result", "action", "arguments")
#: Share of runs from which it is a finding, and from which it is an error where one record of a run has it.
_SHARE = 0.05
_SHARE_ERROR = 0.30
_FEWEST_RUNS = 3


def find_hidden_text(runs: Sequence[Run[StepRecord]]) -> Iterator[LeakFinding]:
    """A finding a field and kind of name. An agent that programs may meet such names in what it reads: then few runs
    have them, or many records of a run; that is a warning."""
    met: Counter[tuple[str, str]] = Counter()
    records: Counter[tuple[str, str]] = Counter()
    for run in runs:
        seen: Counter[tuple[str, str]] = Counter()
        for record in run.records:
            for field in _FIELDS:
                text = getattr(record, field)
                if "_" in text:
                    seen.update((field, word) for word in _ALL.intersection(words(text)))
        met.update(seen.keys())
        records.update(seen)
    for field in _FIELDS:
        for names, what in _WHAT:
            n, word = max((met[field, name], name) for name in sorted(names))
            if n < max(_FEWEST_RUNS, _SHARE * len(runs)):
                continue
            each = records[field, word] / n
            share = n / len(runs)
            severity: Severity = "error" if share >= _SHARE_ERROR and each <= 1.5 else "warning"
            more = sorted(name for name in names if name != word and met[field, name] >= _SHARE * len(runs))
            text = (
                f"The {field} of {n} of {len(runs)} runs holds {shown(word)}, {each:.1f} record(s) a run: a name that "
                f"a harness gives to {what}, which no live run shows."
            )
            text += f" Beside it: {', '.join(more[:4])}." if more else ""
            figures = {"runs": float(n), "share": share, "records_a_run": each}
            yield LeakFinding("hidden_text", field, word, severity, figures, text)
