"""GLOSSARY.md: the symbols of an automaton in words, for people who read files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from prefixguard.automata.alphabets.tree_words import explain
from prefixguard.automata.summary import AutomatonSummary, Entry
from prefixguard.automata.summary.wording import count_text, one_line, share_text, signed_text

#: Code points kept of a name (gloss, tool, term), of a sentence (example) and of a definition, which is of use whole.
NAME_LETTERS = 120
SENTENCE_LETTERS = 400
DEFINITION_LETTERS = 4000

#: What could begin markup, a link, an image, a cell or a formula inside a line; underscores inside words cannot.
_SPECIAL = re.compile(r"([\\`*\[\]<#|~&!$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|(?<=www)\.|:(?=//))", re.IGNORECASE)
_TICKS = re.compile("`+")


def to_glossary(summary: AutomatonSummary) -> str:
    """The glossary in Markdown: an overview, what its expressions mean, then a table for every symbol. The same text
    for the same summary.

    Text from runs stands in code spans or escaped: it forms no markup, no link and no image.
    """
    return "\n".join(_lines(summary)) + "\n"


def _lines(summary: AutomatonSummary) -> Iterator[str]:
    yield f"# {markdown_text(summary.name, NAME_LETTERS)}: symbols"
    yield ""
    alphabet, learner = (markdown_text(name, NAME_LETTERS) for name in (summary.alphabet, summary.learner))
    yield (
        f"{count_text(len(summary.entries), 'symbol')} of alphabet {alphabet}, on which an automaton of"
        f" {count_text(summary.automaton.n_states, 'state')} runs (learner {learner}). Computed from training steps."
        " *Risk change*: how much the outcome risk changes on average when the symbol comes. *History*: the symbol"
        " depends on earlier steps of the run, not on the step alone. *Terms*: words by which the symbol's steps stand"
        " out, with how much more they weigh there than elsewhere; they describe it and do not define it."
    )
    for sentence in summary.fidelity.care:
        yield ""
        yield f"> **Audit with care.** {markdown_text(sentence, SENTENCE_LETTERS)}"
    yield ""
    yield "| No. | Symbol | Steps | Share | Risk change | History |"
    yield "| ---: | --- | ---: | ---: | ---: | --- |"
    for entry in summary.entries:
        history = "reads history" if entry.reads_history else ""
        yield (
            f"| {entry.symbol} | {_gloss(entry)} | {entry.count:,} | {share_text(entry.share)} |"
            f" {signed_text(entry.risk_change)} | {history} |"
        )
    for number, meaning in enumerate(explain(entry.condition for entry in summary.entries)):
        yield ""
        yield ("" if number else "**What the expressions mean.** ") + markdown_text(meaning, DEFINITION_LETTERS)
    for entry in summary.entries:
        yield ""
        yield from _table(entry)


def _table(entry: Entry) -> Iterator[str]:
    yield f"## {entry.symbol}: {_gloss(entry)}"
    yield ""
    yield "| | |"
    yield "| --- | --- |"
    yield f"| Defined by | {markdown_text(entry.condition, DEFINITION_LETTERS)} |"
    if entry.terms:
        terms = ", ".join(f"{markdown_code(term, NAME_LETTERS)} {weight:.2f}" for term, weight in entry.terms)
        yield f"| Terms | {terms} |"
    for name, pairs in (("Tools", entry.tools), ("Statuses", entry.statuses)):
        if pairs:
            shares = ", ".join(f"{markdown_code(what, NAME_LETTERS)} {share_text(share)}" for what, share in pairs)
            yield f"| {name} | {shares} |"
    yield f"| Steps | {entry.count:,}, {share_text(entry.share)} of all |"
    yield f"| Mean risk change | {signed_text(entry.risk_change)} |"
    yield f"| Reads history | {'yes' if entry.reads_history else 'no'} |"
    for number, example in enumerate(entry.examples, 1):
        yield f"| Example {number} | {markdown_code(example, SENTENCE_LETTERS)} |"


def _gloss(entry: Entry) -> str:
    return markdown_text(entry.gloss, NAME_LETTERS) or f"symbol {entry.symbol}"


def markdown_text(text: str, longest: int) -> str:
    """Text that Markdown takes literally, in a table's cell too.

    >>> markdown_text("a|b *c* <img> https://x.org", 40)
    'a\\\\|b \\\\*c\\\\* \\\\<img> https\\\\://x.org'
    """
    return _SPECIAL.sub(r"\\\1", one_line(text, longest))


def markdown_code(text: str, longest: int) -> str:
    """Text as a code span for a table's cell; an empty one as a dash.

    >>> markdown_code("f(`x`) | y", 40)
    '`` f(`x`) \\\\| y ``'
    """
    line = one_line(text, longest)
    if not line:
        return "–"
    fence = "`" * (max((len(run) for run in _TICKS.findall(line)), default=0) + 1)
    # A table ends cells before it looks for code, so that a bar is escaped even here. A backslash before it would be
    # an escape that is itself escaped: the two are told apart by a space.
    line = re.sub(r"\\(?=\|)", r"\\ ", line).replace("|", r"\|")
    room = " " if "`" in line or line.startswith(" ") else ""
    if line.endswith("\\"):
        room = " "
    return f"{fence}{room}{line}{room}{fence}"
