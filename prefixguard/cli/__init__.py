"""The command line, and `info`, which says what a thing is without running it."""

from prefixguard.cli.information import AdapterInfo, BundleInfo, CorpusInfo, info

__all__ = ["AdapterInfo", "BundleInfo", "CorpusInfo", "info", "main"]


def main() -> None:
    """What the command `prefixguard` runs."""
    from prefixguard.cli.app import app  # typer and rich are needed by the command alone

    app()
