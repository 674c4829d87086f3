"""Same bytes in, same records out: read again here, and in a process with another hash seed, locale and time zone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prefixguard.errors import PrefixGuardError
from prefixguard.induce.checks.evidence import Evidence
from prefixguard.induce.checks.finding import Finding
from prefixguard.induce.checks.record_digest import digest_of
from prefixguard.trace import is_read_once

#: Longest that the other process may take, in seconds.
PATIENCE = 300.0

_REMEDY = "Read from a plain file or folder that nothing writes to meanwhile; if it still differs, this is a defect."


def check_determinism(evidence: Evidence, *, processes: bool = True) -> list[Finding]:
    """Compare digests of the first runs. processes: also in a second process."""
    if is_read_once(evidence.source):
        return [Finding("determinism", "note", "read from a stream, which cannot be read twice: not checked.")]
    figures = {"runs": float(evidence.counted)}
    found = []
    with _elsewhere(evidence) if processes else _nowhere() as other:
        try:
            again = digest_of(evidence.adapter, evidence.source, evidence.labels, evidence.counted)
        except PrefixGuardError as exc:
            again = f"failed: {exc}"
        if again != evidence.digest:
            what = "reading the same data twice gave different records" + (f" ({again})." if " " in again else ".")
            found.append(Finding("determinism.again", "error", what, evidence.source, figures, _REMEDY))
        verdict, why = other()
    if verdict is False:
        what = f"another process, with another hash seed and locale, read other records{why}."
        found.append(Finding("determinism.process", "error", what, evidence.source, figures, _REMEDY))
    elif verdict is None and why:
        found.append(Finding("determinism.process", "warning", f"the second process did not answer{why}.", "", figures))
    evidence.figures["runs_reread"] = evidence.counted
    return found


#: Did the other process agree (None: no answer), and what it said if not.
Verdict = Callable[[], tuple[bool | None, str]]


@contextmanager
def _nowhere() -> Iterator[Verdict]:
    yield lambda: (None, "")


@contextmanager
def _elsewhere(evidence: Evidence) -> Iterator[Verdict]:
    """Reads in another process meanwhile."""
    asked = {
        "spec": dict(evidence.spec),
        "source": evidence.source,
        "labels": None if evidence.labels is None else str(evidence.labels),
        "runs": evidence.counted,
    }
    seed = "4711" if os.environ.get("PYTHONHASHSEED") != "4711" else "1147"
    there = {"PYTHONHASHSEED": seed, "LC_ALL": "C", "LANG": "C", "TZ": "Pacific/Kiritimati"}
    command = [sys.executable, "-m", "prefixguard.induce.checks.record_digest"]
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | there
        )
    except OSError as exc:
        failure = f" ({exc})"
        yield lambda: (None, failure)
        return
    with process:
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(asked).encode())
            process.stdin.close()
            process.stdin = None
        except OSError:
            process.stdin = None

        def answer() -> tuple[bool | None, str]:
            try:
                said, told = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                return None, f" within {PATIENCE:.0f} seconds"
            try:
                reply = json.loads(said)
            except ValueError:
                return None, f" ({told.decode('utf-8', 'replace').strip()[-200:]})"
            return reply.get("digest") == evidence.digest, f" ({reply['error']})" if "error" in reply else ""

        try:
            yield answer
        finally:
            if process.poll() is None:
                process.kill()
