"""One run, watched while it goes on.

A session never raises into its host. What it cannot judge becomes a reading of level UNKNOWN that says why:

- an event that the adapter cannot read, or a step that cannot be read: that one is left out, the session goes on (an
  event that no rule takes is skipped and counted, as in a file, unless nothing was taken for `PATIENCE` events);
- a failure while a step is taken in: nothing after it can be judged, since every later judgement rests on all steps
  before it; so all later readings are UNKNOWN;
- events of a second run, a call after `end`: UNKNOWN from then on;
- steps or events that are no longer read as those of the training runs were (`field_dropout`): a field that stays
  empty, no step for too long, too many events of unknown kinds; until that is over.

What the host raises while a call is under way (`host` says what that is) passes through to it, and from then on
the session is UNKNOWN, since nobody knows how far the call had come. Likewise in a child that was forked during a call
of another thread. A call from within a call, by a callback, a signal handler or a finaliser, is one UNKNOWN and changes
nothing.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from threading import get_ident
from time import perf_counter_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard import behaviours, context
from prefixguard.alarm import AlarmState, Level, rule_level
from prefixguard.behaviours import NONE_HELD, BehaviourFinding
from prefixguard.bundle import SCORES, BehaviourMap, Bundle
from prefixguard.encoder import SparseRow, tokenize
from prefixguard.errors import SavedSessionError, TraceError, UsageError
from prefixguard.runtime.drift import Drift, RunSummary, Tally, summarise_run
from prefixguard.runtime.field_dropout import Expected, FieldDropout
from prefixguard.runtime.host import PROCESS, TURN, is_hosts, was_interrupted
from prefixguard.runtime.model import Step, StepModel
from prefixguard.runtime.reading import Reading
from prefixguard.runtime.reasons import ReasonsKind, behaviour_reasons
from prefixguard.runtime.rules_model import RulesModel
from prefixguard.runtime.run_behaviours import RunBehaviours
from prefixguard.runtime.saved_session import SavedSession
from prefixguard.stepview import GAP_WINDOW, Parser, StepRecord, offer_of, plain, score_record, serialize
from prefixguard.trace import NO_OFFER, RunOffer

#: Bytes of a serialised step that are read; adapters keep steps far below it. A larger one is UNKNOWN.
MAX_STEP_BYTES = 1 << 20
#: Events without a step, all skipped by the adapter, after which each further one is UNKNOWN: probably another format.
PATIENCE = 10
_REASON_LENGTH = 300
_KEPT_REASON = 120
_NO_MORE = ", so what follows cannot be judged. Start a new session for the next run"
_ONE_RUN = ": the events are of more than one run. Start a session for each run"
_NO_STEPS = "this monitor reads scores and no steps of an agent: give it numbers with observe_score"
_NO_SCORES = "this monitor reads steps of an agent and no scores: give it events with observe, or train on scores"
_WITHIN = "another call of this session is under way on the same thread (a callback, signal handler or finaliser)"


class ReadyBundle:
    """What all sessions of a monitor share; nothing in it changes.

    model: the bundle's step. rules: the same where there is no model, else None. imminent_map, outcome_map: logit to
    calibrated probability. expected: how training runs were read; None where the bundle does not say. reasons: what
    they are made of. declared: behaviours besides those of the catalogue. reads_scores: whether it is told scores, and
    no steps. reads_behaviours: whether its symbols are behaviours. context: the functions of what is known of a run.
    """

    __slots__ = (
        "bundle", "context", "declared", "expected", "imminent_map", "model", "outcome_map", "reads_behaviours",
        "reads_scores", "reasons", "rules",
    )  # fmt: skip

    def __init__(self, bundle: Bundle, model: StepModel, reasons: ReasonsKind = "behaviours") -> None:
        self.bundle, self.model, self.reasons = bundle, model, reasons
        self.rules = model if isinstance(model, RulesModel) else None
        self.declared = None if self.rules is None else self.rules.declared
        self.imminent_map, self.outcome_map = bundle.calibration.imminent, bundle.calibration.outcome
        self.reads_scores, self.reads_behaviours = bundle.kind == SCORES, isinstance(bundle.symbol_map, BehaviourMap)
        self.context: Any = context.scores if self.reads_scores else context
        if bundle.reads_signals:
            self.context = context.signals
        self.expected = Expected.of(bundle.manifest, f"{bundle.path}/manifest.json")


class Session:
    """All state of one run: parser, context, behaviours, model, alarm. Made by `Monitor.start` and `Monitor.restore`.

    At most `Monitor.session_bytes` between two calls, however long the run is and whatever arrives.

    Sessions share nothing that changes, so each may live on a thread of its own. Calls from several threads on the
    same session wait for each other; the caller has to see to their order, which is the order of the steps.
    """

    __slots__ = (
        "_alarm",
        "_behaviours",
        "_broken",
        "_caller",
        "_context",
        "_dropout",
        "_generation",
        "_group",
        "_keep",
        "_lock",
        "_monitor",
        "_parser",
        "_state",
        "_stopped",
        "_tally",
    )

    def __init__(
        self,
        monitor: ReadyBundle,
        parser: Parser | None,
        group: str | None = None,
        keep: Callable[[StepRecord], None] | None = None,
        offer: RunOffer = NO_OFFER,
    ) -> None:
        """parser: None for a session that is given records only (`observe_record`). group, keep: as for
        `Monitor.start`. offer: what the run is given."""
        self._monitor = monitor
        self._parser = parser
        self._keep = keep
        self._context = monitor.context.start()
        self._behaviours = RunBehaviours(behaviours.start(declared=monitor.declared))
        self._take_offer(offer)
        self._state = monitor.model.initial
        calibration = monitor.bundle.calibration
        self._group = group if calibration.groups is not None and group in calibration.groups.of else None
        self._alarm = AlarmState(calibration.policy, calibration.thresholds_of(group))
        self._dropout = FieldDropout(monitor.expected) if monitor.expected is not None else None
        self._tally = Tally()
        self._lock = threading.RLock()
        self._caller = 0  # the thread whose call is under way, or was when it was interrupted; 0: none is
        self._generation = PROCESS.generation
        self._stopped: str | None = None  # why every further call is answered by one UNKNOWN
        self._broken: str | None = None  # why no further step is judged

    def observe(self, event: Any) -> list[Reading]:
        """Take one raw event: an element of the format's array, decoded, or a piece of text for text formats.

        Returns a reading for every step that is complete with this event, in order; often none, since a call is a
        step only once its result is in. Raises nothing of its own.
        """
        return self._call(self._observe, event)

    def observe_record(self, record: StepRecord) -> Reading:
        """Take one step that is a record already. Raises nothing of its own."""
        return self._call(self._observe_record, record)[0]

    def observe_score(self, score: Any) -> Reading:
        """Take what a verifier, judge or critic says of the run after its next step: a finite number, as a monitor of
        scores is told them (`prefixguard train --scores`). Raises nothing of its own.

        What is no such number is one UNKNOWN that says so, and is left out.
        """
        return self._call(self._observe_score, score)[0]

    def end(self) -> list[Reading]:
        """End the run: readings of steps that were still open (calls without a result). Raises nothing of its own.

        A run that ends without a single step gets one reading, UNKNOWN, that says so; so does one that never had a
        field that training runs had (`field_dropout`), behind those of its steps. Ending twice is one UNKNOWN.
        """
        return self._call(self._end, None)

    def save(self) -> bytes:
        """The session as bytes, from which `Monitor.restore` makes one that goes on alike, in any process.

        At most 128 KB and the model's state; `keep` is left out. It holds text of the run that waits for its step.
        A session that has ended, or judges no more, stays so. Raises UsageError when called from within a call of this
        session.
        """
        self._own_lock()
        with self._lock:
            if self._caller:
                raise UsageError(f"The session cannot be saved: {_WITHIN}. Save it between two calls.")
            return SavedSession(
                bundle=self._monitor.bundle.id,
                context=self._monitor.context.pack(self._context),
                behaviours=self._behaviours.pack(),
                model=self._monitor.model.pack(self._state),
                group=self._group,
                tally=asdict(self._tally),
                alarm=self._alarm.counts(),
                dropout=None if self._dropout is None else self._dropout.counts(),
                stopped=self._stopped,
                broken=self._broken,
                parser=None if self._parser is None else self._parser.state(),
                faults=self._behaviours.faults(),
            ).to_bytes()

    def resume(self, saved: SavedSession) -> None:
        """Take over what was saved; for `Monitor.restore`. Raises SavedSessionError for what no session saves."""
        is_alike = len(saved.alarm) == 3 and (saved.dropout is None) == (self._dropout is None)
        if not is_alike or (saved.parser is None) != (self._parser is None):
            raise SavedSessionError("The saved session is damaged: parts are missing. Start a new session.")
        self._context = self._monitor.context.unpack(saved.context)
        self._state = self._monitor.model.unpack(saved.model)
        self._tally = Tally.of(saved.tally)
        self._behaviours.resume(saved.behaviours, saved.faults, self._tally.steps, self._monitor.declared)
        self._alarm.resume(*saved.alarm)
        if self._dropout is not None and saved.dropout is not None:
            self._dropout.resume(saved.dropout)
        if self._parser is not None and saved.parser is not None:
            self._parser.resume(saved.parser)
        self._stopped, self._broken = saved.stopped, saved.broken

    def _call(self, work: Callable[[Any, int], list[Reading]], given: Any) -> list[Reading]:
        """One call from the host: alone in this session, whole or not at all."""
        began = perf_counter_ns()
        self._own_lock()
        with self._lock:  # may be taken again by the same thread, which `_caller` then tells
            if self._caller:
                return [self._unknown(f"not taken in: {_WITHIN}", began)]
            if self._stopped is not None:
                return [self._unknown(self._stopped, began)]
            try:
                self._caller = get_ident()
                TURN.enter()
                readings = work(given, began)
                TURN.leave()
                self._caller = 0
            except BaseException as exc:  # the host's: all others became readings
                TURN.leave()
                self._stopped = f"{_kept(type(exc).__name__)} interrupted a call of this session{_NO_MORE}"
                self._caller = 0
                raise
            return readings

    def _own_lock(self) -> None:
        """In a child of a fork: a lock of its own, since who held the old one may be no more."""
        if self._generation == PROCESS.generation:
            return
        with PROCESS.mending:
            if self._generation != PROCESS.generation:
                if self._caller != PROCESS.forker:  # the thread that forked may be inside, and then still is
                    self._lock = threading.RLock()
                    if self._caller:
                        self._stopped = f"the process was forked during a call of this session{_NO_MORE}"
                        self._caller = 0
                self._generation = PROCESS.generation

    def _observe(self, event: Any, began: int) -> list[Reading]:
        tally, parser = self._tally, self._parser
        tally.events += 1
        if parser is None:
            return [self._unknown("this session takes records, not events", began)]
        try:
            if tally.steps == 0:
                self._take_offer(offer_of(event))
            records = parser.observe(event)
        except Exception as exc:
            if is_hosts(exc):
                raise
            return [self._unread(exc, began)]
        if parser.other_run is not None:
            self._stopped = _kept(parser.other_run) + _ONE_RUN
            return [self._unknown(self._stopped, began)]
        if records:
            return self._judge_all(records, began)
        if tally.steps == 0 and tally.events >= PATIENCE and self._skipped() >= tally.events:
            return [self._unknown(self._no_steps(), began)]
        why = self._gap()
        return [] if why is None else [self._unknown(why, began)]

    def _take_offer(self, offer: RunOffer) -> None:
        """What the run is given, before its first step. No risk rests on it: a model whose symbols are behaviours takes
        in none, since it was trained without."""
        if not self._monitor.reads_behaviours:
            self._behaviours.offer(offer)

    def _observe_record(self, record: StepRecord, began: int) -> list[Reading]:
        is_score = isinstance(record, StepRecord) and record.score is not None
        if self._monitor.reads_scores != is_score:
            return [self._unknown(_NO_STEPS if self._monitor.reads_scores else _NO_SCORES, began)]
        return [self._judge(record, began)]

    def _observe_score(self, score: Any, began: int) -> list[Reading]:
        try:
            return self._observe_record(score_record(self._tally.steps + 1, score), began)
        except TraceError as exc:
            self._tally.unread_events += 1
            return [self._unknown(f"{exc}; it is left out", began)]

    def _end(self, _: None, began: int) -> list[Reading]:
        readings: list[Reading] = []
        if self._parser is not None:
            try:
                readings = self._judge_all(self._parser.end(), began)
            except Exception as exc:
                if is_hosts(exc):
                    raise
                readings = [self._unread(exc, began)]
        why = self._dropout.end() if self._dropout is not None else None
        if self._tally.steps == 0 and not readings:
            why = self._no_steps()
        if why is not None:
            readings.append(self._unknown(why, perf_counter_ns()))
        self._stopped = "the session has ended"
        return readings

    @property
    def counters(self) -> Mapping[str, int]:
        """What was counted so far; the adapter's own counters begin with `adapter.`."""
        counted = asdict(self._tally)
        counted["saturated_words"] = self._context.saturated
        if self._parser is not None:
            counted |= {f"adapter.{name}": n for name, n in sorted(self._parser.counters.items())}
        return counted

    @property
    def drift(self) -> Drift:
        """Whether the run looks like those the monitor was trained on."""
        lapsed = self._dropout.lapsed if self._dropout is not None else ()
        skipped = self._parser.gaps.skipped / min(self._parser.gaps.events or 1, GAP_WINDOW) if self._parser else 0.0
        return self._tally.drift(self._context.saturated, lapsed, skipped)

    def summary(self, readings: Iterable[Reading]) -> RunSummary:
        """The run, once it is over, in the shares that a drift signal compares. readings: all that it gave."""
        said = list(readings)
        has_states = any(reading.state is not None for reading in said)
        risks = [reading.outcome_risk for reading in said]
        return summarise_run(risks, self.drift, has_states=has_states, has_events=self._tally.events > 0)

    def _gap(self) -> str | None:
        """Why the events are no longer like those of the training runs; None where they are, or nobody knows."""
        expected = self._monitor.expected
        if expected is None or self._parser is None:
            return None
        return expected.gap(self._parser.gaps)

    def _skipped(self) -> int:
        """Events, or pieces of them, that no rule of the adapter took."""
        counters = self._parser.counters if self._parser is not None else {}
        return sum(n for name, n in counters.items() if name.startswith("skipped"))

    def _judge_all(self, records: list[StepRecord], began: int) -> list[Reading]:
        readings = []
        for record in records:
            readings.append(self._judge(record, began))
            began = perf_counter_ns()
        return readings

    def _judge(self, record: StepRecord, began: int) -> Reading:
        """One step: text to row, context, model, calibration, alarm."""
        tally = self._tally
        tally.steps += 1
        if self._keep is not None:
            TURN.leave()  # the host may take its time, or wait for another thread's call
            try:
                self._keep(record)
            except Exception as exc:
                if was_interrupted(exc):
                    raise
                self._keep = None  # the host's affair; it is not called again
            TURN.enter()
        if self._broken is not None:
            return self._unjudged(self._broken, began)
        monitor = self._monitor
        try:  # nothing of the session changes in here
            document = serialize(record)
            if len(document) > MAX_STEP_BYTES:
                return self._unjudged(
                    f"the step has {len(document):,} bytes, more than the {MAX_STEP_BYTES:,} that are read", began
                )
            tokens = tokenize(document)
            row = monitor.bundle.vocabulary.encode(tokens)
        except Exception as exc:
            if is_hosts(exc):
                raise
            return self._unjudged(f"the step could not be read ({_describe(exc)})", began)
        before = self._state
        try:
            numbers = monitor.context.update(self._context, record, tokens)
            findings = () if monitor.reads_scores else self._behaviours.step(record, tokens, self._context, numbers)
            held = behaviours.held(findings) if monitor.reads_behaviours else NONE_HELD
            step = monitor.model.step(record.tool, row, numbers, before, held)
            self._state = step.state
            if not (math.isfinite(step.imminent) and math.isfinite(step.outcome)):
                raise ArithmeticError("the model gave a number that is not finite")
            if step.place is not None:
                tally.transitions += 1
                tally.unseen_transitions += step.unseen
            lapsed = (self._dropout.step(record) or self._gap()) if self._dropout is not None else None
            if lapsed is not None:
                tally.lapsed_steps += 1
                return self._unjudged(lapsed, began, findings)
            imminent = outcome = None
            if monitor.rules is not None:
                level = rule_level(findings, monitor.rules.scale)
            else:
                imminent, outcome = monitor.imminent_map(step.imminent), monitor.outcome_map(step.outcome)
                level = self._alarm.step(outcome)
        except Exception as exc:
            if is_hosts(exc):
                raise
            self._broken = f"step {tally.steps} could not be judged, and what follows rests on it"
            return self._unjudged(f"step {tally.steps} could not be judged ({_describe(exc)})", began)
        n_terms = len(row.indices)
        tally.tokens += len(tokens.hashes)
        tally.terms += n_terms
        tally.empty_rows += n_terms == 0 and monitor.rules is None
        reasons: tuple[str, ...] = ()
        faults = self._behaviours.recent
        if level is not Level.OK:
            try:
                reasons, faults = self._reasons(findings, row, numbers, before, step)
            except Exception as exc:
                if is_hosts(exc):
                    raise
                tally.reasons_failed += 1  # the judgement stands without its reasons
        latency = (perf_counter_ns() - began) / 1000
        return Reading(
            tally.steps, imminent, outcome, level, step.symbol, step.place, reasons, None, latency, findings, faults
        )

    def _reasons(
        self, findings: tuple[BehaviourFinding, ...], row: SparseRow, numbers: NDArray[np.float32], before: Any,
        step: Step,
    ) -> tuple[tuple[str, ...], tuple[BehaviourFinding, ...]]:  # fmt: skip
        """Why the level is what it is, in the words that were asked for; and the faults. before: the model's state
        before the step."""
        model, faults = self._monitor.model, self._behaviours.recent
        if self._monitor.reasons == "features" or self._monitor.reads_scores:
            return model.reasons(row, numbers, before, step), faults
        artefacts = [finding for finding in findings if finding.behaviour.kind == "artefact"]
        return behaviour_reasons(faults, artefacts, model, row, numbers, before, step)

    def _no_steps(self) -> str:
        events = self._tally.events
        if events == 0 or self._parser is None:
            return "the run ended without a step"
        name = plain(self._monitor.bundle.adapter.name, 60)
        return f"none of the run's {events} events is a step to the adapter {name}: is it of another format?"

    def _unread(self, exc: Exception, began: int) -> Reading:
        self._tally.unread_events += 1
        if self._parser is not None:
            self._parser.gaps.unread()
        said = _describe(exc) if not isinstance(exc, TraceError) else plain(str(exc), _REASON_LENGTH)
        return self._unknown(f"the event could not be read: {said}", began)

    def _unjudged(self, why: str, began: int, findings: tuple[BehaviourFinding, ...] = ()) -> Reading:
        self._tally.unjudged_steps += 1
        return self._unknown(why, began, findings)

    def _unknown(self, why: str, began: int, findings: tuple[BehaviourFinding, ...] = ()) -> Reading:
        latency = (perf_counter_ns() - began) / 1000
        return Reading(self._tally.steps, None, None, Level.UNKNOWN, None, None, (), why, latency, findings)


def _kept(text: str) -> str:
    """What a session keeps of a reason, in a byte a character."""
    return plain(text.encode("ascii", "backslashreplace").decode("ascii"), _KEPT_REASON).replace("…", "...")


def _describe(exc: Exception) -> str:
    """Type and message of an error, safe to show; an error whose message cannot be made is its type alone."""
    try:
        text = str(exc)
    except Exception as other:
        if is_hosts(other):
            raise
        text = ""
    name = type(exc).__name__
    return plain(f"{name}: {text}" if text else name, _REASON_LENGTH)
