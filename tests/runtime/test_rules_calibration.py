"""Rules calibrated on runs without outcomes: the rate holds, the file says what it rests on, others are refused."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from behaving import call
from hypothesis import given
from hypothesis import strategies as st

import prefixguard
from prefixguard.alarm import LEAST_SCALE, allowed_exceedances, calibrated_scale, rule_level
from prefixguard.behaviours import BY_NAME, BehaviourFinding
from prefixguard.errors import BundleError, BundleVersionError, DataError, OutputError, PrefixGuardError, UsageError
from prefixguard.runtime import Level, calibrate_rules, load
from prefixguard.runtime.rules_file import RulesFile
from prefixguard.trace import Outcome, Run


def runs(n: int, loops: dict[int, int], task: str = "t") -> list[Run[Any]]:
    """n runs of a task each; run i makes the same call loops[i] times, else each call once."""
    found = []
    for i in range(n):
        times = loops.get(i, 0)
        records = [
            call("get", f'{{"id":{i if times else 100 * i + k}}}', f"r{0 if times else k}") for k in range(times or 3)
        ]
        found.append(Run(f"r{i}", f"{task}{i}", Outcome.UNKNOWN, tuple(records), "-"))
    return found


def alarms(monitor: prefixguard.Monitor, given: list[Run[Any]]) -> int:
    return sum(any(r.level is Level.ALARM for r in monitor.score_run(run.records)) for run in given)


@given(st.lists(st.tuples(st.integers(1, 70), st.sampled_from(sorted(BY_NAME))), min_size=1, max_size=30), st.data())
def test_the_scale_is_the_least_that_lets_so_few_alarm(found: list[tuple[int, str]], data: st.DataObject) -> None:
    of_runs = [[BehaviourFinding(BY_NAME[name], 1, count, "")] for count, name in found]
    maxima = [
        max((Fraction(f.count, f.behaviour.alarm) for f in one if f.behaviour.alarm), default=Fraction(0))
        for one in of_runs
    ]
    allowed = data.draw(st.integers(0, len(found) - 1))
    scale = calibrated_scale(maxima, allowed)

    def alarmed(at: float) -> int:
        return sum(rule_level(one, at) is Level.ALARM for one in of_runs)

    assert alarmed(scale) <= allowed
    assert scale == LEAST_SCALE or alarmed(scale - 0.01) > allowed


def test_at_most_the_rate_of_these_runs_alarms(tmp_path: Path) -> None:
    given = runs(60, {i: 6 + i for i in range(10)})
    result = calibrate_rules(given, out=tmp_path / "mine", alarm_rate=0.05)
    monitor = load(tmp_path / "mine")
    allowed = allowed_exceedances(60, 0.05, 0.1)
    assert alarms(load("rules"), given) == result.calibration.alarmed_before == 10
    assert alarms(monitor, given) == result.calibration.alarmed == result.calibration.allowed == allowed
    assert (result.calibration.runs, result.calibration.drawn) == (60, 60)
    assert result.scale > 1 and monitor.rules is not None and monitor.rules.scale == result.scale
    assert monitor.bundle.id == result.id != load("rules").bundle.id


def test_the_same_runs_in_another_order_give_the_same_file(tmp_path: Path) -> None:
    given = runs(60, {3: 9, 4: 30})
    for name, some in (("a", given), ("b", given[::-1])):
        calibrate_rules(some, out=tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_one_run_a_task_counts(tmp_path: Path) -> None:
    given = runs(60, {})
    again = [
        replace(run, run_id=f"again{i}", task_id="t0") for i, run in enumerate(runs(40, dict.fromkeys(range(40), 20)))
    ]
    result = calibrate_rules([*given, *again], out=tmp_path / "mine")
    assert (result.calibration.runs, result.calibration.drawn) == (100, 60)
    assert result.calibration.alarmed_before <= 1


def test_too_few_runs_are_refused(tmp_path: Path) -> None:
    said = (
        r"^40 runs \(one a task\) cannot support an alarm rate of 5 % at 90 % confidence: that needs at least 45. Give "
        r"runs of 5 more tasks, or accept an --alarm-rate of 0.056 or more.$"
    )
    with pytest.raises(DataError, match=said):
        calibrate_rules(runs(40, {}), out=tmp_path / "mine")
    with pytest.raises(DataError, match="there is no run to calibrate on"):
        calibrate_rules([], out=tmp_path / "mine")
    with pytest.raises(PrefixGuardError, match="is not a share of runs"):
        calibrate_rules(runs(60, {}), out=tmp_path / "mine", alarm_rate=0.0)
    assert not (tmp_path / "mine").exists()
    calibrate_rules(runs(40, {}), out=tmp_path / "mine", alarm_rate=0.056)


def test_what_is_there_is_kept(tmp_path: Path) -> None:
    given = runs(45, {})
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="is another file, which would be lost"):
        calibrate_rules(given, out=tmp_path / "notes.txt", overwrite=True)
    with pytest.raises(OutputError, match="is no file"):
        calibrate_rules(given, out=tmp_path, overwrite=True)
    calibrate_rules(given, out=tmp_path / "new" / "rules.json")
    with pytest.raises(OutputError, match="holds rules already"):
        calibrate_rules(given, out=tmp_path / "new" / "rules.json")
    calibrate_rules(given, out=tmp_path / "new" / "rules.json", overwrite=True)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rules with declared behaviours, and an adapter of their own."""
    folder = tmp_path_factory.mktemp("rules")
    asks = {
        "name": "asks", "kind": "fault", "sentence": "The agent asks.", "nudge": "Wait.", "advice": "Wait.",
        "when": {"tool": "get"}, "watch": 1, "alarm": 2,
    }  # fmt: skip
    declared = {"schema": "prefixguard/behaviours/v1", "name": "mine", "behaviours": [asks]}
    (folder / "mine.json").write_text(json.dumps(declared))
    calibrate_rules(runs(60, {}), out=folder / "rules", adapter="openai_chat", behaviours=folder / "mine.json")
    return folder / "rules"


def test_the_file_carries_adapter_and_declared_behaviours(written: Path) -> None:
    monitor = load(written)
    assert monitor.bundle.adapter.name == "openai_chat" and monitor.declared is not None
    assert monitor.rules is not None and monitor.rules.scale == 1.51  # every run asks 3 times, and 2 are an alarm
    assert alarms(monitor, runs(5, {})) == 0 and alarms(monitor, runs(5, {0: 4})) == 1
    assert load(written, adapter="openai_chat").bundle.id == monitor.bundle.id
    with pytest.raises(PrefixGuardError, match="was trained through adapter openai_chat"):
        load(written, adapter="events")
    with pytest.raises(UsageError, match="a file of behaviours goes with rules"):
        load(written, behaviours=written)
    with pytest.raises(UsageError, match="trust goes with a bundle"):
        load(written, trust=[b"key"])
    with pytest.raises(BundleError, match="Calibration needs risks"):
        prefixguard.calibrate(monitor, written)


def test_saved_it_goes_on_with_its_own_counts_only(written: Path) -> None:
    monitor = load(written)
    saved = monitor.start().save()
    monitor.restore(saved)
    with pytest.raises(PrefixGuardError, match="another"):
        load("rules", adapter="openai_chat").restore(saved)


CHANGES = [
    ({"scale": 0.49}, "is not as a calibration writes it"),
    ({"scale": 0.0}, "is not as a calibration writes it"),
    ({"scale": -1.0}, "is not as a calibration writes it"),
    ({"scale": 1e300}, "is not as a calibration writes it"),
    ({"scale": float("nan")}, "is not as a calibration writes it"),
    ({"scale": 2}, "is not as a calibration writes it"),
    ({"scale": True}, "is not as a calibration writes it"),
    ({"scale": "2"}, "is not as a calibration writes it"),
    ({"more": 1}, "is not as a calibration writes it"),
    ({"adapter": {}}, "cannot be read"),
    ({"adapter": None}, "cannot be read"),
    ({"behaviours": {"schema": "prefixguard/behaviours/v1", "name": "x"}}, "cannot be read"),
    ({"behaviours": []}, "cannot be read"),
    ({"calibration": None}, "is not as a calibration writes it"),
    ({"calibration": {}}, "is not as a calibration writes it"),
    ({"calibration.alarm_rate": 0.01}, "is not as a calibration writes it"),  # 60 runs do not support it
    ({"calibration.alarm_rate": 7.0}, "is not a share of runs"),
    ({"calibration.confidence": 1.0}, "out of range"),
    ({"calibration.drawn": 61}, "is not as a calibration writes it"),
    ({"calibration.drawn": -1}, "is not as a calibration writes it"),
    ({"calibration.drawn": 10**30}, "is not as a calibration writes it"),
    ({"calibration.allowed": 60}, "is not as a calibration writes it"),
    ({"calibration.alarmed": 1}, "is not as a calibration writes it"),
    ({"calibration.alarmed_before": 61}, "is not as a calibration writes it"),
    ({"catalogue": "0" * 64}, "was calibrated for the behaviours of another release"),
    ({"schema": "prefixguard/rules/v0"}, "is no file of calibrated rules"),
    ({"schema": "prefixguard/bundle/v1"}, "is no file of calibrated rules"),
    ({"schema": None}, "is no file of calibrated rules"),
]


@pytest.mark.parametrize(("change", "said"), CHANGES, ids=lambda value: str(value)[:50])
def test_what_no_calibration_writes_is_refused(
    written: Path, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    spec = json.loads(written.read_bytes())
    for key, value in change.items():
        outer, _, inner = key.rpartition(".")
        (spec[outer] if outer else spec)[inner] = value
    (tmp_path / "rules").write_text(json.dumps(spec, indent=1) + "\n")
    with pytest.raises(BundleError, match=said):
        load(tmp_path / "rules")


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"nothing", b"\xff\xfe", b"[" * 100_000, b'{"schema": "prefixguard/rules/v1"}', b"1" * 5000]
)
def test_no_rules_at_all_are_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "rules").write_bytes(data)
    with pytest.raises(BundleError):
        load(tmp_path / "rules")


def test_a_newer_file_and_a_key_that_stands_twice_are_refused(written: Path, tmp_path: Path) -> None:
    text = written.read_text()
    with pytest.raises(BundleVersionError, match=r"a newer release wrote it \(prefixguard/rules/v2\)"):
        RulesFile.from_bytes(text.replace("rules/v1", "rules/v2", 1).encode(), "x")
    with pytest.raises(BundleError, match="is not as a calibration writes it"):
        RulesFile.from_bytes(text.replace('"scale"', '"scale": 3.0, "scale"', 1).encode(), "x")
    assert RulesFile.from_bytes(text.encode(), "x").to_bytes() == text.encode()
