"""The command line, and the two functions that only it has: `demo` and `info`."""

from prefixguard.cli.demonstration import DemoListener, DemoResult, FreshAlarms, demo
from prefixguard.cli.information import AdapterInfo, BundleInfo, CorpusInfo, info

__all__ = [
    "AdapterInfo",
    "BundleInfo",
    "CorpusInfo",
    "DemoListener",
    "DemoResult",
    "FreshAlarms",
    "demo",
    "info",
    "main",
]


def main() -> None:
    """What the command `prefixguard` runs."""
    from prefixguard.cli.app import app  # typer and rich are needed by the command alone

    app()
