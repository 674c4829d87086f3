"""Files that need torch are imported here and nowhere else, when something that needs one is asked for.

Boosted trees are trained, evaluated and exported without torch.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from prefixguard.errors import missing_extra


def torch_part(module: str, what: str, *, or_else: str = "") -> ModuleType:
    """Import a file that needs torch.

    module : dotted name of the file.
    what : what was asked for, as the message names it ("backend gru").
    or_else : what does without torch, a clause of the message; "" where nothing does.
    Raises MissingExtraError where torch is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as exc:
        if exc.name != "torch":
            raise
        raise missing_extra(what, "train", exc, or_else=or_else) from exc
