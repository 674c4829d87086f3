"""What frameworks export of the scenarios of `integrations.py`, written as they write it, with the true steps beside.

    python -m benchmarks.record_exports openai_agents --out tests/stepview_adapters/recorded

A module is a family of exports: its `EXPORTS` says how each is made. A recording is a folder
`FRAMEWORK-VERSION/EXPORT/SCENARIO` with the files, and `FRAMEWORK-VERSION/EXPORT/truth.json`, with the steps of every
agent of every scenario. `tests/stepview_adapters/test_recorded_exports.py` reads them through the shipped adapters.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
