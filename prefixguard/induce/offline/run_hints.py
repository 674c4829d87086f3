"""What a person says of whole runs: a path, or a value of the spec language as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from prefixguard.errors import AdapterError, ConfigError
from prefixguard.stepview import Adapter, Scope


def as_spec(hint: str, key: str) -> Any:
    """A path as it is, a value of the spec language from JSON. ConfigError for what is neither."""
    if not hint.startswith("{"):
        return hint
    try:
        spec = json.loads(hint)
        getter_of(spec)
    except (ValueError, RecursionError, AdapterError) as exc:
        raise ConfigError(f"hint {key}={hint}: not a value of the spec language ({exc}).") from exc
    return spec


def getter_of(spec: Any) -> Callable[[Scope], Any]:
    """What a value of the spec language finds in a run. AdapterError where it is none."""
    adapter = Adapter(
        {
            "schema": "prefixguard/adapter/v1",
            "name": "hint",
            "version": "1.0.0",
            "container": {"format": "json"},
            "run": {"groups": {"hint": spec}},
            "events": "$.none[*]",
            "rules": [{"when": "else", "emit": "skip"}],
        }
    )
    ((_, get),) = adapter.program.groups
    return get
