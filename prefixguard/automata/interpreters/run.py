"""Walk the automaton of table.json: `python run.py [table.json] < runs`.

Each input line is a JSON array with one entry a step of a run: a symbol's number, or, where the table names its tools,
{"tool": name, "error": bool, "repeat": bool}. Each output line is a JSON array of what a monitor says after each step.
"""

import json
import sys
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def symbol_of(table: dict[str, Any], entry: Any) -> int:
    """The number of a step: tool x error x repeat, tools that the table does not name together."""
    tools, symbol = table["tools"], entry
    kinds = [type(entry.get(k)) for k in ("tool", "error", "repeat")] if isinstance(entry, dict) else []
    if tools is not None and kinds == [str, bool, bool]:
        place = tools.index(entry["tool"]) if entry["tool"] in tools else len(tools)
        symbol = place * 4 + entry["error"] * 2 + entry["repeat"]
    if type(symbol) is not int or not 0 <= symbol < len(table["fallback"]):
        raise SystemExit(f"{entry!r} is no step that this table knows")
    return symbol


def walk(table: dict[str, Any], entries: list[Any]) -> Iterator[dict[str, Any]]:
    """What the monitor says after each step of one run."""
    alarm, release = table["alarm"], table["release"]  # None: never alarms; an alarm stays
    state, over, cooling, sounding = table["start"], 0, 0, False
    for step, entry in enumerate(entries, 1):
        symbol = symbol_of(table, entry)
        after = table["transitions"][state][symbol]
        if after < 0:  # no training run took it: where the symbol most often leads, or nowhere
            after = table["fallback"][symbol]
        state = state if after < 0 else after
        imminent, outcome = table["risks"][state][bisect_right(table["clock"], step)]
        level = "WATCH" if outcome > table["watch"] else "OK"
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
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "table.json"
    table = json.loads(path.read_text(encoding="utf-8"))
    for line in sys.stdin.buffer:
        sys.stdout.write(json.dumps(list(walk(table, json.loads(line)))) + "\n")
        sys.stdout.flush()
