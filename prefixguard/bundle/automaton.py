"""A finite automaton over symbols, with a calibrated risk in every state, and the file `automaton.json` that holds it.

A run begins in `start`. A step with symbol k moves it along `transitions[state, k]`; a transition that no training run
took is *unseen*, and then the run goes where symbol k most often led from any state (`fallback`), or stays. After the
step, both risks are read from the state's row, at the clock's column where the automaton has a clock: a
coarse step index, which transitions never look at.

The file holds the automaton, the map to its symbols and the symbols' glosses, for people and programs alike. It has one
line a state, so that two automata can be compared by any tool that compares texts. Where it was measured on test runs,
`performance` says how its alarms did, and `names` how its states are called, for people: nothing is read from either
when a run is watched. The same content gives the same bytes; the reader takes nothing else, whoever wrote it.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.bundle.alarm_performance import AlarmPerformance, performance_from_json
from prefixguard.bundle.behaviour_map import of_other_behaviours
from prefixguard.bundle.strict_json import exactly, listed, load_json, share, wholes
from prefixguard.bundle.symbol_map import SymbolMap, symbol_map_from_json
from prefixguard.errors import BundleError, DataError

N_RISKS = 2  # imminent, outcome
UNSEEN = -1


@dataclass(frozen=True, slots=True, eq=False)
class Automaton:
    """The automaton; S states, K symbols, C columns of the clock (1 without a clock).

    start: the state before the first step.
    transitions: int32 (S, K); UNSEEN where no training run took it.
    fallback: int32 (K,), where a symbol leads on an unseen transition; UNSEEN: the run stays in its state.
    clock: steps, from 1 and rising, at which the next column begins; () without a clock.
    risk: float64 (S, C, 2), probabilities: imminent, outcome. interval: float64 (S, C, 2, 2), low and high, 90 %.
    edges: int64 (S, K), how often training runs took each transition.
    visits: int64 (S,), training steps that ended in each state.
    evidence: int64 (S, C), held-out steps from which the risk was calibrated. evidence_runs: int64 (S, C), their runs.
    stand_in: int32 (S,), whose evidence a state's risk rests on: its own number, or that of the nearest state with
        enough where its own is thin.
    """

    start: int
    transitions: NDArray[np.int32]
    fallback: NDArray[np.int32]
    clock: tuple[int, ...]
    risk: NDArray[np.float64]
    interval: NDArray[np.float64]
    edges: NDArray[np.int64]
    visits: NDArray[np.int64]
    evidence: NDArray[np.int64]
    evidence_runs: NDArray[np.int64]
    stand_in: NDArray[np.int32]

    @property
    def n_states(self) -> int:
        """S."""
        return len(self.transitions)

    @property
    def n_symbols(self) -> int:
        """K."""
        return int(self.transitions.shape[1])

    def column(self, step: int) -> int:
        """The clock's column of a step (from 1)."""
        return bisect_right(self.clock, step)

    def follow(self, state: int, symbol: int) -> tuple[int, bool]:
        """The state after a symbol, and whether the transition was unseen."""
        after = int(self.transitions[state, symbol])
        if after != UNSEEN:
            return after, False
        after = int(self.fallback[symbol])
        return (after if after != UNSEEN else state), True


def cap_imminent(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """A failure within the next steps is a failure: the same, no imminent risk being above that of the outcome.

    values: `Automaton.risk`, or `Automaton.interval`, whose ends are each at most that of the outcome.
    """
    capped = values.copy()
    capped[:, :, 0] = values.min(axis=2)
    return capped


SCHEMA = "prefixguard/automaton/v1"
#: Most states, columns of the clock and characters of a gloss; counts stay exact in every language's numbers.
MOST_STATES = 1 << 16
MOST_COLUMNS = 1 << 10
MOST_GLOSS = 2000
_MOST_COUNT = 1 << 53
_OF_AUTOMATON = ("clock", "fallback", "glosses", "schema", "start", "states", "symbol_map")
#: What a state has, in the order in which it is written, and the arrays that hold it for all states.
_OF_STATE: Mapping[str, type[Any]] = {
    "transitions": np.int32, "edges": np.int64, "visits": np.int64, "risk": np.float64, "interval": np.float64,
    "evidence": np.int64, "evidence_runs": np.int64, "stand_in": np.int32,
}  # fmt: skip


def automaton_to_bytes(
    automaton: Automaton,
    symbol_map: SymbolMap,
    glosses: Sequence[str],
    performance: AlarmPerformance | None = None,
    names: Sequence[str] | None = None,
) -> bytes:
    """automaton.json. names: of the states, for people. Raises DataError for what its reader would refuse."""
    document = {
        "schema": SCHEMA,
        "symbol_map": symbol_map.to_json(),
        "glosses": list(glosses),
        "start": int(automaton.start),
        "clock": [int(step) for step in automaton.clock],
        "fallback": automaton.fallback.tolist(),
        **({} if performance is None else {"performance": performance.to_json()}),
        **({} if names is None else {"names": list(names)}),
    }
    of_state = {name: getattr(automaton, name).tolist() for name in _OF_STATE}
    uneven = [name for name, rows in of_state.items() if len(rows) != automaton.n_states]
    if uneven:
        raise DataError(f"The automaton cannot be written: {uneven[0]} has not one row a state.")
    try:
        head = [f" {json.dumps(name)}: {json.dumps(value, allow_nan=False)},\n" for name, value in document.items()]
        states = [
            "  " + json.dumps({name: of_state[name][s] for name in _OF_STATE}, allow_nan=False)
            for s in range(automaton.n_states)
        ]
        data = ("{\n" + "".join(head) + ' "states": [\n' + ",\n".join(states) + "\n ]\n}\n").encode()
        automaton_from_bytes(data, "the automaton")
    except (TypeError, ValueError, IndexError, BundleError) as exc:
        raise DataError(f"The automaton cannot be written: {exc}") from exc
    return data


def automaton_from_bytes(data: bytes, where: str = "automaton.json") -> tuple[Automaton, SymbolMap, tuple[str, ...]]:
    """The automaton, its symbol map and one gloss a symbol. Raises BundleError with place and remedy, also for symbols
    that are the behaviours of another release, as rules that were calibrated for those are refused."""
    try:
        document = load_json(data)
        if isinstance(document, dict) and of_other_behaviours(document.get("symbol_map")):
            raise BundleError(
                f"{where}: its symbols are behaviours of another release, which may hold at other steps here, so its "
                "risks do not hold. Export the monitor again: prefixguard export MONITOR RUNS --to dfa"
            )
        return _parse(document)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as exc:
        said = "nested too deep" if isinstance(exc, RecursionError) else str(exc)[:300]
        raise BundleError(f"{where}: not an automaton ({said}). Export it again.") from exc


def alarm_performance_of(data: bytes) -> AlarmPerformance | None:
    """How the alarms did, from an automaton.json that `automaton_from_bytes` takes; None where it does not say."""
    document = load_json(data)
    return performance_from_json(document["performance"]) if "performance" in document else None


def is_named(data: bytes) -> bool:
    """Whether an automaton.json has what releases before 0.4.0 take for damage: names of states, how the alarms did,
    or symbols that are behaviours."""
    document = load_json(data)
    return "names" in document or "performance" in document or document["symbol_map"]["kind"] == "behaviours"


def _parse(document: Any) -> tuple[Automaton, SymbolMap, tuple[str, ...]]:
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f"its schema is not {SCHEMA!r}")
    for_people = [name for name in ("performance", "names") if name in document]
    exactly(document, (*_OF_AUTOMATON, *for_people), "the automaton")
    if "performance" in document:
        performance_from_json(document["performance"])
    symbol_map = symbol_map_from_json(document["symbol_map"])
    glosses, states = document["glosses"], document["states"]
    n_symbols = symbol_map.n_symbols
    for what in ("glosses", "names"):
        texts = document.get(what, [])
        if not isinstance(texts, list) or not all(isinstance(text, str) and len(text) <= MOST_GLOSS for text in texts):
            raise ValueError(f"{what} are not texts of at most {MOST_GLOSS:,} characters")
    if len(glosses) != n_symbols:
        raise ValueError(f"{len(glosses)} glosses for {n_symbols} symbols")
    if not isinstance(states, list) or not 1 <= len(states) <= MOST_STATES:
        raise ValueError(f"states are not a list of 1 to {MOST_STATES:,}")
    if "names" in document and len(document["names"]) != len(states):
        raise ValueError(f"{len(document['names'])} names for {len(states)} states")
    clock = tuple(wholes(document["clock"], "the clock", 1, _MOST_COUNT))
    if len(clock) >= MOST_COLUMNS or any(a >= b for a, b in pairwise(clock)):
        raise ValueError(f"the clock does not rise, or has {MOST_COLUMNS:,} steps or more")
    for s, state in enumerate(states):
        _check_state(state, f"state {s}", len(states), n_symbols, len(clock) + 1)
    automaton = Automaton(
        start=wholes([document["start"]], "the start", 0, len(states), 1)[0],
        fallback=_frozen(wholes(document["fallback"], "the fallback", UNSEEN, len(states), n_symbols), np.int32),
        clock=clock,
        **{name: _frozen([state[name] for state in states], dtype) for name, dtype in _OF_STATE.items()},
    )
    return automaton, symbol_map, tuple(glosses)


def _check_state(state: Any, name: str, n_states: int, n_symbols: int, columns: int) -> None:
    """Every value of a state: lists of the right lengths, numbers of the right kind in range."""
    exactly(state, _OF_STATE, name)
    wholes(state["transitions"], f"{name}: transitions", UNSEEN, n_states, n_symbols)
    for field, n in (("edges", n_symbols), ("evidence", columns), ("evidence_runs", columns)):
        wholes(state[field], f"{name}: {field}", 0, _MOST_COUNT, n)
    for field, most in (("visits", _MOST_COUNT), ("stand_in", n_states)):
        wholes([state[field]], f"{name}: {field}", 0, most, 1)
    for risks in listed(state["risk"], f"{name}: risk", columns):
        for risk in listed(risks, f"{name}: risk", N_RISKS):
            share(risk, f"{name}: risk")
    for pairs in listed(state["interval"], f"{name}: interval", columns):
        for ends in listed(pairs, f"{name}: interval", N_RISKS):
            low, high = (share(end, f"{name}: interval") for end in listed(ends, f"{name}: interval", 2))
            if low > high:
                raise ValueError(f"{name}: interval: {low} is above {high}")


def _frozen(values: list[Any], dtype: type[Any]) -> NDArray[Any]:
    """All is checked by now: numbers fit, and lengths agree."""
    array = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array
