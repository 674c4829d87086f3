"""A bundle, opened once and ready to watch any number of runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from prefixguard.bundle import Bundle, open_bundle
from prefixguard.errors import BundleError, PrefixGuardError, TraceError
from prefixguard.runtime.model import OnnxModel
from prefixguard.runtime.reading import Reading
from prefixguard.runtime.session import Session
from prefixguard.stepview import StepRecord

_PROBE = StepRecord(1, "agent", "", "find", '{"id":"A1"}', "Where is it?", "I look.", "Error: no A1", "error")


class Monitor:
    """Watches runs by one bundle. Thread-safe: nothing in it changes after it is made.

    bundle: the opened bundle. model: its step. imminent_map, outcome_map: logit to calibrated probability.
    """

    __slots__ = ("bundle", "imminent_map", "model", "outcome_map")

    def __init__(self, bundle: Bundle) -> None:
        """Raises BundleError when the bundle's model cannot be run or is not what the bundle promises."""
        self.bundle = bundle
        self.model = OnnxModel(bundle)
        self.imminent_map = bundle.calibration.imminent
        self.outcome_map = bundle.calibration.outcome
        # One step from text to reading, so that a bundle that cannot judge is refused here, and so that the first
        # step of the first run is not the one that pays for libraries warming up.
        reading = self.score_run([_PROBE])[0]
        if reading.unknown_reason is not None:
            raise BundleError(
                f"{bundle.path}: cannot judge a step: {reading.unknown_reason}. Train or export it again."
            )

    def __repr__(self) -> str:
        return f"<Monitor {self.bundle.path.name!r} {self.bundle.id[:12]} adapter={self.bundle.adapter.name!r}>"

    def start(self, header: Mapping[str, Any] | None = None) -> Session:
        """A session for a run that begins now.

        header: what is known of the run at its start and its adapter reads (task text and the like).
        Raises AdapterError when the adapter works on whole files only, TraceError when the header is not what the
        adapter reads. Everything after this call reports what is wrong in its readings instead.
        """
        try:
            parser = self.bundle.adapter.parser(header)
        except PrefixGuardError:
            raise
        except Exception as exc:
            raise TraceError(
                f"The run's header is not what adapter {self.bundle.adapter.name} reads "
                f"({type(exc).__name__}: {exc}). Give the object that holds the run's task, or none."
            ) from exc
        return Session(self, parser)

    def score_run(self, records: Iterable[StepRecord]) -> list[Reading]:
        """Readings of a whole run, by the same path that a live run takes."""
        session = Session(self, None)
        return [session.observe_record(record) for record in records]


def load(path: str | os.PathLike[str]) -> Monitor:
    """Open the bundle in this folder and make it ready to watch.

    Raises BundleVersionError when a newer release wrote it, BundleError when it is missing, damaged or cannot be run.

    >>> load("nowhere")
    Traceback (most recent call last):
    ...
    prefixguard.errors.BundleError: No bundle at nowhere: it does not exist. Name the folder that `train` wrote.
    """
    return Monitor(open_bundle(path))
