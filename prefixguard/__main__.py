"""`python -m prefixguard`: the command line, where the command itself is not on the path."""

from prefixguard.cli import main

main()
