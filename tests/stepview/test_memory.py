"""What reading a large file takes: with JSON lines the longest run, with one JSON document a multiple of the file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="resource is of POSIX"), pytest.mark.slow]

SIZE = 64 << 20
PROGRAM = """
import os, resource, sys
from prefixguard.stepview import load_adapter, read_runs
adapter = load_adapter("openai_chat")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
runs = sum(1 for _ in read_runs(sys.argv[1], adapter))
taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(runs, taken * (1 if sys.platform == "darwin" else 1024) / os.path.getsize(sys.argv[1]))
"""


@pytest.mark.parametrize(("form", "most"), [("jsonl", 0.1), ("json", 4.5)])
@pytest.mark.parametrize("score", ["5", "1.50"])  # the second keeps its spelling, which is another way to decode
def test_peak_of_a_large_file(tmp_path: Path, form: str, most: float, score: str) -> None:
    said = [{"role": "user", "content": "word " * 200}, {"role": "assistant", "content": "text " * 100}] * 6
    one = json.dumps({"run_id": "r", "outcome": "success", "messages": said})[:-1] + f', "score": {score}}}'
    count = SIZE // len(one) + 1
    path = tmp_path / f"runs.{form}"
    with path.open("w") as file:
        file.write("[" if form == "json" else "")
        for i in range(count):
            file.write(one + ("\n" if form == "jsonl" else "," if i < count - 1 else "]"))
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, check=True)
    runs, ratio = done.stdout.split()
    assert int(runs) == count
    assert float(ratio) < most, f"peak memory over size is {ratio}"


def test_a_document_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, check=False)
    assert "1,073,741,825 bytes, and at most 1,073,741,824 are read. Write the runs as JSON lines" in done.stderr
