"""CARD.md: one page for people, from what the manifest says. No time stands in it: the same training, the same card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from prefixguard.bundle.automaton import Automaton
from prefixguard.bundle.calibration import Calibration
from prefixguard.bundle.manifest import TIME

#: Sections of `info` that get a table, in order, with their headings; what is not there is left out.
_SECTIONS = (
    ("data", "Runs it was made from"),
    ("metrics", "How well it did on runs it had not seen"),
    ("split", "How runs were divided"),
    ("config", "Settings"),
    ("libraries", "Made with"),
)
_ROWS = 40


def write_card(
    adapter: Mapping[str, str],
    calibration: Calibration,
    info: Mapping[str, Any],
    automaton: Automaton | None = None,
    pictures: Sequence[str] = (),
) -> str:
    """The card of a bundle. The folder's name is not in it: the same monitor in another place has the same bytes.

    adapter: name, version, sha256. info: as in `BundleParts`; the keys `backend`, `horizon`,
    `seed`, `data`, `metrics`, `split`, `config`, `libraries` and `fidelity` are shown where they are present.
    automaton: of a bundle of that kind. pictures: files of the bundle that show it.
    """
    parts = [f"# Monitor for `{_plain(adapter.get('name', ''))}` runs", _what(adapter, info), _USE, _alarm(calibration)]
    if automaton is not None:
        parts.insert(2, _automaton(automaton, pictures))
    for key, heading in _SECTIONS:
        value = info.get(key)
        if isinstance(value, Mapping) and value:
            parts.append(f"## {heading}\n\n{_table(value)}")
    fidelity = info.get("fidelity")
    if isinstance(fidelity, Mapping) and fidelity:
        parts.append(_fidelity(fidelity))
    parts.append(_LIMITS)
    return "\n\n".join(parts) + "\n"


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
- Two risks are given: `imminent_risk` (the run fails, and ends within the horizon) and `outcome_risk` (the run fails).
  Alarms go by the second: the first is low until the end is near, whatever the run does."""


def _what(adapter: Mapping[str, str], info: Mapping[str, Any]) -> str:
    lines = [
        "Watches runs of an LLM agent and says after every step how likely the run is to fail. It reads them through "
        f"adapter `{_plain(adapter.get('name', ''))}`, version {_plain(adapter.get('version', ''))}."
    ]
    for key, words in (("backend", "Backend"), ("horizon", "Horizon in steps"), ("seed", "Seed")):
        if key in info:
            lines.append(f"- {words}: {_plain(str(info[key]))}")
    return lines[0] + ("\n\n" + "\n".join(lines[1:]) if lines[1:] else "")


def _automaton(automaton: Automaton, pictures: Sequence[str]) -> str:
    shown = f" Shown to people in {', '.join(f'`{name}`' for name in pictures)}." if pictures else ""
    marks = ", ".join(map(str, automaton.clock))
    clock = f" A clock beside it gives every state other risks from step {marks} on." if marks else ""
    return (
        f"## Automaton\n\nA finite automaton of {automaton.n_states} states over {automaton.n_symbols} symbols, in "
        f"`automaton.json`.{shown} A reading names the state that the run is in; its risks were set on runs that the "
        f"automaton was not learned from.{clock}"
    )


def _alarm(calibration: Calibration) -> str:
    thresholds, policy = calibration.thresholds, calibration.policy
    if thresholds.alarm is None:
        return (
            "## Alarm\n\nThis monitor never says ALARM: "
            f"{_plain(thresholds.reason or 'too few successful runs were set aside')}. "
            f"It says WATCH above {thresholds.watch:.4f}."
        )
    watch = min(thresholds.watch, thresholds.alarm)
    return (
        f"## Alarm\n\nALARM above an outcome risk of {thresholds.alarm:.4f}"
        + (f" for {policy.consecutive} steps in a row" if policy.consecutive > 1 else "")
        + f", WATCH above {watch:.4f}. Of runs that would succeed, at most {policy.budget:.0%} "
        f"raise an alarm, with confidence {policy.confidence:.0%} (set on {thresholds.n_runs} successful runs, one a "
        f"task, {thresholds.allowed} above the mark allowed)."
    )


def _fidelity(value: Mapping[str, Any]) -> str:
    """How far an automaton agrees with its teacher, and the reasons to audit it with care."""
    figures = {name: item for name, item in value.items() if isinstance(item, int | float)}
    care = value.get("care")
    sentences = [f"- Audit with care: {_plain(str(one))}" for one in care] if isinstance(care, list | tuple) else []
    return "\n\n".join(
        ["## How far it agrees with its teacher", _table(figures), *filter(None, ["\n".join(sentences)])]
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


def _plain(text: str) -> str:
    """Text that cannot break a table or a line."""
    return " ".join(text.replace("|", "/").replace("`", "'").split())[:200]
