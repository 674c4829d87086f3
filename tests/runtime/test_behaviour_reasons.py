"""What a monitor says is said in behaviours: at every level as findings, from WATCH on as at most three reasons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_automaton
import tiny_monitor
from behaving import call, fail, found_in, say
from hypothesis import given
from hypothesis import strategies as st

import prefixguard
from prefixguard.behaviours import BY_NAME, CATALOGUE, BehaviourFinding
from prefixguard.bundle import write_bundle
from prefixguard.context import FEATURES, GROUPS, SIGNAL_FEATURES
from prefixguard.encoder import SparseRow
from prefixguard.errors import ConfigError, UsageError
from prefixguard.runtime import Level, Monitor, OnnxModel, Step, load
from prefixguard.runtime.reasons import GROUP_WORDS, ReasonsKind, behaviour_reasons
from prefixguard.stepview import StepRecord

D = len(FEATURES)
NAMES = [feature.name for feature in FEATURES]
EMPTY = SparseRow(np.empty(0, np.int64), np.empty(0, np.float32))
FAULTS = [behaviour for behaviour in CATALOGUE if behaviour.kind == "fault"]
#: Every kind of monitor that has a model.
KINDS: dict[str, Callable[[], Any]] = {
    "onnx": tiny_monitor.parts,
    **{name: lambda name=name: tiny_automaton.variants()[name] for name in tiny_automaton.variants()},
}


class Scripted:
    """A model that says what moved the risk, and counts how often it is asked."""

    def __init__(
        self, pushes: dict[str, float] | None = None, words: float = 0.0, closing: tuple[str, ...] = ()
    ) -> None:
        self.asked, self._closing, self._pushes = 0, closing, None
        if pushes is not None:
            self._pushes = np.array([*(pushes.get(name, 0.0) for name in NAMES), words])

    def pushes(self, *given: Any) -> Any:
        self.asked += 1
        return None if self._pushes is None else (given[-1] @ self._pushes).tolist()

    def say_state(self, *_: object) -> tuple[str, ...]:
        return self._closing


def reasons(model: Scripted, faults: Sequence[str], artefacts: Sequence[str] = (), count: int = 2) -> tuple[str, ...]:
    found = [[BehaviourFinding(BY_NAME[name], 1, count, "x") for name in names] for names in (faults, artefacts)]
    context = np.zeros(D, np.float32)
    return behaviour_reasons(*found, model, EMPTY, context, None, Step(0.0, 0.0, 0, None))[0]  # type: ignore[arg-type]


def sentence(name: str) -> str:
    return BY_NAME[name].sentence.rstrip(".")


@pytest.fixture(scope="module", params=list(KINDS))
def monitor_of_a_kind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Monitor:
    path = tmp_path_factory.mktemp("kinds") / "b"
    write_bundle(path, KINDS[request.param]())
    return load(path)


STEP = st.sampled_from([
    call("find", '{"id":1}', "ok"), call("look", '{"id":2}', "ok it is"), fail("find", '{"id":1}', "error: not found"),
    fail("find", '{"id":3}', "error: not found"), say("I have cancelled it for you."), say("Which one?", "hello"),
])  # fmt: skip


@given(run=st.lists(STEP, min_size=1, max_size=9))
def test_a_reading_has_what_holds_at_its_step_whatever_judges_it(
    monitor_of_a_kind: Monitor, run: list[StepRecord]
) -> None:
    readings = monitor_of_a_kind.score_run(run)
    assert [reading.behaviours for reading in readings] == found_in(run)
    for reading in readings:
        assert reading.to_json()["behaviours"] == [finding.to_json() for finding in reading.behaviours]
        assert len(reading.reasons) <= 3
        assert bool(reading.reasons) == (reading.level in (Level.WATCH, Level.ALARM))
        if reading.reasons and any(finding.behaviour.kind == "fault" for finding in reading.behaviours):
            assert any(reading.reasons[0].startswith(one.sentence.rstrip(".")) for one in FAULTS)


def test_reasons_say_what_is_wrong_since_when_with_what_and_what_to_do(monitor: Monitor) -> None:
    session = monitor.start()
    readings = [reading for event in tiny_monitor.failing_run() for reading in session.observe(event)]
    assert readings[1].reasons == (
        "No known behaviour stands out; its words and how many calls, messages and errors it has moved the risk most",
    )
    assert readings[4].reasons[0] == (
        "The same call gave the same result again, and nothing had changed in between: 4 times since step 2 "
        '(find {"id":1}). Stop equal calls after the second equal result, or tell the agent that its call changes '
        "nothing"
    )
    assert (
        readings[4].reasons[1].startswith("Three calls or more failed in a row: 4 times since step 2 (Error: order not")
    )


def test_a_fault_stays_a_reason_for_two_more_steps(monitor: Monitor) -> None:
    """What an agent did wrong just now is why the run is where it is; its sentence says since when."""
    again = [fail("find", '{"id":1}', "error: not found")] * 3
    after = [call("look", f'{{"id":{i}}}', f"error free {i}") for i in range(4)]
    session = monitor.start()
    readings = [session.observe_record(record) for record in (*again, *after)]
    told = [any("gave the same result again" in reason for reason in reading.reasons) for reading in readings]
    assert [reading.level is Level.OK for reading in readings[1:]] == [False] * 6
    assert told == [False, True, True, True, True, False, False]
    assert not any(finding.behaviour.kind == "fault" for finding in readings[3].behaviours)
    assert [bool(reading.faults) for reading in readings] == told


def test_the_model_is_asked_only_to_rank_or_where_nothing_holds() -> None:
    for faults, artefacts, asked in [
        ([], [], 1), (["same_message"], [], 0), ([], ["near_step_cap"], 0), (["same_message"], ["near_step_cap"], 0),
        (["same_message", "errors_in_a_row"], [], 1),
    ]:  # fmt: skip
        model = Scripted({"errors": 1.0})
        assert reasons(model, faults, artefacts)
        assert model.asked == asked, (faults, artefacts)


def test_a_session_with_one_fault_runs_no_graph(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    pushes = OnnxModel.pushes
    monkeypatch.setattr(OnnxModel, "pushes", lambda *given: asked.append(1) or pushes(*given))
    readings = monitor.score_run([fail("find", '{"id":1}', "error: not found")] * 3)
    assert all(reading.level is not Level.OK for reading in readings)
    faults = [sum(found.behaviour.kind == "fault" for found in reading.behaviours) for reading in readings]
    assert faults == [0, 1, 2]
    assert len(asked) == 2  # where there is nothing to say, and where there are two to rank


@pytest.mark.parametrize("kind", ["behaviours", "features"])
def test_variants_of_a_step_give_the_reasons_that_contributions_give(kind: ReasonsKind, tmp_path: Path) -> None:
    """Of a monitor whose logit is a sum, so that what features moved it by together is the sum of what each did."""
    for name, graph in [("old", tiny_monitor.reasons()), ("new", tiny_monitor.variants())]:
        write_bundle(tmp_path / name, tiny_monitor.parts(reasons=graph))
    old, new = ([], [])
    for name, said in [("old", old), ("new", new)]:
        session = load(tmp_path / name, reasons=kind).start()
        said += [reading.reasons for event in tiny_monitor.failing_run() for reading in session.observe(event)]
    assert old == new and len(set(old)) > 2


def test_faults_are_ranked_by_what_their_features_moved() -> None:
    both = ["same_message", "errors_in_a_row"]
    for strongest, pushes in [
        ("errors_in_a_row", {"errors": 2.0, "message_seen": 1.0}),
        ("same_message", {"message_seen": 3.0}),
    ]:
        for given_ in (both, both[::-1]):
            assert reasons(Scripted(pushes), given_)[0].startswith(sentence(strongest))


def test_without_contributions_the_worst_and_then_the_latest_come_first() -> None:
    """Three repeated messages are worth a look, three equal calls too, and one missing tool is not yet an alarm."""
    assert reasons(Scripted(), ["result_ignored", "claim_over_failure"])[0].startswith(sentence("claim_over_failure"))
    assert reasons(Scripted(), ["call_as_text", "missing_tool"])[0].startswith(sentence("call_as_text"))


def test_artefacts_come_after_faults_and_say_that_they_are_limits() -> None:
    said = reasons(Scripted({"step": 9.0}), ["same_message"], ["near_step_cap"])
    assert [reason.split(":")[0] for reason in said] == [sentence("same_message"), sentence("near_step_cap")]


def test_the_state_of_an_automaton_comes_after_the_behaviours() -> None:
    model = Scripted(closing=("state 3: outcome risk 40%", "no run in training had such a step"))
    four = ["same_message", "errors_in_a_row", "missing_tool", "call_as_text"]
    assert [len(reasons(model, four[:n])) for n in range(5)] == [3, 3, 3, 3, 3]
    assert all(reasons(model, four[:n])[min(max(n, 1), 2)] == "state 3: outcome risk 40%" for n in range(5))


@pytest.mark.parametrize(
    ("pushes", "words", "said"),
    [
        (
            {"step": 1.0, "size_result": 0.5, "errors": -2.0},
            0.0,
            "the length of the run and the length of its texts moved",
        ),
        ({"step": 0.5}, 2.0, "its words and the length of the run moved"),
        ({"new_words_result": 0.5}, -1.0, "how much of its text is new moved"),
    ],
)
def test_where_no_behaviour_holds_one_sentence_says_what_moved_it(
    pushes: dict[str, float], words: float, said: str
) -> None:
    assert reasons(Scripted(pushes, words), []) == (f"No known behaviour stands out; {said} the risk most",)


def test_where_nothing_is_known_it_says_no_more() -> None:
    assert reasons(Scripted(), []) == reasons(Scripted({}), []) == ("No known behaviour stands out",)


def test_every_behaviour_that_can_be_a_reason_names_its_features() -> None:
    assert set(GROUP_WORDS) == {*GROUPS, "signals", "words"}
    for behaviour in CATALOGUE:
        assert set(behaviour.rests_on) <= {*NAMES, *(feature.name for feature in SIGNAL_FEATURES)}, behaviour.name
        assert bool(behaviour.rests_on) == (behaviour.kind != "neutral"), behaviour.name


def test_other_reasons_are_refused(bundle_path: Path) -> None:
    with pytest.raises(ConfigError, match="reasons is 'words': say behaviours or features"):
        load(bundle_path, reasons="words")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="reasons=features goes with a bundle: rules have no features"):
        prefixguard.load("rules", reasons="features")
