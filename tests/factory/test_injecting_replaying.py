"""Injected faults are where their labels say, and replay finds what decided a failure."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from model_server import model_server, says

from prefixguard.errors import ConfigError, DataError
from prefixguard.escalate import Endpoint
from prefixguard.factory import LabelledRun, collect, inject, read_corpus, replay, write_corpus
from prefixguard.factory.contrast import DecisiveCandidate, candidates, first_cause, literal, point_of_no_return
from prefixguard.factory.environments import Environments
from prefixguard.factory.injecting import _differs_first
from prefixguard.factory.proposers import OracleProposer, ScriptedProposer
from prefixguard.simulation import PlayedRun, Turn, play


def played(run: LabelledRun) -> PlayedRun:
    """The run as only the simulation knows it."""
    made = run.provenance
    world, number = made["environment"]["world"], int(made["task"].removeprefix("support-"))
    turns = [Turn(**turn) for turn in made["turns"]]
    return play(world, number, f"{world}/{made['task']}/{made['seed']}", agent=made["agent"], turns=turns)


def truth(run: LabelledRun) -> int | None:
    """The step of the first fault that was not made good."""
    lost = [fault["step"] for fault in played(run).faults if not fault["harmless"] and not fault["repaired"]]
    return min(lost, default=None)


@pytest.fixture(scope="module")
def injected(corpus_file: Path, tmp_path_factory: pytest.TempPathFactory) -> list[LabelledRun]:
    path = tmp_path_factory.mktemp("injected") / "injected.jsonl"
    report = inject(corpus_file, path, per_kind=6, per_run=4, tries=12)
    runs = list(read_corpus(path))
    assert report.counts["injected"] == len(runs) == sum(report.counts["accepted"].values())
    return runs


def test_an_injected_fault_is_where_its_label_says(injected: list[LabelledRun], corpus: list[LabelledRun]) -> None:
    sources = {run.run_id: run for run in corpus}
    kinds = Counter(run.mistakes[0].kind for run in injected)
    assert len(kinds) >= 6 and max(kinds.values()) <= 6
    for run in injected:
        (mistake,) = run.mistakes
        source = sources[run.provenance["source_run"]]
        assert truth(run) == mistake.step, "the first fault that was not made good is the injected one"
        assert run.records()[: mistake.step - 1] == source.records()[: mistake.step - 1]
        assert run.records()[mistake.step - 1] != source.records()[mistake.step - 1 :][:1]
        assert run.run["outcome"] == "failure" and run.family == source.family
        assert played(run).messages, "its provenance plays it"


def step_of_first_difference(one: list[dict], other: list[dict]) -> int:
    """The step whose message differs first, from 1; that message is an agent's in both runs."""
    place = next(at for at, (ours, theirs) in enumerate(zip(one, other, strict=False)) if ours != theirs)
    assert one[place]["role"] == other[place]["role"] == "assistant", (one[place], other[place])
    acts = [len(message.get("tool_calls") or "1") for message in one[:place] if message["role"] == "assistant"]
    return sum(acts) + 1


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict]:
    """Safe runs, 20 injected faults of each kind, and the report."""
    folder = tmp_path_factory.mktemp("many")
    collect("simulation:5", folder / "runs.jsonl", count=1500, tasks=400)
    report = inject(folder / "runs.jsonl", folder / "i.jsonl", per_kind=20, per_run=4, tries=24)
    return folder / "runs.jsonl", folder / "i.jsonl", report.as_json()


def test_of_every_kind_an_act_of_the_agent_differs_first(many: tuple[Path, Path, dict]) -> None:
    sources = {run.run_id: run for run in read_corpus(many[0])}
    found = Counter[str]()
    for run in read_corpus(many[1]):
        source, (mistake,) = sources[run.provenance["source_run"]], run.mistakes
        assert step_of_first_difference(run.run["messages"], source.run["messages"]) == mistake.step, mistake.kind
        found[mistake.kind] += 1
    world = Environments().of(next(iter(sources.values())))
    safe = [run for run in sources.values() if run.source == "safe"]
    kinds = {kind for run in safe for one in world.decisions(run) for kind in one.faults or ()}
    assert set(found) == kinds and min(found.values()) == 20, found
    assert "differs first" not in str(many[2]), "the simulation offers no fault that this rule refuses"
    assert "unverified" not in kinds, "where a check is skipped, nothing is wrong yet to see"


def test_a_fault_that_changes_what_others_say_is_refused(corpus: list[LabelledRun]) -> None:
    said = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}]
    end = {"role": "assistant", "content": "c"}
    other = {"messages": [*said, end]}
    assert _differs_first({"messages": [*said, {"role": "assistant", "content": "d"}]}, other, 2)
    assert not _differs_first({"messages": [*said, {"role": "assistant", "content": "d"}]}, other, 1)
    assert not _differs_first({"messages": [*said[:2], {"role": "user", "content": "B"}, end]}, other, 2)
    assert not _differs_first({"messages": [*said[:2], end]}, other, 2), "the customer was not heard"
    assert not _differs_first({"messages": said}, other, 2), "nothing was done"


def test_replay_names_no_mistake_that_nothing_shows(corpus: list[LabelledRun], tmp_path: Path) -> None:
    """A check that was skipped, against a policy in no record; a leave-taking before the next wish was said."""
    write_corpus(tmp_path / "f.jsonl", [run for run in corpus if run.source == "natural"])
    report = replay(tmp_path / "f.jsonl", tmp_path / "r.jsonl", rolls=1)
    assert report.skips.counts["no record up to the mistake shows that it is one"] > 3
    assert "unverified" not in {run.mistakes[0].kind for run in read_corpus(tmp_path / "r.jsonl")}


def test_injected_runs_play_again_and_are_found(injected: list[LabelledRun]) -> None:
    """The correction alone, with the run's own chances, makes every injected run succeed."""
    for run in injected:
        world = Environments().of(run)
        found = candidates(world, run, OracleProposer().propose(run, world)[0], rolls=0, salt="x")
        cause = first_cause(found, 0.05)
        assert cause is not None and cause.flip and cause.step == run.mistakes[0].step


def test_injecting_goes_on_after_an_interruption(corpus_file: Path, tmp_path: Path) -> None:
    path, whole = tmp_path / "i.jsonl", tmp_path / "whole.jsonl"

    def stop(done: int, _: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        inject(corpus_file, path, per_kind=2, kinds=["wrong_value", "gave_up"], on_progress=stop)
    assert not path.exists()
    inject(corpus_file, path, per_kind=2, kinds=["wrong_value", "gave_up"])
    inject(corpus_file, whole, per_kind=2, kinds=["wrong_value", "gave_up"])
    assert path.read_bytes() == whole.read_bytes()
    assert {run.mistakes[0].kind for run in read_corpus(path)} == {"wrong_value", "gave_up"}


def test_replay_finds_the_decisive_step(corpus_file: Path, tmp_path: Path) -> None:
    report = replay(corpus_file, tmp_path / "r.jsonl", rolls=4)
    runs = list(read_corpus(tmp_path / "r.jsonl"))
    right = sum(run.mistakes[0].step == truth(run) for run in runs)
    assert report.counts["failures"] == len(runs) + report.skips.total
    assert right >= 0.9 * len(runs) > 20
    assert {run.mistakes[0].rule for run in runs} == {"first_cause"}
    assert any(mistake.rule == "point_of_no_return" for run in runs for mistake in run.mistakes)
    told = runs[0].provenance["replay"]
    assert told["proposer"] == "oracle" and told["rolls"] == 4 and told["candidates"]
    assert {one["agent"] for run in runs for one in run.as_json()["labels"]} <= {"reception", "orders", "returns"}


def test_a_flip_with_the_runs_own_chances_is_never_early_or_late(corpus: list[LabelledRun]) -> None:
    worlds, named = Environments(), 0
    for run in corpus:
        if run.source == "natural":
            world = worlds.of(run)
            found = candidates(world, run, OracleProposer().propose(run, world)[0], rolls=0, salt="x")
            cause = first_cause(found, 0.05)
            assert cause is None or cause.step == truth(run)
            named += cause is not None
    assert named > 20


def test_the_literal_rule_is_early(corpus: list[LabelledRun]) -> None:
    worlds, early, failures = Environments(), 0, 0
    for run in corpus:
        if run.source == "natural":
            world = worlds.of(run)
            step = literal(world, run, OracleProposer().propose(run, world)[0], "x")
            failures += 1
            early += step is not None and step < (truth(run) or 0)
    assert early > 0.5 * failures


def test_the_rules_by_hand() -> None:
    def one(place: int, flip: bool | None, corrected: float, original: float) -> DecisiveCandidate:
        return DecisiveCandidate(place, place + 1, flip, corrected, original)

    found = [one(0, False, 0.9, 0.8), one(2, None, 0.9, 0.1), one(4, False, 0.8, 0.0)]
    assert first_cause(found, 0.05) is found[1]
    assert point_of_no_return(found) is found[2]
    assert first_cause([*found, one(5, True, 0.5, 0.5)], 0.05).place == 5  # type: ignore[union-attr]
    assert first_cause([one(1, None, 0.5, 0.5)], 0.05) is None, "an abstention"
    assert first_cause([one(1, None, 0.6, 0.2), one(3, None, 0.7, 0.3)], 0.05).place == 1  # type: ignore[union-attr]
    assert first_cause([], 0.05) is None and point_of_no_return([]) is None


def test_a_useless_correction_is_not_blamed(corpus: list[LabelledRun]) -> None:
    """A proposer that overlooks the mistake and suspects other steps makes replay abstain rather than err."""
    worlds, blamed = Environments(), list[str]()
    for run in [run for run in corpus if run.source == "natural"]:
        world = worlds.of(run)
        proposed = ScriptedProposer(0.0, 1.0).propose(run, world)[0]
        assert not {one.place for one in proposed} & {one.place for one in world.corrections(run)}
        found = candidates(world, run, proposed, rolls=2, salt="x")
        blamed += [run.run_id] if first_cause(found, 0.05) else []
    assert not blamed


def test_a_model_proposes(corpus: list[LabelledRun], tmp_path: Path) -> None:
    """What it names is played; refusals, talk and steps that are not there are counted."""
    runs = [run for run in corpus if run.source == "natural"][:5]
    write_corpus(tmp_path / "f.jsonl", runs)
    step = truth(runs[0])
    plays = [
        says(json.dumps({"candidates": [{"step": step, "reason": "wrong"}, {"step": 999}, {"step": True}, "x"]})),
        says("", refusal="no"),
        says("I think it was step 3."),
        says('{"candidates": "3"}'),
        says('{"candidates": [{"step": 4000}]}'),
    ]
    with model_server(*plays) as server:
        asked = Endpoint("proposer", server.url, max_retries=0)
        report = replay(tmp_path / "f.jsonl", tmp_path / "r.jsonl", rolls=2, proposer=asked, reference=True)
    (found,) = read_corpus(tmp_path / "r.jsonl")
    assert found.mistakes[0].step == step
    assert found.provenance["replay"]["proposer"] == "proposer, with the reference answer"
    assert "What would have reached the goal: verify_identity" in json.dumps(server.requests[0])
    assert report.skips.counts == {
        "the model refused": 1,
        "the reply is no JSON object": 1,
        "the reply has no list of candidates": 1,
        "no candidate can be played": 1,
    }


def test_what_cannot_be_done_is_said(corpus: list[LabelledRun], tmp_path: Path) -> None:
    write_corpus(tmp_path / "safe.jsonl", [run for run in corpus if run.source == "safe"][:1])
    with pytest.raises(DataError, match="no failure without labels"):
        replay(tmp_path / "safe.jsonl", tmp_path / "r.jsonl")
    write_corpus(tmp_path / "failed.jsonl", [run for run in corpus if run.source == "natural"][:1])
    with pytest.raises(DataError, match="no safe run"):
        inject(tmp_path / "failed.jsonl", tmp_path / "i.jsonl")
    with pytest.raises(ConfigError, match=r"rolls 0, margin 0\.05"):
        replay(tmp_path / "failed.jsonl", tmp_path / "r.jsonl", rolls=0)
    with pytest.raises(ConfigError, match="per_kind 0"):
        inject(tmp_path / "safe.jsonl", tmp_path / "i.jsonl", per_kind=0)


def test_a_run_that_drifts_is_counted(corpus: list[LabelledRun], tmp_path: Path) -> None:
    run = next(run for run in corpus if run.source == "natural")
    line = run.as_json()
    line["messages"] = [*line["messages"][:-1], {"role": "assistant", "content": "otherwise"}]
    write_corpus(tmp_path / "f.jsonl", [LabelledRun.from_json(line)])
    report = replay(tmp_path / "f.jsonl", tmp_path / "r.jsonl", rolls=1)
    assert report.skips.counts == {"the environment answers otherwise than it did": 1}
    assert report.counts["labelled"] == 0
