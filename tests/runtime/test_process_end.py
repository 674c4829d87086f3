"""A process ends in peace while daemon threads judge and mask: no call of C++ is under way that Python cuts off."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tiny_monitor

from prefixguard.bundle import write_bundle
from prefixguard.stepview import load_adapter

PROGRAM = """
import itertools, sys, threading
from prefixguard.escalate import Masker
from prefixguard.integrations import Guard

guard = Guard(sys.argv[1], on_alarm="nudge")
begun = threading.Barrier(5)

def judge():
    for n in itertools.count():
        with guard.run("x") as run:
            run.returned(run.called("find", {"id": n}), "error: not found", is_error=True)
        if n == 3:
            begun.wait()

def mask():
    for n in itertools.count():
        Masker().mask("key sk-abcdefghijklmnopqrstuvwx " * 20)
        if n == 3:
            begun.wait()

for work in (judge, judge, mask, mask):
    threading.Thread(target=work, daemon=True).start()
begun.wait()
"""


@pytest.mark.slow
def test_daemon_threads_at_the_end(tmp_path: Path) -> None:
    """Ten times: without the wait at the end, most of them are aborted (exit code -6)."""
    write_bundle(tmp_path / "m", tiny_monitor.parts(adapter=load_adapter("events").to_bytes()))
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "m")]
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: subprocess.run(command, capture_output=True, timeout=120), range(10)))
    assert [(one.returncode, one.stderr) for one in done] == [(0, b"")] * 10
