"""When an automaton is not to be trusted, in plain words: a rule of one line does as well, its risks say the wrong
share of failures, they do not tell failures from successes, or its alarms are not its teacher's."""

from __future__ import annotations

from collections.abc import Iterator

from scipy.stats import binom

from prefixguard.automata.summary.alarms import RULE_NOTES
from prefixguard.automata.summary.fidelity import Fidelity
from prefixguard.automata.summary.wording import RiskWords, risk_text
from prefixguard.bundle import AlarmPerformance

#: So much less than right intervals would give, the share of intervals that hold may be.
COVERAGE_LOSS = 0.1
#: Where right intervals would miss as many rates or more this often, it may be chance.
_BY_CHANCE = 0.05
#: Cohen's kappa of its alarms with its teacher's, at least.
KAPPA = 0.2
#: AUROC of a coin.
_CHANCE = 0.5


def distrust(fidelity: Fidelity, performance: AlarmPerformance) -> Iterator[str]:
    """Why not to trust the risks, a sentence or two each, the gravest first; none where they did well on test runs."""
    yield from (note for note in performance.notes if note.startswith(RULE_NOTES))
    kept, cells, right = performance.kept, performance.cells, performance.coverage_expected
    if kept is not None and right is not None and kept < (right - COVERAGE_LOSS) * cells:
        chance = float(binom.cdf(kept, cells, right)) > _BY_CHANCE
        yield (
            f"{'Take care with the risks' if chance else 'Do not trust the risks'}: on test runs {kept} of {cells} of "
            f"the 90 % intervals held the share of runs that failed; if they are right, {right * cells:.1f} would. "
            + ("So few intervals may miss by chance." if chance else "A risk shown here can be far from what happens.")
        )
    ends = fidelity.rem_interval
    if fidelity.rem is not None and ends is not None and ends[0] <= _CHANCE:
        average = f" That {kept} of {cells} intervals held says that risks are right on average, not of one run."
        held = average if kept is not None and right is not None and kept >= (right - COVERAGE_LOSS) * cells else ""
        yield (
            "Do not trust the risks: they are not shown to tell runs that fail from runs that succeed. Outcome AUROC "
            f"at matched remaining steps is {risk_text(fidelity.rem)}, 95 % interval {RiskWords().range(*ends)}, and a "
            f"coin has .50.{held}"
        )
    if performance.kappa is not None and performance.kappa < KAPPA:
        sign = "−" if performance.kappa < 0 else ""
        yield (
            "Its alarms are not those of its teacher: step by step they agree little beyond chance (Cohen's kappa "
            f"{sign}{risk_text(abs(performance.kappa))}, below {risk_text(KAPPA)}). What is known of the teacher's "
            "alarms does not hold for these."
        )
