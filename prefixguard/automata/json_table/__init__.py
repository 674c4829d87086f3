"""An automaton as table.json, with two reference interpreters beside it, for agents that are not written in Python.

The table holds what a run needs after the step's symbol is known: transitions, calibrated risks, alarm thresholds and
policy. Numbers are written so that every reader of JSON gets the very same doubles, so levels agree to the last bit.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from prefixguard.alarm import Thresholds
from prefixguard.bundle import (
    Automaton,
    BehaviourMap,
    Bundle,
    BundleParts,
    Calibration,
    SymbolMap,
    TypedMap,
    automaton_from_bytes,
)
from prefixguard.errors import DataError, OutputError
from prefixguard.runtime import read_risks

SCHEMA = "prefixguard/json-table/v1"
TABLE = "table.json"
INTERPRETERS = ("run.py", "run.mjs")
_BY_TYPED = (
    "An agent in another language can feed a table of alphabet typed, which takes tool, error and repeat: prefixguard "
    "export MONITOR RUNS --alphabet typed --to json-table"
)
_BY_BEHAVIOURS = (
    "the behaviours of a step are found by PrefixGuard, in Python, from the whole run: the number is the symbol of a "
    f"reading, and what each means stands under glosses. {_BY_TYPED}"
)
_BY_NUMBER = (
    "what gives a step its number reads its words or the history of the run, and that is PrefixGuard's encoder, in "
    f"Python: the number is the symbol of a reading. {_BY_TYPED}"
)


def write_json_table(
    monitor: Bundle | BundleParts, folder: str | os.PathLike[str], *, overwrite: bool = False
) -> tuple[Path, ...]:
    """Write table.json, run.py and run.mjs into a folder; the paths written.

    monitor: of kind automaton, opened or not yet written. overwrite: replace files of these names.
    Raises DataError for a monitor without an automaton, OutputError where the files cannot be written or are there.
    """
    if monitor.automaton is None:
        raise DataError("The monitor has no automaton to make a table of. Export it first: --to dfa.")
    if isinstance(monitor, Bundle):
        table = _table(monitor.automaton, monitor.symbol_map, monitor.glosses, monitor.calibration)
    else:
        table = _table(*automaton_from_bytes(monitor.automaton), monitor.calibration)
    target = Path(folder)
    files = {target / TABLE: table}
    files |= {target / name: (Path(__file__).parent / name).read_bytes() for name in INTERPRETERS}
    try:
        check_table_target(target, overwrite)
        target.mkdir(parents=True, exist_ok=True)
        for path, data in files.items():
            path.write_bytes(data)
    except OutputError:
        raise
    except OSError as exc:
        raise OutputError(f"{target}: cannot be written ({exc.strerror}). Choose a folder you may write to.") from exc
    return tuple(files)


def check_table_target(folder: Path, overwrite: bool) -> None:
    """Raises OutputError where a file of a table is in the folder already and is not to be replaced."""
    there = [path for path in (folder / name for name in (TABLE, *INTERPRETERS)) if path.exists()]
    if there and not overwrite:
        raise OutputError(f"{there[0]} is there already. Choose another folder, or ask for it to be overwritten.")


def what_it_takes(symbol_map: SymbolMap | None, n_symbols: int) -> str:
    """What a table's interpreters are to be given, in a sentence; it stands in the table, and in their errors.

    >>> what_it_takes(TypedMap(("find",)), 8)
    'of each step its symbol, from 0 to 7, or {"tool": name, "error": true or false, "repeat": true or false}.'
    """
    number = f"of each step its symbol, from 0 to {n_symbols - 1:,}"
    if isinstance(symbol_map, TypedMap):
        return number + ', or {"tool": name, "error": true or false, "repeat": true or false}.'
    why = _BY_BEHAVIOURS if isinstance(symbol_map, BehaviourMap) else _BY_NUMBER
    return f"{number}, and nothing else; {why}"


def what_groups_take(calibration: Calibration) -> str | None:
    """How to name a run's group to a table's interpreters, in a sentence; None where no group has its own threshold."""
    if calibration.groups is None:
        return None
    return (
        f"Alarm thresholds by {calibration.groups.by} are in it: name the runs' value after the table, such as "
        "run.py table.json VALUE; without it, and for a value that has none of its own, the common one holds."
    )


def _table(
    automaton: Automaton, symbol_map: SymbolMap | None, glosses: tuple[str, ...], calibration: Calibration
) -> bytes:
    """table.json, one line a field and a state. Thresholds are those in force, as `AlarmState` has them; `groups` has
    those of each value with a threshold of its own, None where there is none."""
    policy, groups = calibration.policy, calibration.groups

    def in_force(thresholds: Thresholds) -> dict[str, float | None]:
        alarm, watch, release = thresholds.alarm, thresholds.watch, policy.release
        if alarm is None:
            return {"alarm": None, "watch": watch, "release": release}
        return {"alarm": alarm, "watch": min(watch, alarm), "release": None if release is None else min(release, alarm)}

    by_group = None
    if groups is not None:
        own = {value: in_force(one) for value, one in groups.of.items() if one.alarm is not None}
        by_group = {"by": groups.by, "of": own}
    fields: dict[str, Any] = {
        "schema": SCHEMA,
        "start": automaton.start,
        "clock": list(automaton.clock),
        **in_force(calibration.thresholds),
        "consecutive": policy.consecutive,
        "cooldown": policy.cooldown,
        "groups": by_group,
        "tools": list(symbol_map.tools) if isinstance(symbol_map, TypedMap) else None,
        "needed": what_it_takes(symbol_map, automaton.n_symbols),
        "glosses": list(glosses),
        "fallback": automaton.fallback.tolist(),
    }
    risks = read_risks(automaton, calibration)
    lines = [f' "{name}": {json.dumps(value, allow_nan=False)}' for name, value in fields.items()]
    for name, rows in (("transitions", automaton.transitions.tolist()), ("risks", risks)):
        lines.append(f' "{name}": [\n' + ",\n".join(f"  {json.dumps(row, allow_nan=False)}" for row in rows) + "\n ]")
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()
