"""Paths: what they find, and what is no path."""

from __future__ import annotations

from typing import Any

import pytest

from prefixguard.errors import AdapterError
from prefixguard.stepview.paths import MISSING, Scope, getter, parse_path, walk

DATA = {
    "a": {"b.c": [10, 20, 30], "": 1},
    "rows": [{"type": "x", "v": [1, 2]}, {"type": "y", "v": [3]}, {"type": "x"}, "stray", {"type": True, "v": [4]}],
    "by_name": {"one": {"n": 1}, "two": {"n": 2}},
    "nothing": None,
}


def find(path: str, data: Any = DATA) -> Any:
    return getter(*parse_path(path, "here"))(Scope(run=data))


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$", DATA),
        ('$.a["b.c"][0]', 10),
        ("$.a['b.c'][-1]", 30),
        ("$.rows[*].type", ["x", "y", "x", True]),
        ("$.rows[type=x].v[*]", [1, 2]),
        ("$.rows[type=true].v", [[4]]),
        ("$.rows[type=none]", []),
        ("$.by_name.*.n", [1, 2]),
        ("$.by_name[*].n", [1, 2]),
        ("$.nothing", None),
    ],
)
def test_finds(path: str, found: Any) -> None:
    assert find(path) == found


@pytest.mark.parametrize(
    "path", ["$.x", "$.a.x.y", "$.rows[9]", "$.rows[-9]", "$.rows.v", "$.nothing.x", "$.a[0]", "$.x[*]", "$.a[k=v]"]
)
def test_leads_nowhere(path: str) -> None:
    assert find(path) is MISSING


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("name", 'a fixed text is written {"const"'),
        ("$..x", "empty name"),
        ("$.a[", "open bracket"),
        ("$.a['x]", "open bracket"),
        ("$a", "cannot be read at character 2"),
        ("$.a[1:2]", "brackets hold a number"),
        ("$.a[?(@.x)]", "brackets hold a number"),
        (7, "is not a path"),
    ],
)
def test_no_path(path: Any, message: str) -> None:
    with pytest.raises(AdapterError) as caught:
        parse_path(path, "rules[3].tool")
    assert message in str(caught.value)
    assert "rules[3].tool" in str(caught.value)


@pytest.mark.parametrize("value", [None, 1, "text", [], {}, [1], {"a": 1}, MISSING, True, float("nan")])
def test_any_value_is_walked_without_error(value: Any) -> None:
    for path in ("$.a.b", "$.a[0].b", "$[*].a", "$[k=v].a[*]", "$.a", "$[0]"):
        walk(parse_path(path, "here")[1])(value)


def test_a_path_has_so_many_steps() -> None:
    assert len(parse_path("$" + ".a" * 64, "here")[1]) == 64
    for path in ("$" + "[*]" * 3000, "@" + ".a" * 65):
        with pytest.raises(AdapterError, match=r"steps; at most 64 are read\. Name a place that is less deep"):
            parse_path(path, "here")
