"""What an automaton is of, as blocks: its runs, who ran them, its files, and why it was chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prefixguard.automata.alphabets import ALPHABETS
from prefixguard.automata.learners import LEARNER_WORDS
from prefixguard.automata.model_selection import COLUMNS_MEAN, RULE, SHOWN_COLUMNS
from prefixguard.automata.page.words import set_apart
from prefixguard.automata.summary import AutomatonSummary, Origin
from prefixguard.automata.summary.wording import count_text, one_line, share_text
from prefixguard.results import Block, Column, Facts, Folded, TableBlock, Text

_UNMET = 3  # symbols of no training run that are named
_LEANS = 0.05  # difference of the shares of failed runs from which on it is said which way risks lean
_ID = 12  # digits of an id that are shown


def origin_blocks(summary: AutomatonSummary) -> Iterator[Block]:
    """The automaton in a sentence, what it is of, and in a fold what it was chosen from."""
    origin = summary.origin
    yield Text(_machine(summary))
    yield Facts(tuple(_facts(origin)))
    if origin.best:
        numbers = (Column(name, "number") for name in SHOWN_COLUMNS[1:])
        head = [Column("", "text"), Column(SHOWN_COLUMNS[0], "words"), *numbers]
        rows = [("taken" if marked else "", *cells) for marked, cells in origin.best]
        muted = " The first of this order that can alarm is taken." if origin.muted else ""
        said = f"{count_text(origin.tried, 'combination')} of symbols, states and clock were tried on folds of the "
        yield Folded(
            "Why this automaton: what it was chosen from",
            (
                Text(f"{said}training runs. {RULE}{muted} All stand in manifest.json, under trials."),
                TableBlock.of("", head, rows, marked=[at for at, (marked, _) in enumerate(origin.best) if marked]),
                Text(COLUMNS_MEAN, "faint"),
            ),
        )


def _facts(origin: Origin) -> Iterator[tuple[str, str, str]]:
    """Name, value and what it means."""
    kinds = f" Tasks: {_listed(origin.kinds, len(origin.kinds))}." if origin.kinds else ""
    yield (
        "Runs",
        f"{origin.runs:,}",
        (
            f"of {count_text(origin.tasks, 'task')} from {origin.source}, read through adapter {origin.adapter}; "
            f"{origin.failed:,} failed.{kinds}"
        ),
    )
    learned, risks, thresholds, tested = origin.sides
    yield (
        "Learned from",
        f"{learned:,}",
        (
            f"training runs; risks were set on {risks:,} held-out runs, thresholds on some of {thresholds:,} others; "
            f"figures are of {tested:,} test runs"
        ),
    )
    in_training, held_out, _, in_test = origin.failed_of
    lean = ""
    if abs(in_test - held_out) >= _LEANS:
        lean = f": test runs fail {'more' if in_test > held_out else 'less'} often than those, so risks lean "
        lean += "low" if in_test > held_out else "high"
    yield (
        "Failed",
        share_text(in_training),
        f"of the training runs, {share_text(held_out)} of the held-out runs that set the risks, {share_text(in_test)} "
        f"of the test runs{lean}. {origin.failed_means}",
    )
    for name, n, values in origin.groups:
        yield f"{name[:1].upper()}{name[1:]}s", f"{n:,}", _listed(values, n)
    if not origin.groups:
        yield "Who", "not told", "no group, such as agents, tells these runs apart: no figure stands beside a name's"
    if origin.tools[0]:
        yield "Tools", f"{origin.tools[0]:,}", _listed(origin.tools[1], origin.tools[0])
    yield "Automaton", origin.automaton[:_ID], "SHA-256 of automaton.json"
    yield "Teacher", origin.teacher[:_ID], f"id of the monitor that it was learned from ({origin.backend})"


def _listed(values: tuple[tuple[str, float], ...], n: int) -> str:
    more = f" and {n - len(values):,} more" if n > len(values) > 0 else ""
    return ", ".join(f"{set_apart(value)} {share_text(share)}" for value, share in values) + more


def _machine(summary: AutomatonSummary) -> str:
    automaton = summary.automaton
    met = sum(entry.count > 0 for entry in summary.entries)
    rest = [one_line(entry.gloss, 80) or f"symbol {entry.symbol}" for entry in summary.entries if not entry.count]
    named = "; ".join(f'"{name}"' for name in rest[:_UNMET])
    named += "; ..." * (len(rest) > _UNMET)
    more = f" ({len(rest):,} more came in no training run: {named})" if rest else ""
    clock = ""
    if automaton.clock:
        steps = ", ".join(str(step) for step in automaton.clock)
        if len(automaton.clock) > 5:
            steps = f"{automaton.clock[0]}, {automaton.clock[1]} ... {automaton.clock[-1]}"
        clock = f" Beside it runs a clock: risks differ by the step at which a run is, anew from step {steps}."
    return (
        f"A finite automaton of {count_text(automaton.n_states, 'state')} over"
        f" {count_text(met, 'symbol')}{more}. {_kind('Symbols', 'alphabet', summary.alphabet, ALPHABETS)}"
        f" {_kind('States', 'learner', summary.learner, LEARNER_WORDS)}"
        f"{clock}"
    )


def _kind(what: str, option: str, name: str, words: Mapping[str, str]) -> str:
    """What symbols or states are, with the name by which the option of the export chose them."""
    said = words[name].partition(":")[0].partition(";")[0] if name in words else "of a kind of its own"
    return f"{what}: {said} ({option} {one_line(name, 40)})."
