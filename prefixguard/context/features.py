"""What each context feature is called, which group it belongs to, and how it is said in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Feature:
    """One number of the context vector.

    name: stable identifier. group: one of GROUPS.
    text: how it is called in a reason, where its value follows; of a yes-or-no feature, the whole phrase.
    kind: what the number is: "number"; "logarithm" of one plus a number, which is what people are told; "yes" (1 or 0).
    """

    name: str
    group: str
    text: str
    kind: Literal["number", "logarithm", "yes"] = "number"


GROUPS = ("position", "counts", "repeats", "sizes", "grounding", "novelty")

_SIZED = (
    ("arguments", "the call's arguments"),
    ("action", "the agent's text"),
    ("result", "the result"),
    ("observation", "what was observed"),
)

FEATURES: tuple[Feature, ...] = (
    Feature("step", "position", "step number"),
    Feature("log_step", "position", "step number", "logarithm"),
    Feature("calls", "counts", "tool calls so far"),
    Feature("messages", "counts", "messages so far"),
    Feature("is_message", "counts", "this step is a message", "yes"),
    Feature("is_error", "counts", "this step failed", "yes"),
    Feature("errors", "counts", "failed steps so far"),
    Feature("error_rate", "counts", "share of steps that failed"),
    Feature("errors_in_a_row", "counts", "failed steps in a row"),
    Feature("steps_since_error", "counts", "steps since one failed, at most 50"),
    Feature("tools", "counts", "different tools used"),
    Feature("failed_tools", "counts", "different tools that failed"),
    Feature("tool_entropy", "counts", "spread of calls over tools, in bits"),
    Feature("same_tool_in_a_row", "counts", "calls of the same tool in a row"),
    Feature("steps_since_call", "counts", "steps since a tool call, at most 50"),
    Feature("messages_in_a_row", "counts", "messages in a row"),
    Feature("tool_seen", "counts", "earlier calls of this tool"),
    Feature("tool_failures", "counts", "failures of this tool"),
    Feature("call_seen", "repeats", "times this very call was made before"),
    Feature("same_call_in_a_row", "repeats", "times this very call was repeated in a row"),
    Feature("most_repeated_call", "repeats", "times the most repeated call was made"),
    Feature("repeated_calls", "repeats", "calls so far that were repeats"),
    Feature("message_seen", "repeats", "times this very message was sent before"),
    Feature("result_seen", "repeats", "times this very result came back before"),
    Feature("call_and_result_seen", "repeats", "times this very call gave this very result before"),
    Feature("repeat_rate", "repeats", "share of steps that were repeats"),
    *(
        Feature(f"{kind}_{name}", "sizes", f"{words} of {said}, in characters", "logarithm")
        for name, said in _SIZED
        for kind, words in (("size", "length"), ("mean_size", "usual length"), ("largest", "greatest length"))
    ),
    Feature("ungrounded", "grounding", "share of identifiers in the call that stood nowhere before"),
    Feature("ungrounded_average", "grounding", "share of identifiers in recent calls that stood nowhere before"),
    Feature("ungrounded_calls", "grounding", "calls with identifiers that stood nowhere before"),
    Feature("new_words_action", "novelty", "share of new words in the agent's text"),
    Feature("new_words_result", "novelty", "share of new words in the result"),
    Feature("new_words_action_average", "novelty", "share of new words in the agent's recent text"),
    Feature("new_words_result_average", "novelty", "share of new words in recent results"),
    Feature("log_vocabulary", "novelty", "different words so far", "logarithm"),
)

N_FEATURES = len(FEATURES)
