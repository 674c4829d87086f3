"""Names in the text of records that no live run shows, or that say who acts instead of how it goes.

Three searches: field names that only a harness writes (a script, a verdict, a trial); names of the run, its file, its
agent or model and its task, and what such a name tells; names of language models that the groups do not say.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import numpy as np

from prefixguard.evaluation.analyses.shortcuts import share_elsewhere
from prefixguard.evaluation.leaks.chance import LEVEL, PERMUTATIONS, in_words, rank_area
from prefixguard.evaluation.leaks.features import cut, words
from prefixguard.evaluation.leaks.finding import LeakFinding, Severity, shown
from prefixguard.evaluation.leaks.judged import FEWEST, task_of
from prefixguard.evaluation.leaks.last_step import FOLDS
from prefixguard.stepview import StepRecord
from prefixguard.trace import Outcome, Run

#: Field names of published formats that are no part of what an agent is shown, by what a harness gives them to.
_HARNESS_NAMES: Mapping[str, tuple[str, ...]] = {
    "the simulator's script": (
        "user_scenario", "user_instruction", "reason_for_call", "known_info", "unknown_info", "task_instructions",
        "user_persona",
    ),
    "a verdict": (
        "reward_info", "reward_breakdown", "is_resolved", "parser_results", "final_metrics", "final_reward",
        "termination_reason", "mistake_step", "mistake_reason", "mistake_agent", "mistake_type", "faulty_agents",
        "injected_agents", "is_injected", "injection_strategy", "mast_annotation", "unsafe_source", "exit_status",
        "is_correct", "evaluation_criteria", "gold_answer", "expected_actions", "evaluation_result", "db_check",
    ),
    "the harness's own names": (
        "trial_id", "trial_name", "trial_uri", "agent_model", "user_model", "agent_llm", "user_llm",
        "simulation_id",
    ),
}  # fmt: skip
_ALL = frozenset(name for names in _HARNESS_NAMES.values() for name in names)
#: Share of runs from which it is a finding, and from which it is an error where one record of a run has it.
_HIDDEN, _HIDDEN_ERROR, _HIDDEN_RUNS = 0.05, 0.30, 3


def find_hidden_text(runs: Sequence[Run[StepRecord]]) -> Iterator[LeakFinding]:
    """A finding a field and kind of name. An agent that programs may meet such names in what it reads: then few runs
    have them, or many records of a run; that is a warning."""
    for place in ("observation", "result", "action", "arguments"):
        met: Counter[str] = Counter()
        records: Counter[str] = Counter()
        for run in runs:
            texts = (getattr(record, place) for record in run.records)
            seen = Counter(word for text in texts if "_" in text for word in _ALL.intersection(words(text)))
            met.update(seen.keys())
            records.update(seen)
        for what, names in _HARNESS_NAMES.items():
            n, word = max((met[name], name) for name in names)
            if n < max(_HIDDEN_RUNS, _HIDDEN * len(runs)):
                continue
            each, share = records[word] / n, n / len(runs)
            severity: Severity = "error" if share >= _HIDDEN_ERROR and each <= 1.5 else "warning"
            more = sorted(name for name in names if name != word and met[name] >= _HIDDEN * len(runs))
            text = (
                f"The {place} of {n} of {len(runs)} runs holds {shown(word)}, {each:.1f} record(s) a run: a name that "
                f"a harness gives to {what}, which no live run shows."
            )
            text += f" Beside it: {', '.join(more[:4])}." if more else ""
            figures = {"runs": float(n), "share": share, "records_a_run": each}
            yield LeakFinding("hidden_text", place, word, severity, figures, text)


_FIELDS = ("tool", "arguments", "observation", "action", "result")
#: Share of the runs with such a name in which it must stand, and how much oftener than some other run's name.
_SHARE, _TIMES, _FEWEST_RUNS = 0.10, 4.0, 5
#: Words in the keys of groups that say who acted.
_WHO = ("agent", "model", "llm", "policy", "engine", "scaffold", "author")
#: Steps of a run that are searched, half from each end.
_MOST_STEPS = 200


@dataclass(slots=True)
class _NamesOfKind:
    """Names of one kind, such as task. owner: the name of each run that has one, by the number of the run.

    foils: another name for each run, drawn among the other names. held: by field, how often each name stands in it in
    the runs that it belongs to; foiled: by field, in how many runs their foil does.
    """

    owner: dict[int, str] = field(default_factory=dict)
    foils: dict[int, str] = field(default_factory=dict)
    held: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    foiled: Counter[str] = field(default_factory=Counter)

    def draw_foils(self, generator: np.random.Generator) -> None:
        """Another run's name for each run; none where there is but one name."""
        names = sorted(set(self.owner.values()))
        code = {name: i for i, name in enumerate(names)}
        for number, name in sorted(self.owner.items()) if len(names) > 1 else ():
            self.foils[number] = names[(code[name] + 1 + int(generator.integers(len(names) - 1))) % len(names)]

    def count(self, number: int, place: str, text: str) -> None:
        """Look for a run's name, and its foil, in a field."""
        if _stands(self.owner[number], text):
            self.held[place][self.owner[number]] += 1
        self.foiled[place] += number in self.foils and _stands(self.foils[number], text)

    def place(self) -> str:
        """The field in which most runs hold their name."""
        return max(self.held, key=lambda place: (self.held[place].total(), place), default="")


def find_identifiers(runs: Sequence[Run[StepRecord]], seed: int) -> Iterator[LeakFinding]:
    """A finding a kind of name: the field in which most runs hold it.

    A name counts only where runs hold their own far oftener than another run's: a domain called `retail`, or a task
    called after what it is about, is in the text by itself. Run, file, agent and model are errors, others warnings.
    """
    kinds: dict[str, _NamesOfKind] = defaultdict(_NamesOfKind)
    for number, run in enumerate(runs):
        for kind, name in _names(run):
            kinds[kind].owner.setdefault(number, name)
    generator = np.random.default_rng(seed)
    for _, one in sorted(kinds.items()):
        one.draw_foils(generator)
    for number, run in enumerate(runs):
        wanted = [one for one in kinds.values() if number in one.owner]
        for place in _FIELDS if wanted else ():
            text = _text(run, place)
            for one in wanted:
                one.count(number, place, text)
    best: dict[
        str, tuple[int, str]
    ] = {}  # of names that contain each other, such as a file and its stem, the commonest
    for kind, one in sorted(kinds.items()):
        held = one.held[one.place()]
        n, foiled = held.total(), one.foiled[one.place()]
        if n < max(_FEWEST_RUNS, _SHARE * len(one.owner)) or n < _TIMES * foiled or len(held) < 2:
            continue
        family = kind if kind.startswith("group") else kind.split()[0]
        if family not in best or n > best[family][0]:
            best[family] = n, kind
    for _, kind in best.values():
        yield _finding(kind, kinds[kind], runs, seed)


def _finding(kind: str, names: _NamesOfKind, runs: Sequence[Run[StepRecord]], seed: int) -> LeakFinding:
    severity: Severity = "error" if kind.split()[0] in ("run", "file") or _is_who(kind) else "warning"
    place, owner = names.place(), names.owner
    held, foiled = names.held[place], names.foiled[place]
    n, token = held.total(), held.most_common(1)[0][0]
    area, p, judged = _predicts(runs, owner, seed)
    figures = {
        "runs": float(n),
        "share": n / len(owner),
        "other_names": foiled / len(owner),
        "names": float(len(held)),
        "area": area,
        "p": p,
    }
    text = (
        f"The {place} of {n} of {len(owner)} runs holds the name of its {kind} ({len(held)} names, such as "
        f"{shown(token)}); another run's name stands there in {foiled}."
    )
    if p < LEVEL:
        text += (
            f" The name alone, learned on other tasks, tells the outcome with an area of {area:.2f} ({in_words(p)}, "
            f"{judged} tasks)."
        )
    elif area == area:
        text += f" The name alone does not tell the outcome beyond chance ({in_words(p)}, {judged} tasks)."
    text += " A name says how good somebody is on average, or which task it is, and not how this run goes: cut it."
    return LeakFinding("identifier", place, f"{kind}: {token}", severity, figures, text)


def _names(run: Run[StepRecord]) -> Iterator[tuple[str, str]]:
    """Names of a run, by kind; only what looks like a name, each once."""
    path = PurePosixPath(run.run_id.rpartition("#")[0] or run.run_id)
    found = [("run", run.run_id), ("file", str(path)), ("file name", path.name), ("file stem", path.stem)]
    if run.task_id is not None:
        found += [("task", run.task_id), ("task number", run.task_id.rpartition(":")[2])]
    found += [(key if _is_who(key) else f"group {key}", value) for key, value in sorted(run.groups.items())]
    taken = set()
    for kind, name in found:
        name = name.lower()
        # A word, a number or a sentence (a task called by its question) is in the text by itself.
        is_name = not name.isalpha() and not name.isdigit() and not any(c.isspace() for c in name) and len(name) >= 6
        if name not in taken and (is_name or (_is_who(kind) and len(name) >= 4 and not name.isdigit())):
            taken.add(name)
            yield kind, name


def _is_who(key: str) -> bool:
    return any(word in key.lower() for word in _WHO)


def _text(run: Run[StepRecord], place: str) -> str:
    records = run.records
    if len(records) > _MOST_STEPS:
        records = (*records[: _MOST_STEPS // 2], *records[-_MOST_STEPS // 2 :])
    return "\n".join(cut(getattr(record, place)).lower() for record in records)


def _stands(name: str, text: str) -> bool:
    """Does it stand there as a word of its own?

    >>> _stands("gpt-4", "by gpt-4."), _stands("gpt-4", "gpt-4o")
    (True, False)
    """
    start = 0
    while (found := text.find(name, start)) >= 0:
        end = found + len(name)
        if not (text[found - 1 : found].isalnum() or text[end : end + 1].isalnum()):
            return True
        start = end
    return False


def _predicts(runs: Sequence[Run[StepRecord]], owner: Mapping[int, str], seed: int) -> tuple[float, float, int]:
    """How well the failure rate of a name among other tasks ranks runs: area, chance, tasks; one run a task.

    NaN where there are too few tasks of an outcome, or every name has one task.
    """
    drawn: dict[str, int] = {}
    for number in np.random.default_rng(seed).permutation(sorted(owner)).tolist():
        if runs[number].outcome is not Outcome.UNKNOWN:
            drawn.setdefault(task_of(runs[number]), number)
    numbers = sorted(drawn.values())
    failed = np.array([runs[i].outcome is Outcome.FAILURE for i in numbers], dtype=np.bool_)
    names, code = np.unique([owner[i] for i in numbers], return_inverse=True)
    if min(int(failed.sum()), int((~failed).sum())) < FEWEST or len(names) > len(numbers) / 2:
        return float("nan"), float("nan"), len(numbers)
    generator = np.random.default_rng(seed)
    fold = generator.permutation(len(numbers)) % FOLDS
    nobody = np.zeros_like(code)

    def area_of(failed: np.ndarray) -> float:  # what a name adds to the failure rate of all names in the other folds
        return rank_area(failed, share_elsewhere(code, failed, fold, 2.0) - share_elsewhere(nobody, failed, fold))

    area = area_of(failed)
    as_good = sum(area_of(generator.permutation(failed)) >= area - 1e-9 for _ in range(PERMUTATIONS))
    return area, (1 + as_good) / (1 + PERMUTATIONS), len(numbers)


_MODEL = re.compile(
    r"\b(?:gpt|claude|gemini|gemma|llama|qwen|deepseek|mistral|mixtral|grok|kimi|glm|phi|command-r|nova)"
    r"[-_ ]?[a-z0-9](?:[a-z0-9.:-]{0,38}[a-z0-9])?\b"
)
#: Share of runs that must name one model, and from which it is an error; runs of each of two models there must be.
_MODEL_SHARE, _MODEL_ERROR, _EACH = 0.10, 0.50, 3


def find_model_names(runs: Sequence[Run[StepRecord]]) -> Iterator[LeakFinding]:
    """A finding a field in which runs name a model: one each, and not all the same.

    Runs that talk about several models (an agent that researches them) do not count.
    """
    for place in ("observation", "action", "result", "arguments"):
        owner: dict[int, str] = {}
        for number, run in enumerate(runs):
            names = {
                name
                for record in run.records
                for name in _MODEL.findall(cut(getattr(record, place)).lower())
                if any(c.isdigit() for c in name)
            }
            if len(names) == 1:
                owner[number] = names.pop()
        count = Counter(owner.values())
        share = len(owner) / len(runs) if runs else 0.0
        if share < _MODEL_SHARE or sum(n >= _EACH for n in count.values()) < 2:
            continue
        failed: dict[str, list[bool]] = defaultdict(list)
        for number, name in owner.items():
            if runs[number].outcome is not Outcome.UNKNOWN:
                failed[name].append(runs[number].outcome is Outcome.FAILURE)
        rates = {name: sum(ends) / len(ends) for name, ends in failed.items() if len(ends) >= _EACH}
        severity: Severity = "error" if share >= _MODEL_ERROR else "warning"
        top = min(count, key=lambda name: (-count[name], name))
        text = (
            f"The {place} of {len(owner)} of {len(runs)} runs names one language model ({len(count)} names, such as "
            f"{shown(top)})."
        )
        figures = {"runs": float(len(owner)), "share": share, "names": float(len(count))}
        if rates:
            low, high = min(rates.values()), max(rates.values())
            figures |= {"failed_least": low, "failed_most": high}
            text += f" From {low:.0%} to {high:.0%} of a name's runs failed."
        text += " Which model acts is a shortcut, and not how the run goes: cut it."
        yield LeakFinding("identifier", place, f"model: {top}", severity, figures, text)
