"""What "failed" means in a set of runs: the rule of its adapter, in words."""

from __future__ import annotations

import json
from typing import Any

from prefixguard.automata.summary.wording import one_line
from prefixguard.stepview import Adapter

_LETTERS = 60  # of a place or a test
_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below", "eq": ""}


def failed_means(adapter: Adapter) -> str:
    """By which field of the raw run, and by which rule, a run failed: a sentence."""
    run = json.loads(adapter.to_bytes()).get("run")
    spec = run.get("outcome") if isinstance(run, dict) else None
    if not isinstance(spec, dict) or not {"of", "success", "failure"} <= spec.keys():
        return "Which runs failed is not in them: it was told beside them."
    success, failure = (one_line(_test(spec[name]), _LETTERS) for name in ("success", "failure"))
    return (
        f"By the adapter a run succeeded if {_value(spec['of'])} is {success}, and failed if it is {failure}; runs of "
        "which neither can be said are left out."
    )


def _value(of: Any) -> str:
    """Where the outcome is read.

    >>> _value({"first": ["$.reward", {"of": "$.text", "re": "score ([0-9.]+)"}]})
    '$.reward, else what “score ([0-9.]+)” finds in $.text'
    """
    match of:
        case str():
            return one_line(of, _LETTERS)
        case {"first": list(places)}:
            return ", else ".join(map(_value, places))
        case {"of": inner, "re": str(pattern)}:
            return f"what “{one_line(pattern, _LETTERS)}” finds in {_value(inner)}"
        case {"sibling": str(file), "path": str(path)}:
            return one_line(f"{path} of {file}", _LETTERS)
        case {"text": str(path)}:
            return one_line(path, _LETTERS)
        case {"file": str(part)}:
            return one_line(f"the {part} of the file", _LETTERS)
    return one_line(json.dumps(of, ensure_ascii=False), _LETTERS)


def _test(test: Any) -> str:
    """What holds of the value.

    >>> _test({"lt": 1.0}), _test("else"), _test({"in": ["CORRECT", True]}), _test("1.0")
    ('below 1.0', 'anything else', '"CORRECT" or true', '"1.0"')
    """
    match test:
        case "else":
            return "anything else"
        case {"in": [*values]} if values:
            return " or ".join(json.dumps(value, ensure_ascii=False) for value in values)
        case {"re": str(pattern), **rest} if not rest:
            return f"such that {pattern} matches"
        case dict() if test and test.keys() <= _BOUNDS.keys():
            return " and ".join(f"{_BOUNDS[how]} {json.dumps(end)}".strip() for how, end in test.items())
    return json.dumps(test, ensure_ascii=False)
