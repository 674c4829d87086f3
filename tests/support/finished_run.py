"""How a run that is over looks to its monitor."""

from collections.abc import Iterable

from prefixguard.runtime import Monitor, RunSummary, Session
from prefixguard.stepview import StepRecord


def summarise_records(monitor: Monitor, records: Iterable[StepRecord]) -> RunSummary:
    """A run read as records: by the path of a live run, and nothing is said of events."""
    session = Session(monitor, None)
    return session.summary([session.observe_record(record) for record in records])
