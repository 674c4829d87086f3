"""How the alarms of an automaton did on test runs, beside its teacher and beside scores that know little.

Each row alarms by a threshold that keeps the same budget on the same successful runs. A score that counts steps, or
knows nothing but the value of a group (which agent it is, which domain), shows what an alarm is worth that looks at no
behaviour at all. Two rows have no threshold and no budget, since a user has them without any model: a plain rule, and
the monitor `rules`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import betabinom, chi2, norm

from prefixguard.alarm import AlarmPolicy, Level, alarm_threshold, run_maximum
from prefixguard.automata.material import Material
from prefixguard.automata.span_pools import design_effects, pools_of
from prefixguard.automata.state_risk import columns_of
from prefixguard.automata.strings import Strings
from prefixguard.automata.summary.fidelity import RUNS, Walks
from prefixguard.automata.summary.wording import count_text, one_line, share_text
from prefixguard.behaviours import CATALOGUE, PLACES
from prefixguard.bundle import AlarmCount, AlarmPerformance, Automaton, Calibration
from prefixguard.metrics import Resamples, first_alerts

#: Test runs that a cell needs to have a failure rate.
CELL_RUNS = 10
#: Runs are cut where at least this share of them have the greatest length.
CAPPED_SHARE = 0.05
#: Runs of the base rate that a value of a group counts for.
_PRIOR = 5.0
_NAME, _GROUPS = 60, 8
_NO_EVIDENCE = "its alarms are no evidence that behaviour is seen"
#: Behaviours that say that a run goes round in circles.
_LOOPS = ("same_call_same_result", "alternating_calls", "same_message", "errors_in_a_row")
#: What a user has without a model: behaviours of the catalogue, each an alarm as soon as it holds.
PLAIN_RULE = "plain rule: three errors in a row, or the same call with the same result again"
_OF_RULE = ("errors_in_a_row", "same_call_same_result")
#: What else: the levels of the monitor `rules`, each fault from its own count on.
RULES = "rules without a model (the monitor rules)"
_COUNTS_OF_RULES = [(PLACES[one.name], one.alarm) for one in CATALOGUE if one.alarm]

#: How the notes begin that say that what needs no model does as well.
RULE_NOTES = tuple(f"{by[0].upper()}{by[1:]} catches" for by in (PLAIN_RULE, RULES))

Scores = list[NDArray[np.float64]]


def measure_alarms(
    material: Material,
    automaton: Automaton,
    walks: Walks,
    drawn: NDArray[np.int64],
    calibration: Calibration,
    teacher: Calibration,
    *,
    horizon: int,
) -> AlarmPerformance:
    """The first alarms of every row on the test runs, and how far states keep what their intervals say.

    walks: of the test side. drawn: successful runs that set the automaton's threshold, int64; they set those of step
    number and groups. teacher: the calibration of the monitor that the automaton was learned from. horizon: an alarm
    with more steps left is early.
    """
    strings, policy = walks.strings, calibration.policy
    failed = strings.failed
    _, tasks = np.unique(strings.tasks, return_inverse=True)
    resamples = Resamples.draw(int(tasks.max(initial=-1)) + 1)

    def row(by: str, scores: Scores, threshold: float | None, its_policy: AlarmPolicy = policy) -> AlarmCount:
        limits = [threshold] * len(scores)
        found = first_alerts(scores, failed.tolist(), tasks, limits, its_policy, horizon=horizon, resamples=resamples)
        ends = found.intervals
        return AlarmCount(
            by=by,
            threshold=threshold,
            caught=len(found.leads),
            early=sum(lead > horizon for lead in found.leads),
            in_time=sum(lead > 0 for lead in found.leads),
            lead=float(found.lead_median) if found.leads else None,
            false_alarms=_count(found.false_alarm_rate, int(np.count_nonzero(~failed))),
            caught_interval=ends.get("alerted"),
            early_interval=ends.get("early"),
            false_alarm_interval=ends.get("false_alarm_rate"),
        )

    def least(by: str, scores: Scores, setting: Scores) -> AlarmCount:
        maxima = [run_maximum(score, policy) for score in setting]
        return row(by, scores, alarm_threshold(maxima, policy).alarm)

    both = (walks.risks, walks.teacher_risks)
    parts = [np.split(risks[:, 1], strings.first[1:-1]) if len(strings) else [] for risks in both]
    rows = [
        row("automaton", parts[0], calibration.thresholds.alarm),
        row("teacher", parts[1], teacher.thresholds.alarm, teacher.policy),
        least("step number alone", *(_counted(material, runs) for runs in (material.test, drawn))),
    ]
    unmeasured = ""
    if (held := material.corpus.held) is not None:
        places, first = [PLACES[name] for name in _OF_RULE], material.corpus.first
        of_runs: Scores = [
            np.asarray((held[first[r] : first[r + 1], places] > 0).any(axis=1), dtype=np.float64)
            for r in material.test.tolist()
        ]
        rows.append(row(PLAIN_RULE, of_runs, 0.5, AlarmPolicy()))
        if unmeasured := _rule_in_training(material, held[:, places], of_runs):
            rows[-1] = AlarmCount(PLAIN_RULE, None, 0, 0, None, 0, None, None, None)
        counted, least_of = np.array(_COUNTS_OF_RULES).T
        by_rules: Scores = [
            np.asarray((held[first[r] : first[r + 1], counted] >= least_of).any(axis=1), dtype=np.float64)
            for r in material.test.tolist()
        ]
        rows.append(row(RULES, by_rules, 0.5, AlarmPolicy()))
    silent = []
    for name in group_names(material):
        known, setting = (by_value(material, name, runs) for runs in (material.test, drawn))
        rows.append(least(f"{one_line(name, _NAME)} alone", known, setting))
        limit = rows[-1].threshold
        if limit is not None and all(score.max(initial=0.0) <= limit for score in (*known, *setting)):
            silent.append(
                f"{rows[-1].by[0].upper()}{rows[-1].by[1:]} raises no alarm: among the runs that set its threshold "
                f"more successful ones than its budget allows have the {one_line(name, _NAME)} that fails most often."
            )
    coverage, expected, cells = interval_coverage(automaton, strings, walks.states)
    n, failures = len(strings), int(np.count_nonzero(failed))
    said = Counter(level.value for level in walks.levels)
    return AlarmPerformance(
        budget=policy.budget,
        horizon=horizon,
        failed=failures,
        successful=n - failures,
        rows=tuple(rows),
        kappa=alarm_kappa(walks.levels, walks.teacher_levels),
        coverage=coverage,
        coverage_expected=expected,
        cells=cells,
        said={level.value: said[level.value] / len(walks.levels) for level in Level if said[level.value]},
        notes=tuple(
            filter(
                None,
                (
                    *_notes(failures, n - failures, rows, policy.budget, horizon),
                    *silent,
                    unmeasured,
                    _lengths(material),
                    *_without_calls(material),
                ),
            )
        ),
    )


def alarm_kappa(levels: Sequence[Level], others: Sequence[Level]) -> float | None:
    """Cohen's kappa of ALARM against any other level, over steps at which both can judge; None where it is not defined,
    for one of them says the same at every step.

    >>> alarm_kappa([Level.OK, Level.ALARM, Level.WATCH, Level.ALARM], [Level.OK, Level.ALARM, Level.OK, Level.OK])
    0.5
    """
    known = [pair for pair in zip(levels, others, strict=True) if Level.UNKNOWN not in pair]
    one, other = np.array([[level is Level.ALARM for level in pair] for pair in known], dtype=np.bool_).reshape(-1, 2).T
    return cohens_kappa(one, other)


def cohens_kappa(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> float | None:
    """Agreement of two verdicts on the same steps beyond chance, at most 1; None where one of them is always the same.

    Source: Cohen 1960.
    """
    if one.all() or other.all() or not one.any() or not other.any():
        return None
    p, q, same = float(one.mean()), float(other.mean()), float((one == other).mean())
    chance = p * q + (1 - p) * (1 - q)
    return (same - chance) / (1 - chance)


def interval_coverage(
    automaton: Automaton, strings: Strings, states: NDArray[np.int32]
) -> tuple[float | None, float | None, int]:
    """Of the cells (a state in a span of the clock, or in a pool of them) with enough runs: the share whose failure
    rate among these runs lies in the 90 % interval of the outcome risk; the share to expect if the intervals are right;
    how many cells.

    An interval that is right holds the rate of all runs there are nine times in ten, and that of a few runs less often.
    The share to expect is of rates drawn from the Beta distribution that has the interval's ends as quantiles, nearly,
    and of as many runs drawn at each, runs of one task counting as fewer than they are.

    strings: runs that set no risk. states: after each of their steps.
    """
    n_columns = len(automaton.clock) + 1
    run = np.repeat(np.arange(len(strings)), strings.lengths)
    cell = states.astype(np.int64) * n_columns + pools_of(automaton)[states, columns_of(automaton.clock, strings)]
    pairs = np.unique(run * (automaton.n_states * n_columns) + cell)
    run, cell = np.divmod(pairs, automaton.n_states * n_columns)
    size = automaton.n_states * n_columns
    failed = strings.failed[run].astype(np.float64)
    runs, failures = (np.bincount(cell, weights, size) for weights in (None, failed))
    there = np.flatnonzero(runs >= CELL_RUNS)
    if not len(there):
        return None, None, 0
    low, high = automaton.interval[:, :, 1].reshape(-1, 2)[there].T
    rate = failures[there] / runs[there]
    inside = (low <= rate) & (rate <= high)
    n = np.maximum(np.round(runs[there] / design_effects(run, strings.tasks[run], cell, failed, size)[there]), 1)
    drawn = betabinom(n, *_beta_of(low, high))
    expected = drawn.cdf(np.floor(high * n + 1e-9)) - drawn.cdf(np.ceil(low * n - 1e-9) - 1)
    return float(inside.mean()), float(expected.mean()), len(there)


def _beta_of(low: NDArray[np.float64], high: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Beta distributions whose 90 % intervals these are, nearly: by the middle and the spread of a normal one; where
    an end is 0 or 1, of Jeffreys' prior and runs that all ended alike."""
    middle = np.clip((low + high) / 2, 1e-6, 1 - 1e-6)
    spread = np.maximum((high - low) / (2 * norm.ppf(0.95)), 1e-6)
    weight = np.maximum(middle * (1 - middle) / spread**2 - 1, 1e-3)
    many = chi2.ppf(0.95, 1) / (2 * np.maximum(np.where(low > 0, 1 - low, high), 1e-6))
    a = np.where(low <= 0, 0.5, np.where(high >= 1, many, middle * weight))
    b = np.where(high >= 1, 0.5, np.where(low <= 0, many, (1 - middle) * weight))
    whole = (low <= 0) & (high >= 1)
    return np.where(whole, 0.5, a), np.where(whole, 0.5, b)


def _count(share: float, n: int) -> int:
    return round(share * n) if math.isfinite(share) else 0


def _counted(material: Material, runs: NDArray[np.int64]) -> Scores:
    """The number of the step."""
    return [np.arange(1.0, n + 1) for n in material.corpus.lengths[runs].tolist()]


def by_value(material: Material, name: str, runs: NDArray[np.int64]) -> Scores:
    """At every step the failure rate of the run's value of a group among training runs, shrunk to the base rate."""
    corpus, pool = material.corpus, material.pool.tolist()
    values = [groups.get(name, "") for groups in corpus.groups]
    base = float(corpus.failed[pool].mean())
    met, failures = Counter(values[r] for r in pool), Counter(values[r] for r in pool if corpus.failed[r])
    rates = [(failures[values[r]] + _PRIOR * base) / (met[values[r]] + _PRIOR) for r in runs.tolist()]
    return [np.full(n, rate) for n, rate in zip(corpus.lengths[runs].tolist(), rates, strict=True)]


def group_names(material: Material) -> list[str]:
    """Groups that tell runs apart: of two values or more in training, and fewer than half as many as there are runs."""
    known = [material.corpus.groups[r] for r in material.pool.tolist()]
    counts = {name: len({of.get(name, "") for of in known}) for name in sorted({name for of in known for name in of})}
    return [name for name, n in counts.items() if 2 <= n < len(known) / 2][:_GROUPS]


def _rule_in_training(material: Material, held: NDArray[np.uint8], tested: Scores) -> str:
    """Where the plain rule holds on no test run, on how many training runs it does, a sentence; else ""."""
    corpus, pool = material.corpus, material.pool
    if any(score.any() for score in tested):
        return ""
    holds = np.array([bool((held[corpus.first[r] : corpus.first[r + 1]] > 0).any()) for r in pool.tolist()], dtype=bool)
    failed = corpus.failed[pool]
    if not holds.any():
        return ""
    return (
        f"The plain rule holds on no test run, and on {int((holds & failed).sum()):,} of {int(failed.sum()):,} failed "
        f"and {int((holds & ~failed).sum()):,} of {int((~failed).sum()):,} successful training runs: what it catches "
        "is not measured here."
    )


def _without_calls(material: Material) -> Iterator[str]:
    """Of each group of which some values' training runs hold no call at any step, and others' do, a sentence."""
    corpus, pool = material.corpus, material.pool.tolist()
    calls = np.array([bool(tool) and tool != "respond" for tool in material.tools], dtype=np.bool_)
    first = corpus.first
    makes = {r: bool(calls[first[r] : first[r + 1]].any()) for r in pool}
    for name in group_names(material):
        runs = Counter(corpus.groups[r].get(name, "") for r in pool)
        makers = {corpus.groups[r].get(name, "") for r in pool if makes[r]}
        none = [value for value, n in runs.items() if value not in makers and n >= CELL_RUNS]
        if none and makers:
            yield (
                f"{len(none):,} of {len(runs):,} values of {one_line(name, _NAME)} ({sum(runs[v] for v in none):,} of "
                f"{len(pool):,} training runs) make no call at any step. If they do make calls, the runs or the "
                "adapter lose them, and what is said here of missing calls and of calls as text is of the recording."
            )


def _lengths(material: Material) -> str:
    """Whether test runs are as long as training runs, else at how many steps runs are cut, where many end at the
    greatest length; "" where there is nothing to say."""
    corpus = material.corpus
    lengths, failed = (of[material.pool] for of in (corpus.lengths, corpus.failed))
    tested = int(corpus.lengths[material.test].max(initial=0))
    longest, beyond = int(lengths.max(initial=0)), lengths > tested
    if tested and len(lengths) and beyond.mean() >= CAPPED_SHARE:
        many, lost = (share_text(float(part.mean())) for part in (beyond, failed[beyond]))
        return (
            f"No test run has more than {count_text(tested, 'step')}; {many} of training runs have, up to {longest}, "
            f"and {lost} of these failed{_loops(material, beyond)}: nothing is measured of such runs here."
        )
    at = lengths == longest
    if not len(lengths) or at.mean() < CAPPED_SHARE or longest == lengths.min():
        return ""
    many, lost = (share_text(float(part.mean())) for part in (at, failed[at]))
    past = f" A test run has {tested:,}: past step {longest} nothing was learned." if tested > longest else ""
    return (
        f"No training run has more than {count_text(longest, 'step')}, and {many} have as many, of which {lost} "
        f"failed{_loops(material, at)}: near step {longest} the number of the step alone tells the outcome.{past}"
    )


def _loops(material: Material, these: NDArray[np.bool_]) -> str:
    """How many of these training runs go round in circles, and how many of the others."""
    corpus, pool = material.corpus, material.pool
    if corpus.held is None:
        return ""
    held = corpus.held[:, [PLACES[name] for name in _LOOPS]]
    loops = np.array([bool((held[corpus.first[r] : corpus.first[r + 1]] > 0).any()) for r in pool.tolist()], dtype=bool)
    parts = [share_text(float(loops[of].mean())) if of.any() else "none" for of in (these, ~these)]
    return f" ({parts[0]} repeat a call, a message or failures, of the other runs {parts[1]})"


def _notes(failed: int, successful: int, rows: Sequence[AlarmCount], budget: float, horizon: int) -> Iterator[str]:
    """What to know before reading the figures, a sentence each."""
    if not failed and not successful:
        yield "There was no test run: what its alarms are worth is not known."
        return
    for n, kind, what in ((failed, "failed", "failures caught"), (successful, "successful", "false alarms")):
        if n < RUNS:
            runs = count_text(n, f"{kind} test run")
            yield f"The test side is too small to say much of {what}: {runs}, fewer than {RUNS}. See the intervals."
    ours = rows[0]
    if ours.threshold is None:
        yield "It has no alarm threshold, so it never alarms: too few successful runs were there to set one."
    for other in rows[2:]:
        # All rows were given one budget: whoever keeps it on test runs too has no more false alarms than it may.
        allowed = max(ours.false_alarms, budget * successful)
        does_as_well = other.caught >= ours.caught and other.early >= ours.early and other.false_alarms <= allowed
        if other.caught and does_as_well:
            so = "that needs no model" if other.by in (PLAIN_RULE, RULES) else _NO_EVIDENCE
            failures, alarms = count_text(other.caught, "failure"), count_text(other.false_alarms, "false alarm")
            yield (
                f"{other.by[0].upper()}{other.by[1:]} catches {failures}, {other.early:,} with more than "
                f"{count_text(horizon, 'step')} left, at {alarms}; the automaton {ours.caught:,}, {ours.early:,} so "
                f"early, at {ours.false_alarms:,}: {so}."
            )
