"""A monitor of scores: what it is made of, that live equals file equals trainer, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import prefixguard
from prefixguard.alarm import Level
from prefixguard.context import SCORE_FEATURES, scores
from prefixguard.errors import BundleError, ConfigError, DataError, SavedSessionError, UsageError
from prefixguard.evaluation.tables.score_rows import score_values
from prefixguard.learn import TrainConfig, featurise, train
from prefixguard.runtime import load
from prefixguard.stepview import StepRecord, load_adapter, read_runs, score_record

STEP = StepRecord(1, "agent", "", "find", "{}", "", "I look.", "nothing", "ok")


def write_table(path: Path, *, safer: bool = False, runs: int = 160, known: float = 1.0) -> Path:
    """Runs whose failures have higher scores (lower ones where safer); known: how far apart they are."""
    rng = np.random.default_rng(3)
    lines = ["run,step,score,outcome,task"]
    for i in range(runs):
        failed = rng.random() < 0.4
        level = 0.0
        for step in range(1, int(rng.integers(2, 9)) + 1):
            level = 0.6 * level + rng.normal(known * (0.8 if failed else -0.3), 0.8)
            given = -level if safer else level
            lines.append(f"r{i},{step},{given:.4f},{'failure' if failed else 'success'},t{i // 2}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, Path]:
    """A bundle, and the table it is made of."""
    folder = tmp_path_factory.mktemp("scores")
    table = write_table(folder / "scores.csv")
    train(scores=table, out=folder / "monitor", config=TrainConfig(backend="gbdt", budget=0.25))
    return folder / "monitor", table


def test_it_is_a_bundle_like_any_other_and_says_what_it_reads(made) -> None:
    bundle = load(made[0]).bundle
    assert (bundle.kind, bundle.adapter.name, len(bundle.vocabulary)) == ("scores", "scores", 0)
    assert bundle.manifest["schema"] == "prefixguard/bundle/v4"
    assert bundle.card.startswith("# Monitor of scores\n")
    assert "a higher score is riskier" in bundle.card and "observe_score" in bundle.card
    assert bundle.manifest["config"]["higher_is_safer"] is False
    assert bundle.calibration.thresholds.alarm is not None


def test_the_same_table_gives_the_same_bytes(made, tmp_path: Path) -> None:
    again = train(scores=made[1], out=tmp_path / "again", config=TrainConfig(backend="gbdt", budget=0.25))
    assert again.id == load(made[0]).bundle.id


def test_live_is_file_and_a_saved_session_goes_on_alike(made) -> None:
    monitor = load(made[0])
    for n, run in enumerate(read_runs(made[1], load_adapter("scores"))):
        whole = [reading.to_json() for reading in monitor.score_run(run.records)]
        session = monitor.start()
        events = monitor.start()
        for reading, record in zip(whole, run.records, strict=True):
            assert session.observe_score(record.score).to_json() == reading
            assert [one.to_json() for one in events.observe({"step": record.index, "score": record.score})] == [reading]
            session = monitor.restore(session.save())
        assert len(session.save()) <= monitor.session_bytes
        if n == 20:
            return


def test_the_risk_never_falls_with_a_worse_score(made) -> None:
    monitor = load(made[0])
    rng = np.random.default_rng(1)
    for _ in range(30):
        run = rng.normal(0, 2, 6)
        worse = run + np.where(np.arange(6) == rng.integers(6), rng.random() * 3, 0)
        risks = [
            [one.outcome_risk for one in monitor.score_run([score_record(t, x) for t, x in enumerate(scores, 1)])]
            for scores in (run, worse)
        ]
        assert all(b >= a for a, b in zip(*risks, strict=True))


def test_reasons_are_the_scores(made) -> None:
    session = load(made[0]).start()
    readings = [session.observe_score(9.0) for _ in range(4)]
    assert readings[-1].level in (Level.WATCH, Level.ALARM)
    assert any("score" in reason for reason in readings[-1].reasons)
    assert readings[-1].behaviours == ()


def test_what_is_no_score_is_one_unknown_and_is_left_out(made) -> None:
    session = load(made[0]).start()
    for bad, said in [
        (float("nan"), "the score nan is not a finite number from -1e+30 to 1e+30; it is left out"),
        ("high", "the score 'high' is not a number; it is left out"),
        (True, "the score True is not a number; it is left out"),
        (10**400, "is not a number; it is left out"),
    ]:
        reading = session.observe_score(bad)
        assert reading.level is Level.UNKNOWN and str(reading.unknown_reason).endswith(said)
    assert session.observe_score(np.float32(0.5)).step == 1


def test_each_kind_refuses_what_the_other_reads(made) -> None:
    session = load(made[0]).start()
    said = "this monitor reads scores and no steps of an agent: give it numbers with observe_score"
    assert session.observe_record(STEP).unknown_reason == said
    assert session.observe({"role": "user", "content": "x"})[0].level is Level.UNKNOWN
    for other in (load(Path(__file__).parents[2] / "monitors" / "lab"), load("rules")):
        reading = other.start().observe_score(0.5)
        assert reading.level is Level.UNKNOWN and "reads steps of an agent and no scores" in str(reading.unknown_reason)
    with pytest.raises(SavedSessionError):
        load(made[0]).restore(other.start().save())


def test_a_direction_that_is_not_theirs_is_refused_and_never_guessed(tmp_path: Path) -> None:
    up, down = write_table(tmp_path / "up.csv"), write_table(tmp_path / "down.csv", safer=True)
    config = TrainConfig(backend="gbdt", budget=0.25)
    with pytest.raises(DataError, match=r"run the other way.*lower scores.*say --higher-is-safer\."):
        train(scores=down, out=tmp_path / "a", config=config)
    safer = TrainConfig(backend="gbdt", budget=0.25, higher_is_safer=True)
    with pytest.raises(DataError, match=r"run the other way.*higher scores.*leave out --higher-is-safer\."):
        train(scores=up, out=tmp_path / "b", config=safer)
    found = train(scores=down, out=tmp_path / "c", config=safer)
    assert "a higher score is safer" in load(found.path).bundle.card
    session = load(found.path).start()
    assert session.observe_score(-3).outcome_risk > load(found.path).start().observe_score(3).outcome_risk
    chance = write_table(tmp_path / "chance.csv", known=0.0)
    train(scores=chance, out=tmp_path / "d", config=config)  # knows nothing either way: not refused


def test_what_cannot_be_trained_on_is_said(made, tmp_path: Path) -> None:
    table = made[1]
    with pytest.raises(UsageError, match="train takes runs, or scores without runs"):
        train(table, scores=table, out=tmp_path / "x")
    with pytest.raises(UsageError, match="train takes runs, or scores without runs"):
        train(out=tmp_path / "x")
    with pytest.raises(ConfigError, match=r"of scores only boosted trees are made. Say --backend gbdt\."):
        train(scores=table, out=tmp_path / "x", config=TrainConfig(backend="gru"))
    rows = table.read_text().splitlines()
    (tmp_path / "one.csv").write_text("\n".join([rows[0], *(r for r in rows if ",success," in r)]))
    with pytest.raises(DataError, match="both outcomes are needed"):
        train(scores=tmp_path / "one.csv", out=tmp_path / "x")
    (tmp_path / "few.csv").write_text("\n".join(rows[:40]))
    with pytest.raises(DataError, match="are too few to train, calibrate and test on"):
        train(scores=tmp_path / "few.csv", out=tmp_path / "x")
    (tmp_path / "none.csv").write_text("run,step,score\na,1,1\nb,1,2\n")
    with pytest.raises(DataError, match="2 runs have no outcome"):
        train(scores=tmp_path / "none.csv", out=tmp_path / "x")
    result = train(scores=table, out=tmp_path / "y", config=TrainConfig(backend="gbdt", budget=0.01))
    assert any("no alarm" in note and "at least 230" in note for note in result.notes)
    with pytest.raises(UsageError, match="no automaton can be learned of it"):
        prefixguard.export(made[0], table, out=tmp_path / "dfa")


def test_scores_among_steps_are_refused(made) -> None:
    (first, second, *_) = read_runs(made[1], load_adapter("scores"))
    odd = type(second)(second.run_id, None, second.outcome, (STEP,), "here")
    with pytest.raises(DataError, match="some of these steps are scores"):
        featurise([first, odd])
    assert featurise([first]).features == SCORE_FEATURES


def test_evaluation_has_the_score_itself_and_no_rules(made) -> None:
    table = prefixguard.evaluate(made[0], made[1])
    assert {"score", "mean score", "worst score", "step index"} <= set(table.baselines)
    assert "errors in a row" not in table.baselines
    assert table.left_out.by_use["train"] > 0
    assert table.outcome.auroc > 0.8


def test_rows_of_the_score_run_towards_risk() -> None:
    records = [score_record(t, x) for t, x in enumerate((3.0, 1.0, 2.0), 1)]
    assert score_values(records, higher_is_safer=False)["worst score"].tolist() == [3, 3, 3]
    safer = score_values(records, higher_is_safer=True)
    assert safer["worst score"].tolist() == [-3, -1, -1] and safer["mean score"].tolist() == [-3, -2, -2]


def test_calibration_and_drift_work_as_for_any_monitor(made, tmp_path: Path) -> None:
    found = prefixguard.calibrate(made[0], made[1], out=tmp_path / "c", budget=0.3)
    assert found.thresholds.alarm is not None and load(found.path).reads_scores
    assert load(made[0]).drift_signal() is not None


def test_a_bundle_of_other_features_is_refused(made, tmp_path: Path) -> None:
    from dataclasses import replace

    from prefixguard.bundle import open_bundle, parts_of, write_bundle

    parts = parts_of(open_bundle(made[0]))
    names = np.array([feature.name for feature in SCORE_FEATURES[::-1]])
    with pytest.raises(BundleError):
        write_bundle(tmp_path / "odd", replace(parts, context_arrays={**parts.context_arrays, "names": names}))


def test_the_state_of_scores_packs_and_refuses_damage() -> None:
    state = scores.start()
    for x in (1.0, -2.0, 5.0):
        scores.update(state, score_record(1, x))
    other = scores.unpack(scores.pack(state))
    ahead = score_record(1, 3.0)
    assert scores.update(other, ahead).tolist() == scores.update(state, ahead).tolist()
    assert scores.update(state, ahead).tolist()[0] == 5
    for damaged in (b"", scores.pack(state)[:-8] + b"\xff" * 8):
        with pytest.raises(SavedSessionError, match="damaged"):
            scores.unpack(damaged)
