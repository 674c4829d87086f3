"""CARD.md: one page for people, made from the manifest. It holds no time: the same training gives the same card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from prefixguard.bundle.alarm_performance import AlarmCount, AlarmPerformance
from prefixguard.bundle.automaton import Automaton
from prefixguard.bundle.calibration import Calibration
from prefixguard.bundle.manifest import TIME

#: Sections of `info` that get a table, in order, with their headings; what is not there is left out.
_SECTIONS = (
    ("data", "Runs it was made from"),
    ("metrics", "How well it did on runs it had not seen"),
    ("heads", "Parts of its model"),
    ("split", "How runs were divided"),
    ("config", "Settings"),
    ("libraries", "Made with"),
)
_ROWS = 40


_USE = """## Use

```python
import prefixguard

monitor = prefixguard.load("path/to/this/folder")
session = monitor.start()
for event in events:
    for reading in session.observe(event):
        print(reading.step, reading.level, reading.outcome_risk, reading.reasons)
```"""

_LIMITS = """## Limits

- A reading is a forecast from what runs like the training runs did; it is no proof that a run will fail or succeed.
- The alarm's bound holds for new tasks drawn like the calibration tasks. `Session.drift` shows when runs look unlike.
"""
#: What the risks are; and of a monitor that learned from successful runs alone.
_RISKS = (
    """\
- Two risks are given: `imminent_risk` (the run fails, and ends within the horizon) and `outcome_risk` (the run fails).
  Alarms go by the second: the first is low until the end is near, whatever the run does.
""",
    """\
- Two risks are given: `imminent_risk` (the share of healthy steps that are less
  unusual) and `outcome_risk` (the share of healthy runs that never were as unusual).
  Neither is a probability of failure.
""",
)
#: What reasons say, of steps and of scores.
_REASONS = (
    """\
- Reasons say what the agent does (`prefixguard.behaviours`), since which step, and what to do. They name what holds
  near the step, ranked by what moved the risk; they do not prove that it is the cause.
""",
    """\
- It knows no more than its scores: where the judge is changed (its model, its prompt), train it again.
- Reasons say which numbers of the scores so far moved the risk; they do not prove a cause.
""",
)
_SIGNED = """\
- When it is opened, its hashes show that nothing changed since it was written. They do not show who wrote it: anybody
  can hash a changed bundle again. A signature does: `prefixguard sign`, `prefixguard.load(path, trust=PUBLIC_KEY)`."""

_USE_SCORES = """## Use

```python
import prefixguard

monitor = prefixguard.load("path/to/this/folder")
session = monitor.start()
for score in scores:  # as the judge says them, one a step
    reading = session.observe_score(score)
    print(reading.step, reading.level, reading.outcome_risk, reading.reasons)
```"""


#: Letters kept of a sentence, or of a few.
_SENTENCES = 900


def _direction(info: Mapping[str, Any]) -> str:
    config = info.get("config")
    safer = isinstance(config, Mapping) and config.get("higher_is_safer") is True
    return "; a higher score is safer" if safer else "; a higher score is riskier"


_SAYS = ("how likely the run is to fail", "how unlike successful runs it is; no failed run taught it anything")


def write_card(
    adapter: Mapping[str, str],
    calibration: Calibration,
    info: Mapping[str, Any],
    automaton: Automaton | None = None,
    pictures: Sequence[str] = (),
    performance: AlarmPerformance | None = None,
    *,
    of_scores: bool = False,
    of_signals: bool = False,
) -> str:
    """The card of a bundle. The folder's name is not in it: the same monitor in another place has the same bytes.

    adapter: name, version, sha256. info: as in `BundleParts`; the keys `backend`, `horizon`,
    `seed`, `data`, `metrics`, `heads`, `split`, `config`, `libraries` and `fidelity` are shown where they are present.
    automaton: of a bundle of that kind. pictures: files of the bundle that show it. performance: how its alarms did.
    of_scores: whether it reads scores instead of steps. of_signals: whether it reads what steps took as well.
    """
    name, version = _plain(adapter.get("name", "")), _plain(adapter.get("version", ""))
    healthy = info.get("backend") == "healthy"
    parts = [
        "# Monitor of scores" if of_scores else f"# Monitor for `{name}` runs",
        f"Watches runs of an LLM agent and says after every step {_SAYS[healthy]}. It reads "
        + (
            "what a verifier, judge or critic says of the run, a number a step, and nothing else: no step of the agent"
            f"{_direction(info)}. It reads files of them"
            if of_scores
            else "them, with what their steps took (seconds, tokens, dollars),"
            if of_signals
            else "them"
        )
        + f" through adapter `{name}`, version {version}.",
    ]
    if isinstance(verdict := info.get("verdict"), str):
        parts.insert(1, _plain(verdict, _SENTENCES))
    facts = (("backend", "Backend"), ("horizon", "Horizon in steps"), ("seed", "Seed"))
    parts.append("\n".join(f"- {words}: {_plain(str(info[key]))}" for key, words in facts if key in info))
    if automaton is not None:
        begins = ", ".join(map(str, automaton.clock))
        met = int(np.count_nonzero(automaton.edges.any(axis=0)))
        never = f" ({automaton.n_symbols - met} more came in no training run)" if met < automaton.n_symbols else ""
        shown = f" Shown to people in {', '.join(f'`{file}`' for file in pictures)}." if pictures else ""
        clock = f" A clock beside it gives every state other risks from step {begins} on." if begins else ""
        parts.append(
            f"## Automaton\n\nA finite automaton of {automaton.n_states} states over {met} symbols{never}, in "
            f"`automaton.json`.{shown} A reading names the state that the run is in; its risks were set on runs that "
            f"the automaton was not learned from.{clock}"
        )
    parts += [_USE_SCORES if of_scores else _USE, "## Alarm", _common(calibration), *_groups(calibration)]
    anew = info.get("recalibration")
    if isinstance(anew, Mapping):
        in_sample = (
            f" IN SAMPLE: {anew['in_sample']} of these runs are of tasks that the monitor was made from, on which it "
            "is surer than on new ones. The bound does not hold."
        )
        parts.append(
            f"Both thresholds were set anew, without retraining, on {anew.get('runs')} runs of which "
            f"{anew.get('successful')} succeeded; the monitor before was {_plain(str(anew.get('monitor')))[:12]}."
            + (in_sample if anew.get("in_sample") else "")
        )
    if performance is not None:
        parts += _performance(performance)
    for key, heading in _SECTIONS:
        value = info.get(key)
        if isinstance(value, Mapping) and value:
            parts.append(f"## {heading}\n\n{_table(value)}")
    fidelity = info.get("fidelity")
    if isinstance(fidelity, Mapping) and fidelity:  # how far an automaton agrees, and the reasons to audit it with care
        figures = {name: item for name, item in fidelity.items() if isinstance(item, int | float)}
        care = fidelity.get("care")
        said = map(str, care) if isinstance(care, list | tuple) else ()
        sentences = [f"- Audit with care: {_plain(one, _SENTENCES)}" for one in said]
        parts += ["## How far it agrees with its teacher", _table(figures), "\n".join(sentences)]
    parts.append(_LIMITS + _RISKS[healthy] + _REASONS[of_scores] + _SIGNED)
    return "\n\n".join(filter(None, parts)) + "\n"


def _performance(found: AlarmPerformance) -> list[str]:
    """First alarms on the test runs, beside what knows less."""

    def part(count: int, total: int, ends: tuple[float, float] | None) -> str:
        interval = "" if ends is None else f" [{100 * ends[0]:.0f}, {100 * ends[1]:.0f}]"
        return f"{count} of {total}" + (f", {count / total:.0%}{interval}" if total else "")

    def row(one: AlarmCount) -> str:
        if one.threshold is None:
            return f"| {_plain(one.by)} | not measured | | | |"
        caught = part(one.caught, found.failed, one.caught_interval)
        caught += "" if one.in_time is None else f"; {one.in_time} with a step left"
        early = part(one.early, found.failed, one.early_interval)
        lead = "" if one.lead is None else f"{one.lead:g}"
        false = part(one.false_alarms, found.successful, one.false_alarm_interval)
        return f"| {_plain(one.by)} | {caught} | {false} | {early} | {lead} |"

    head = [
        f"| | failures caught | false alarms | with more than {found.horizon} steps left | median steps left |",
        "| --- | --- | --- | --- | --- |",
    ]
    agree = "not defined" if found.kappa is None else f"{found.kappa:.2f}"
    said = f"Cohen's kappa of its alarms with its teacher's, step by step: {agree}."
    if found.kept is not None and found.coverage_expected is not None:
        said += (
            f" {found.kept} of {found.cells} of the 90% intervals that ten test runs or more came to hold the share of "
            f"them that failed; if the intervals are right, {found.coverage_expected * found.cells:.1f} would."
        )
    notes = "\n".join(f"- {_plain(note, _SENTENCES)}" for note in found.notes)
    measured = (
        f"Every row but a plain rule keeps a false-alarm budget of {found.budget:.0%}. Figures are of the test runs, "
        "intervals of 95%, over tasks."
    )
    table = "\n".join([*head, *map(row, found.rows)])
    return ["## Alarms on runs it had not seen", measured, table, said, notes]


def _groups(calibration: Calibration) -> list[str]:
    """A table of the groups with thresholds of their own; those without are counted."""
    groups = calibration.groups
    if groups is None:
        return []
    own = {value: one for value, one in groups.of.items() if one.alarm is not None}
    rows = [f"| {_plain(value)} | {one.alarm:.4f} | {one.n_runs} |" for value, one in own.items()]
    more = [f"| ... | {len(rows) - _ROWS} more in calibration.json | |"] if len(rows) > _ROWS else []
    few = len(groups.of) - len(own)
    rest = f"; {few} had too few runs" if few else ""
    said = (
        f"Runs whose group `{_plain(groups.by)}` is one of these have an alarm threshold of their own, with the same "
        f"bound over runs of that value. All others go by the one above{rest}."
    )
    table = [f"| {_plain(groups.by)} | ALARM above | runs |", "| --- | --- | --- |", *rows[:_ROWS], *more]
    return [said, "\n".join(table)]


def _common(calibration: Calibration) -> str:
    thresholds, policy = calibration.thresholds, calibration.policy
    if thresholds.alarm is None:
        never = "This monitor never says ALARM: "
        if calibration.groups is not None:
            never = "This monitor has no alarm threshold for all runs: "
        return (
            f"{never}{_plain(thresholds.reason or 'too few successful runs were set aside')}. "
            f"It says WATCH above {thresholds.watch:.4f}."
        )
    return (
        f"ALARM above an outcome risk of {thresholds.alarm:.4f}"
        + (f" for {policy.consecutive} steps in a row" if policy.consecutive > 1 else "")
        + (f", WATCH above {thresholds.watch:.4f}" if thresholds.watch < thresholds.alarm else ", never WATCH")
        + f". Of runs that would succeed, at most {policy.budget:.0%} "
        f"raise an alarm, with confidence {policy.confidence:.0%} (set on {thresholds.n_runs} successful runs, one a "
        f"task, {thresholds.allowed} above the threshold allowed)."
    )


def _table(value: Mapping[str, Any]) -> str:
    rows = _flatten(value, "")
    shown = [f"| {_plain(name)} | {_plain(text)} |" for name, text in rows[:_ROWS]]
    if len(rows) > _ROWS:
        shown.append(f"| ... | {len(rows) - _ROWS} more in manifest.json |")
    return "\n".join(["| | |", "| --- | --- |", *shown])


def _flatten(value: Mapping[str, Any], before: str) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for key in value:
        name, item = f"{before}{key}", value[key]
        if key == TIME:
            continue
        if isinstance(item, Mapping):
            rows += _flatten(item, f"{name}.")
        elif isinstance(item, float):
            rows.append((name, f"{item:.4g}"))
        elif isinstance(item, (list, tuple)) and len(item) > 6:
            rows.append((name, f"{len(item)} entries"))
        else:
            rows.append((name, str(item)))
    return rows


def _plain(text: str, letters: int = 200) -> str:
    """Text that cannot break a table or a line."""
    return " ".join(text.replace("|", "/").replace("`", "'").split())[:letters]
