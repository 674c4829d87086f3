"""States are called by the symbols that lead there, in the file and everywhere else."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tiny_automaton

from prefixguard.bundle import UNSEEN, automaton_from_bytes, automaton_to_bytes, state_names
from prefixguard.errors import BundleError

TYPED = tiny_automaton.TYPED
GLOSSES = tiny_automaton.glosses(TYPED)


def test_a_state_is_called_by_the_symbols_that_lead_there_most() -> None:
    automaton = tiny_automaton.by_hand()
    edges = np.zeros_like(automaton.edges)
    edges[0, 2], edges[0, 6], edges[1, 10], edges[0, 0] = 60, 30, 9, 1
    transitions = automaton.transitions.copy()
    transitions[2] = UNSEEN
    automaton = replace(automaton, edges=edges, transitions=transitions)
    assert state_names(automaton, GLOSSES) == (
        'After "kind 0 of step".',
        'After "kind 2 of step" (67 %) or "kind 6 of step" (33 %).',
        "No training step ends here.",
    )
    assert state_names(replace(automaton, edges=np.zeros_like(edges)), GLOSSES)[0] == "Runs begin here."


def test_a_loop_brings_no_run_in_and_is_told_apart_where_it_is_most_of_a_state() -> None:
    automaton = tiny_automaton.by_hand()
    edges = np.zeros_like(automaton.edges)
    edges[0, 2], edges[0, 6], edges[1, 10] = 60, 30, 270
    transitions = automaton.transitions.copy()
    transitions[2] = UNSEEN
    looping = replace(automaton, edges=edges, transitions=transitions)
    assert state_names(looping, GLOSSES)[1] == (
        'After "kind 2 of step" (67 %) or "kind 6 of step" (33 %); 75 % of its steps stay in it, most often by '
        '"kind 10 of step".'
    )
    edges[0] = 0
    assert state_names(replace(looping, edges=edges), GLOSSES)[1] == 'After "kind 10 of step".'


def test_the_file_has_the_names_and_the_reader_needs_none() -> None:
    automaton = tiny_automaton.by_hand()
    names = state_names(automaton, GLOSSES)
    data = automaton_to_bytes(automaton, TYPED, GLOSSES, names=names)
    assert json.loads(data)["names"] == list(names)
    assert automaton_from_bytes(data)[2] == GLOSSES
    assert "names" not in json.loads(automaton_to_bytes(automaton, TYPED, GLOSSES))


@pytest.mark.parametrize("names", ["abc", ["a"], ["a", "b", 3], ["a", "b", "c" * 2001], None])
def test_forged_names_are_refused(names: Any) -> None:
    automaton = tiny_automaton.by_hand()
    document = json.loads(automaton_to_bytes(automaton, TYPED, GLOSSES))
    with pytest.raises(BundleError, match=r"not an automaton .*names"):
        automaton_from_bytes(json.dumps({**document, "names": names}).encode())
