"""What an event says that a run is given: its tools, and how many steps it may have."""

from __future__ import annotations

from typing import Any, Final

from prefixguard.trace import NO_OFFER, RunOffer

EVENT_SCHEMA: Final = "prefixguard/event/v1"
#: Tools that are read, and characters of a name; of an event with more, no tools are known. Steps of a limit.
MOST_TOOLS, MOST_NAME, MOST_LIMIT = 1000, 200, (1 << 32) - 1


def is_tools(value: Any) -> bool:
    """Is it a list of names of tools that can be read?"""
    if not isinstance(value, list | tuple) or len(value) > MOST_TOOLS:
        return False
    return all(isinstance(name, str) and 0 < len(name) <= MOST_NAME for name in value)


def is_limit(value: Any) -> bool:
    """Is it a number of steps that a run may have?"""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_LIMIT


def readable_offer(tools: Any, step_limit: Any, before: RunOffer = NO_OFFER) -> RunOffer:
    """These tools and this limit; what cannot be read of them is as it was before."""
    return RunOffer(
        tuple(tools) if is_tools(tools) else before.tools, step_limit if is_limit(step_limit) else before.step_limit
    )


def offer_of(event: Any, before: RunOffer = NO_OFFER) -> RunOffer:
    """What is known after an event: one of the kind `task` (`EVENT_SCHEMA`) may say it, and any other says nothing."""
    if type(event) is not dict or event.get("schema") != EVENT_SCHEMA or event.get("kind") != "task":
        return before
    return readable_offer(event.get("tools"), event.get("step_limit"), before)
