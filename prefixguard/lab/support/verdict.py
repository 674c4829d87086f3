"""Did the run reach its goal? Only the database decides, never what was said."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from prefixguard.lab.support.shop import MUTABLE_TABLES
from prefixguard.lab.support.tasks import Task
from prefixguard.lab.support.tools import call_tool

State = tuple[tuple[tuple[Any, ...], ...], ...]


def database_state(database: sqlite3.Connection) -> State:
    """All rows of every table a tool can change, in the order of their keys."""
    return tuple(tuple(database.execute(f"SELECT * FROM {table} ORDER BY 1")) for table in MUTABLE_TABLES)


def reach_goal(database: sqlite3.Connection, task: Task) -> State:
    """Identify the customer and carry out every wish on a fresh database; the state that leads to is the goal."""
    calls: list[tuple[str, Any]] = [
        ("verify_identity", {"user_id": task.customer.user_id, "zip": task.customer.address.zip})
    ]
    calls += [(wish.tool, dict(wish.arguments)) for wish in task.wishes]
    for name, arguments in calls:
        call_tool(database, name, json.dumps(arguments))
    return database_state(database)
