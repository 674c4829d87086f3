"""What this package is called on the package index, its version, and how an extra of it is installed.

The index has another, unrelated distribution called `prefixguard`, with the same import name. Where both are installed
they lie in one folder, and whichever came last owns its `__init__`. All rooms import this file, so that none of them
runs inside the other package.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

DISTRIBUTION: Final = "prefixguard-monitor"
_FOLDER = Path(__file__).resolve().parent
_PROJECT = _FOLDER.parent / "pyproject.toml"  # in a clone and in an editable installation


def install_command(extra: str = "") -> str:
    """What to type to install this package with an extra: from where it was installed, be that a clone, a file, a
    repository or the package index."""
    extras = f"[{extra}]" if extra else ""
    if _PROJECT.is_file() and f'name = "{DISTRIBUTION}"' in _PROJECT.read_text(encoding="utf-8", errors="replace"):
        return f'pip install -e "{_FOLDER.parent}{extras}"'
    origin = _origin()
    return f'pip install "{DISTRIBUTION}{extras}{f" @ {origin}" if origin else ""}"'


def _origin() -> str | None:
    """Where pip installed this package from, as a direct reference has it; None for the package index.

    Source: PEP 610, direct_url.json.
    """
    from importlib import metadata  # for this message alone: a tenth of the time that importing the runtime may take

    try:
        found = json.loads(metadata.distribution(DISTRIBUTION).read_text("direct_url.json") or "")
        return f"{found['vcs_info']['vcs']}+{found['url']}" if "vcs_info" in found else str(found["url"])
    except (metadata.PackageNotFoundError, ValueError, LookupError, TypeError):
        return None


_package = sys.modules["prefixguard"]
if getattr(_package, "__distribution__", None) != DISTRIBUTION:
    raise ImportError(
        f"{getattr(_package, '__file__', None) or _FOLDER}: this is not the prefixguard of {DISTRIBUTION}. Another "
        "distribution, called prefixguard on the package index, was installed over it or uninstalled from under it. "
        "Uninstall both and install this one again: "
        f"pip uninstall -y prefixguard {DISTRIBUTION}; {install_command()}",
        name="prefixguard",
    )
VERSION: str = _package.__version__
