"""What each context feature is called, which group it belongs to, and how it is said in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Feature:
    """One number of the context vector.

    name: stable identifier. group: one of GROUPS. text: said in a reason, `{value}` filled in.
    """

    name: str
    group: str
    text: str


GROUPS = ("position", "counts", "repeats", "sizes", "grounding", "novelty")

_SIZED = (
    ("arguments", "arguments"),
    ("action", "the agent's text"),
    ("result", "result"),
    ("observation", "observation"),
)

FEATURES: tuple[Feature, ...] = (
    Feature("step", "position", "step number {value}"),
    Feature("log_step", "position", "step number (logarithm {value})"),
    Feature("calls", "counts", "{value} tool calls so far"),
    Feature("messages", "counts", "{value} messages so far"),
    Feature("is_message", "counts", "this step is a message"),
    Feature("is_error", "counts", "this step failed"),
    Feature("errors", "counts", "{value} failed steps so far"),
    Feature("error_rate", "counts", "share of failed steps {value}"),
    Feature("errors_in_a_row", "counts", "{value} failed steps in a row"),
    Feature("steps_since_error", "counts", "{value} steps since a failed one"),
    Feature("tools", "counts", "{value} different tools used"),
    Feature("failed_tools", "counts", "{value} different tools have failed"),
    Feature("tool_entropy", "counts", "spread over tools {value} bits"),
    Feature("same_tool_in_a_row", "counts", "the same tool {value} times in a row"),
    Feature("steps_since_call", "counts", "{value} steps since a tool call"),
    Feature("messages_in_a_row", "counts", "{value} messages in a row"),
    Feature("tool_seen", "counts", "this tool was used {value} times before"),
    Feature("tool_failures", "counts", "this tool has failed {value} times"),
    Feature("call_seen", "repeats", "this very call was made {value} times before"),
    Feature("same_call_in_a_row", "repeats", "the same call repeated {value} times in a row"),
    Feature("most_repeated_call", "repeats", "one call was made {value} times"),
    Feature("repeated_calls", "repeats", "{value} calls so far were repeats"),
    Feature("message_seen", "repeats", "this very message was sent {value} times before"),
    Feature("result_seen", "repeats", "this very result came back {value} times before"),
    Feature("call_and_result_seen", "repeats", "the same call gave the same result {value} times before"),
    Feature("repeat_rate", "repeats", "share of repeated steps {value}"),
    *(
        Feature(f"{kind}_{name}", "sizes", f"{words} of {said}: {{value}} (logarithm of characters)")
        for name, said in _SIZED
        for kind, words in (("size", "length"), ("mean_size", "mean length"), ("largest", "greatest length"))
    ),
    Feature("ungrounded", "grounding", "share of identifiers in the call seen nowhere before: {value}"),
    Feature("ungrounded_average", "grounding", "recent share of identifiers seen nowhere before: {value}"),
    Feature("ungrounded_calls", "grounding", "{value} calls used identifiers seen nowhere before"),
    Feature("new_words_action", "novelty", "share of new words in the agent's text {value}"),
    Feature("new_words_result", "novelty", "share of new words in the result {value}"),
    Feature("new_words_action_average", "novelty", "recent share of new words in the agent's text {value}"),
    Feature("new_words_result_average", "novelty", "recent share of new words in results {value}"),
    Feature("log_vocabulary", "novelty", "different words so far (logarithm {value})"),
)

N_FEATURES = len(FEATURES)
