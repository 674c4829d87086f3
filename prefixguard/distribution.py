"""What this package is called on the package index, its version, and how an extra of it is installed.

The index has another, unrelated distribution called `prefixguard`, with the same import name. Where both are installed
they lie in one folder, and whichever came last owns its `__init__`. All rooms import this file, so that none of them
runs inside the other package.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

DISTRIBUTION: Final = "prefixguard-monitor"
_FOLDER = Path(__file__).resolve().parent
_PROJECT = _FOLDER.parent / "pyproject.toml"  # in a clone and in an editable installation


def install_command(extra: str = "") -> str:
    """What to type to install this package with an extra: from the folder of a clone, else from the package index."""
    clone = _PROJECT.is_file() and f'name = "{DISTRIBUTION}"' in _PROJECT.read_text(encoding="utf-8", errors="replace")
    extras = f"[{extra}]" if extra else ""
    return f'pip install -e "{_FOLDER.parent}{extras}"' if clone else f'pip install "{DISTRIBUTION}{extras}"'


_package = sys.modules["prefixguard"]
if getattr(_package, "__distribution__", None) != DISTRIBUTION:
    raise ImportError(
        f"{getattr(_package, '__file__', None) or _FOLDER}: this is not the prefixguard of {DISTRIBUTION}. Another "
        "distribution, called prefixguard on the package index, was installed over it or uninstalled from under it. "
        f"Uninstall both, install this one again: pip uninstall -y prefixguard {DISTRIBUTION}; {install_command()}",
        name="prefixguard",
    )
VERSION: str = _package.__version__
