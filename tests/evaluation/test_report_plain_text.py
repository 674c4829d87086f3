"""Text that results print for a terminal comes back as the paragraphs and tables it was made from."""

from __future__ import annotations

import numpy as np
import pytest
from report_material import invented_input

from prefixguard.evaluation.report.plain_text import text_blocks
from prefixguard.results import Table, Text, Verbatim, aligned, number, wrapped

WORDS = ("risk", "step", "index", "of", "the", "outcome", "where", "runs", "fail", "and", "a", "clock", "ends", "early")


def sentence(rng: np.random.Generator, n: int) -> str:
    return " ".join(rng.choice(WORDS, n)).capitalize() + "."


@pytest.mark.parametrize("seed", range(20))
def test_a_table_comes_back_cell_by_cell(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = int(rng.integers(2, 7))
    head = ["", *(" ".join(rng.choice(WORDS, 2)) for _ in range(columns))]
    rows = [
        [
            " ".join(rng.choice(WORDS, int(rng.integers(1, 5)))),
            *(f".{int(x):03d}" for x in rng.integers(0, 999, columns)),
        ]
        for _ in range(int(rng.integers(1, 9)))
    ]
    title, note = sentence(rng, 8), sentence(rng, 40)
    blocks = text_blocks(f"{title}\n{aligned([head, *rows])}\n\n{wrapped(note)}", "label")
    table, after = blocks
    assert isinstance(table, Table) and isinstance(after, Text)
    assert (table.caption, after.text) == (title, note)
    assert [c.name for c in table.columns] == head
    assert [[cell.text for cell in row] for row in table.rows] == rows


def test_an_interval_goes_under_its_figure_and_the_monitor_stands_out() -> None:
    text = aligned([["", "own", "", ".1", ""], ["monitor", ".3", "", ".2", "[.1, .3]"], ["clock", ".1", "", ".1"]])
    (table,) = text_blocks(text, "label")
    assert isinstance(table, Table)
    assert (table.caption, tuple(c.name for c in table.columns)) == ("label", ("", "own", ".1"))
    assert [(cell.text, cell.small) for cell in table.rows[0]] == [("monitor", ""), (".3", ""), (".2", "[.1, .3]")]
    assert table.marked == {0}


@pytest.mark.parametrize("seed", range(10))
def test_folded_sentences_come_back_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    said = [sentence(rng, int(rng.integers(3, 60))) for _ in range(4)]
    blocks = text_blocks("\n".join(wrapped(line) for line in said), "label")
    texts = [block.text for block in blocks if isinstance(block, Text)]
    # A line that happens to end where the next sentence would not fit is taken for folded; nothing is lost by it.
    assert " ".join(texts) == " ".join(said)
    assert len(texts) >= 3


def test_warnings_stand_out() -> None:
    blocks = text_blocks(
        "Audit.\nERROR text, result: `win` tells the outcome.\nWARNING length: so do lengths.", "label"
    )
    assert [block.tone for block in blocks if isinstance(block, Text)] == ["plain", "care", "care"]


def test_what_cannot_be_told_stays_as_it_is() -> None:
    (block,) = text_blocks("  indented\nand not", "label")
    assert block == Verbatim("  indented\nand not", "label")
    assert text_blocks("", "label") == ()


def test_what_the_table_carries_is_shown_as_tables() -> None:
    given = invented_input(60)
    prevalence = given.table.sections["prevalence"]
    tables = [block for block in text_blocks(prevalence.to_text(), "x") if isinstance(block, Table)]
    plain = prevalence.as_json()
    for table, which in zip(tables, ("imminent", "outcome"), strict=True):
        known = {row["name"]: row for row in plain[which]}
        assert table.rows[0][0].text == "monitor" and len(table.rows) >= 2
        for row in table.rows:
            assert row[1].text == number(known[row[0].text.removesuffix(" *")]["auprc"])
