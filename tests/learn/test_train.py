"""What `train` says of runs it cannot use, and what it writes of those it can."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import prefixguard
from prefixguard.errors import ConfigError, DataError, OutputError
from prefixguard.learn import LearnListener, TrainConfig, read_toml, train
from prefixguard.learn import train as train_function
from prefixguard.learn.fit import training_key
from prefixguard.trace import task_hash

QUICK = TrainConfig(epochs=1, symbol_epochs=1, members=1, max_features=64, teacher=0.0, budget=0.25)


def _write(path, runs):
    path.write_text("".join(json.dumps(r) + "\n" for r in runs))
    return path


def _read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_one_class_is_refused_with_the_remedy(lab_file, tmp_path):
    runs = [{**r, "outcome": "success"} for r in _read(lab_file)]
    with pytest.raises(DataError, match=r"all 160 runs ended in success: both outcomes are needed .* --labels"):
        train(_write(tmp_path / "r.jsonl", runs), out=tmp_path / "m", adapter="openai_chat", config=QUICK)
    assert not (tmp_path / "m").exists()


def test_runs_without_an_outcome_are_counted_and_point_to_labels(lab_file, tmp_path):
    runs = [{k: v for k, v in r.items() if k != "outcome"} for r in _read(lab_file)[:30]]
    with pytest.raises(DataError, match=r"no run with records and an outcome .* 30 runs have no outcome.*--labels"):
        train(_write(tmp_path / "r.jsonl", runs), out=tmp_path / "m", adapter="openai_chat", config=QUICK)


def test_too_few_runs_are_refused_with_the_number_needed(lab_file, tmp_path):
    with pytest.raises(DataError, match=r"too few to train, .* at least 20 runs of 5 tasks"):
        train(
            _write(tmp_path / "r.jsonl", _read(lab_file)[:12]), out=tmp_path / "m", adapter="openai_chat", config=QUICK
        )


def test_an_existing_bundle_is_not_overwritten_unasked(lab_bundle, lab_file):
    with pytest.raises(DataError, match=r"already there\. Choose another --out or say --overwrite"):
        train(lab_file, out=lab_bundle, adapter="openai_chat", config=QUICK)


def test_a_folder_that_is_no_bundle_is_refused_before_anything_is_read(lab_file, tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "thesis.txt").write_text("years of work")
    stages = []

    class Stages(LearnListener):
        def on_stage(self, name, detail=""):
            stages.append(name)

    with pytest.raises(OutputError, match=r"m is a folder with other things in it\. Choose another name"):
        train(lab_file, out=tmp_path / "m", adapter="openai_chat", config=QUICK, overwrite=True, listener=Stages())
    assert stages == [] and (tmp_path / "m" / "thesis.txt").read_text() == "years of work"


def test_a_checkpoint_is_of_its_validation_runs_too(lab_corpus):
    """They choose epochs and teach further members: with other ones the weights are other ones."""
    pool, some, others = np.arange(80), np.arange(80, 100), np.arange(80, 101)
    keys = {training_key(lab_corpus, pool, validation, QUICK) for validation in (some, others)}
    assert len(keys) == 2 and training_key(lab_corpus, pool, some, QUICK) in keys


def test_no_task_stands_on_two_sides_and_repeats_stay_together(lab_file, tmp_path):
    """A run copied word for word under another task pulls both tasks to one side."""
    runs = _read(lab_file)
    twin = {**runs[0], "run_id": "twin", "task_id": "another task"}
    result = train(_write(tmp_path / "r.jsonl", [*runs, twin]), out=tmp_path / "m", adapter="openai_chat", config=QUICK)
    sides = result.manifest["tasks"]
    every = [h for hashes in sides.values() for h in hashes]
    assert len(every) == len(set(every)) == 41
    side_of = {h: side for side, hashes in sides.items() for h in hashes}
    assert side_of[task_hash(runs[0]["task_id"])] == side_of[task_hash("another task")]
    assert any("repeat another word for word" in note for note in result.notes)


def test_a_budget_that_cannot_be_kept_is_refused_and_the_bundle_still_written(lab_file, tmp_path):
    config = dataclasses.replace(QUICK, budget=0.01)
    result = train(lab_file, out=tmp_path / "m", adapter="openai_chat", config=config)
    assert any("needs at least 230" in note and "no more can be set aside" in note for note in result.notes)
    assert not any("moved" in note for note in result.notes), "it would gain nothing"
    free = train(lab_file, out=tmp_path / "free", adapter="openai_chat", config=dataclasses.replace(QUICK, budget=0.5))
    assert result.manifest["tasks"] == free.manifest["tasks"]
    (note,) = (note for note in result.notes if note.startswith("no alarm"))
    granted = dataclasses.replace(QUICK, budget=float(note.rpartition("budget of ")[2].partition(" %")[0]) / 100)
    granted = train(lab_file, out=tmp_path / "granted", adapter="openai_chat", config=granted)
    assert not any(note.startswith("no alarm") for note in granted.notes)
    monitor = prefixguard.load(tmp_path / "m")
    assert monitor.bundle.calibration.thresholds.alarm is None


def test_the_guarantee_s_runs_are_used_for_nothing_else(lab_bundle):
    manifest = prefixguard.load(lab_bundle).bundle.manifest
    alarm = set(manifest["tasks"]["alarm"])
    for side in ("train", "validation", "calibration", "test"):
        assert not alarm & set(manifest["tasks"][side])
    assert len(manifest["alarm_lengths"]) == manifest["alarm_table"][0]["n_runs"]


class _Interrupt(LearnListener):
    def on_epoch(self, network, number, epochs, loss, score):
        if network == "gru0" and number == 2:
            raise KeyboardInterrupt


def test_an_interrupted_training_is_taken_up_and_ends_as_if_it_had_not_been(lab_file, tmp_path):
    config = dataclasses.replace(QUICK, epochs=3)
    with pytest.raises(KeyboardInterrupt):
        train(lab_file, out=tmp_path / "a", adapter="openai_chat", config=config, listener=_Interrupt())
    assert not (tmp_path / "a").exists() and (tmp_path / ".a.training").is_dir()
    seen = []

    class Count(LearnListener):
        def on_epoch(self, network, number, epochs, loss, score):
            seen.append((network, number))

    resumed = train(lab_file, out=tmp_path / "a", adapter="openai_chat", config=config, listener=Count())
    assert ("gru0", 2) not in seen and ("gru0", 3) in seen
    assert not (tmp_path / ".a.training").exists()
    assert resumed.id == train(lab_file, out=tmp_path / "b", adapter="openai_chat", config=config).id


def test_labels_come_from_a_companion_file(lab_file, tmp_path):
    runs = _read(lab_file)
    labels = tmp_path / "labels.csv"
    labels.write_text("run_id,outcome\n" + "".join(f"{r['run_id']},{r['outcome']}\n" for r in runs))
    bare = _write(tmp_path / "r.jsonl", [{k: v for k, v in r.items() if k != "outcome"} for r in runs])
    result = train_function(bare, out=tmp_path / "m", adapter="openai_chat", labels=labels, config=QUICK)
    assert result.manifest["data"]["failed"] == sum(r["outcome"] == "failure" for r in runs)


def test_metrics_on_the_card_are_numbers_or_null(lab_bundle):
    metrics = prefixguard.load(lab_bundle).bundle.manifest["metrics"]
    assert all(v is None or np.isfinite(v) for v in metrics.values())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"backend": "gpt"}, r"backend 'gpt': choose one of gru, transformer, fsm, gbdt, healthy, blend\."),
        ({"device": "tpu"}, r"device 'tpu': choose auto, cpu or cuda\."),
        ({"seed": 2**31}, r"seed = 2147483648: a whole number of at most 2147483647 is needed\."),
        ({"epochs": 0}, r"epochs = 0: a whole number of at least 1 is needed\."),
        ({"epochs": True}, r"epochs = True: a whole number of at least 1 is needed\."),
        ({"learning_rate": "fast"}, r"learning_rate = 'fast': a number between 1e-06 and 1\.0 is needed\."),
        ({"budget": 0.9}, r"budget = 0\.9: a number between 0\.001 and 0\.5 is needed\."),
    ],
)
def test_options_out_of_range_say_what_is_needed(options, sentence):
    with pytest.raises(ConfigError, match=sentence):
        TrainConfig(**options)


def test_unknown_options_are_named_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"prefixguard\.toml: unknown option 'epoch'\. Known: .*epochs"):
        TrainConfig.from_mapping({"epoch": 3}, "prefixguard.toml")


def test_toml_that_does_not_parse_names_file_and_line(tmp_path):
    path = tmp_path / "prefixguard.toml"
    path.write_text("[train]\nepochs = \n")
    with pytest.raises(ConfigError, match=r"prefixguard\.toml: not readable as TOML \(.*line 2"):
        read_toml(path)
