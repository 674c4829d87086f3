"""GLOSSARY.md, read by a Markdown reader: every symbol is there, and no text forms markup."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_summary import HOSTILE, invented_summary

from prefixguard.automata.page.glossary import NAME_LETTERS, SENTENCE_LETTERS, to_glossary
from prefixguard.automata.summary.wording import one_line

markdown_it = pytest.importorskip("markdown_it")

#: Blocks and inlines of the glossary itself; what else comes out has broken out of a cell.
OURS = {
    *("heading_open", "heading_close", "inline", "paragraph_open", "paragraph_close"),
    *("blockquote_open", "blockquote_close", "table_open", "table_close", "thead_open", "thead_close"),
    *("tbody_open", "tbody_close", "tr_open", "tr_close", "th_open", "th_close", "td_open", "td_close"),
}


def read(text: str) -> list:  # type: ignore[type-arg]
    return markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)


def shown(inline) -> str:  # type: ignore[no-untyped-def]
    return "".join(child.content for child in inline.children)


@pytest.mark.parametrize("hostile", [False, True], ids=["plain", "hostile"])
def test_every_symbol_has_its_table_and_nothing_breaks_out(hostile: bool) -> None:
    summary = invented_summary(12, hostile=hostile, care=HOSTILE if hostile else ("Ranks little better than chance.",))
    tokens = read(to_glossary(summary))
    assert {token.type for token in tokens} <= OURS
    inlines = [token for token in tokens if token.type == "inline"]
    assert {child.type for inline in inlines for child in inline.children} <= {"text"}
    assert sum(token.type == "table_open" for token in tokens) == 1 + len(summary.entries)
    headings = [shown(after) for token, after in pairwise(tokens) if token.type == "heading_open"]
    assert headings[1:] == [f"{entry.symbol}: {one_line(entry.gloss, NAME_LETTERS)}" for entry in summary.entries]
    cells = [shown(after) for token, after in pairwise(tokens) if token.type == "td_open"]
    for entry in summary.entries:
        for example in entry.examples:
            assert one_line(example, SENTENCE_LETTERS) in cells
        assert one_line(entry.condition, SENTENCE_LETTERS) in cells
    assert sum(token.type == "tr_open" for token in tokens) == 1 + len(summary.entries) * (1 + 1 + 7 + 3)
    assert ("Audit with care:" in to_glossary(summary)) == bool(summary.fidelity.care)


@given(st.text(alphabet=st.sampled_from("a_*`|\\[]()<>!&;:/#~$ -w.\n1x"), min_size=1, max_size=24))
def test_any_text_is_taken_literally(text: str) -> None:
    summary = invented_summary(2, 2)
    odd = replace(summary.entries[0], gloss=f"a{text}", condition=f"b{text}", examples=(f"c{text}",))
    tokens = read(to_glossary(replace(summary, name=f"d{text}", entries=(odd, *summary.entries[1:]))))
    assert {token.type for token in tokens} <= OURS
    inlines = [token for token in tokens if token.type == "inline"]
    assert {child.type for inline in inlines for child in inline.children} <= {"text"}
    seen = {shown(inline) for inline in inlines}
    wanted = [one_line(f"{letter}{text}", NAME_LETTERS) for letter in "abcd"]
    assert {f"0: {wanted[0]}", *wanted[1:3], f"{wanted[3]}: symbols"} <= seen


def test_a_symbol_without_words_is_named_by_its_number() -> None:
    summary = invented_summary(3, 3)
    bare = replace(summary.entries[0], gloss="", condition="", terms=(), tools=(), statuses=(), examples=())
    text = to_glossary(replace(summary, entries=(bare, *summary.entries[1:])))
    assert "## 0: symbol 0" in text
    assert {token.type for token in read(text)} <= OURS


def test_expressions_that_do_not_explain_themselves_are_explained() -> None:
    summary = invented_summary(3, 3)
    condition = "words of runs that fail: the highest 9 % of steps; " + "failed steps so far = 0; " * 40 + "the end"
    scored = replace(summary.entries[0], condition=condition)
    tokens = read(to_glossary(replace(summary, entries=(scored, *summary.entries[1:]))))
    texts = [shown(token) for token in tokens if token.type == "inline"]
    said = [text for text in texts if text.startswith("What the expressions mean. ")]
    assert len(said) == 1 and '"Words of runs that fail" (in names: "words of failed runs")' in said[0]
    assert condition in texts  # a definition is never cut
    assert "What the expressions mean" not in to_glossary(summary)


def test_the_same_atlas_gives_the_same_text() -> None:
    assert to_glossary(invented_summary(12, hostile=True)) == to_glossary(invented_summary(12, hostile=True))
