"""The modes as data: complete, consistent, and refused where the file is not what it should be."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import prefixguard.auditor
from prefixguard.auditor import MODES, counter_evidence, modes_of
from prefixguard.auditor.failure_modes import read_modes
from prefixguard.errors import ConfigError
from prefixguard.stepview import StepRecord

FILE = Path(prefixguard.auditor.__file__).parent / "modes.json"


def said(index: int, text: str, actor: str = "agent") -> StepRecord:
    return StepRecord(index, actor, "A", "respond", "", "", text, "", "ok")


def test_all_fourteen_are_there_in_order() -> None:
    codes = [mode.code for mode in MODES]
    assert codes == [f"FM-{g}.{i}" for g, n in ((1, 5), (2, 6), (3, 3)) for i in range(1, n + 1)]


def test_near_modes_are_three_others() -> None:
    """As the taxonomy's table has them."""
    for mode in MODES:
        assert len(mode.near) == 3
        assert mode.code not in mode.near
    assert {m.code: m.near for m in MODES}["FM-3.2"] == ("FM-3.3", "FM-1.5", "FM-3.1")


def test_hypotheses_differ_and_do_not_name_their_code() -> None:
    assert len({mode.hypothesis for mode in MODES}) == len(MODES)
    assert not any(mode.code in mode.hypothesis for mode in MODES)
    cues = [cue for mode in MODES for cue in mode.cues]
    assert len(set(cues)) == len(cues)


def test_modes_are_chosen_by_code_in_their_own_order() -> None:
    assert [m.code for m in modes_of(["FM-3.1", "FM-1.2"])] == ["FM-1.2", "FM-3.1"]
    with pytest.raises(ConfigError, match=r"no failure mode FM-9\.9: there are FM-1\.1, "):
        modes_of(["FM-1.1", "FM-9.9"])


def change(path: list[str | int], value: Any) -> Callable[[dict[str, Any]], None]:
    """Sets what stands at a path of the document."""

    def apply(document: dict[str, Any]) -> None:
        place: Any = document
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return apply


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (change(["schema"], "v0"), '"schema": "prefixguard/failure-modes/v1" is needed'),
        (change(["modes"], []), "a list with at least one"),
        (change(["modes", 2, "extra"], 1), r"modes\[2\]: an object with exactly code, group"),
        (change(["modes", 2, "name"], " "), r"modes\[2\]: name is one line of text"),
        (change(["modes", 2, "hypothesis"], "Some agent\nfailed."), "hypothesis is one line of text"),
        (change(["modes", 2, "hypothesis"], "The agent failed."), 'begins with "Some agent"'),
        (change(["modes", 2, "code"], "1.3"), "is not of the form FM-1.1"),
        (change(["modes", 2, "code"], "FM-1.1"), "FM-1.1 stands there twice"),
        (change(["modes", 2, "group"], "other"), "group 'other' is none of task, team, check"),
        (change(["modes", 2, "near"], ["FM-1.3"]), "FM-1.3 is near FM-1.3, which is no other mode"),
        (change(["modes", 2, "near"], []), "near is a list of texts"),
        (change(["modes", 2, "cues"], ["a", "a"]), "cues names something twice"),
        (change(["modes", 2, "cues"], ["Checked"]), "cues are written in lower case"),
    ],
)
def test_broken_files_are_refused(broken: Callable[[dict[str, Any]], None], message: str) -> None:
    document = json.loads(FILE.read_text())
    broken(document)
    with pytest.raises(ConfigError, match=message):
        read_modes(json.dumps(document), "some.json")


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"some\.json: not JSON"):
        read_modes("{", "some.json")


def test_reading_does_not_change_the_document() -> None:
    document = json.loads(FILE.read_text())
    kept = copy.deepcopy(document)
    assert read_modes(json.dumps(document)) == MODES
    assert document == kept


def test_cues_are_whole_phrases_of_agents() -> None:
    (mode,) = modes_of(["FM-3.2"])
    records = [
        said(1, "Let me\n  VERIFY the sum."),
        said(2, "outlet me verifying"),
        said(3, "let me verify", actor="user"),
        said(4, "The tests pass; let me verify."),
    ]
    assert [(c.step, c.cue) for c in counter_evidence(records, mode)] == [
        (1, "let me verify"),
        (4, "let me verify"),
        (4, "the tests pass"),
    ]
