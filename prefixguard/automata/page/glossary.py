"""GLOSSARY.md: the symbols of an automaton in words, for people who read files."""

from __future__ import annotations

from collections.abc import Iterator

from prefixguard.automata.page.words import words_of
from prefixguard.automata.summary import AutomatonSummary, Entry
from prefixguard.automata.summary.wording import change_text, count_text, one_line, share_text
from prefixguard.results import Block, Column, Heading, TableBlock, Text, escaped, to_markdown

#: Code points kept of a name (gloss, tool, term), of a sentence (example) and of a definition, which is of use whole.
NAME_LETTERS = 120
SENTENCE_LETTERS = 400
DEFINITION_LETTERS = 4000


def to_glossary(summary: AutomatonSummary) -> str:
    """The glossary in Markdown: an overview, what its expressions mean, then a table for every symbol. The same text
    for the same summary; text from runs forms no markup, no link and no image.
    """
    return f"# {escaped(one_line(summary.name, NAME_LETTERS))}: symbols\n\n" + to_markdown(tuple(_blocks(summary)))


def _blocks(summary: AutomatonSummary) -> Iterator[Block]:
    alphabet, learner = (one_line(name, NAME_LETTERS) for name in (summary.alphabet, summary.learner))
    met = [entry for entry in summary.entries if entry.count]
    tells = len({entry.reads_history for entry in met}) > 1  # else the column would say the same of all
    yield Text(
        f"{count_text(len(met), 'symbol')} of alphabet {alphabet}, on which an automaton of"
        f" {count_text(summary.automaton.n_states, 'state')} runs (learner {learner}). Computed from training steps."
        " Risk change: how much the outcome risk changes on average when the symbol comes."
        + (" History: the symbol rests on earlier steps of the run, not on the step alone." if tells else "")
    )
    yield from map(Text, words_of(summary))
    yield from (Text(f"Audit with care: {one_line(said, SENTENCE_LETTERS)}", "care") for said in summary.fidelity.care)
    names = ("Steps", "Share", "Risk change")
    head = [Column("No.", "number"), Column("Symbol", "text"), *(Column(name, "number") for name in names)]
    rows = [
        (
            str(e.symbol),
            _gloss(e),
            f"{e.count:,}",
            share_text(e.share),
            change_text(e.risk_change, thin=e.thin),
            *((_history(e),) if tells else ()),
        )
        for e in met
    ]
    yield TableBlock.of("", [*head, *([Column("History", "text")] if tells else [])], rows)
    for number, meaning in enumerate(summary.expressions):
        yield Text(("" if number else "What the expressions mean. ") + one_line(meaning, DEFINITION_LETTERS))
    yield Heading("States")
    of_states = [
        (str(one.state), one_line(summary.does[0][one.state], SENTENCE_LETTERS), one.sentence)
        for one in sorted(summary.ranked, key=lambda one: one.state)
    ]
    leading = "What leads there, with its share of the steps from other states"
    words = (Column(name, "words") for name in ("What the agent does", leading))
    yield TableBlock.of("", [Column("State", "number"), *words], of_states)
    for entry in met:
        yield Heading(f"{entry.symbol}: {_gloss(entry)}")
        yield TableBlock.of("", [Column("", "text"), Column("", "words")], list(_facts(summary, entry, tells=tells)))


def _facts(summary: AutomatonSummary, entry: Entry, *, tells: bool) -> Iterator[tuple[str, str]]:
    yield "What the agent does", one_line(summary.does[1][entry.symbol], SENTENCE_LETTERS)
    yield "Defined by", one_line(entry.condition, DEFINITION_LETTERS)
    if entry.advice:
        yield "To change", one_line(entry.advice, SENTENCE_LETTERS)
    for name, pairs in (("Tools", entry.tools), ("Statuses", entry.statuses)):
        if pairs:
            yield name, ", ".join(f"{one_line(what, NAME_LETTERS) or '–'} {share_text(share)}" for what, share in pairs)
    yield "Steps", f"{entry.count:,}, {share_text(entry.share)} of all"
    yield "First step", f"no training run had it before step {entry.earliest}"
    yield "Mean risk change", change_text(entry.risk_change, thin=entry.thin)
    if tells:
        yield "Rests on earlier steps", _history(entry)
    for number, example in enumerate(entry.examples, 1):
        yield f"Example {number}", one_line(example, SENTENCE_LETTERS)


def _history(entry: Entry) -> str:
    return "yes" if entry.reads_history else "no"


def _gloss(entry: Entry) -> str:
    return one_line(entry.gloss, NAME_LETTERS) or f"symbol {entry.symbol}"
