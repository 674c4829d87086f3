"""The one block that an audit prints: which rows it shows, what it says of the rivals, and that it fits a terminal."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from prefixguard.auditor import (
    AuditedSystem,
    AuditTable,
    StepIndex,
    audit_table,
    audited,
    published_rows,
    trivial_baselines,
)
from prefixguard.auditor.audit_table import STRONGEST, WALKERS
from prefixguard.stepview import StepRecord
from prefixguard.trace import Mistake, Outcome, Run


def made_runs(n: int = 60) -> list[Run[StepRecord]]:
    """All fail: one half at step 2 by Web, the other half at step 5 by Coder; ten steps each, no error among them."""
    runs = []
    for i in range(n):
        records = tuple(
            StepRecord(k, "agent", "Coder" if k % 2 else "Web", "run", "", "", "", "", "ok", k - 1)
            for k in range(1, 11)
        )
        mistake = Mistake(2, "Web") if i % 2 else Mistake(5, "Coder")
        runs.append(Run(f"run {i}", f"task {i}", Outcome.FAILURE, records, "made.json", mistake=mistake))
    return runs


RUNS = made_runs()


def auditor(right: int, *, walked: bool = False, name: str = "auditor") -> AuditedSystem:
    """Finds step and agent of the first so many runs, and blames the last step of the others."""
    rows = []
    for i, run in enumerate(RUNS):
        assert run.mistake is not None
        step, agent = (run.mistake.step, run.mistake.agent) if i < right else (10, None)
        alarm = {"alarm_step": step, "calls": 3} if walked else {"calls": 1}
        rows.append(audited(run, "alarm", step=step, agent=agent, **alarm))
    return AuditedSystem(name, tuple(rows))


def table(*systems: AuditedSystem, index: StepIndex = "record", **options: object) -> AuditTable:
    return audit_table(list(systems), trivial_baselines(RUNS, index=index), n_resamples=200, **options)  # type: ignore[arg-type]


def names_shown(text: str) -> list[str]:
    """First cells of the table's lines, which end where the sentences begin."""
    lines = text.split("\n\n")[1].splitlines()[1:]
    end = next(place for place, line in enumerate(lines) if line.startswith("Step-Acc, "))
    return [re.split(r"\s{2,}", line)[0] for line in lines[:end]]


def sentence(text: str, figure: str) -> str:
    """What is said of the first auditor in a figure, line breaks undone."""
    met = re.search(rf"{figure}, auditor: (.*?)\.(?: [A-Z]|$)", " ".join(text.split()))
    assert met is not None
    return met[1]


@pytest.mark.parametrize(("index", "word"), [("record", "step"), ("event", "entry")])
def test_auditors_first_then_the_strongest_trivial_rows(index: StepIndex, word: str) -> None:
    shown = names_shown(table(auditor(40), auditor(20, name="second"), index=index).to_text())
    assert shown[:2] == ["auditor", "second"]
    expected = {name for name in STRONGEST if not name.startswith("best")} | {f"best {word} elsewhere"}
    assert set(shown[2:]) == expected and len(shown) == 2 + len(expected)


def test_who_watches_a_run_is_shown_beside_those_that_alarm_at_once_and_never() -> None:
    assert set(WALKERS) <= set(names_shown(table(auditor(40, walked=True)).to_text()))
    assert not set(WALKERS) & set(names_shown(table(auditor(40)).to_text()))
    silent = AuditedSystem("silent", tuple(audited(run, "safe") for run in RUNS))
    assert set(WALKERS) <= set(names_shown(table(silent).to_text()))


def test_figures_are_those_of_the_table() -> None:
    found = table(auditor(45))
    line = next(line for line in found.to_text().splitlines() if line.startswith("auditor"))
    row = found.rows[0].figures
    assert (row.step_accuracy, row.agent_accuracy) == (0.75, 0.75)
    cells = line.split()
    assert cells.count("75.0") == 4  # Exact-F1, Step-Acc, ±1, Agent-Acc
    assert f"{row.ass:.2f}" in cells and cells[-1] == "1.0"


def test_it_says_which_trivial_rows_are_not_beaten() -> None:
    """Half the runs have step 2, so the constant reaches 50 per cent."""
    beaten = sentence(table(auditor(60)).to_text(), "Step-Acc")
    assert "beats every trivial row; the strongest is" in beaten and "(50.0 %)" in beaten
    close = sentence(table(auditor(33)).to_text(), "Step-Acc")
    assert "ahead of every trivial row, though by no more than chance allows of" in close
    behind = sentence(table(auditor(10)).to_text(), "Step-Acc")
    assert "does not beat step 2 (50.0 %)" in behind
    level = sentence(table(auditor(30)).to_text(), "Step-Acc")
    assert "does not beat step 2 (50.0 %)" in level


def test_a_constant_chosen_on_these_very_runs_is_no_rival() -> None:
    found = table(auditor(10))
    assert any(row.hindsight and row.figures.step_accuracy == 0.5 for row in found.rows)
    assert "hindsight" not in found.to_text() and "hindsight" in found.to_text(full=True)


def test_one_block_that_fits_a_terminal_and_says_where_the_rest_is() -> None:
    found = table(auditor(40, walked=True, name="an auditor with a very long name indeed"), notes=["A note."])
    text = found.to_text()
    assert max(map(len, text.splitlines())) <= 118
    assert len(text.splitlines()) < 30 < len(found.to_text(full=True).splitlines())
    assert "--full" in text and text.endswith("A note.")
    assert "no safe run" in text
    assert {row["name"] for row in found.as_json()["systems"]} == {row.name for row in found.rows}


def test_published_figures_and_trivial_rows_alone() -> None:
    published = published_rows("aftraj")
    text = table(auditor(40), published=published).to_text()
    assert all(" ".join(caveat.split()) in " ".join(text.split()) for row in published for caveat in row.caveats)
    alone = table().to_text()
    assert set(WALKERS) <= set(names_shown(alone))
    assert "beat" not in alone


def test_rows_of_other_names_are_all_shown() -> None:
    own = replace(auditor(5), name="always last", trivial=True)
    found = audit_table([auditor(40)], [own], n_resamples=50)
    assert names_shown(found.to_text()) == ["auditor", "always last"]
    assert "0 more trivial rows" not in found.to_text()
