"""A finding of the leak audit, and the waivers that call a finding harmless and say why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from prefixguard.results import Block, Result, Text, finite
from prefixguard.stepview import Adapter, DataPlace

Severity = Literal["error", "warning", "note"]
#: Characters of a token that are shown.
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class LeakFinding(Result):
    """A leak or a shortcut.

    kind : last_step, token, number, identifier, hidden_text, later_text, whole_rest, countdown, run_length or shortcut;
        in raw data name, identity, neighbours, unnamed, outcome, verdict, hidden, judged_event, last_status or
        raw_value.
    field : the field of the records that holds it; "length" where it is the number of records; a raw place as the spec
        spells it.
    token : a word, a pair of words, `= value` for a whole value, or `(empty)`; for a name, the kind of name and one of
        the names; empty where no single token tells the outcome.
    severity : an error is what no live run has, or what only a verdict looks like; a warning is worth a look; a note
        is waived.
    figures : the numbers; shares, areas and p-values (corrected for everything that was tried) are in [0, 1].
    text : the same in words, a sentence or two.
    waived : the reason why it is called harmless; empty where it is not waived.
    remedy, place : for findings in the raw data, what to do, and the raw place that the finding is about.
    """

    kind: str
    field: str
    token: str
    severity: Severity
    figures: Mapping[str, float]
    text: str
    waived: str = ""
    remedy: str = ""
    place: DataPlace | None = None

    @property
    def option(self) -> str:
        """The option of the command line that waives what is found in this field.

        >>> LeakFinding("token", "result", "refunded", "warning", {}, "").option
        "--waive 'result=REASON'"
        """
        return f"--waive '{self.field}=REASON'"

    def blocks(self) -> tuple[Block, ...]:
        """A paragraph."""
        return (Text(f"{self.severity.upper()} {self.kind}, {self.field}: {self.text}"),)

    def as_json(self) -> dict[str, Any]:
        """Plain values; a figure that is no number is None."""
        return {
            "kind": self.kind,
            "field": self.field,
            "token": self.token,
            "severity": self.severity,
            "waived": self.waived or None,
            "figures": {key: finite(round(value, 6)) for key, value in sorted(self.figures.items())},
            "text": self.text,
        }


def shown(token: str) -> str:
    """A token as messages show it: quoted, short, without control characters.

    >>> shown("reward 1.0"), shown("a" * 100)[-5:]
    ("'reward 1.0'", "aaa…'")
    """
    clean = "".join(c if c.isprintable() else " " for c in token[: _SHOWN + 1])
    return f"'{clean[:_SHOWN]}…'" if len(clean) > _SHOWN else f"'{clean}'"


def waivers_of(adapter: Adapter, given: Mapping[str, str]) -> dict[str, str]:
    """What the adapter's spec waives and what `given` waives, place to reason; `given` goes before the spec."""
    spec = json.loads(adapter.to_bytes())
    return {str(one["path"]): str(one["reason"]) for one in spec.get("waived", [])} | dict(given)
