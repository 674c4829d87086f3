"""Blocks as terminal text: nothing of a table is lost, nothing is wider than the terminal, nothing acts on it."""

from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st

from prefixguard.results import (
    WIDTH,
    Bullets,
    Card,
    Cell,
    Column,
    Facts,
    Figure,
    Folded,
    Heading,
    Image,
    Pair,
    TableBlock,
    Text,
    Verbatim,
    to_text,
)

WORD = st.text(string.ascii_letters + string.digits + ".[]+-%", min_size=1, max_size=30)
SAID = st.lists(WORD, max_size=12).map(" ".join)
ANY = st.text(max_size=60)


@st.composite
def tables(draw: st.DrawFn) -> TableBlock:
    n = draw(st.integers(1, 9))
    kinds = draw(st.lists(st.sampled_from(["text", "number", "words"]), min_size=n, max_size=n))
    cells = st.builds(Cell, SAID, st.one_of(st.just(""), WORD))
    rows = draw(st.lists(st.lists(cells, min_size=n, max_size=n), min_size=1, max_size=4))
    columns = tuple(Column(f"head{i}", kind) for i, kind in enumerate(kinds))
    return TableBlock("Caption", columns, tuple(map(tuple, rows)))


@given(tables())
def test_every_word_of_a_table_is_there_and_fits(table: TableBlock) -> None:
    text = to_text([table])
    assert all(len(line) <= WIDTH for line in text.split("\n"))
    there = "".join(text.split())
    for row in table.rows:
        for cell in row:
            for word in (*cell.text.split(), *cell.small.split()):
                # A word longer than its column is cut over lines, between which other columns stand.
                assert word in there or all(letter in there for letter in word)


@given(st.lists(SAID, min_size=1, max_size=4))
def test_paragraphs_fold_and_keep_their_words(said: list[str]) -> None:
    text = to_text([Text(one) for one in said])
    assert text.split() == " ".join(said).split()
    assert all(len(line) <= WIDTH for line in text.split("\n"))


@given(ANY, ANY)
def test_nothing_acts_on_a_terminal(one: str, other: str) -> None:
    blocks = [
        Heading(one), Text(one), Bullets((one,), other), Facts(((one, other, one),)), Verbatim(one, other),
        Figure("<svg/>", one, other), Image(b"", one), Folded(one, (Text(other),)), Card("k", "s", one, other, ()),
        TableBlock.of(one, ["", other], [[one, (other, one)]]),
    ]  # fmt: skip
    assert all(line.isprintable() or "\u00a0" in line or not line.isascii() for line in to_text(blocks).split("\n"))
    assert not any(letter in to_text(blocks) for letter in "\x1b\x9b\u202e\u2028\x00\r")


def test_a_table_with_intervals() -> None:
    rows = [["monitor", (".541", "[.490, .600]"), "x"], ["step index", ".2"]]
    assert to_text([Text("Before."), TableBlock.of("By", ["", "AUPRC", "n"], rows), Text("Below."), Text("More.")]) == (
        "Before.\n\n"
        "By\n"
        "            AUPRC               n\n"
        "monitor      .541 [.490, .600]  x\n"
        "step index     .2\n"
        "Below.\nMore."
    )


def test_a_brief_column_has_no_interval_and_drawings_no_column() -> None:
    brief = Column("AUROC at equal steps left", "number", short="rem", brief=True)
    head = ["", Column("never", "number", hidden=True), brief, Column("drawn")]
    table = TableBlock.of("", head, [["monitor", "x", (".541", "[.490, .600]"), Cell(svg="<svg/>")]])
    assert to_text([table]) == "          rem\nmonitor  .541"


def test_rows_that_are_set_in_stay_so() -> None:
    assert to_text([TableBlock.of("", ["a", "b"], [["x", "1"], ["  of them", "2"]])]) == (
        "a          b\nx          1\n  of them  2"
    )


def test_a_table_of_too_many_figures_is_told_row_by_row() -> None:
    head = ["", *(f"figure {i}" for i in range(30))]
    text = to_text([TableBlock.of("", head, [["monitor", *((f"{i}", f"[{i}]") for i in range(30))]])])
    assert text.startswith("monitor\n  figure 0: 0 [0]\n  figure 1: 1 [1]\n")


def test_what_stands_inside_others_is_told_in_turn() -> None:
    blocks = [Pair((Text("a"), Text("b"))), Folded("More", (Bullets(("one", "two"), "Title"),))]
    assert to_text(blocks) == "a\nb\n\nMore\nTitle\n- one\n- two"
    assert to_text([]) == "" and to_text([Text("")]) == ""
