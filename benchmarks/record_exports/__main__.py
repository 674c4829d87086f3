"""The command: `python -m benchmarks.record_exports [FAMILY ...] --out DIR`."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from pathlib import Path

import benchmarks.record_exports as package
from benchmarks.record_exports.recording import write

FAMILIES = [m.name for m in pkgutil.iter_modules(package.__path__) if m.name not in ("__main__", "recording")]


def main() -> None:
    parser = argparse.ArgumentParser(description=package.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", nargs="*", choices=[*FAMILIES, []], default=FAMILIES, metavar="FAMILY")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    for family in given.family:
        for name, export in importlib.import_module(f"benchmarks.record_exports.{family}").EXPORTS.items():
            print(write(name, export, given.out))


if __name__ == "__main__":
    main()
