"""Is a set of runs fit to train on: every finding on runs made to have it, and none on runs made without."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import prefixguard
from prefixguard.alarm import runs_needed
from prefixguard.errors import ConfigError, DataError
from prefixguard.evaluation.data_check import DataCheck, DataFinding, check_corpus, check_data
from prefixguard.evaluation.leaks import LeakFinding
from prefixguard.learn import LearnListener, TrainConfig, featurise
from prefixguard.stepview import ReadReport, StepRecord
from prefixguard.trace import Outcome, Run

CONFIG = TrainConfig(backend="gbdt")


def records(n: int, salt: int, word: str = "ok") -> tuple[StepRecord, ...]:
    return tuple(
        StepRecord(t + 1, "agent", "", "find", f'{{"id":{100 * salt + t}}}', "", "", f"{word} {salt} {t}", "ok")
        for t in range(n)
    )


Length = Callable[[int, bool], int]


def corpus_runs(
    n_tasks: int, *, trials: int = 2, length: Length = lambda i, failed: 3 + i % 10, fail: int = 3
) -> list[Run[StepRecord]]:
    """Every `fail`-th run failed; lengths know nothing of that unless `length` does."""
    made = []
    for i in range(n_tasks * trials):
        failed = (i * 7919) % fail == 0
        outcome = Outcome.FAILURE if failed else Outcome.SUCCESS
        made.append(Run(f"r{i}", f"t{i // trials}", outcome, records(length(i, failed), i), f"r{i}", {}))
    return made


def check(runs: Sequence[Run[StepRecord]], *, curve: bool = False, **options: float) -> DataCheck:
    return check_corpus(featurise(runs), replace(CONFIG, **options), curve=curve)


def said(found: DataCheck, severity: str) -> list[str]:
    return [one.text for one in found.findings if one.severity == severity]


def test_runs_without_anything_wrong() -> None:
    found = check(corpus_runs(400))
    assert found.ok and found.findings == tuple(f for f in found.findings if f.severity == "note")
    assert (found.runs, found.tasks, found.without_task) == (800, 400, 0)
    assert sum(side.tasks for side in found.sides) == 400 and sum(side.runs for side in found.sides) == 800
    assert sum(side.failed for side in found.sides) == found.failed
    assert abs(found.lengths.auroc - 0.5) < 0.1 and not found.lengths.piled
    assert found.curve is None and "Fit to train on." in found.to_text()


def test_budgets_are_those_that_a_training_would_grant() -> None:
    found = check(corpus_runs(100))
    ten, one, five = found.budgets
    assert [b.budget for b in found.budgets] == [0.10, 0.01, 0.05], "the one asked for stands first"
    assert (ten.needed, five.needed, one.needed) == (22, 45, 230)
    assert ten.supported and ten.more_tasks == 0 and ten.available == 22 > ten.by_split
    assert not one.supported and one.available < 45
    assert one.more_tasks == math.ceil(230 * 100 / one.available) - 100
    assert any(text.startswith("An alarm budget of 1 % at 90 % confidence needs 230") for text in said(found, "note"))


def test_more_tasks_is_about_the_number_that_does() -> None:
    short = check(corpus_runs(60), budget=0.05)
    assert not short.ok
    more = short.budgets[0].more_tasks
    assert more is not None and more > 0
    text = said(short, "error")[0]
    assert f"about {more:,} more tasks like these would do, or accept a budget of" in text
    possible = float(text.rpartition("budget of ")[2].partition(" %")[0]) / 100
    assert runs_needed(possible, 0.1) <= short.budgets[0].available
    assert check(corpus_runs(60 + more + 6), budget=0.05).budgets[0].supported
    assert not check(corpus_runs(60 + more // 2), budget=0.05).budgets[0].supported


def test_what_training_would_refuse_is_an_error(tmp_path: Path) -> None:
    few = check(corpus_runs(4))
    assert any("8 runs of 4 tasks are too few" in text and "12 more runs and 1 more task)" in text
               for text in said(few, "error"))  # fmt: skip
    alike = check([replace(run, outcome=Outcome.SUCCESS) for run in corpus_runs(100)])
    assert any("All 200 runs succeeded: both outcomes are needed" in text for text in said(alike, "error"))
    failed = check([replace(run, outcome=Outcome.FAILURE) for run in corpus_runs(100)], curve=True)
    assert any("All 200 runs failed" in text for text in said(failed, "error"))
    assert failed.curve is None and failed.budgets[0].available == 0 and failed.budgets[0].more_tasks is None
    rare = check(corpus_runs(100, fail=100))
    assert any("The calibration side of the split would hold" in text for text in said(rare, "error"))


def test_few_runs_and_few_failures_are_warnings() -> None:
    found = check(corpus_runs(80))
    assert "160 runs are few: monitors get useful with hundreds." in said(found, "warning")
    assert any("failed runs would be kept for testing" in text for text in said(found, "warning"))


def test_repeats() -> None:
    runs = corpus_runs(200)
    clean = check(runs)
    assert (clean.repeats.repeats, clean.repeats.across_tasks, clean.repeats.contradictory) == (0, 0, 0)
    copies = [replace(run, run_id=f"{run.run_id}c", task_id=f"{run.task_id}c") for run in runs[:30]]
    copies[0] = replace(copies[0], outcome=Outcome.SUCCESS if runs[0].outcome is Outcome.FAILURE else Outcome.FAILURE)
    found = check([*runs, *copies])
    assert (found.repeats.repeats, found.repeats.across_tasks, found.repeats.contradictory) == (30, 30, 1)
    repeats = "30 of 430 runs repeat another word for word; sets of such runs that stand under several tasks: 30"
    assert any(text.startswith(repeats)
               for text in said(found, "note"))  # fmt: skip
    assert any("1 set of runs that are word for word the same ended both ways" in text
               for text in said(found, "warning"))  # fmt: skip
    many = check([*runs, *(replace(run, run_id=f"{run.run_id}c") for run in runs[:100])])
    assert any(text.startswith("100 of 500 runs repeat") for text in said(many, "warning"))


def test_length_that_tells_the_outcome() -> None:
    found = check(corpus_runs(200, length=lambda i, failed: 8 + i % 5 if failed else 5 + i % 5))
    assert found.lengths.auroc > 0.8
    assert any("Longer runs fail: the number of steps alone has an AUROC of 0." in text
               for text in said(found, "warning"))  # fmt: skip
    turned = check(corpus_runs(200, length=lambda i, failed: 3 + i % 5 if failed else 6 + i % 5))
    assert any(text.startswith("Shorter runs fail") for text in said(turned, "warning"))


def test_a_step_cap() -> None:
    found = check(corpus_runs(200, length=lambda i, failed: 15 if failed and i % 2 else 3 + i % 9))
    assert found.lengths.piled and found.lengths.longest == 15 and found.lengths.failed_at_longest == 1.0
    text = next(text for text in said(found, "warning") if "step cap" in text)
    assert f"{found.lengths.at_longest} runs (" in text and "100% of them failed" in text
    assert "near the cap a count of steps tells as much as any monitor" in text
    mild = check(corpus_runs(200, length=lambda i, failed: 15 if i % 5 == 0 else 3 + i % 9))
    assert mild.lengths.piled and not any("as any monitor" in text for text in said(mild, "warning"))
    same = check(corpus_runs(200, length=lambda i, failed: 6))
    assert not same.lengths.piled, "runs that all have one length are under no cap that this could show"


def test_failures_too_short_to_warn_in() -> None:
    found = check(corpus_runs(200, length=lambda i, failed: 3 if failed else 4 + i % 6))
    assert found.lengths.short_failures == 1.0
    assert any("100% of the failed runs have at most 4 steps" in text for text in said(found, "warning"))


def by_group(name: str, share: dict[str, float]) -> list[Run[StepRecord]]:
    """Runs of 200 tasks, two values of a group that fail in different shares."""
    draw = random.Random(3)
    values = list(share)
    made = []
    for i, run in enumerate(corpus_runs(200)):
        value = values[i % len(values)]
        outcome = Outcome.FAILURE if draw.random() < share[value] else Outcome.SUCCESS
        made.append(replace(run, outcome=outcome, groups={name: value, "line": run.run_id}))
    return made


def test_groups_that_tell_the_outcome() -> None:
    found = check(by_group("model", {"big": 0.1, "small": 0.8}))
    (model,) = found.groups
    assert (model.name, model.n_values, model.one_way) == ("model", 2, 0), "a value a run is no group"
    assert 0.75 < model.auroc < 0.95
    assert {row.value: row.runs for row in model.values} == {"big": 200, "small": 200}
    text = next(text for text in said(found, "warning") if text.startswith("Knowing the model alone"))
    assert "small fails in" in text and "judge a monitor within model as well" in text
    even = check(by_group("model", {"big": 0.4, "small": 0.4}))
    assert even.groups[0].auroc < 0.6 and not any("Knowing the model" in text for text in said(even, "warning"))
    sure = check(by_group("model", {"big": 0.0, "small": 0.5}))
    assert any(text.startswith("1 of 2 values of model") for text in said(sure, "warning"))


def test_runs_without_task_or_outcome() -> None:
    runs = corpus_runs(120)
    found = check([replace(run, task_id=None) for run in runs])
    assert found.tasks == 240
    assert any(text.startswith("240 of 240 runs name no task") for text in said(found, "warning"))
    unknown = [replace(run, run_id=f"u{run.run_id}", outcome=Outcome.UNKNOWN) for run in runs]
    found = check([*runs, *unknown[:100]])
    assert found.without_outcome == 100 and found.runs == 240
    assert any(text.startswith("100 runs have no outcome") for text in said(found, "note"))


def telling(n_tasks: int) -> list[Run[StepRecord]]:
    """Failed runs say so in their words, from the second step on."""
    made = []
    for i, run in enumerate(corpus_runs(n_tasks, length=lambda i, failed: 5 + i % 4)):
        words = "denied sorry broken" if run.outcome is Outcome.FAILURE else "fine good done"
        made.append(replace(run, records=records(len(run.records), i, words)))
    return made


def test_a_curve_sees_what_can_be_learned_and_what_cannot() -> None:
    stages: list[tuple[str, str]] = []

    class Listener(LearnListener):
        def on_stage(self, name: str, detail: str = "") -> None:
            stages.append((name, detail))

    corpus = featurise(telling(120))
    found = check_corpus(corpus, CONFIG, listener=Listener())
    curve = found.curve
    assert curve is not None and [point.share for point in curve.points] == [0.25, 0.5, 1.0]
    assert [name for name, _ in stages] == ["trying"] * 3 and "25% of the training tasks" in stages[0][1]
    tasks = {side.side: side.tasks for side in found.sides}
    assert curve.points[-1].tasks == tasks["train"] and curve.test_tasks == 120 - tasks["train"]
    assert [point.runs for point in curve.points] == [2 * point.tasks for point in curve.points]
    last = curve.points[-1]
    assert last.outcome_auroc > 0.95 and last.imminent_auprc > 0.6 > curve.clock_auprc > curve.prevalence
    assert found.ok
    again = check_corpus(corpus, CONFIG).curve
    assert again == curve, "same runs, same curve"

    hopeless = check(corpus_runs(160, length=lambda i, failed: 5 + i % 4), curve=True)
    assert hopeless.curve is not None
    low, high = hopeless.curve.points[-1].outcome_interval or (0.0, 1.0)
    assert low <= 0.5
    text = next(one for one in hopeless.findings if "learned nothing that holds" in one.text)
    assert text.severity == ("error" if high < 0.55 else "warning") and hopeless.ok == (high >= 0.55)


@pytest.mark.parametrize(("n_tasks", "trials"), [(1, 4), (2, 1), (4, 2), (6, 4), (12, 2)])
def test_a_curve_of_next_to_nothing_is_no_error(n_tasks: int, trials: int) -> None:
    found = check(corpus_runs(n_tasks, trials=trials), curve=True)
    curve = found.curve
    assert (curve is None) == (n_tasks == 1)
    if curve is not None:
        assert len(curve.points) + len(curve.left_out) == 3 and 0.25 in curve.left_out
        assert any("are too few to learn from." in text for text in said(found, "note"))
    json.dumps(found.as_json(), allow_nan=False)
    assert found.to_text()


@dataclass(frozen=True)
class Leak:
    severity: str
    text: str


def test_leaks_are_carried_along() -> None:
    found = check(corpus_runs(400))
    warned = found.with_leaks([Leak("warning", "a word")])
    assert warned.ok and "- warning: a word" in warned.to_text()
    told = found.with_leaks([Leak("warning", "a word"), Leak("error", "the verdict stands in status")])
    assert not told.ok and "Not fit to train on as they are." in told.to_text()
    lines = told.to_text().splitlines()
    assert lines.index("- ERROR: the verdict stands in status") < lines.index("- warning: a word")
    assert told.as_json()["leaks"][1] == {
        "severity": "error",
        "text": "the verdict stands in status",
        "waived": None,
    }


def test_text_is_narrow_and_json_is_plain() -> None:
    runs = by_group("agent", {f"agent number {i} with a rather long name": i / 12 for i in range(12)})
    found = check(runs)
    assert max(map(len, found.to_text().splitlines())) <= 118
    assert "... 4 more" in found.to_text()
    text = json.dumps(found.as_json(), allow_nan=False)
    assert json.loads(text)["budgets"][0]["supported"] is True
    alike = check([replace(run, outcome=Outcome.SUCCESS) for run in runs])
    assert json.loads(json.dumps(alike.as_json(), allow_nan=False))["lengths"]["auroc"] is None


def test_from_a_file(lab_file: Path) -> None:
    report, kept = ReadReport(), []

    def audit(runs: Sequence[Run[StepRecord]]) -> list[Leak]:
        kept.extend(runs)
        return [Leak("note", f"{len(runs)} runs looked at")]

    found = prefixguard.check_data(lab_file, adapter="openai_chat", curve=False, report=report, audit=audit)
    assert (found.runs, found.tasks, report.runs) == (160, 40, 160)
    assert len(kept) == 160 and found.leaks == (Leak("note", "160 runs looked at"),)
    assert [check.name for check in found.groups] == ["agent"]
    assert np.isclose(found.lengths.auroc, found.as_json()["lengths"]["auroc"])


def test_bad_input(lab_file: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"budget = 0\.9"):
        check_data(lab_file, adapter="openai_chat", budget=0.9)
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps({"messages": [{"role": "assistant", "content": "Hi."}]}) + "\n")
    with pytest.raises(DataError, match=r"through adapter openai_chat; 1 have no outcome: add one with --labels\. See"):
        check_data(path, adapter="openai_chat")


def test_what_the_leak_audit_says_too_is_said_once() -> None:
    runs = corpus_runs(400)
    own = replace(
        check(runs),
        findings=(
            DataFinding("warning", "our step cap", "step cap"),
            DataFinding("warning", "our length", "length"),
            DataFinding("warning", "our agent", "group agent"),
            DataFinding("note", "ours alone"),
        ),
    )
    cap = LeakFinding("shortcut", "length", "14 steps", "warning", {}, "their step cap")
    text = own.with_leaks([cap]).to_text()
    assert "their step cap" in text and "our step cap" not in text
    assert "our length" in text and "our agent" in text and "ours alone" in text
    length = LeakFinding("shortcut", "length", "number of steps", "warning", {}, "their length")
    agent = LeakFinding("shortcut", "group agent", "x", "warning", {}, "their agent")
    token = LeakFinding("token", "length", "word", "warning", {}, "a word")
    text = own.with_leaks([length, agent, token]).to_text()
    assert "our step cap" in text and "our length" not in text and "our agent" not in text


def test_it_says_that_no_leak_was_found_only_where_one_was_looked_for() -> None:
    found = check(corpus_runs(400))
    assert "leak" not in found.to_text()
    assert "- note: The leak audit found no leak." in found.with_leaks([]).to_text()
    text = found.with_leaks([Leak("note", "Leak audit: a sample was audited.")]).to_text()
    assert "found no leak." in text and "a sample was audited" in text
    assert "found no leak" not in found.with_leaks([Leak("warning", "a word")]).to_text()
