"""A statement of SQL is read as SQL: nothing in it is a command of a shell."""

from __future__ import annotations

import pytest
from behaving import call
from processor_time import least_seconds

from prefixguard.behaviours import consequence_of
from prefixguard.behaviours.shell import read_shell
from prefixguard.behaviours.sql import read_sql

READS = [
    "SELECT count(*) FROM cars WHERE horsepower > 150",
    "SELECT a, b FROM t WHERE a >> 2 = 1 OR b > c",
    "SELECT `name` FROM `concert`",
    "SELECT name FROM t WHERE made = 'a;b > c' | 1",
    "SHOW TABLES",
    "DESCRIBE singer",
    "DESC singer",
    "EXPLAIN SELECT a FROM b WHERE c > 1",
    "WITH best AS (SELECT max(a) AS m FROM t) SELECT m FROM best WHERE m > 3",
    "(SELECT a FROM b) UNION (SELECT c FROM d)",
    "USE world; SELECT a FROM b WHERE c > 1",
]
WRITES = [
    "INSERT INTO t (a) VALUES (1)",
    "UPDATE t SET a = 1 WHERE b > 2",
    "DELETE FROM t WHERE a > 1",
    "CREATE TABLE t (a int)",
    "CREATE OR REPLACE VIEW v AS SELECT a FROM b WHERE c > 1",
    "DROP TABLE IF EXISTS t",
    "ALTER TABLE t ADD COLUMN a int",
    "TRUNCATE TABLE t",
    "SELECT a FROM b; DELETE FROM b WHERE a > 1",
    "WITH old AS (SELECT a FROM t) DELETE FROM t WHERE a > 3",
]


def spelled(statement: str) -> list[str]:
    """The same statement in other letters, over several lines, and after a comment."""
    lines = statement.replace(" ", "\n  ")
    return [statement, statement.lower(), statement.upper(), lines, f"-- why\n{statement};", f"/* a > b */ {statement}"]


@pytest.mark.parametrize(("statement", "kind"), [*((s, "reads") for s in READS), *((s, "writes") for s in WRITES)])
def test_a_statement_reads_or_writes_and_edits_no_file(statement: str, kind: str) -> None:
    for one in spelled(statement):
        found = read_shell(one)
        assert (found.kind, found.effects) == (kind, ()), one
        step = call("execute_sql", one)
        assert consequence_of(step).kind == kind, one


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("create notes.txt", "edits"),
        ("insert 3 a line", "edits"),
        ("cat a > b", "edits"),
        ("update x", "edits"),
        ("with open('a') as f:\n    print(f.read())", "acts"),
        ("select name in a b; do python $name; done", "acts"),
        ("echo SELECT a FROM b > query.sql", "edits"),
        ("truncate -s 0 a.txt", "edits"),
    ],
)
def test_a_command_is_no_statement(command: str, kind: str) -> None:
    assert read_sql(command) is None
    assert read_shell(command).kind == kind


@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize("piece", ["select ", "update ", "with a as (", "/*", "--\n", "(", "'", ";", " ", "grant a "])
def test_hostile_statements_take_no_longer(piece: str) -> None:
    statements = [b + piece * (200_000 // len(piece)) for b in ("", "select a ", "update a", "with a as (b) ")]
    assert least_seconds(lambda: [read_sql(statement) for statement in statements])[0] < 1.0
