"""Laws of the rows that have to be trained."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from head_laws import splice

from prefixguard.alarm import AlarmPolicy, run_maximum
from prefixguard.errors import ConfigError, DataError, MissingExtraError, missing_extra
from prefixguard.evaluation.controls import CONTROLS, Control, ControlSides, as_raw, control_rows
from prefixguard.evaluation.controls.fits import ControlRuns, last_step_words, words_so_far
from prefixguard.learn import draw_alarm_runs, featurise
from prefixguard.metrics import Prefixes, auroc
from prefixguard.simulation import write_runs
from prefixguard.stepview import Spool, load_adapter, read_runs

OPTIONS = {"horizon": 3, "seed": 13, "policy": AlarmPolicy(budget=0.5), "budgets": (0.01, 0.5)}

#: Controls that are fitted in a moment; boosting and raw text are tried by the laws that need them.
QUICK = [name for name in CONTROLS if name not in ("boosting", "raw text")]


def lab_corpus(path, runs):
    write_runs(path, runs, 5)
    return featurise(read_runs(str(path), load_adapter("openai_chat")))


def sides_by_task(corpus):
    """Half of the tasks to learn from, a quarter for thresholds, a quarter to test on."""
    tasks = {task: i % 4 for i, task in enumerate(sorted(set(corpus.task_ids)))}
    side = np.array([tasks[task] for task in corpus.task_ids])
    return ControlSides(np.flatnonzero(side < 2), np.flatnonzero(side == 2), np.flatnonzero(side == 3))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("lab") / "lab.jsonl"


@pytest.fixture(scope="module")
def corpus(path):
    return lab_corpus(path, 64)


@pytest.fixture(scope="module")
def sides(corpus):
    return sides_by_task(corpus)


@pytest.fixture(scope="module")
def rows(corpus, sides):
    return control_rows(corpus, sides, **OPTIONS)


def every_document(corpus):
    return list(corpus.documents.each(0, int(corpus.first[-1])))


def with_documents(corpus, changed):
    """The same runs, each document changed."""
    documents = Spool()
    for document in every_document(corpus):
        documents.append(changed(document))
    return replace(corpus, documents=documents)


def said(row):
    """All that a row says, as bytes and values."""
    return [scores.tobytes() for scores in (*row.imminent, *row.outcome)], row.thresholds


def other_test_runs(corpus, sides, pieces):
    """A corpus in which only the test runs consist of other steps: a list of step numbers for each."""
    every = [np.arange(corpus.first[r], corpus.first[r + 1]) for r in range(len(corpus))]
    for r, piece in zip(sides.test.tolist(), pieces, strict=True):
        every[r] = piece
    return splice(corpus, np.arange(len(corpus)), every)


def test_rows_are_probabilities_of_the_test_runs_in_their_order(corpus, sides, rows):
    assert [row.name for row in rows] == list(CONTROLS)
    for row in rows:
        assert row.probability and not row.oracle and row.note == CONTROLS[row.name].note
        imminent, outcome = row.flat(corpus.lengths[sides.test].tolist())
        for scores in (imminent, outcome):
            assert scores.dtype == np.float64
            assert (scores >= 0).all() and (scores <= 1).all() and len(np.unique(scores)) > 5
    turned = ControlSides(sides.train, sides.alarm, sides.test[::-1])
    some = {row.name: row for row in rows if row.name in QUICK}
    for other in control_rows(corpus, turned, **OPTIONS, wanted=QUICK):
        row = some[other.name]
        assert [s.tobytes() for s in other.outcome[::-1]] == [s.tobytes() for s in row.outcome], row.name


def test_outcomes_of_test_runs_are_not_read_and_the_same_seed_gives_the_same_bytes(corpus, sides, rows):
    failed = corpus.failed.copy()
    failed[sides.test] = ~failed[sides.test]
    flipped = control_rows(replace(corpus, failed=failed), sides, **OPTIONS)
    assert [said(row) for row in flipped] == [said(row) for row in rows]


def test_another_seed_gives_other_draws(corpus, sides, rows):
    other = control_rows(corpus, sides, **{**OPTIONS, "seed": 14}, wanted=["process mining", "context alone"])
    assert all(said(row)[0] != said(first)[0] for row, first in zip(other, (rows[2], rows[4]), strict=True))


def test_outcomes_of_training_runs_are_what_is_learned(corpus, sides, rows):
    failed = corpus.failed.copy()
    failed[sides.train] = ~failed[sides.train]
    first = {row.name: said(row)[0] for row in rows}
    for row in control_rows(replace(corpus, failed=failed), sides, **OPTIONS, wanted=QUICK):
        assert said(row)[0] != first[row.name], row.name


def test_a_score_has_read_nothing_of_later_steps(corpus, sides, rows):
    lengths = corpus.lengths[sides.test]
    cut = [max(1, int(n) * (i % 4 + 1) // 5) for i, n in enumerate(lengths)]
    pieces = [np.arange(corpus.first[r], corpus.first[r] + n) for r, n in zip(sides.test.tolist(), cut, strict=True)]
    truncated = control_rows(other_test_runs(corpus, sides, pieces), sides, **OPTIONS)
    for row, whole in zip(truncated, rows, strict=True):
        assert row.thresholds == whole.thresholds, row.name
        for risk in ("imminent", "outcome"):
            for short, full in zip(getattr(row, risk), getattr(whole, risk), strict=True):
                np.testing.assert_allclose(short, full[: len(short)], rtol=0, atol=1e-6, err_msg=row.name)


@pytest.mark.slow
def test_each_control_beats_chance_on_the_lab(tmp_path):
    corpus = lab_corpus(tmp_path / "more.jsonl", 160)
    sides = sides_by_task(corpus)
    prefixes = Prefixes.of(
        corpus.lengths[sides.test].tolist(), corpus.failed[sides.test].tolist(), ["t"] * len(sides.test)
    )
    for row in control_rows(corpus, sides, **OPTIONS):
        assert auroc(prefixes.imminent_labels(3), np.concatenate(row.imminent)) > 0.55, row.name


def test_thresholds_come_from_one_successful_alarm_run_a_task(corpus, sides, rows):
    drawn = draw_alarm_runs(corpus, 13, sides.alarm)
    assert not corpus.failed[drawn].any() and set(drawn.tolist()) < set(sides.alarm.tolist())
    shown = ControlSides(sides.train, sides.alarm[:0], drawn)
    marks = {row.name: row.thresholds for row in rows}
    for there in control_rows(corpus, shown, **OPTIONS, wanted=QUICK):
        maxima = [run_maximum(scores, OPTIONS["policy"]) for scores in there.outcome]
        mark, refused = marks[there.name][0.5], marks[there.name][0.01]
        assert mark.n_runs == len(drawn) and mark.alarm == sorted(maxima)[-1 - mark.allowed]
        assert refused.alarm is None and "cannot support" in refused.reason
        assert there.thresholds[0.5].alarm is None  # no alarm run at all


def test_process_mining_reads_names_of_tools_and_nothing_else(corpus, sides, rows):
    def other_words(document):
        actor_and_tool = document[: document.index(b"\x03")]
        return actor_and_tool + b"\x03{}\x04entirely\x05different\x06words\x07error"

    wanted = {**OPTIONS, "wanted": ["process mining"]}
    changed = replace(with_documents(corpus, other_words), context=np.zeros_like(corpus.context))
    assert said(control_rows(changed, sides, **wanted)[0]) == said(rows[4])
    tools = with_documents(corpus, lambda d: d[: d.index(b"\x02")] + b"\x02same" + d[d.index(b"\x03") :])
    assert said(control_rows(tools, sides, **wanted)[0]) != said(rows[4])


def test_a_tool_that_training_never_saw_is_no_error(corpus, sides, rows):
    new = set()

    def renamed(document):
        new.add(document)
        return document[: document.index(b"\x02")] + b"\x02never seen" + document[document.index(b"\x03") :]

    steps = {step for r in sides.test.tolist() for step in range(corpus.first[r], corpus.first[r + 1])}
    documents = Spool()
    for step, document in enumerate(every_document(corpus)):
        documents.append(renamed(document) if step in steps else document)
    row = control_rows(replace(corpus, documents=documents), sides, **OPTIONS, wanted=["process mining"])[0]
    assert new and all(np.isfinite(scores).all() for scores in row.outcome)
    assert row.thresholds == rows[4].thresholds and said(row)[0] != said(rows[4])[0]


def test_context_alone_reads_no_word(corpus, sides, rows):
    blank = with_documents(corpus, lambda _: b"\x01\x02\x03\x04\x05\x06\x07ok")
    assert said(control_rows(blank, sides, **OPTIONS, wanted=["context alone"])[0]) == said(rows[2])


def test_words_of_the_last_step_forget_and_words_so_far_know_no_order(corpus, sides):
    runs = ControlRuns(corpus, sides.train, 3, 13)
    last, so_far = last_step_words(runs), words_so_far(runs)
    turned = [np.arange(corpus.first[r], corpus.first[r + 1])[::-1] for r in sides.test.tolist()]
    other = replace(runs, corpus=other_test_runs(corpus, sides, turned))
    for one, two in zip(last(sides.test), last_step_words(other)(sides.test), strict=True):
        np.testing.assert_allclose(one[::-1], two, atol=1e-12)
    middle = 0
    for one, two in zip(so_far(sides.test), words_so_far(other)(sides.test), strict=True):
        np.testing.assert_allclose(one[-1], two[-1], atol=1e-12)  # of the whole run the same words
        middle += not np.allclose(one[0], two[0], atol=1e-6)
    assert middle > len(sides.test) // 2


def test_tasks_weigh_alike(corpus, sides):
    uneven = ControlSides(sides.train[1:], sides.alarm, sides.test)  # the first task has a run less
    weights = ControlRuns(corpus, uneven.train, 3, 13).weights
    task = np.repeat([corpus.task_ids[r] for r in uneven.train.tolist()], corpus.lengths[uneven.train])
    sums = [weights[task == name].sum() for name in set(task.tolist())]
    assert np.ptp(sums) < 1e-9 * max(sums) and weights.mean() == pytest.approx(1)
    assert np.ptp(corpus.lengths[uneven.train]) > 0


def test_only_what_is_wanted_is_fitted_and_each_is_named_first(corpus, sides, rows):
    told = []
    found = control_rows(corpus, sides, **OPTIONS, wanted=["context alone", "words so far"], on_stage=told.append)
    assert told == [row.name for row in found] == ["words so far", "context alone"]
    assert [said(row) for row in found] == [said(rows[1]), said(rows[2])]
    with pytest.raises(ConfigError, match=r"no control is called 'bosting'\. Choose from: words of the last step, "):
        control_rows(corpus, sides, **OPTIONS, wanted=["bosting"])


def test_sides_that_would_flatter_are_refused(corpus, sides):
    with pytest.raises(DataError, match="1 stand on two sides"):
        ControlSides(sides.train, sides.alarm, np.append(sides.test, sides.train[0]))
    moved = ControlSides(sides.train[1:], sides.alarm, np.append(sides.test, sides.train[0]))
    with pytest.raises(DataError, match=r"1 tasks have runs on the training and the test side .* Split the runs"):
        control_rows(corpus, moved, **OPTIONS)
    good = ControlSides(sides.train[~corpus.failed[sides.train]], sides.alarm, sides.test)
    with pytest.raises(DataError, match="all ended alike"):
        control_rows(corpus, good, **OPTIONS)
    with pytest.raises(DataError, match="no run is to be scored"):
        control_rows(corpus, ControlSides(sides.train, sides.alarm, sides.test[:0]), **OPTIONS)
    two_tasks = ControlSides(sides.train[:8], sides.alarm, sides.test)
    with pytest.raises(
        DataError, match=r"no word occurs in 3 of the tasks .* \(2\)\. Give training runs of more tasks"
    ):
        control_rows(corpus, two_tasks, **OPTIONS, wanted=["words so far"])


def test_a_control_whose_package_is_missing_is_left_out_and_that_is_said(corpus, sides, rows, monkeypatch):
    def missing(runs):
        raise missing_extra("the control", "train", ModuleNotFoundError(name="torch"))

    alone = {"context alone": CONTROLS["context alone"], "process mining": Control(missing, "an LSTM")}
    monkeypatch.setattr("prefixguard.evaluation.controls.rows.CONTROLS", alone)
    told: list[str] = []
    found = control_rows(corpus, sides, **OPTIONS, on_stage=told.append)
    assert [said(row) for row in found] == [said(rows[2])]
    assert told[:2] == ["context alone", "process mining"]
    assert told[2].startswith("process mining is left out: the control needs torch. Install it with: pip install")
    with pytest.raises(MissingExtraError, match="the control needs torch"):
        control_rows(corpus, sides, **OPTIONS, wanted=["process mining"])


@pytest.fixture(scope="module")
def raw(path, corpus):
    return featurise(read_runs(str(path), load_adapter("raw:openai_chat")))


def test_the_raw_view_needs_no_second_reading_and_leaves_no_field(corpus, raw):
    made = as_raw(corpus)
    assert every_document(made) == every_document(raw) != every_document(corpus)
    assert made.context.tobytes() == raw.context.tobytes()
    assert (made.run_ids, made.task_ids, made.digests) == (raw.run_ids, raw.task_ids, raw.digests)
    assert made.failed.tolist() == corpus.failed.tolist()
    for document in every_document(made):
        assert document.startswith(b"\x01agent\x02\x03\x04\x05") and document.endswith(b"\x06\x07unknown")


def test_raw_text_is_boosting_on_runs_that_are_read_through_the_raw_view(raw, rows):
    (read,) = control_rows(raw, sides_by_task(raw), **OPTIONS, wanted=["boosting"])
    assert said(read) == said(rows[-1])
