"""The words that a page and a glossary use of an automaton, each explained once."""

from __future__ import annotations

from prefixguard.automata.summary import AutomatonSummary
from prefixguard.automata.summary.state_figures import THIN_RUNS

_CALLED_ON = (
    "An identifier, other words: what a tool is called on where no one text is frequent: click (an identifier) clicks "
    "what a number or code names, such as the product B00E4MOE5W; click (other words) any other text, a short label "
    "such as 10-pack too."
)


def order_of(summary: AutomatonSummary) -> str:
    """How the symbol of a step is found where several could hold, a sentence; "" where no two can."""
    if summary.alphabet != "behaviours":
        return ""
    return (
        "Symbols are an ordered list: a step is the first, by number, that holds, though others further down may hold "
        "too, which its name does not say."
    )


def words_of(summary: AutomatonSummary) -> tuple[str, ...]:
    """Each word with what it means, a sentence; those that this automaton does not need are left out."""
    horizon, clock = summary.performance.horizon, bool(summary.automaton.clock)
    said = " ".join((*(entry.gloss for entry in summary.entries), *summary.does[0], *summary.does[1]))
    spans = (
        "Clock: the same state has another risk at other steps of a run; a range of steps goes from one such change to "
        "the next.",
        "Usual risk: what half of the steps that end in the state read, or less.",
    )
    return (
        "Symbol, state: each step of a run is one symbol. A run begins in the start state, and every symbol moves it "
        "to its next state, whose risks the monitor says after the step.",
        *filter(None, (order_of(summary),)),
        f"Outcome risk, imminent risk: how likely it is that the run fails; that it fails, and within {horizon} steps.",
        _levels(summary),
        "Training, held-out and test runs: symbols and states were learned from the first, risks were set on the "
        "second (thresholds on others again), and figures are of the third, which nothing was learned from or set on. "
        "No task is on two sides.",
        "Teacher: the monitor that the automaton was learned from.",
        *(spans if clock else ()),
        f"Evidence: the held-out runs that a risk was set on; thin: fewer than {THIN_RUNS}"
        f"{' in every range of steps' if clock else ''}, or those of the nearest other state.",
        *([_CALLED_ON] if "(an identifier)" in said or "(other words)" in said else []),
        "UNKNOWN: said of a step that cannot be judged, as where the calls of a run no longer have arguments that can "
        "be read.",
    )


def set_apart(name: str) -> str:
    """A name as one entry of a list: in quotes where it has a comma of its own.

    >>> set_apart("gpt-4o"), set_apart("Qwen2.5, 7B")
    ('gpt-4o', '“Qwen2.5, 7B”')
    """
    return f"“{name}”" if "," in name else name


def _levels(summary: AutomatonSummary) -> str:
    """What the words at a step mean."""
    risks, alarm = summary.risks, summary.alarm
    above = f" (above {risks.risk(alarm)})" if alarm is not None else ", which this automaton never says"
    watch = (
        f"WATCH (above {risks.risk(summary.watch)}): among the tenth of held-out steps with the highest risk, "
        "worth a look, and nothing bounds how often it is wrong. "
        if alarm is None or summary.watch < alarm
        else ""
    )
    until = "the run ends" if summary.release is None else f"its risk is below {risks.risk(summary.release)}"
    stays = f"An alarm stays on: once said, ALARM is said of every later step until {until}. " * (alarm is not None)
    return (
        f"The word at a step goes by the outcome risk. ALARM{above}: so high that successful runs reach it no more "
        f"often than the budget of false alarms allows. {stays}{watch}No alarm (readings say OK): neither, and no sign "
        "of safety; the risk may be high."
    )
