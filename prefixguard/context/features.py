"""What each context feature is called, which group it belongs to, and what it is called in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Feature:
    """One number of the context vector.

    name: stable identifier. group: one of GROUPS.
    text: how it is called in a reason, where its value follows; of a yes-or-no feature, the whole phrase.
    kind: what the number is: "number"; "logarithm" of one plus a number (people see the number); "yes" (1 or 0).
    """

    name: str
    group: str
    text: str
    kind: Literal["number", "logarithm", "yes"] = "number"


GROUPS = ("position", "counts", "repeats", "sizes", "grounding", "novelty")

_SIZED = (
    ("arguments", "the call's arguments", "calls' arguments"),
    ("action", "the agent's text", "the agent's texts"),
    ("result", "the result", "results"),
    ("observation", "the observation", "observations"),
)

FEATURES: tuple[Feature, ...] = (
    Feature("step", "position", "step number"),
    Feature("log_step", "position", "step number", "logarithm"),
    Feature("calls", "counts", "tool calls so far"),
    Feature("messages", "counts", "messages so far"),
    Feature("is_message", "counts", "this step is a message", "yes"),
    Feature("is_error", "counts", "this step failed", "yes"),
    Feature("errors", "counts", "failed steps so far"),
    Feature("error_rate", "counts", "share of steps so far that failed"),
    Feature("errors_in_a_row", "counts", "failed steps in a row"),
    Feature("steps_since_error", "counts", "steps since one failed (50 if none did)"),
    Feature("tools", "counts", "different tools used so far"),
    Feature("failed_tools", "counts", "different tools that failed so far"),
    Feature("tool_entropy", "counts", "spread of calls over tools, in bits"),
    Feature("same_tool_in_a_row", "counts", "calls of the same tool in a row"),
    Feature("steps_since_call", "counts", "steps since a tool call (50 if none was)"),
    Feature("messages_in_a_row", "counts", "messages since a tool call"),
    Feature("tool_seen", "counts", "earlier calls of this tool"),
    Feature("tool_failures", "counts", "failures of this tool so far"),
    Feature("call_seen", "repeats", "times this very call was made before"),
    Feature("same_call_in_a_row", "repeats", "times this very call was repeated in a row"),
    Feature("most_repeated_call", "repeats", "times the most repeated call was made"),
    Feature("repeated_calls", "repeats", "calls so far that were repeats"),
    Feature("message_seen", "repeats", "times this very message was sent before"),
    Feature("result_seen", "repeats", "times this very result came back before"),
    Feature("call_and_result_seen", "repeats", "times this very call gave this very result before"),
    Feature("repeat_rate", "repeats", "share of steps so far that were repeats"),
    *(
        Feature(f"{kind}_{name}", "sizes", f"{words}, in characters", "logarithm")
        for name, one, many in _SIZED
        for kind, words in (
            ("size", f"length of {one}"),
            ("mean_size", f"typical length of {many} so far"),
            ("largest", f"greatest length of {many} so far"),
        )
    ),
    Feature("ungrounded", "grounding", "share of the call's identifiers that were nowhere before"),
    Feature("ungrounded_average", "grounding", "share of recent calls' identifiers that were nowhere before"),
    Feature("ungrounded_calls", "grounding", "calls so far with identifiers that were nowhere before"),
    Feature("new_words_action", "novelty", "share of new words in the agent's text"),
    Feature("new_words_result", "novelty", "share of new words in the result"),
    Feature("new_words_action_average", "novelty", "share of new words in the agent's recent texts"),
    Feature("new_words_result_average", "novelty", "share of new words in recent results"),
    Feature("log_vocabulary", "novelty", "different words so far", "logarithm"),
)

N_FEATURES = len(FEATURES)
