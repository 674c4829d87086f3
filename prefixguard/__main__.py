"""The command `prefixguard`, and `python -m prefixguard`, where the command itself is not on the path."""

import sys


def main() -> None:
    """Run the command line; say what to do where another package of this name was imported (`distribution`)."""
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"} & {*sys.argv}:  # an agent waits: nothing else is imported
        from prefixguard.hook import main as hook

        raise SystemExit(hook(sys.argv[2:]))
    try:
        from prefixguard.cli import main as command
    except ImportError as exc:
        if exc.name != "prefixguard":
            raise
        sys.stderr.write(f"Error: {exc}\n")
        raise SystemExit(2) from None
    command()


if __name__ == "__main__":
    main()
