"""Same bytes in, same records out: read again here, and in a process with another hash seed, locale and time zone.

As a program, fed a JSON list of spec, source, labels and number of runs on standard input, it prints
`{"digest": ...}`, or `{"error": ...}`.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from prefixguard.errors import PrefixGuardError
from prefixguard.induce.checks.evidence import Evidence, spelled
from prefixguard.induce.checks.finding import Finding
from prefixguard.stepview import Adapter, read_runs
from prefixguard.trace import is_read_once

_REMEDY = "Read from a plain file or folder that nothing writes to meanwhile; if it still differs, this is a defect."
#: Longest that the other process may take, in seconds.
PATIENCE = 300.0


def check_determinism(evidence: Evidence, *, processes: bool = True) -> Iterator[Finding]:
    """Compare digests of the first runs. processes: also in a second process."""
    if is_read_once(evidence.source):
        yield Finding("determinism", "note", "read from a stream, which cannot be read twice: not checked.")
        return
    evidence.figures["runs_reread"] = runs = evidence.counted
    with ThreadPoolExecutor(1) as pool:
        there = pool.submit(_elsewhere, evidence) if processes else None
        try:
            again = digest_of(evidence.adapter, evidence.source, evidence.labels, runs)
        except PrefixGuardError as exc:
            again = f"failed: {exc}"
    if again != evidence.digest:
        what = "reading the same data twice gave different records" + (f" ({again})." if " " in again else ".")
        yield Finding("determinism.again", "error", what, evidence.source, {"runs": runs}, _REMEDY)
    agrees, why = (True, "") if there is None else there.result()
    if agrees is None:
        yield Finding("determinism.process", "warning", f"the second process did not answer{why}.", "", {"runs": runs})
    elif not agrees:
        what = f"another process, with another hash seed and locale, read other records{why}."
        yield Finding("determinism.process", "error", what, evidence.source, {"runs": runs}, _REMEDY)


def _elsewhere(evidence: Evidence) -> tuple[bool | None, str]:
    """Does another process read the same? None where it does not answer. And what it said."""
    labels = None if evidence.labels is None else str(evidence.labels)
    asked = [dict(evidence.spec), evidence.source, labels, evidence.counted]
    seed = "4711" if os.environ.get("PYTHONHASHSEED") != "4711" else "1147"
    there = {"PYTHONHASHSEED": seed, "LC_ALL": "C", "LANG": "C", "TZ": "Pacific/Kiritimati"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "prefixguard.induce.checks.determinism"],
            input=json.dumps(asked).encode(),
            capture_output=True,
            timeout=PATIENCE,
            env=os.environ | there,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, f" within {PATIENCE:.0f} seconds"
    except OSError as exc:
        return None, f" ({exc})"
    try:
        reply = json.loads(done.stdout)
    except ValueError:
        return None, f" ({done.stderr.decode('utf-8', 'replace').strip()[-200:]})"
    return reply.get("digest") == evidence.digest, f" ({reply['error']})" if "error" in reply else ""


def digest_of(adapter: Adapter, source: str | Path, labels: Path | None, runs: int) -> str:
    """The digest of the first runs of a set, read anew."""
    digest = hashlib.sha256()
    for run in itertools.islice(read_runs(source, adapter, labels=labels), runs):
        digest.update(spelled(run))
    return digest.hexdigest()


def main() -> None:
    """The program."""
    spec, source, labels, runs = json.load(sys.stdin)
    try:
        said = {"digest": digest_of(Adapter(spec), source, None if labels is None else Path(labels), runs)}
    except PrefixGuardError as exc:
        said = {"error": str(exc)}
    json.dump(said, sys.stdout)


if __name__ == "__main__":
    main()
