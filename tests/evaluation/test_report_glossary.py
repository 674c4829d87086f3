"""The glossary of an automaton, from its Markdown file into the report."""

from __future__ import annotations

from invented_summary import invented_summary

from prefixguard.automata.page.glossary import to_glossary
from prefixguard.evaluation.report.glossary_text import glossary_blocks
from prefixguard.results import Folded, Table, Text


def test_every_symbol_of_the_glossary_is_there() -> None:
    summary = invented_summary(12, care=("Ranks little better than chance.",))
    blocks = glossary_blocks(to_glossary(summary))
    (overview,) = [block for block in blocks if isinstance(block, Table)]
    assert [row[0].text for row in overview.rows] == [str(entry.symbol) for entry in summary.entries]
    assert [row[2].text for row in overview.rows] == [f"{entry.count:,}" for entry in summary.entries]
    folded = [block for block in blocks if isinstance(block, Folded)]
    assert len(folded) == len(summary.entries)
    for entry, fold in zip(summary.entries, folded, strict=True):
        assert fold.summary.startswith(f"{entry.symbol}: ")
        (table,) = fold.blocks
        assert isinstance(table, Table)
        said = {row[0].text: row[1].text for row in table.rows}
        assert said["Defined by"] == " ".join(entry.condition.split())
    care = [block.text for block in blocks if isinstance(block, Text) and block.tone == "care"]
    assert care == ["Audit with care. Ranks little better than chance."]


def test_hostile_text_comes_through_as_text() -> None:
    summary = invented_summary(6, hostile=True)
    blocks = glossary_blocks(to_glossary(summary))
    assert len([block for block in blocks if isinstance(block, Folded)]) == len(summary.entries)
    (overview,) = [block for block in blocks if isinstance(block, Table)]
    assert all(len(row) == len(overview.columns) for row in overview.rows)
    assert [row[0].text for row in overview.rows] == [str(entry.symbol) for entry in summary.entries]


def test_torn_tables_stay_tables() -> None:
    (table,) = glossary_blocks("| a | b |\n| --- |\n| 1 |\n| 1 | 2 | 3 |")
    assert isinstance(table, Table)
    assert [[cell.text for cell in row] for row in table.rows] == [["1", ""], ["1", "2"]]
    assert glossary_blocks("") == ()
