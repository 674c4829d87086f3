"""A spec that is too large is refused at once, in a sentence, whatever part of it is large."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import pytest

from prefixguard.errors import AdapterError
from prefixguard.stepview import Adapter, list_adapters, load_adapter
from prefixguard.stepview import schema as bounds

BASE = json.loads(load_adapter("openai_chat").to_bytes())


def with_kind(value: Any) -> dict[str, Any]:
    return {**copy.deepcopy(BASE), "kind": value}


def nested(levels: int) -> Any:
    value: Any = "@.a"
    for _ in range(levels):
        value = {"join": [value]}
    return value


def search(source: str) -> dict[str, Any]:
    return {"of": "@.a", "re": source, "group": 0}


TOO_LARGE = {
    "nested joins": (with_kind({"join": [nested(20)] * 40_000}), "3,6.. bytes; at most 262,144 are read"),
    "deep": (with_kind(nested(300)), "more than 48 levels"),
    "wide": (with_kind({"join": ["@.a"] * 6000}), "more than 5,000 values"),
    "rules": ({**BASE, "rules": BASE["rules"] * 200}, "more than 5,000 values"),
    "expressions": (with_kind({"join": [search(f"a{i}") for i in range(65)]}), "more than 64 regular expressions"),
    "one expression": (with_kind(search("a" * 2501)), "a regular expression of more than 2,500 characters"),
    "its program": (with_kind(search("[^b]{1000}" * 30)), "compiles to more than 20,000 instructions"),
    "a text": (with_kind("@" + ".a" * 6000), "a text or name of 12,001 characters; at most 10,000"),
    "comparisons": (
        {**with_kind("@.a"), "hidden": [f"$.h{i}" for i in range(1500)], "run": {"preamble": {"join": ["$.a"] * 1500}}},
        "are too many to compare",
    ),
}


@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_spec_that_is_too_large_is_refused_at_once(name: str) -> None:
    spec, said = TOO_LARGE[name]
    data = json.dumps(spec).encode()
    began = time.process_time()
    with pytest.raises(AdapterError, match=said.replace("3,6..", r"\d+,\d+,\d+")):
        Adapter.from_bytes(data, "adapter.json")
    assert time.process_time() - began < 0.5


def test_the_shipped_adapters_stay_far_below() -> None:
    """Three times what the largest has must still be readable, or the next adapter meets a bound."""

    def depth(value: Any) -> int:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return 1 + max(map(depth, inner), default=0)

    def values(value: Any) -> int:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return 1 + sum(map(values, inner))

    specs = [json.loads(load_adapter(name).to_bytes()) for name in list_adapters()]
    assert 3 * max(map(depth, specs)) < bounds.MOST_DEPTH
    assert 3 * max(map(values, specs)) < bounds.MOST_VALUES
    assert 3 * max(len(json.dumps(spec)) for spec in specs) < bounds.MOST_BYTES
