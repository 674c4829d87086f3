"""A monitor in, an automaton out: which runs made what of it, and that it runs like any other monitor."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finished_run import summarise_records
from lab_export import corpus_of, material_of, one_teacher

import prefixguard
from prefixguard.alarm import AlarmPolicy, AlarmState, Level, draw_one_per_task
from prefixguard.automata import ExportResult, export, learning
from prefixguard.automata import material as materials
from prefixguard.automata.alphabets import fit_alphabet
from prefixguard.automata.alphabets.model_symbols import ask_model
from prefixguard.automata.model_selection import Candidate, choose
from prefixguard.automata.strings import walk
from prefixguard.automata.summary.state_figures import state_figures
from prefixguard.bundle import Automaton, Bundle, open_bundle, state_names
from prefixguard.errors import (
    BundleError,
    ConfigError,
    DataError,
    OutputError,
    PrefixGuardError,
    TraceError,
    UsageError,
)
from prefixguard.learn import LearnListener, TrainConfig, out_of_fold, train
from prefixguard.runtime import DriftReference, NewTasks, load, read_risks, score
from prefixguard.simulation import generate
from prefixguard.stepview import read_runs
from prefixguard.trace import Side, task_hash

#: By a name: how each is learned. All are small, so that tests take seconds.
WAYS: dict[str, dict[str, Any]] = {
    "typed": {"alphabet": "typed", "learner": "ladder", "clock": True, "max_states": 16},
    "tree-context": {
        "alphabet": "tree-context",
        "learner": "ladder",
        "clock": False,
        "max_states": 12,
        "examples": False,
    },
    "quantized": {"alphabet": "quantized", "learner": "memoryless", "clock": False, "max_states": 12},
    "gumbel": {"alphabet": "gumbel", "learner": "memoryless", "clock": True, "max_states": 12},
}


class Exports:
    """Each way exported once."""

    def __init__(self, monitor: Path, runs: Path, folder: Path) -> None:
        self.monitor, self.runs, self._folder = monitor, runs, folder
        self._made: dict[str, ExportResult] = {}

    def __call__(self, way: str) -> ExportResult:
        if way not in self._made:
            self._made[way] = export(self.monitor, self.runs, out=self._folder / way, **WAYS[way])
        return self._made[way]


@pytest.fixture(scope="module", autouse=True)
def teacher() -> Iterator[None]:
    with one_teacher():
        yield


@pytest.fixture(scope="module")
def exported(lab_bundle: Path, lab_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Exports:
    return Exports(lab_bundle, lab_file, tmp_path_factory.mktemp("automata"))


def automaton_of(result: ExportResult) -> tuple[Bundle, Automaton]:
    bundle = open_bundle(result.path)
    assert bundle.automaton is not None
    return bundle, bundle.automaton


def changed(runs: Path, folder: Path, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> Path:
    """The runs, each as `change` leaves it, without those of which it leaves nothing."""
    path = folder / "changed.jsonl"
    left = [change(json.loads(line)) for line in runs.read_text().splitlines()]
    path.write_text("".join(json.dumps(run) + "\n" for run in left if run is not None))
    return path


def swapping(bundle: Path, *sides: Side) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Other outcomes for the runs of these sides, the same for all others."""
    tasks = {task for side in sides for task in open_bundle(bundle).manifest["tasks"][side.value]}
    other = {"success": "failure", "failure": "success"}

    def swap(run: dict[str, Any]) -> dict[str, Any]:
        return {**run, "outcome": other[run["outcome"]]} if task_hash(run["task_id"]) in tasks else run

    return swap


# What it says of itself


@pytest.mark.slow
def test_the_manifest_has_the_teachers_sides_and_says_how_it_was_made(exported: Exports) -> None:
    result = exported("typed")
    bundle, automaton = automaton_of(result)
    theirs, ours = open_bundle(exported.monitor), bundle.manifest
    for name in ("tasks", "runs", "split", "seed", "horizon", "data", "vocabulary"):
        assert ours[name] == theirs.manifest[name], name
    assert (bundle.kind, ours["backend"], bundle.id) == ("automaton", "automaton", result.id)
    assert ours["teacher"]["id"] == theirs.id and ours["teacher"]["backend"] == "gru"
    assert ours["teacher"]["metrics"] == theirs.manifest["metrics"]
    assert result.choice is not None
    assert ours["config"] == {
        "alphabet": "typed", "learner": "ladder", "clock": True, "max_states": result.choice.max_states,
    }  # fmt: skip
    assert ours["automaton"]["states"] == automaton.n_states
    assert ours["automaton"]["clock_columns"] == len(automaton.clock) + 1 > 1
    assert ours["automaton"]["thin_states"] == sum(one.thin for one in state_figures(automaton))
    assert [t["states"] for t in ours["trials"]] == [t.states for t in result.trials] and len(result.trials) == 2
    assert "| **chosen** | typed | ladder | yes |" in result.table
    assert bundle.adapter.sha256 == theirs.adapter.sha256
    assert ours["metrics"]["test_runs"] == len(ours["runs"]["test"]) > 0
    assert result.fidelity is not None and ours["fidelity"]["agreement"] == result.fidelity.agreement


@pytest.mark.parametrize("way", ["typed", "gumbel"])
def test_the_page_gives_every_reading_the_level_that_the_monitor_gives_it(way: str, exported: Exports) -> None:
    """At a threshold too: thresholds are risks of the automaton's own, as readings say them."""
    bundle, automaton = automaton_of(exported(way))
    page = (exported(way).path / "automaton.html").read_text(encoding="utf-8")
    data = json.loads(page.partition('<script type="application/json" id="data">')[2].partition("</script>")[0])
    thresholds, equal = bundle.calibration.thresholds, 0
    for row, state in zip(read_risks(automaton, bundle.calibration), data["states"], strict=True):
        if not state["entered"]:
            continue
        for (_, outcome), column in zip(row, state["columns"], strict=True):
            alone = AlarmState(AlarmPolicy(), thresholds).step(outcome)
            assert data["levels"][column["level"]]["says"] == alone
            equal += outcome in (thresholds.watched_from, thresholds.alarm)
    assert equal > 0
    for replay in data["replays"]:
        alarm = AlarmState(bundle.calibration.policy, thresholds)
        for at, step in enumerate(replay["steps"]):
            outcome = read_risks(automaton, bundle.calibration)[step["state"]][automaton.column(at + 1)][1]
            assert step["level"] == alarm.step(outcome)
            assert step["alone"] == AlarmState(AlarmPolicy(), thresholds).step(outcome)


def test_pictures_and_glossary_stand_in_the_folder(exported: Exports) -> None:
    result = exported("typed")
    names = {path.name for path in result.path.iterdir()}
    assert {"automaton.json", "automaton.html", "automaton.svg", "automaton.dot", "GLOSSARY.md", "CARD.md"} <= names
    bundle, automaton = automaton_of(result)
    symbols = bundle.manifest["automaton"]["glossary"]
    assert len(symbols) == automaton.n_symbols
    glossary = (result.path / "GLOSSARY.md").read_text(encoding="utf-8")
    met = automaton.edges.sum(axis=0) > 0
    assert [f"\n## {place}: " in glossary for place in range(len(symbols))] == met.tolist()
    document = json.loads((result.path / "automaton.json").read_bytes())
    assert document["names"] == list(state_names(automaton, bundle.glosses))
    assert all(name in glossary.replace("\\", "") for name in document["names"])
    assert "model.onnx" not in names
    assert "model.onnx" in {path.name for path in exported("quantized").path.iterdir()}


def test_one_candidate_is_not_tried(exported: Exports) -> None:
    result = exported("tree-context")
    assert (result.trials, result.table) == ((), "")
    assert automaton_of(result)[0].manifest["trials"] == []


@pytest.mark.parametrize("mute", [1, 99])
def test_the_next_best_is_taken_where_the_best_can_never_alarm(
    exported: Exports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mute: int
) -> None:
    """And the best after all where none can."""
    tried: list[Candidate] = []

    def can_alarm(learned: Any, *_: Any) -> bool:
        tried.append(learned.choice)
        return len(tried) > mute

    monkeypatch.setattr(learning, "_can_alarm", can_alarm)
    result = export(
        exported.monitor, exported.runs, out=tmp_path / "x", alphabet="typed", learner="ladder", max_states=16
    )
    assert tried[0] == choose(result.trials) and len(set(tried)) == len(tried) == min(mute + 1, len(result.trials), 4)
    assert result.choice == tried[mute if mute < len(tried) else 0]


@pytest.mark.slow
def test_the_same_inputs_give_the_same_bundle(exported: Exports, tmp_path: Path) -> None:
    """By a teacher fitted anew, under another name, over what was there."""
    first = exported("typed")
    shutil.copytree(exported("tree-context").path, tmp_path / "elsewhere")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(materials, "out_of_fold", out_of_fold)
        again = export(exported.monitor, exported.runs, out=tmp_path / "elsewhere", overwrite=True, **WAYS["typed"])
    assert again.id == first.id
    for path in first.path.iterdir():
        if path.name not in ("manifest.json", "CARD.md"):  # these tell the time it took
            assert (again.path / path.name).read_bytes() == path.read_bytes(), path.name


# It runs


@pytest.mark.parametrize("way", WAYS)
def test_readings_are_what_the_workshop_computed(way: str, exported: Exports) -> None:
    """Symbol, state, unseen transitions, both risks and the level of every step of new runs."""
    bundle, automaton = automaton_of(exported(way))
    material = material_of(exported.runs, exported.monitor)
    given = ask_model(open_bundle(exported.monitor), material, {way})
    choice = exported(way).choice
    assert choice is not None
    alphabet = fit_alphabet(way, material, material.pool, choice.max_states, given)
    others = np.concatenate((material.held_out, material.alarm, material.test))
    strings = alphabet.strings(material, others)
    states, unseen = walk(automaton.start, automaton.transitions, automaton.fallback, strings)
    place = {material.corpus.run_ids[r]: i for i, r in enumerate(others.tolist())}
    compared = guessed = 0
    for scored in score(load(bundle.path, reasons="features"), exported.runs):
        if (i := place.get(scored.run.run_id)) is None:
            continue
        a, b = strings.first[i : i + 2]
        alarm = AlarmState(bundle.calibration.policy, bundle.calibration.thresholds)
        for t, reading in enumerate(scored.readings):
            at = int(a) + t
            assert (reading.symbol, reading.state) == (strings.symbols[at], states[at])
            risk = automaton.risk[states[at], automaton.column(t + 1)]
            assert (reading.imminent_risk, reading.outcome_risk) == pytest.approx(tuple(risk), abs=1e-6)
            assert reading.outcome_risk is not None and reading.level is alarm.step(reading.outcome_risk)
            if reading.level in (Level.WATCH, Level.ALARM):
                assert reading.reasons[0] == f"this step: {bundle.glosses[strings.symbols[at]]}"
                assert any("no run in training" in reason for reason in reading.reasons) == unseen[at]
                guessed += unseen[at]
        assert len(scored.readings) == b - a
        compared += len(scored.readings)
    assert compared == len(strings.symbols)
    share = bundle.manifest["fidelity"]["unseen_share"]
    test = strings.first[len(material.held_out) + len(material.alarm)]
    assert share == pytest.approx(unseen[test:].mean())


def test_edges_visits_and_evidence_count_the_runs_of_their_side(exported: Exports) -> None:
    material = material_of(exported.runs, exported.monitor)
    for way in WAYS:
        _, automaton = automaton_of(exported(way))
        steps = material.corpus.lengths
        assert automaton.edges.sum() == automaton.visits.sum() == steps[material.pool].sum()
        assert automaton.evidence.sum() == steps[material.held_out].sum()
        assert automaton.n_states <= WAYS[way]["max_states"]


def test_a_reading_does_not_depend_on_what_comes_after(exported: Exports, fresh_lab_file: Path) -> None:
    monitor = load(exported("tree-context").path)
    for scored in itertools.islice(score(monitor, fresh_lab_file), 5):
        half = len(scored.readings) // 2
        whole = [(r.symbol, r.state, r.outcome_risk, r.level) for r in scored.readings]
        part = monitor.score_run(scored.run.records[:half])
        assert [(r.symbol, r.state, r.outcome_risk, r.level) for r in part] == whole[:half]


def test_words_are_the_glossarys(exported: Exports) -> None:
    bundle, _ = automaton_of(exported("quantized"))
    assert len(bundle.glosses) == 48
    assert all(re.fullmatch(r"imminent risk level \d+ of 12, outcome \d of 4", gloss) for gloss in bundle.glosses)


# It knows how runs of its alarm side look to it


def test_its_reference_of_drift_is_what_its_sessions_say(exported: Exports) -> None:
    automaton = load(exported("typed").path)
    manifest = automaton.bundle.manifest
    tasks = set(manifest["tasks"][Side.ALARM.value])
    runs = [run for run in read_runs(exported.runs, automaton.bundle.adapter) if task_hash(run.task_id) in tasks]
    drawn = draw_one_per_task([r.task_id for r in runs], [r.run_id for r in runs], seed=manifest["seed"])
    looks = [summarise_records(automaton, runs[i].records) for i in drawn]
    assert manifest["drift"] == DriftReference.of(looks).to_json()
    assert sum(count for _, count in manifest["drift"]["cells"]["unseen_transitions"]) == len(tasks)


def test_its_reference_of_drift_is_its_own_and_not_the_teacher_s(exported: Exports) -> None:
    automaton = load(exported("typed").path)
    of_teacher = load(exported.monitor).bundle.manifest["drift"]["cells"]
    assert "unseen_transitions" not in of_teacher
    assert automaton.bundle.manifest["drift"]["cells"]["mean_risk"] != of_teacher["mean_risk"]
    assert set(automaton.drift_signal().evidence) == set(of_teacher) | {"unseen_transitions"}


def test_new_runs_of_the_same_world_give_no_signal(exported: Exports, fresh_lab_file: Path) -> None:
    automaton = load(exported("typed").path)
    signal, new = automaton.drift_signal(), NewTasks(automaton.bundle.manifest)
    for one in score(automaton, fresh_lab_file):
        if new.take(one.run):
            signal.observe_run(one.summary)
    assert signal.runs == 6 and signal.report is None


# Which runs made what


def machine(result: ExportResult) -> list[bytes]:
    """The lines of automaton.json but for the one that says how its alarms did."""
    lines = (result.path / "automaton.json").read_bytes().splitlines()
    return [line for line in lines if not line.startswith(b' "performance"')]


def calibration(result: ExportResult) -> bytes:
    return (result.path / "calibration.json").read_bytes()


@pytest.mark.parametrize("sides", [(Side.ALARM,), (Side.TEST,), (Side.ALARM, Side.TEST)], ids=["alarm", "test", "both"])
def test_alarm_and_test_runs_have_no_say_in_the_automaton(
    sides: tuple[Side, ...], exported: Exports, tmp_path: Path
) -> None:
    """Their outcomes swapped: not a byte of the automaton changes; thresholds do, with alarm runs alone."""
    runs = changed(exported.runs, tmp_path, swapping(exported.monitor, *sides))
    swapped = export(exported.monitor, runs, out=tmp_path / "swapped", **WAYS["typed"])
    assert machine(swapped) == machine(exported("typed"))
    same = calibration(swapped) == calibration(exported("typed"))
    assert same == (Side.ALARM not in sides)
    assert swapped.choice == exported("typed").choice and swapped.trials == exported("typed").trials
    # Whether it can ever alarm hangs on the threshold, and is said among what to be careful about.
    ours, theirs = (replace(e.fidelity, care=()) for e in (swapped, exported("typed")) if e.fidelity is not None)
    assert (ours == theirs) == (sides == (Side.ALARM,))


def test_calibration_runs_set_risks_and_nothing_of_the_structure(exported: Exports, tmp_path: Path) -> None:
    runs = changed(exported.runs, tmp_path, swapping(exported.monitor, Side.CALIBRATION))
    swapped = export(exported.monitor, runs, out=tmp_path / "swapped", **WAYS["typed"])
    (one, ours), (other, theirs) = automaton_of(exported("typed")), automaton_of(swapped)
    assert one.symbol_map == other.symbol_map and one.glosses == other.glosses
    for name in ("transitions", "edges", "visits", "fallback", "evidence", "stand_in"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    assert ours.clock == theirs.clock
    assert np.abs(ours.risk - theirs.risk).max() > 0.05
    assert swapped.trials == exported("typed").trials


# What is not said


def own_words(runs: Path, known: set[str]) -> set[str]:
    """Words that runs of fewer than three tasks say and we do not, long enough not to turn up by chance."""
    ours = {
        word
        for path in Path(prefixguard.__file__).parent.rglob("*")
        if path.suffix in (".py", ".js", ".css", ".html")
        for word in re.findall(r"[a-z]{7,}", path.read_text().lower())
    }
    tasks: dict[str, set[str]] = {}
    for run in map(json.loads, runs.read_text().splitlines()):
        for word in re.findall(r"[A-Za-z0-9_@.#-]{7,}", json.dumps(run["messages"])):
            tasks.setdefault(word.strip(".#-").lower(), set()).add(run["task_id"])
    said = " ".join(known | ours)
    return {word for word, of in tasks.items() if len(of) < 3 and len(word) > 6 and word not in said}


def test_without_examples_nothing_is_left_of_any_run(exported: Exports) -> None:
    """No file holds a word that only the runs of one or two tasks say, nor an id of a run, a task or an agent."""
    vocabulary = open_bundle(exported.monitor).vocabulary
    known = {word for term in vocabulary.terms for word in re.split(r"[: ]", term)}
    words = own_words(exported.runs, known)
    corpus = corpus_of(exported.runs, exported.monitor)
    names = {*corpus.run_ids, *corpus.task_ids, *(value for group in corpus.groups for value in group.values())}
    assert len(words) > 300 and len(names) > 100
    quiet, plain = exported("tree-context").path, exported("typed").path
    for path in sorted(quiet.iterdir()):
        said = path.read_bytes().decode("utf-8", "replace").lower()
        assert not [word for word in words if word in said], path.name
        assert not [name for name in names if len(name) > 6 and name.lower() in said], path.name
    shown = (plain / "automaton.html").read_text().lower()  # so that the search is known to find what is there
    assert [word for word in words if word in shown] and [name for name in corpus.run_ids if name in shown]


def page_data_of(result: ExportResult) -> dict[str, Any]:
    """What the page holds."""
    page = (result.path / "automaton.html").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(page.rpartition('id="data">')[2].partition("</script>")[0])
    return data


def test_runs_of_ones_choice_are_replayed_first_and_labelled(exported: Exports, tmp_path: Path) -> None:
    """A run of training too, which is said; what a session says of it step by step."""
    corpus = corpus_of(exported.runs, exported.monitor)
    material = material_of(exported.runs, exported.monitor)
    asked = [corpus.run_ids[int(material.pool[4])], corpus.run_ids[int(material.test[2])]]
    found = export(exported.monitor, exported.runs, out=tmp_path / "x", replay=asked, **WAYS["typed"])
    replays = page_data_of(found)["replays"]
    assert [replay["run_id"] for replay in replays[:2]] == asked
    assert [replay["note"] for replay in replays[:3]] == [
        "asked for: no test run, so it may have been learned from", "asked for", "",
    ]  # fmt: skip
    assert [replay["run_id"] for replay in replays].count(asked[1]) == 1
    source = {run.run_id: run for run in read_runs(str(exported.runs), open_bundle(exported.monitor).adapter)}
    (scored,) = score(load(found.path), [source[asked[0]]])
    shown = [(step["state"], step["level"]) for step in replays[0]["steps"]]
    assert shown == [(reading.state, reading.level.value) for reading in scored.readings]
    assert machine(found) == machine(exported("typed"))
    with pytest.raises(
        DataError, match=r"no run with an outcome has the id 'nobody', which --replay names\. Ids there"
    ):
        export(exported.monitor, exported.runs, out=tmp_path / "y", replay="nobody", **WAYS["typed"])


def test_the_page_tells_the_steps_that_the_runtime_says_alarm_on(exported: Exports) -> None:
    """Counted by sessions over the raw test runs: the share in automaton.json, and that of the levels of ALARM."""
    result = exported("typed")
    material = material_of(exported.runs, exported.monitor)
    test = {material.corpus.run_ids[r] for r in material.test.tolist()}
    runs = [r for r in read_runs(str(exported.runs), open_bundle(exported.monitor).adapter) if r.run_id in test]
    said = [reading.level.value for scored in score(load(result.path), runs) for reading in scored.readings]
    assert result.performance is not None
    shares = {level: said.count(level) / len(said) for level in set(said)}
    assert result.performance.said == pytest.approx(shares)
    assert sum(shares.values()) == pytest.approx(1)


# A table for other languages


def test_a_table_of_the_automaton_and_one_made_directly_are_the_same(exported: Exports, tmp_path: Path) -> None:
    there = exported("typed")
    of_automaton = export(there.path, to="json-table", out=tmp_path / "one")
    assert (of_automaton.id, of_automaton.choice, of_automaton.fidelity) == (None, None, None)
    directly = export(exported.monitor, exported.runs, to="json-table", out=tmp_path / "other", **WAYS["typed"])
    assert (directly.choice, directly.fidelity, directly.id) == (there.choice, there.fidelity, None)
    for name in ("table.json", "run.py", "run.mjs"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    assert {path.name for path in (tmp_path / "other").iterdir()} == {"table.json", "run.py", "run.mjs"}
    bundle, _ = automaton_of(there)
    runs = list(itertools.islice(score(load(bundle.path), exported.runs), 3))
    lines = "".join(json.dumps([r.symbol for r in scored.readings]) + "\n" for scored in runs)
    command = [sys.executable, "-I", str(tmp_path / "one" / "run.py")]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    for scored, line in zip(runs, done.stdout.splitlines(), strict=True):
        said = [(s["state"], s["outcome_risk"], s["level"]) for s in json.loads(line)]
        assert said == [(r.state, r.outcome_risk, r.level.value) for r in scored.readings]


def test_a_table_has_a_folder_of_its_own(exported: Exports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the automaton beside it can still be replaced."""
    path = exported("typed").path
    monkeypatch.chdir(tmp_path)
    assert export(path, to="json-table").path == Path("automata") / "typed-table"
    assert (tmp_path / "automata" / "typed-table" / "table.json").exists()
    with pytest.raises(OutputError, match=r"table\.json is there already"):
        export(path, to="json-table")
    export(path, to="json-table", overwrite=True)


# What cannot be done


class Silent(LearnListener):
    """Fails where reading runs begins: what is wrong with options is told before."""

    def on_stage(self, name: str, detail: str = "") -> None:
        raise AssertionError(f"{name} began")


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"to": "svg"}, ConfigError, "--to svg: choose one of dfa, json-table."),
        ({"max_states": 1}, ConfigError, "max_states = 1: a whole number between 2 and 4096 is needed."),
        ({"max_states": 4097}, ConfigError, "max_states = 4097: a whole number between 2 and 4096 is needed."),
        ({"max_states": 8.0}, ConfigError, "max_states = 8.0: a whole number between 2 and 4096 is needed."),
        ({"alphabet": "words"}, ConfigError, "alphabet 'words': choose one of behaviours, tree-context, steps, "),
        ({"alphabet": ["typed", "words"]}, ConfigError, "alphabet 'words': choose one of "),
        ({"alphabet": ()}, ConfigError, "no alphabet is named: choose from behaviours, "),
        ({"learner": "guess"}, ConfigError, "learner 'guess': choose one of memoryless, ladder"),
        ({"learner": []}, ConfigError, "no learner is named: choose from memoryless, "),
    ],
    ids=str,
)
def test_bad_options_are_told_before_anything_is_read(
    options: dict[str, Any], kind: type[PrefixGuardError], message: str, exported: Exports, tmp_path: Path
) -> None:
    with pytest.raises(kind) as told:
        export(exported.monitor, exported.runs, out=tmp_path / "x", listener=Silent(), **options)
    assert str(told.value).startswith(message)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("monitor", "runs", "kind", "message"),
    [
        (
            "monitor", None, UsageError,
            "{monitor}: an automaton is learned from the runs that its monitor learned from. Name them: "
            "prefixguard export {monitor} RUNS --to dfa",
        ),
        ("typed", "runs", UsageError, "{monitor}: is an automaton already. For its table, say --to json-table."),
        ("none", "runs", BundleError, "No bundle at"),
        ("monitor", "none.jsonl", TraceError, ""),
        ("monitor", "other", DataError, "trained on, 0 are among these 24. An automaton is learned from the runs"),
    ],
)  # fmt: skip
def test_what_cannot_be_exported_is_refused(
    monitor: str, runs: str | None, kind: type[PrefixGuardError], message: str,
    exported: Exports, fresh_lab_file: Path, tmp_path: Path,
) -> None:  # fmt: skip
    paths = {
        "monitor": exported.monitor,
        "typed": exported("typed").path,
        "runs": exported.runs,
        "other": fresh_lab_file,
    }
    path = paths.get(monitor, tmp_path / monitor)
    with pytest.raises(kind) as told:
        export(path, runs and paths.get(runs, tmp_path / runs), out=tmp_path / "x")
    assert message.format(monitor=path) in str(told.value)


def test_what_is_there_is_not_replaced_unasked(exported: Exports, tmp_path: Path) -> None:
    def refused(out: Path, to: str = "dfa") -> str:
        with pytest.raises(OutputError) as told:
            export(exported.monitor, exported.runs, out=out, to=to, listener=Silent(), **WAYS["typed"])
        return str(told.value)

    assert "holds a bundle already. Choose another name, or ask for it" in refused(exported("typed").path)
    (tmp_path / "notes.txt").write_text("mine")
    assert "is a folder with other things in it" in refused(tmp_path)
    assert "is a file; a bundle is a folder" in refused(tmp_path / "notes.txt")
    (tmp_path / "run.py").write_text("mine")
    assert refused(tmp_path, "json-table") == (
        f"{tmp_path / 'run.py'} is there already. Choose another folder, or ask for it to be overwritten."
    )


def test_runs_without_outcomes_are_refused_with_what_to_add(exported: Exports, tmp_path: Path) -> None:
    runs = changed(exported.runs, tmp_path, lambda run: {k: v for k, v in run.items() if k != "outcome"})
    with pytest.raises(DataError, match=r"0 are among these 0\. .* 160 have no outcome: add one with --labels\."):
        export(exported.monitor, runs, out=tmp_path / "x")
    labels = tmp_path / "labels.jsonl"
    outcomes = [json.loads(line) for line in exported.runs.read_text().splitlines()]
    labels.write_text("".join(json.dumps({k: r[k] for k in ("run_id", "outcome")}) + "\n" for r in outcomes))
    found = export(exported.monitor, runs, out=tmp_path / "x", labels=labels, **WAYS["typed"])
    assert machine(found) == machine(exported("typed"))


# Odd corpora


def without(exported: Exports, folder: Path, side: Side) -> ExportResult:
    """The typed automaton of the runs without those of a side."""
    gone = set(open_bundle(exported.monitor).manifest["tasks"][side.value])
    runs = changed(exported.runs, folder, lambda run: None if task_hash(run["task_id"]) in gone else run)
    return export(exported.monitor, runs, out=folder / "x", **WAYS["typed"])


def test_without_a_test_run_there_are_no_figures_and_that_is_said(exported: Exports, tmp_path: Path) -> None:
    found = without(exported, tmp_path, Side.TEST)
    assert machine(found) == machine(exported("typed"))
    assert found.performance is not None and "There was no test run" in found.performance.notes[0]
    assert found.fidelity is not None and found.fidelity.runs == 0
    assert "There was no test run" in found.fidelity.care[0]
    metrics = automaton_of(found)[0].manifest["metrics"]
    assert metrics["test_runs"] == 0 and metrics["outcome_auroc"] is None


def test_without_an_alarm_run_there_is_no_alarm_and_that_is_said(exported: Exports, tmp_path: Path) -> None:
    found = without(exported, tmp_path, Side.ALARM)
    bundle, _ = automaton_of(found)
    assert bundle.calibration.thresholds.alarm is None
    assert re.fullmatch("no alarm: .* The automaton never says ALARM.", found.notes[-1])
    assert list(found.notes) == bundle.manifest["automaton"]["notes"]


def test_runs_of_one_step(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = []
    for i in range(120):
        bad = bool(rng.random() < 0.4)
        said = "sorry I cannot do this" if bad ^ (rng.random() < 0.2) else "done and confirmed"
        messages = [{"role": "user", "content": f"please do number {i}"}, {"role": "assistant", "content": said}]
        outcome = "failure" if bad else "success"
        lines.append({"run_id": f"r{i}", "task_id": f"t{i}", "outcome": outcome, "messages": messages})
    runs = tmp_path / "short.jsonl"
    runs.write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = TrainConfig(epochs=1, symbol_epochs=1, members=1, max_features=64, teacher=0.0, budget=0.25)
    monitor = train(runs, out=tmp_path / "monitor", adapter="openai_chat", config=config).path
    for way, learner in (("typed", "ladder"), ("tree-context", "memoryless")):
        found = export(monitor, runs, out=tmp_path / way, alphabet=way, learner=learner, max_states=8)
        bundle, automaton = automaton_of(found)
        assert automaton.clock == () and automaton.visits[automaton.start] == 0
        readings = [scored.readings for scored in score(load(bundle.path), runs)]
        assert {len(r) for r in readings} == {1} and all(r[0].state is not None for r in readings)


def test_the_monitor_itself_is_not_overwritten(lab_bundle: Path, lab_file: Path, tmp_path: Path) -> None:
    monitor = tmp_path / "monitor"
    shutil.copytree(lab_bundle, monitor)
    before = sorted((p.name, p.read_bytes()) for p in monitor.iterdir())
    for out in (monitor, tmp_path / "x" / ".." / "monitor"):
        with pytest.raises(UsageError, match="is the monitor itself, and would be lost"):
            export(monitor, lab_file, out=out, overwrite=True, **WAYS["typed"])
    assert sorted((p.name, p.read_bytes()) for p in monitor.iterdir()) == before


def test_an_automaton_that_can_never_alarm_says_so(exported: Exports) -> None:
    """With one state there is one risk: every successful run reaches it."""
    monitor, runs = exported.monitor, exported.runs
    made = export(
        monitor, runs, out=monitor.parent / "mute", alphabet="typed", learner="rpni", clock=False, max_states=2
    )
    for result in (made, exported("typed"), exported("tree-context")):
        bundle, automaton = automaton_of(result)
        threshold = bundle.calibration.thresholds.alarm
        highest = float(np.array(read_risks(automaton, bundle.calibration))[..., 1].max())
        can = threshold is not None and highest > threshold
        assert result.fidelity is not None
        assert automaton.risk[..., 1].max() == pytest.approx(highest)
        assert any("It never alarms" in told for told in result.fidelity.care) == (not can)
        assert not (can and result is made), "with two states a tenth of the successful runs reaches the higher one"


def test_thresholds_by_group_are_carried_into_a_table_and_not_into_an_automaton(
    exported: Exports, lab_bundle: Path, lab_file: Path, tmp_path: Path
) -> None:
    later = tmp_path / "later.jsonl"
    runs = list(itertools.islice(generate(240, 5), 160, None))
    for number, run in enumerate(runs):
        run["agent"] = "gold" if number % 4 else "basic"
    later.write_text("".join(json.dumps(run) + "\n" for run in runs))
    bundle = prefixguard.calibrate(exported("typed").path, later, out=tmp_path / "own", group_by="agent", budget=0.25)
    result = export(bundle.path, to="json-table", out=tmp_path / "table")
    assert any("Alarm thresholds by agent are in it: name the runs' value" in note for note in result.notes)
    table = json.loads((tmp_path / "table" / "table.json").read_text())
    own = {value: one.alarm for value, one in bundle.groups.of.items() if one.alarm is not None}
    assert own and table["groups"]["by"] == "agent"
    assert {value: one["alarm"] for value, one in table["groups"]["of"].items()} == own
    teacher = prefixguard.calibrate(lab_bundle, later, out=tmp_path / "teacher", group_by="agent")
    result = export(teacher.path, lab_file, out=tmp_path / "automaton", **WAYS["typed"])
    assert open_bundle(result.path).calibration.groups is None
    assert any("alarm thresholds by agent are not carried over" in note for note in result.notes)
