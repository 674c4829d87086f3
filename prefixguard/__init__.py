"""PrefixGuard: compile raw agent traces into small online failure monitors.

    import prefixguard

    monitor = prefixguard.load("monitors/tau")
    session = monitor.start()
    for event in events:
        for reading in session.observe(event):
            ...

Names are loaded when they are first used, so that watching a run imports what watching needs and no more.
"""

from __future__ import annotations

__distribution__ = "prefixguard-monitor"  # set before anything is imported: prefixguard.distribution looks for it
__version__ = "0.3.0"

import importlib
import os
import re
from pathlib import Path
from typing import Any

# onnxruntime, once imported, writes an id of the machine to the home folder and sends figures of its use to its maker,
# unless it finds this. Whoever wants that sets the variable to 0 beforehand.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

#: Public name to the module that has it.
_HOMES = {
    name: module
    for module, names in re.findall(
        r"^from (\S+) import ([^(]+?$|\([^)]+\))", Path(__file__).with_suffix(".pyi").read_text("utf-8"), re.MULTILINE
    )
    for name in re.findall(r"(\w+) as", names)
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'prefixguard' has no attribute {name!r}")
    if _HOMES[name] == __name__:  # a room
        return importlib.import_module(f"{__name__}.{name}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
