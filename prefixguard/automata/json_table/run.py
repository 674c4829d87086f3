"""Walk the automaton of table.json: `python run.py [table.json [GROUP]] < runs`; with GROUP, by its own thresholds.

Each input line is a JSON array with one entry a step of a run: a symbol's number, or, where the table names its tools,
{"tool": name, "error": bool, "repeat": bool}. Each output line is a JSON array of what a monitor says after each step.
"""

import json
import sys
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def symbol_of(table: dict[str, Any], entry: Any, step: int) -> int:
    """The number of a step: tool x error x repeat, tools that the table does not name together."""
    tools, symbol = table["tools"], entry
    kinds = [type(entry.get(k)) for k in ("tool", "error", "repeat")] if isinstance(entry, dict) else []
    if tools is not None and kinds == [str, bool, bool]:
        place = tools.index(entry["tool"]) if entry["tool"] in tools else len(tools)
        symbol = place * 4 + entry["error"] * 2 + entry["repeat"]
    if type(symbol) not in (int, float) or symbol % 1 != 0 or not 0 <= symbol < len(table["fallback"]):
        raise ValueError(f"step {step} is no step that this table knows")
    return int(symbol)


def walk(table: dict[str, Any], entries: Any, group: str | None = None) -> Iterator[dict[str, Any]]:
    """What the monitor says after each step of one run."""
    if not isinstance(entries, list):
        raise ValueError("a run is an array of steps")
    thresholds = (table.get("groups") or {"of": {}})["of"].get(group, table)
    alarm, release = thresholds["alarm"], thresholds["release"]  # None: never alarms; an alarm stays
    state, over, cooling, sounding = table["start"], 0, 0, False
    for step, entry in enumerate(entries, 1):
        symbol = symbol_of(table, entry, step)
        ways = (table["transitions"][state][symbol], table["fallback"][symbol], state)  # known, usual, none
        state = next(after for after in ways if after >= 0)
        imminent, outcome = table["risks"][state][bisect_right(table["clock"], step)]
        level = "WATCH" if outcome > thresholds["watch"] else "OK"
        if sounding and (release is None or outcome >= release):
            level = "ALARM"
        elif sounding:
            sounding, over, cooling = False, 0, table["cooldown"]
        elif cooling > 0:
            cooling -= 1
        elif alarm is not None:
            over = over + 1 if outcome > alarm else 0
            if over >= table["consecutive"]:
                sounding, level = True, "ALARM"
        yield {"state": state, "imminent_risk": imminent, "outcome_risk": outcome, "level": level}


if __name__ == "__main__":
    table = json.loads(Path(sys.argv[1] if sys.argv[1:] else Path(__file__).parent / "table.json").read_bytes())
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:  # 1.0 is 1 and NaN is nothing, as in other languages
            run = json.loads(line.decode("utf-8", "replace"), parse_int=float, parse_constant=int)
            print(json.dumps(list(walk(table, run, *sys.argv[2:3]))), flush=True)  # noqa: T201
        except (ValueError, RecursionError) as exc:
            raise SystemExit(f"line {number}: {exc}. Needed: {table['needed']}") from None
