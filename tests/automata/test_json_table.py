"""table.json walked by both reference interpreters says what the runtime says, on every string."""

from __future__ import annotations

import ast
import itertools
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_automaton
import tiny_monitor
from tiny_automaton import BEHAVIOURS, MODEL, TYPED, by_hand, by_seed

from prefixguard.alarm import AlarmPolicy, AlarmState, GroupThresholds, Thresholds
from prefixguard.automata.json_table import INTERPRETERS, write_json_table
from prefixguard.bundle import Beta, Bundle, BundleParts, Calibration, ModelMap, Platt, open_bundle, write_bundle
from prefixguard.errors import DataError, OutputError
from prefixguard.runtime import AutomatonModel, load

NODE = shutil.which("node") or ""
COMMANDS = {"run.py": [sys.executable, "-I"], "run.mjs": [NODE]}
needs_node = pytest.mark.skipif(not NODE, reason="node is not installed")


@pytest.fixture(params=["run.py", pytest.param("run.mjs", marks=needs_node)])
def interpreter(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def interpret(folder: Path, interpreter: str, runs: Iterable[Any]) -> list[list[dict[str, Any]]]:
    """What the interpreter in this folder says of each run."""
    lines = "".join(json.dumps(run) + "\n" for run in runs)
    command = [*COMMANDS[interpreter], str(folder / interpreter)]
    done = subprocess.run(command, input=lines.encode(), capture_output=True, check=True, cwd=folder.parent)
    return [json.loads(line) for line in done.stdout.split(b"\n") if line]


def told(bundle: Bundle, strings: Iterable[Sequence[int]]) -> list[list[dict[str, Any]]]:
    """What the runtime says: the model's tables, the bundle's maps, the alarm."""
    model, calibration = AutomatonModel(bundle), bundle.calibration
    out = []
    for string in strings:
        alarm, place, said = AlarmState(calibration.policy, calibration.thresholds), model.initial[0], []
        for count, symbol in enumerate(string, 1):
            place, _, (imminent, outcome) = model.follow(place, symbol, count)
            risk = calibration.outcome(outcome)
            risks = {"imminent_risk": calibration.imminent(imminent), "outcome_risk": risk}
            said.append({"state": place, **risks, "level": alarm.step(risk).value})
        out.append(said)
    return out


def opened(tmp_path: Path, parts: BundleParts) -> Bundle:
    write_bundle(tmp_path / "bundle", parts)
    return open_bundle(tmp_path / "bundle")


def strings(n_symbols: int, length: int, seed: int) -> list[list[int]]:
    """Every string up to a length, and long ones at random."""
    every = [list(s) for n in range(length + 1) for s in itertools.product(range(n_symbols), repeat=n)]
    rng = np.random.default_rng(seed)
    return every + [rng.integers(0, n_symbols, n).tolist() for n in (50, 200, 1000)]


def policies(risks: list[float]) -> list[tuple[Thresholds, AlarmPolicy]]:
    """Policies with thresholds that lie exactly on risks that occur, where a rounding would show."""
    low, middle, high, top = np.quantile(risks, [0.2, 0.5, 0.7, 0.9], method="nearest").tolist()
    rows = [
        (high, middle, AlarmPolicy()),
        (middle, top, AlarmPolicy(consecutive=2)),  # the watch threshold above the alarm's
        (high, low, AlarmPolicy(release=middle, cooldown=0)),
        (middle, low, AlarmPolicy(release=top, cooldown=2)),  # a release above the alarm
        (high, middle, AlarmPolicy(consecutive=3, release=high, cooldown=3)),
        (None, middle, AlarmPolicy(release=low)),
    ]
    return [(Thresholds(alarm, watch, 9, 0, 9, None if alarm else "few"), policy) for alarm, watch, policy in rows]


@pytest.mark.parametrize("case", range(6))
def test_every_string_is_judged_alike(tmp_path: Path, interpreter: str, case: int) -> None:
    """States and levels equal, risks equal to the last bit: both read the very numbers that the runtime computes."""
    k, length = ((2, 8), (3, 5), (4, 4), (5, 3), (3, 5), (2, 8))[case]
    clock = ((), (3,), (1, 4), (2, 3, 60), (), (7, 150))[case]
    automaton = by_seed(case + 20, 12 + 5 * case, k, clock, unseen=0.2)
    words = strings(k, length, case)
    maps = (Platt(0.7, -0.4), Beta(1.3, 0.8, 0.2))
    calibration = Calibration(*maps, *policies([0.0, 1.0])[0])
    bundle = opened(tmp_path, tiny_automaton.parts(automaton, ModelMap(k), calibration=calibration))
    met = [step["outcome_risk"] for run in told(bundle, words) for step in run]
    thresholds, policy = policies(met)[case]
    bundle = replace(bundle, calibration=Calibration(*maps, thresholds, policy))
    write_json_table(bundle, tmp_path / "table")
    expected = told(bundle, words)
    assert interpret(tmp_path / "table", interpreter, words) == expected
    said = {step["level"] for run in expected for step in run}
    assert said == {"OK", "WATCH"} | ({"ALARM"} if thresholds.alarm is not None else set())
    assert any(automaton.follow(s, x)[1] for s in range(automaton.n_states) for x in range(k))


def test_typed_tables_take_tools_errors_and_repeats(tmp_path: Path, interpreter: str) -> None:
    """With names that parsers stumble over, and names that only look like something."""
    tools = ("find", "respond", "", "a\u2028b", "żółć", "toString", "__proto__", 'quote"\n')
    typed = replace(TYPED, tools=tools)
    automaton = by_seed(3, 9, typed.n_symbols, (4,))
    bundle = opened(tmp_path, tiny_automaton.parts(automaton, typed))
    write_json_table(bundle, tmp_path / "table")
    rng = np.random.default_rng(5)
    names = [*tools, "constructor", "FIND", "0", "other"]

    def step(i: int) -> dict[str, Any]:
        return {"tool": names[int(rng.integers(len(names)))], "error": bool(rng.random() < 0.4), "repeat": i % 3 == 0}

    runs = [[step(i) for i in range(n)] for n in (0, 1, 5, 60, 300)]
    symbols = [[typed.number(s["tool"], error=s["error"], repeat=s["repeat"]) for s in run] for run in runs]
    expected = told(bundle, symbols)
    assert interpret(tmp_path / "table", interpreter, runs) == expected
    assert interpret(tmp_path / "table", interpreter, symbols) == expected
    raw = "".join(json.dumps(run, ensure_ascii=False) + "\n" for run in runs).removesuffix("\n").encode()
    command = [*COMMANDS[interpreter], str(tmp_path / "table" / interpreter), str(tmp_path / "table" / "table.json")]
    done = subprocess.run(command, input=raw, capture_output=True, check=True, env={"LANG": "C"})
    assert [json.loads(line) for line in done.stdout.split(b"\n") if line] == expected


def test_the_readings_of_a_session_come_out_too(tmp_path: Path, interpreter: str) -> None:
    """From raw events to levels on one side, from tool, error and repeat on the other."""
    write_bundle(tmp_path / "bundle", tiny_automaton.parts())
    write_json_table(open_bundle(tmp_path / "bundle"), tmp_path / "table")
    session = load(tmp_path / "bundle").start()
    readings = [r for event in tiny_monitor.failing_run() for r in session.observe(event)]
    steps = [{"tool": "look", "error": False, "repeat": False}] + [
        {"tool": "find", "error": True, "repeat": i > 0} for i in range(4)
    ]
    (said,) = interpret(tmp_path / "table", interpreter, [steps])
    names = ("state", "imminent_risk", "outcome_risk", "level")
    assert said == [{name: reading.to_json()[name] for name in names} for reading in readings]


@pytest.mark.parametrize(
    "entry",
    [
        *(-1, 16, 1.5, True, None, "0", 0.5, 1e300, [], {}),
        *({"tool": "find", "error": 1, "repeat": False}, {"error": True, "repeat": True}),
    ],
)
def test_what_is_no_step_stops_the_interpreter(tmp_path: Path, interpreter: str, entry: Any) -> None:
    write_json_table(tiny_automaton.parts(), tmp_path / "table")
    with pytest.raises(subprocess.CalledProcessError) as failed:
        interpret(tmp_path / "table", interpreter, [[0, entry]])
    needed = json.loads((tmp_path / "table" / "table.json").read_text())["needed"]
    assert failed.value.stderr.decode().rstrip() == (
        f"line 1: step 2 is no step that this table knows. Needed: {needed}"
    )
    assert failed.value.stdout == b""


@pytest.mark.parametrize(
    "line",
    [
        *("", "{}", '{"tool": "find"}', "null", "3", '"01"', "[0", "[0]]", "NaN", "[NaN]", "[Infinity]", "\ufeff[0]"),
        '[{"tool": "find", "error": true, "repeat": true, "more": NaN}]',
    ],
)
def test_a_line_that_is_no_run_stops_the_interpreter(tmp_path: Path, interpreter: str, line: str) -> None:
    """With its number and what is needed, no traceback; what came before it has been judged."""
    write_json_table(tiny_automaton.parts(), tmp_path / "table")
    needed = json.loads((tmp_path / "table" / "table.json").read_text())["needed"]
    command = [*COMMANDS[interpreter], str(tmp_path / "table" / interpreter)]
    done = subprocess.run(command, input=f"[0]\n{line}\n[0]\n".encode(), capture_output=True, check=False)
    said = done.stderr.decode()
    assert done.returncode == 1
    assert said.startswith("line 2: ") and said.rstrip().endswith(f". Needed: {needed}") and said.count("\n") == 1
    assert len(done.stdout.split(b"\n")) == 2 and len(json.loads(done.stdout)) == 1


def test_numbers_are_read_as_json_has_them(tmp_path: Path, interpreter: str) -> None:
    """Where a language tells 1 and 1.0 apart, the interpreter does not."""
    write_json_table(tiny_automaton.parts(), tmp_path / "table")
    command = [*COMMANDS[interpreter], str(tmp_path / "table" / interpreter)]
    lines = b"[1, 2, 0]\n[1.0, 20e-1, -0.0]\r\n \t[1,2,0]"
    done = subprocess.run(command, input=lines, capture_output=True, check=True)
    one, two, three = (json.loads(line) for line in done.stdout.splitlines())
    assert one == two == three and len(one) == 3


def test_an_untyped_table_takes_no_tools(tmp_path: Path, interpreter: str) -> None:
    write_json_table(tiny_automaton.parts(by_seed(1, 3, MODEL.n_symbols), MODEL), tmp_path / "table")
    with pytest.raises(subprocess.CalledProcessError) as failed:
        interpret(tmp_path / "table", interpreter, [[{"tool": "find", "error": True, "repeat": True}]])
    assert b"line 1: step 1 is no step that this table knows. Needed: of each step its symbol" in failed.value.stderr
    assert b"--alphabet typed" in failed.value.stderr


def test_a_table_says_what_it_takes(tmp_path: Path) -> None:
    """Symbols of a tree or a model come from the encoder alone; tools, errors and repeats from any agent."""
    said = []
    of = {
        "typed": tiny_automaton.parts(),
        "model": tiny_automaton.parts(by_seed(1, 3, 4), MODEL),
        "behaviours": tiny_automaton.parts(by_seed(1, 3, BEHAVIOURS.n_symbols), BEHAVIOURS),
    }
    for name, parts in of.items():
        path, *_ = write_json_table(parts, tmp_path / name)
        said.append(json.loads(path.read_text())["needed"])
    assert (
        said[0]
        == 'of each step its symbol, from 0 to 15, or {"tool": name, "error": true or false, "repeat": true or false}.'
    )
    assert said[1].startswith("of each step its symbol, from 0 to 3, and nothing else;")
    assert said[2].startswith("of each step its symbol, from 0 to 3, and nothing else; the behaviours of a step are")
    assert "stands under glosses" in said[2] and "--alphabet typed" in said[2]
    assert "encoder, in Python" in said[1] and "--alphabet typed" in said[1] and "tool, error and repeat" in said[1]


def test_it_runs_through_a_link(tmp_path: Path, interpreter: str) -> None:
    write_json_table(tiny_automaton.parts(), tmp_path / "table")
    (tmp_path / "linked").symlink_to(tmp_path / "table")
    assert len(interpret(tmp_path / "linked", interpreter, [[0, 1, 2]])[0]) == 3


def test_parts_and_bundle_give_the_same_files(tmp_path: Path) -> None:
    parts = tiny_automaton.parts(by_hand())
    one = write_json_table(parts, tmp_path / "one")
    two = write_json_table(opened(tmp_path, parts), tmp_path / "two")
    assert [path.name for path in one] == ["table.json", *INTERPRETERS]
    assert [p.read_bytes() for p in one] == [p.read_bytes() for p in two]
    table = json.loads(one[0].read_text())
    assert (table["start"], table["clock"], table["tools"]) == (0, [4], list(TYPED.tools))
    assert (table["alarm"], table["watch"], table["consecutive"], table["release"]) == (0.7, 0.3, 1, None)
    assert table["glosses"][2] == "kind 2 of step"


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    write_json_table(tiny_automaton.parts(), tmp_path / "t")
    (tmp_path / "t" / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"table\.json is there already"):
        write_json_table(tiny_automaton.parts(), tmp_path / "t")
    write_json_table(tiny_automaton.parts(by_hand(())), tmp_path / "t", overwrite=True)
    assert json.loads((tmp_path / "t" / "table.json").read_text())["clock"] == []
    assert (tmp_path / "t" / "notes.txt").read_text() == "mine"
    with pytest.raises(OutputError, match="cannot be written"):
        write_json_table(tiny_automaton.parts(), tmp_path / "t" / "notes.txt" / "deeper")


def test_a_monitor_without_an_automaton_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no automaton to make a table of"):
        write_json_table(tiny_monitor.parts(), tmp_path / "t")


def test_the_interpreters_are_short_and_need_nothing() -> None:
    folder = Path(sys.modules[write_json_table.__module__].__file__ or "").parent
    for name in INTERPRETERS:
        assert len((folder / name).read_text().splitlines()) <= 60
    tree = ast.parse((folder / "run.py").read_text())
    names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names |= {str(n.module) for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= set(sys.stdlib_module_names)
    imports = [line for line in (folder / "run.mjs").read_text().splitlines() if line.startswith("import")]
    assert all('from "node:' in line for line in imports)


def test_thresholds_by_group_travel_along(tmp_path: Path, interpreter: str) -> None:
    """Each value is judged by its own thresholds, as the runtime picks them; all others by the common ones."""
    automaton = by_seed(4, 9, 3)
    words = strings(3, 4, 1)
    plain = opened(tmp_path, tiny_automaton.parts(automaton, ModelMap(3)))
    met = sorted({step["outcome_risk"] for run in told(plain, words) for step in run})
    low, middle, high = met[len(met) // 4], met[len(met) // 2], met[-2]
    common = Thresholds(middle, met[0], 30, 0, 22, None)
    by_value = {
        "__proto__": Thresholds(low, met[-1], 30, 0, 22, None),  # its watch threshold lies above its alarm
        "gold": Thresholds(high, met[0], 30, 0, 22, None),
        "new": Thresholds(None, met[0], 3, 0, 22, "few"),
    }
    policy = AlarmPolicy(release=middle, cooldown=1)
    maps = plain.calibration.imminent, plain.calibration.outcome
    bundle = replace(plain, calibration=Calibration(*maps, common, policy, GroupThresholds("tier", by_value)))
    write_json_table(bundle, tmp_path / "table")
    lines = "".join(json.dumps(run) + "\n" for run in words).encode()
    seen = set()
    for group in ("__proto__", "gold", "new", "toString", None):
        expected = told(
            replace(bundle, calibration=Calibration(*maps, bundle.calibration.thresholds_of(group), policy)), words
        )
        command = [*COMMANDS[interpreter], interpreter, "table.json", *([] if group is None else [group])]
        done = subprocess.run(command, input=lines, capture_output=True, check=True, cwd=tmp_path / "table")
        assert [json.loads(line) for line in done.stdout.split(b"\n") if line] == expected, group
        seen.add(tuple(step["level"] for run in expected for step in run))
    assert len(seen) == 3, "thresholds too alike to tell"
