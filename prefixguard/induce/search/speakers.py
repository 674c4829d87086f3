"""What a value of a discriminator ("assistant", "ToolCallExecutionEvent", "function_call_output") says about who speaks
and what kind of event it is. One clue among others."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache

from prefixguard.lexicon import words


class Part(StrEnum):
    """What an event, or a part of one, is in a run."""

    CALL = "call"
    RESULT = "result"
    SAY = "say"
    USER = "user"
    SYSTEM = "system"
    THOUGHT = "thought"
    NOISE = "noise"
    STEP = "step"


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_RESULT = _set("result results output outputs observation observations obs executed returned toolmessage execution")
_CALL = _set("call calls use request requests invoke invocation action actions start")
_TOOL = _set("tool tools function functions fn")
_AGENT = _set(
    "assistant ai agent bot model gpt llm claude aimessage gemini chatbot generation completion chat inference"
)
_USER = _set("user human customer client humanmessage")
_SYSTEM = _set("system developer systemmessage instructions")
_WORLD = _set("environment env terminal ipython computer shell sandbox server executor")
_THOUGHT = _set("thought thoughts thinking reasoning think rationale")
_WORD = _set("content block chunk text delta message event step item summary redacted")
_NOISE = _set(
    "progress snapshot heartbeat ping usage summary metadata meta title queue permission checkpoint state changed init "
    "config header info token count attachment mode debug score sample begin end error step"
)


@lru_cache(maxsize=4096)
def part_of(value: str) -> tuple[Part, float] | None:
    """What the value names, and how surely, in (0, 1]; None where it says nothing.

    >>> part_of("assistant"), part_of("ToolCallExecutionEvent"), part_of("function_call"), part_of("k7")
    ((<Part.SAY: 'say'>, 1.0), (<Part.RESULT: 'result'>, 0.9), (<Part.CALL: 'call'>, 0.9), None)
    """
    if len(value) > 60:
        return None
    found = words(value)
    have = set(found)
    if not have:
        return None
    if have & _RESULT and (have & (_TOOL | _CALL | _WORLD) or len(found) <= 2):
        return Part.RESULT, 0.9
    if have & _THOUGHT:
        known = have <= _THOUGHT | _AGENT | _TOOL | _WORD
        return (Part.THOUGHT, 0.9) if known else None  # else it names somebody who thinks
    if have & _TOOL and have & _CALL:
        return Part.CALL, 0.9
    if have & _SYSTEM:
        return Part.SYSTEM, 0.9 if len(found) == 1 else 0.6
    if have & _USER:
        return Part.USER, 1.0 if len(found) <= 2 else 0.6
    if have & _WORLD or (have & _TOOL and len(found) <= 2):
        return Part.RESULT, 0.8 if len(found) <= 2 else 0.5
    if have & _AGENT:
        if have & {"action", "call"}:
            return Part.CALL, 0.6
        return Part.SAY, 1.0 if len(found) <= 2 else 0.6
    if have & _CALL and len(found) <= 2:
        return Part.CALL, 0.5
    if have & _NOISE:
        return Part.NOISE, 0.4
    return None
