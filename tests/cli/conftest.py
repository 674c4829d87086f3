"""Run the command line inside the test, with its two streams apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from typer.testing import CliRunner


@dataclass(frozen=True)
class Said:
    """What a command left: exit code, standard output, standard error (its lines joined by single blanks in `told`)."""

    code: int
    out: str
    err: str

    @property
    def told(self) -> str:
        return " ".join(self.err.split())

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Cli = Callable[..., Said]


@pytest.fixture
def cli() -> Cli:
    def run(*arguments: object, stdin: str | bytes | None = None, env: dict[str, str] | None = None) -> Said:
        from prefixguard.cli.app import app

        result = CliRunner().invoke(app, list(map(str, arguments)), input=stdin, env=env)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        said = Said(result.exit_code, result.stdout_bytes.decode(), result.stderr_bytes.decode())
        assert "Traceback" not in said.err
        return said

    return run
