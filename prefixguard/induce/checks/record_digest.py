"""A digest of everything an adapter says about runs; as a program, the same in a process of its own.

Fed `{"spec": ..., "source": ..., "labels": ..., "runs": n}` as JSON on standard input, the program prints
`{"runs": n, "digest": ...}`.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
from pathlib import Path
from typing import Any

from prefixguard.errors import PrefixGuardError
from prefixguard.stepview import Adapter, StepRecord, read_runs, serialize
from prefixguard.trace import Run

#: Runs that a digest covers, from the first.
COUNTED_RUNS = 100


class RunDigest:
    """SHA-256 over runs: ids, tasks, outcomes, groups, mistakes, faults and records, each preceded by its length."""

    def __init__(self) -> None:
        self.runs = 0
        self._hash = hashlib.sha256()

    def add(self, run: Run[StepRecord]) -> None:
        self.runs += 1
        head: list[Any] = [run.run_id, run.task_id, run.outcome.value, sorted(run.groups.items()), run.source]
        if run.mistake is not None:
            head.append([run.mistake.step, run.mistake.agent])
        if run.faults:
            head.append([[fault.agent, fault.mode] for fault in run.faults])
        self._take(json.dumps(head).encode())
        for record in run.records:
            self._take(serialize(record))
            self._take(json.dumps([record.index, record.agent, record.event]).encode())

    def value(self) -> str:
        """The digest as hex."""
        return self._hash.hexdigest()

    def _take(self, data: bytes) -> None:
        self._hash.update(b"%d:" % len(data))
        self._hash.update(data)


def digest_of(adapter: Adapter, source: str | Path, labels: Path | None, runs: int) -> str:
    """The digest of the first runs of a set, read anew."""
    digest = RunDigest()
    for run in itertools.islice(read_runs(source, adapter, labels=labels), runs):
        digest.add(run)
    return digest.value()


def main() -> int:
    """The program. Returns its exit status."""
    asked = json.load(sys.stdin)
    labels = None if asked["labels"] is None else Path(asked["labels"])
    try:
        value = digest_of(Adapter(asked["spec"]), asked["source"], labels, asked["runs"])
    except PrefixGuardError as exc:
        json.dump({"error": str(exc)}, sys.stdout)
        return 1
    json.dump({"digest": value}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
