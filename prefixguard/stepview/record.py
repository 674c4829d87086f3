"""The step record and its one serialisation.

A record is one thing the agent did, with what it saw before and what came back. Its serialisation is what every later
stage reads: seven fields in fixed order, each preceded by one tag byte. Tags are the control bytes 1..7; text cannot
forge one, because those bytes are replaced by a space in every field.

Source: PrefixGuard 4.1 (StepView), 4.2 (field order).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from prefixguard.errors import TraceError
from prefixguard.stepview.signals import Signals
from prefixguard.stepview.text import plain

Status = Literal["ok", "error", "unknown"]

#: Fields that are serialised, in order; the tag byte of a field is its position here plus one. `agent` is not among
#: them: names of agents and models are shortcuts, not evidence.
FIELDS: tuple[str, ...] = ("actor", "tool", "arguments", "observation", "action", "result", "status")

#: For bytes, not text: a text that is not all ASCII is translated a hundred times slower. No byte of a longer UTF-8
#: sequence is a tag.
_CLEAN = bytes(32 if 1 <= byte <= len(FIELDS) else byte for byte in range(256))
_TAGGED = tuple((bytes((tag,)), name) for tag, name in enumerate(FIELDS, 1))


@dataclass(slots=True, unsafe_hash=True)  # not frozen, which would take fifteen times as long at every step
class StepRecord:
    """One step of a run. Absent text is the empty string.

    index: number of the record in its run, from 1.
    actor: who acted: agent, user, environment or system.
    agent: the agent's name where there are several.
    tool: tool or action type; `respond` for plain speech; empty if unknown.
    arguments: canonical JSON (sorted keys), or the raw string where it is not JSON.
    observation: what arrived since the last record.
    action: the agent's own text.
    result: what came back for this action.
    status: ok, error or unknown: of this step, never of the run.
    event: position of the source event it came from, from 0; -1 where unknown.
    score: what a verifier, judge or critic said of the run so far, where that is all the step is; None in a step of an
        agent. No text of a step holds it.
    signals: what the step took: seconds, tokens, dollars; None where nobody says. No text of a step holds it.
    """

    index: int
    actor: str
    agent: str
    tool: str
    arguments: str
    observation: str
    action: str
    result: str
    status: Status
    event: int = -1
    score: float | None = None
    signals: Signals | None = None


#: An event of a run that is known by its scores, as people write it.
SCORE_EVENT = '{"score": 0.7}, or 0.7 alone'
#: No score is further from 0: a sum of them, and each as a float32, has to stay finite.
LARGEST_SCORE = 1e30


def score_record(index: int, score: Any, event: int = -1) -> StepRecord:
    """The step of a run that is known by its scores alone.

    index : number of the step, from 1. score : a number, of Python or of an array library; a bool is none.
    Raises TraceError for what is no number, is not finite, or is beyond `LARGEST_SCORE`.

    >>> score_record(1, float("nan"))
    Traceback (most recent call last):
    ...
    prefixguard.errors.TraceError: the score nan is not a finite number from -1e+30 to 1e+30
    """
    try:
        if isinstance(score, str | bytes | bool):
            raise TypeError
        number = float(score)
    except (TypeError, ValueError, OverflowError) as exc:
        raise TraceError(f"the score {plain(repr(score), 60)} is not a number") from exc
    if not abs(number) <= LARGEST_SCORE:
        raise TraceError(f"the score {number} is not a finite number from {-LARGEST_SCORE:g} to {LARGEST_SCORE:g}")
    return StepRecord(index, "environment", "", "", "", "", "", "", "ok", event, number)


def raw_record(record: StepRecord) -> StepRecord:
    """The control of the view: the same step as one text, in `action`. Of the other fields nothing is left.

    The text is what the record holds, in the order in which it happened: what was seen, what the agent said, its
    call as it was spelled, what came back. So no more can be read from it than from the record, and what fields, their
    types and the status add can be measured.

    >>> raw_record(StepRecord(1, "agent", "", "ls", "{}", "Look!", "I look.", "a b", "ok")).action
    'Look!\\nI look.\\nls {}\\na b'
    """
    tool = "" if record.tool == "respond" else record.tool  # our word for speech, not the run's
    call = f"{tool} {record.arguments}".strip()
    text = "\n".join(filter(None, (record.observation, record.action, call, record.result)))
    return StepRecord(record.index, "agent", "", "", "", "", text, "", "unknown", record.event)


def serialize(record: StepRecord) -> bytes:
    """The record as tagged UTF-8 bytes.

    >>> serialize(StepRecord(1, "agent", "", "ls", "{}", "", "look", "a b", "ok"))
    b'\\x01agent\\x02ls\\x03{}\\x04\\x05look\\x06a b\\x07ok'
    """
    parts = []
    for tag, name in _TAGGED:
        parts.append(tag)
        parts.append(getattr(record, name).encode("utf-8", "replace").translate(_CLEAN))
    return b"".join(parts)
