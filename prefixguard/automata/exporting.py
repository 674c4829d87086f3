"""Export a monitor as a finite automaton: learned, calibrated, explained, drawn, and a bundle that runs."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prefixguard.alarm import table_to_json
from prefixguard.automata.alphabets.tree_words import explain
from prefixguard.automata.json_table import check_table_target, what_groups_take, what_it_takes, write_json_table
from prefixguard.automata.learning import LearnedAutomaton, learn_best, read_steps
from prefixguard.automata.manifest_info import automaton_info
from prefixguard.automata.material import Material, gather
from prefixguard.automata.model_selection import (
    DEFAULT_ALPHABETS,
    DEFAULT_LEARNERS,
    Candidate,
    CandidateTrial,
    choices,
    choose,
    shown_trials,
    table,
)
from prefixguard.automata.page import to_page
from prefixguard.automata.page.glossary import to_glossary
from prefixguard.automata.picture.dot import to_dot
from prefixguard.automata.picture.svg import to_svg
from prefixguard.automata.summary import AutomatonSummary
from prefixguard.automata.summary.alarms import by_value, group_names, measure_alarms
from prefixguard.automata.summary.calls_in_runs import failing_calls, helpful_looks
from prefixguard.automata.summary.distrust import distrust
from prefixguard.automata.summary.doing import deed_names, deeds, doing
from prefixguard.automata.summary.entries import make_entries, state_examples
from prefixguard.automata.summary.fidelity import Fidelity, Walks, measure_fidelity, rated
from prefixguard.automata.summary.in_effect import in_effect
from prefixguard.automata.summary.missed import find_missed
from prefixguard.automata.summary.origin import origin_of
from prefixguard.automata.summary.parts import alarms_by_part
from prefixguard.automata.summary.replays import asked_runs, choose_replays, make_replays, replay_kinds
from prefixguard.automata.summary.state_alarms import rank_states
from prefixguard.automata.summary.stops import stops_when_solved
from prefixguard.automata.summary.verdict import verdict_of
from prefixguard.bundle import (
    SCORES,
    AlarmPerformance,
    Bundle,
    BundleParts,
    Calibration,
    Platt,
    Trust,
    apply_map,
    automaton_to_bytes,
    check_target,
    open_bundle,
    state_names,
    write_bundle,
)
from prefixguard.errors import ConfigError, UsageError
from prefixguard.learn import (
    LearnListener,
    bundle_logits,
    draw_alarm_runs,
    draw_drift_runs,
    drift_reference,
    featurise,
    model_logits,
    set_thresholds,
)
from prefixguard.metrics import auroc
from prefixguard.results import finite
from prefixguard.runtime import open_model, read_risks
from prefixguard.stepview import ReadReport, read_runs

FORMATS = ("dfa", "json-table")
AUTOMATA = Path("automata")
@dataclass(frozen=True, slots=True)
class ExportResult:
    """What was written. path: the folder. id: of its bundle; None for a table alone. choice: how it was learned.

    trials: what the choice was made among, best first; () where nothing was to choose, or too few runs to try.
    fidelity, performance: on test runs, how far it agrees with its teacher and how its alarms did; None for the table
    of an automaton that was there. notes: sentences for people. table: the trials as Markdown, "" without trials.
    """

    path: Path
    id: str | None
    choice: Candidate | None
    trials: tuple[CandidateTrial, ...]
    fidelity: Fidelity | None
    performance: AlarmPerformance | None
    notes: tuple[str, ...]
    table: str


def export(
    monitor: str | Path,
    runs: str | Path | None = None,
    *,
    to: str = "dfa",
    out: str | Path | None = None,
    alphabet: str | Iterable[str] | None = None,
    learner: str | Iterable[str] | None = None,
    clock: bool | None = None,
    max_states: int = 64,
    labels: str | Path | None = None,
    examples: bool = True,
    replay: str | Iterable[str] | None = None,
    overwrite: bool = False,
    strict: bool = False,
    trust: Trust | None = None,
    listener: LearnListener | None = None,
) -> ExportResult:
    """Export a trained monitor as an automaton (`dfa`), or as a table that other languages read (`json-table`).

    monitor: folder of a bundle of kind onnx; for `json-table` an automaton's does as well, and then no runs are needed.
    runs: the runs that it was trained on, as `train` takes them; they are read through the monitor's own adapter.
    to : dfa: automaton, picture, glossary and a bundle that runs; json-table: a table with interpreters in Python and
        JavaScript.
    out : folder to write. Default: automata/NAME of the monitor, for a table NAME-table.
    alphabet : what symbols are: behaviours, tree-context, steps, typed, gumbel or quantized; may be repeated.
        Default: behaviours, tree-context, steps and typed are tried.
    learner : how states are found: memoryless, ladder, grid, merge, rpni, distilled, clusters or fsm; may be repeated.
        Default: memoryless and grid, which take a second, are tried.
    clock : whether risks depend on a coarse step index besides the state. Default: both are tried.
    max_states : most states of the automaton, from 2 to 4096.
    labels: outcomes beside the runs, as `train` takes them.
    examples : show texts of steps and names of runs in the picture and the glossary.
    replay : id of a run that the picture is to replay, besides the test runs that it chooses; may be repeated.
    overwrite: replace a bundle, or a table, that is there.
    strict: the first run that cannot be read is an error, not a skip. trust: as for `load`.
    The same monitor, runs and options give the same bundle, times aside.
    Raises BundleError, TraceError, DataError (other runs than it was trained on), ConfigError, UsageError, OutputError.
    """
    if to not in FORMATS:
        raise ConfigError(f"--to {to}: choose one of {', '.join(FORMATS)}.")
    if type(max_states) is not int or not 2 <= max_states <= 4096:
        raise ConfigError(f"max_states = {max_states}: a whole number between 2 and 4096 is needed.")
    began, listener = time.monotonic(), listener or LearnListener()
    bundle = open_bundle(monitor, trust=trust)
    name = Path(monitor).resolve().name
    # A table has a folder of its own: a bundle with other files in it could not be replaced.
    target = Path(out) if out is not None else AUTOMATA / (name if to == "dfa" else f"{name}-table")
    if target.resolve() == Path(monitor).resolve():
        raise UsageError(f"{target}: is the monitor itself, and would be lost. Choose another folder with --out.")
    if bundle.kind == SCORES:
        raise UsageError(f"{monitor}: reads scores, which have no symbols, so that no automaton can be learned of it.")
    if bundle.automaton is not None:
        if to == "dfa":
            raise UsageError(f"{monitor}: is an automaton already. For its table, say --to json-table.")
        write_json_table(bundle, target, overwrite=overwrite)
        said = (f"The table takes {what_it_takes(bundle.symbol_map, bundle.automaton.n_symbols)}",)
        by_group = what_groups_take(bundle.calibration)
        return ExportResult(target, None, None, (), None, None, said if by_group is None else (*said, by_group), "")
    if runs is None:
        raise UsageError(
            f"{monitor}: an automaton is learned from the runs that its monitor learned from. Name them: "
            f"prefixguard export {monitor} RUNS --to {to}"
        )
    candidates = choices(
        _names(alphabet, DEFAULT_ALPHABETS),
        _names(learner, DEFAULT_LEARNERS),
        max_states,
        (False, True) if clock is None else (clock,),
    )
    (check_target if to == "dfa" else check_table_target)(target, overwrite)  # before minutes of learning
    listener.on_stage("reading", str(runs))
    report = ReadReport()
    source = read_runs(str(runs), bundle.adapter, labels=Path(labels) if labels else None, strict=strict, report=report)
    corpus = featurise(source, on_run=listener.on_runs, signals=bundle.reads_signals)
    listener.on_stage("teacher", "boosted trees, out of fold")
    asked = asked_runs(corpus, () if replay is None else _names(replay, ()), str(runs))
    material = gather(corpus, bundle)
    learned = learn_best(material, bundle, candidates, listener)
    listener.on_stage("calibrating", "risks and thresholds on runs set aside")
    place = Path(runs).resolve()
    names = (name, f"{place.parent.name}/{place.name}" if place.is_dir() else place.name)
    parts, summary, notes = _finish(material, bundle, learned, names, asked, examples=examples)
    notes = (*report.left_out(), *notes)
    identifier = None
    if to == "json-table":
        write_json_table(parts, target, overwrite=overwrite)
        notes = (*notes, f"The table takes {what_it_takes(learned.alphabet.map, learned.automaton.n_symbols)}")
    else:
        listener.on_stage("drawing", "picture and glossary")
        pictures = {
            "automaton.dot": to_dot(summary).encode(),
            "automaton.svg": to_svg(summary),
            "automaton.html": to_page(summary),
            "GLOSSARY.md": to_glossary(summary).encode(),
        }
        listener.on_stage("writing", str(target))
        info = {**parts.info, "training_seconds": round(time.monotonic() - began, 3)}
        identifier = write_bundle(target, replace(parts, pictures=pictures, info=info), overwrite=overwrite)
    chosen = table(learned.trials, learned.choice) if learned.trials else ""
    return ExportResult(
        target, identifier, learned.choice, learned.trials, summary.fidelity, summary.performance, notes, chosen
    )


def _names(given: str | Iterable[str] | None, default: tuple[str, ...]) -> tuple[str, ...]:
    if given is None:
        return default
    return (given,) if isinstance(given, str) else tuple(given)


def _finish(
    material: Material,
    bundle: Bundle,
    learned: LearnedAutomaton,
    names: tuple[str, str],
    asked: NDArray[np.int64],
    *,
    examples: bool,
) -> tuple[BundleParts, AutomatonSummary, tuple[str, ...]]:
    """Thresholds by the automaton's own steps, fidelity on test runs, the glossary. names: of the monitor, and of the
    file or folder of its runs."""
    corpus, automaton, alphabet = material.corpus, learned.automaton, learned.alphabet
    names_of = deed_names(material, examples=examples)
    done = deeds(material, names_of)
    entries = make_entries(alphabet, material, automaton, learned.walked.states, names_of, done, examples=examples)
    identity, policy = Platt(1.0, 0.0), bundle.calibration.policy
    glosses = tuple(entry.gloss for entry in entries)
    parts = BundleParts(
        adapter=bundle.adapter.to_bytes(),
        vocabulary=bundle.vocabulary.to_bytes(),
        context_arrays=dict(bundle.arrays),
        model=alphabet.model,
        reasons=None,
        calibration=Calibration(identity, identity, bundle.calibration.thresholds, policy),
        automaton=automaton_to_bytes(automaton, alphabet.map, glosses),
    )
    drawn = draw_alarm_runs(corpus, material.seed, material.alarm)
    looked = draw_drift_runs(corpus, material.seed, material.alarm)
    every = np.unique(np.concatenate((material.held_out, drawn, looked, material.test, asked)))
    logits = bundle_logits(parts, corpus, material.rows, every)
    outcome = {r: apply_map(identity, values[:, 1]) for r, values in logits.items()}
    thresholds, alarms = set_thresholds(
        [outcome[r] for r in material.held_out.tolist()], [outcome[r] for r in drawn.tolist()], policy
    )
    calibration = replace(parts.calibration, thresholds=thresholds)
    notes = [*material.notes, *learned.walked.transitions.notes]
    if (groups := bundle.calibration.groups) is not None:
        notes.append(
            f"The monitor's alarm thresholds by {groups.by} are not carried over: the automaton has risks of its own, "
            f"and one threshold for all. Set its own on new runs: prefixguard calibrate AUTOMATON RUNS --group-by "
            f"{groups.by}"
        )
    if thresholds.reason:
        notes.append(f"no alarm: {thresholds.reason} The automaton never says ALARM.")

    teacher = open_model(bundle)

    def walks_of(runs: NDArray[np.int64]) -> Walks:
        strings, numbers = alphabet.strings(material, runs), runs.tolist()
        return Walks(
            strings,
            *learned.walked.walk(strings),
            *rated([logits[r] for r in numbers], calibration),
            *rated([model_logits(teacher, corpus, material.rows, r) for r in numbers], bundle.calibration),
        )

    walks = walks_of(material.test)
    by_group = {name: by_value(material, name, material.test) for name in group_names(material)}
    fidelity = measure_fidelity(automaton, walks, by_group)
    shown = replace(automaton, risk=np.array(read_risks(automaton, calibration)))
    if thresholds.alarm is not None and float(shown.risk[..., 1].max()) <= thresholds.alarm:
        mute = (
            f"It never alarms: more successful runs than a false-alarm budget of {100 * policy.budget:g} % allows "
            f"reach its highest risk, {thresholds.alarm:.2f}, so it never says ALARM. Try more states, another "
            "alphabet or learner, or a monitor with a larger budget."
        )
        fidelity = replace(fidelity, care=(*fidelity.care, mute))
    horizon = bundle.horizon if bundle.horizon is not None else 3
    performance = measure_alarms(material, automaton, walks, drawn, calibration, bundle.calibration, horizon=horizon)
    fidelity = replace(fidelity, care=(*distrust(fidelity, performance), *fidelity.care))
    states = learned.walked.states
    ranked = rank_states(
        material, shown, entries, states, walks, thresholds, learned.pool, horizon=horizon, examples=examples
    )
    missed = find_missed(material, states, walks, thresholds, glosses, examples=examples)
    effect = in_effect(performance, ranked, walks.strings)
    by_part = alarms_by_part(material, walks, thresholds, glosses, horizon=horizon) if examples else ()
    verdict = verdict_of(performance, fidelity, ranked, missed, by_part)
    notes_of = (effect, stops_when_solved(material), *performance.notes)
    performance = replace(performance, notes=tuple(filter(None, notes_of)))
    quoted = [run for one in ranked for run in one.quoted]
    chosen = choose_replays(material, walks, calibration, horizon=horizon, quoted=quoted)
    places = chosen.places[~np.isin(material.test[chosen.places], asked)]
    replays = [
        replay
        for runs, walked in ((asked, walks_of(asked)), (material.test[places], walks.of(places)))
        for kinds in [replay_kinds(walked, calibration, horizon)]
        for replay in make_replays(material, runs, walked, kinds, asked=runs is asked, examples=examples)
    ]
    written = automaton_to_bytes(automaton, alphabet.map, glosses, performance, state_names(automaton, glosses))
    of_states = state_examples(material, automaton, learned.walked.states, done, examples=examples)
    summary = AutomatonSummary(
        name=names[0],
        origin=origin_of(
            material,
            bundle,
            names[1],
            hashlib.sha256(written).hexdigest(),
            len(learned.trials),
            shown_trials(learned.trials, learned.choice),
            muted=bool(learned.trials) and choose(learned.trials, policy.budget) != learned.choice,
            examples=examples,
        ),
        learner=learned.choice.learner,
        alphabet=learned.choice.alphabet,
        automaton=shown,
        entries=entries,
        state_examples=of_states,
        replays=tuple(replays),
        chosen=chosen.said,
        fidelity=fidelity,
        performance=performance,
        ranked=ranked,
        cells=read_steps(material, learned, walks),
        said=tuple(zip(walks.levels, walks.risks[:, 1].tolist(), strict=True)),
        watch=thresholds.watched_from,
        alarm=thresholds.alarm,
        release=policy.release,
        base=float(learned.pool.failed.mean()),
        expressions=explain(entry.condition for entry in entries if entry.count),
        does=(
            doing(done, learned.walked.states, of_states),
            doing(done, learned.pool.symbols, [entry.examples for entry in entries]),
        ),
        failing=failing_calls(done, states),
        looks=helpful_looks(material, done),
        verdict=verdict,
        effect=effect,
        missed=missed,
        parts=by_part,
    )
    info = automaton_info(bundle, learned.choice, learned.trials, summary, notes)
    n_steps = len(walks.risks)
    info["metrics"]["outcome_auroc"] = finite(auroc(walks.strings.labels[:, 1], walks.risks[:, 1])) if n_steps else None
    info["alarm_table"], info["alarm_lengths"] = table_to_json(alarms), corpus.lengths[drawn].tolist()
    strings = alphabet.strings(material, looked)
    missing = np.split(learned.walked.walk(strings)[1], strings.first[1:-1])
    shares = {r: int(part.sum()) / len(part) for r, part in zip(looked.tolist(), missing, strict=False)}
    if (reference := drift_reference(corpus, material.rows, looked, outcome, shares)) is not None:
        info["drift"] = reference
    return replace(parts, automaton=written, calibration=calibration, info=info), summary, tuple(notes)
