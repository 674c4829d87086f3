"""Schemas of specs, oldest to newest: an adapter that an earlier release froze opens in every later one.

A spec is lifted in memory, one version at a time, before it is compiled. Its file, its bytes and its hash stay what
they were, so a monitor still knows the adapter it was trained through. A migration may only respell: the lifted spec
must give the records that the old one gave (kept files in `tests/golden/adapters_v*` hold it to that).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from prefixguard.errors import AdapterError

PREFIX = "prefixguard/adapter/v"
#: The schema that this release compiles, and writes.
NEWEST = 1

Migration = Callable[[dict[str, Any]], dict[str, Any]]
#: From version n to the spec of version n + 1; whatever it is given it leaves unchanged. None is needed so far.
MIGRATIONS: Mapping[int, Migration] = MappingProxyType({})


def schema_of(version: int) -> str:
    """How a version of the schema is written in a spec.

    >>> schema_of(1)
    'prefixguard/adapter/v1'
    """
    return f"{PREFIX}{version}"


def lift(
    spec: Mapping[str, Any], where: str, *, newest: int = NEWEST, migrations: Mapping[int, Migration] = MIGRATIONS
) -> dict[str, Any]:
    """The spec in the newest schema. where: the file it is from, for messages.

    AdapterError for a schema that is newer, unknown, or older than the oldest that can be lifted.
    """
    schema = spec.get("schema")
    number = schema.removeprefix(PREFIX) if isinstance(schema, str) and schema.startswith(PREFIX) else ""
    good = number.isascii() and number.isdigit() and len(number) < 6 and str(int(number)) == number
    version = int(number) if good else None
    if version is None or version > newest:
        raise AdapterError(
            f"{where}: schema {schema!r}; this release reads {schema_of(newest)!r}. "
            "A newer schema needs a newer release of prefixguard; anything else is no adapter."
        )
    lifted = dict(spec)
    while version < newest:
        step = migrations.get(version)
        if step is None:
            oldest = next((n for n in range(version, newest) if n in migrations), newest)
            raise AdapterError(
                f"{where}: schema {schema!r} is older than the oldest that this release reads ({schema_of(oldest)!r}). "
                "Induce the adapter again from samples (prefixguard induce-adapter), or respell it by "
                "docs/adapter-spec.md."
            )
        version += 1
        lifted = {**step(lifted), "schema": schema_of(version)}
    return lifted
