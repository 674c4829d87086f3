"""A bundle, opened once and ready to watch any number of runs."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from prefixguard import context
from prefixguard.behaviours import TRACKER_BYTES, load_behaviours
from prefixguard.behaviours import start as start_tracker
from prefixguard.bundle import Bundle, Trust, open_bundle
from prefixguard.errors import (
    BundleError,
    ConfigError,
    OtherAdapterError,
    PrefixGuardError,
    SavedSessionError,
    TraceError,
    UsageError,
)
from prefixguard.runtime.automaton_model import AutomatonModel
from prefixguard.runtime.drift_signal import DriftReference, DriftSignal
from prefixguard.runtime.host import is_hosts
from prefixguard.runtime.model import OnnxModel, StepModel
from prefixguard.runtime.reading import Reading
from prefixguard.runtime.reasons import ReasonsKind
from prefixguard.runtime.rules_file import read_rules
from prefixguard.runtime.rules_model import RULES, RulesModel, rules_bundle
from prefixguard.runtime.saved_session import SavedSession
from prefixguard.runtime.session import ReadyBundle, Session
from prefixguard.stepview import (
    EVENTS,
    Adapter,
    StepRecord,
    adapter_for,
    is_limit,
    is_tools,
    plain,
    readable_offer,
    score_record,
)
from prefixguard.trace import NO_OFFER, Run, RunOffer

#: Bytes of a session at most, where its model's state leaves room; and of all in it but that state.
SESSION_BYTES = 32 * 1024
_BESIDE_STATE = 31 * 1024

_PROBE = StepRecord(1, "agent", "", "find", '{"id":"A1"}', "Where is it?", "I look.", "Error: no A1", "error")


def open_model(bundle: Bundle) -> StepModel:
    """The step of an opened bundle. Raises BundleError when it cannot be run."""
    return OnnxModel(bundle) if bundle.automaton is None else AutomatonModel(bundle)


class Monitor(ReadyBundle):
    """Watches runs by one bundle. Thread-safe: nothing in it changes after it is made."""

    __slots__ = ()

    def __init__(self, bundle: Bundle, rules: RulesModel | None = None, *, reasons: ReasonsKind = "behaviours") -> None:
        """rules: in the place of the bundle's model. reasons: as for `load`. Raises BundleError when the bundle's model
        cannot be run or is not what the bundle promises, ConfigError for other reasons."""
        if reasons not in get_args(ReasonsKind):
            raise ConfigError(f"reasons is {reasons!r}: say {' or '.join(get_args(ReasonsKind))}.")
        super().__init__(bundle, open_model(bundle) if rules is None else rules, reasons)
        # One step from text to reading, so that a bundle that cannot judge is refused here, and so that the first
        # step of the first run is not the one that pays for libraries warming up.
        reading = self.score_run([score_record(1, 0.5) if self.reads_scores else _PROBE])[0]
        if reading.unknown_reason is not None:
            raise BundleError(
                f"{bundle.path}: cannot judge a step: {reading.unknown_reason}. Train or export it again."
            )

    def __repr__(self) -> str:
        return f"<Monitor {self.bundle.path.name!r} {self.bundle.id[:12]} adapter={self.bundle.adapter.name!r}>"

    def start(
        self,
        header: Mapping[str, Any] | None = None,
        *,
        group: str | None = None,
        keep: Callable[[StepRecord], None] | None = None,
        tools: Sequence[str] | None = None,
        step_limit: int | None = None,
    ) -> Session:
        """A session for a run that begins now.

        header: what is known of the run at its start and its adapter reads (task text and the like).
        group: value of the group by which the monitor has alarm thresholds ("gold"); it picks the threshold and nothing
            else. One that has none of its own, None, or a monitor without such thresholds: the common threshold.
        keep: called with the record of every step before it is judged, for hosts that need the steps too. Records give
            readings one by one, in order. One that raises is not called again.
        tools: names of the tools that the run can call; step_limit: steps that it may have, 1 or more. Behaviours rest
            on them (a missing tool, a limit that is near), and no risk does; so an automaton whose symbols are
            behaviours leaves them out. None: nobody knows, or the first event says it (`prefixguard/event/v1`).
        Raises ConfigError for tools or a limit that are none, AdapterError when the adapter works on whole files only,
        TraceError when the header is not what the adapter reads. Everything after this call reports what is wrong in
        its readings instead.
        """
        try:
            parser = self.bundle.adapter.parser(header)
        except PrefixGuardError:
            raise
        except Exception as exc:
            if is_hosts(exc):
                raise
            raise TraceError(
                f"The run's header is not what adapter {self.bundle.adapter.name} reads "
                f"({type(exc).__name__}: {exc}). Give the object that holds the run's task, or none."
            ) from exc
        if tools is not None and not is_tools(tools):
            raise ConfigError(f"The tools are {plain(repr(tools), 60)}: give a list of at most 1,000 names, or None.")
        if step_limit is not None and not is_limit(step_limit):
            raise ConfigError(
                f"The limit of steps is {plain(repr(step_limit), 60)}: use a number of steps from 1, or None."
            )
        return Session(self, parser, group, keep, readable_offer(tools, step_limit))

    def restore(self, data: bytes, *, keep: Callable[[StepRecord], None] | None = None) -> Session:
        """The session that `Session.save` gave, to go on where it was: in another process, on another machine.

        data: at most 128 KB and the model's state. keep: as for `start`.
        Raises SavedSessionError when it is damaged, or was saved by another monitor or by a newer release.
        """
        saved = SavedSession.from_bytes(
            data, self.bundle.id, self.model.state_bytes, self._tracker_bytes, self.context.PACKED_BYTES
        )
        session = Session(self, None if saved.parser is None else self.bundle.adapter.parser(None), saved.group, keep)
        try:
            session.resume(saved)
        except TraceError as exc:
            raise SavedSessionError(f"The saved session is damaged: {exc}") from exc
        return session

    @property
    def session_bytes(self) -> int:
        """Bytes that a session of this monitor keeps at most between two calls.

        32 KB, or, where the model's state leaves no room in them, 31 KB and that state: a transformer keeps a window of
        keys and values of each of its networks. Declared behaviours come on top of it.
        """
        return max(SESSION_BYTES, _BESIDE_STATE + self.model.state_bytes) + self._tracker_bytes - TRACKER_BYTES

    @property
    def _tracker_bytes(self) -> int:
        """Length of a packed tracker of behaviours."""
        return start_tracker(declared=self.declared).packed_bytes

    def with_model(self, what: str) -> Monitor:
        """The monitor itself; BundleError where it is rules without a model. what: what needs one."""
        if self.rules is not None:
            raise BundleError(f"{what} needs risks, and rules have none. Train a monitor: prefixguard train RUNS")
        return self

    def without_signals(self) -> Monitor:
        """The same monitor, not told what steps took: those features stand at their medians over training steps."""
        other = copy.copy(self)
        if self.bundle.reads_signals:
            other.context = context.signals.HeldSignals(self.bundle.typical[context.N_FEATURES :])
        return other

    def group_of(self, run: Run[Any]) -> str | None:
        """The value of a run's group that picks its alarm threshold; None where the monitor has none by group."""
        groups = self.bundle.calibration.groups
        return None if groups is None else run.groups.get(groups.by)

    def drift_signal(self, rate: float = 0.01) -> DriftSignal:
        """A new signal that says when finished runs are no longer like the calibration runs (`observe_run`).

        rate: chance that it is ever given while runs stay like them, in (0, 1). Give it one run of each new task. It
        compares with as many runs as there were tasks to calibrate on; with fewer than 25, even a complete change may
        stay unseen. It knows no outcomes: where only the runs that succeed change, and the alarm's budget is about
        those, it may never be given.
        Raises BundleError for a bundle that does not say how its calibration runs look, ConfigError for the rate.
        """
        kept = self.bundle.manifest.get("drift")
        if kept is None:
            raise BundleError(
                f"{self.bundle.path}: does not say how its calibration runs look, so nothing can be compared with "
                f"them. Calibrate it on new runs: prefixguard calibrate {self.bundle.path} RUNS; or make it again."
            )
        return DriftSignal(DriftReference.from_json(kept, f"{self.bundle.path}/manifest.json"), rate)

    def refuse_other(self, adapter: str | Path | Adapter | None, runs: str = "-") -> None:
        """OtherAdapterError unless this is the very adapter, by its hash, that the monitor was trained through.

        None: whoever asks names none, and the monitor's own is used. runs: for the name `raw` alone.
        """
        if adapter is None:
            return
        own, other = self.bundle.adapter, adapter_for(adapter, runs)
        named = other.name if isinstance(adapter, Adapter) else adapter
        if own.sha256 != other.sha256:
            raise OtherAdapterError(
                f"{self.bundle.path}: was trained through adapter {own.name} {own.version} (sha256 {own.sha256[:12]}), "
                f"and is to read through {other.name} {other.version} (sha256 {other.sha256[:12]}): its risks would "
                "mean nothing. Name no adapter, and it reads through its own; name a file with the same hash; or train "
                f"a monitor through this one: prefixguard train RUNS --adapter {named}"
            )

    def score_run(
        self, records: Iterable[StepRecord], *, group: str | None = None, offer: RunOffer = NO_OFFER
    ) -> list[Reading]:
        """Readings of a whole run, by the same path that a live run takes. group: as for `start`. offer: of the run."""
        session = Session(self, None, group, offer=offer)
        return [session.observe_record(record) for record in records]


def load(
    path: str | os.PathLike[str],
    *,
    adapter: str | Path | Adapter | None = None,
    trust: Trust | None = None,
    behaviours: str | Path | None = None,
    reasons: ReasonsKind = "behaviours",
) -> Monitor:
    """Open the bundle in this folder and make it ready to watch; "rules" is a monitor that needs no training, and a
    file that `calibrate_rules` wrote is the same with counts of its own.

    Rules give a level by the behaviours of an agent (docs/behaviours.md), and no risk. They read events as a guard has
    them, or through the adapter that is named. A bundle in a folder of that name is opened as "./rules".

    adapter: what the runs are read through elsewhere, if it shall be made sure that the monitor was trained through it.
    trust: public keys (PEM; paths or bytes), one of which must have signed the bundle (`prefixguard.sign`). None: it is
    opened whoever wrote it, as long as it is whole and nothing changed since.
    behaviours: with "rules", a file of behaviours besides those of the catalogue.
    reasons: what the reasons of a reading are made of: what the agent does (`behaviours`), or the features and words
    that moved the risk most (`features`), for those who look into the model.
    Raises BundleVersionError when a newer release wrote it, UntrustedBundleError when it is not signed as asked,
    BundleError when it is missing, damaged or cannot be run, OtherAdapterError when it was trained through another
    adapter, ConfigError for other reasons.

    >>> load("nowhere")
    Traceback (most recent call last):
    ...
    prefixguard.errors.BundleError: No bundle at nowhere: it does not exist. Name the folder that `train` wrote.
    """
    is_plain, is_calibrated = os.fspath(path) == RULES, Path(path).is_file()
    if is_plain or is_calibrated:
        if trust is not None:
            raise UsageError("trust goes with a bundle, and rules are none: nobody signed them. Leave it out.")
        if reasons == "features":
            raise UsageError("reasons=features goes with a bundle: rules have no features. Leave it out.")
    if is_plain:
        rules = RulesModel(None if behaviours is None else load_behaviours(behaviours))
        return Monitor(rules_bundle(adapter_for(EVENTS if adapter is None else adapter, "-"), rules), rules)
    if behaviours is not None:
        raise UsageError(f'{os.fspath(path)}: a file of behaviours goes with rules: load("rules", behaviours=FILE).')
    if is_calibrated:
        kept = read_rules(path)
        rules = RulesModel(kept.declared, kept.scale)
        monitor = Monitor(rules_bundle(kept.adapter, rules, path), rules)
    else:
        monitor = Monitor(open_bundle(path, trust=trust), reasons=reasons)
    monitor.refuse_other(adapter)
    return monitor
