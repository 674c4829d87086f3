"""Checks every format: `python -m unseen [seed]`."""

import sys
import tempfile
from pathlib import Path

from unseen import FORMATS, check

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
bad = 0
for name in FORMATS:
    with tempfile.TemporaryDirectory() as folder:
        faults = [fault for runs in (10, 12, 14) for fault in check(name, Path(folder, str(runs)), seed + runs, runs)]
    bad += bool(faults)
    print(name, f"{len(faults)} faults" if faults else "ok", *faults[:5], sep="\n  ")
sys.exit(bad > 0)
