"""Every context feature by its definition, read from the whole history: slow, in exact and unlimited memory.

Equal to the fast code as long as a run stays within what that remembers; `FirstIn` is its bounded memory, said plainly.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from functools import cache

import plain_encoder

from prefixguard.stepview import StepRecord

FAR, MANY = 50, 1000
TEXTS = ("arguments", "action", "result", "observation")


def features(run: Sequence[StepRecord]) -> list[dict[str, float]]:
    """One dictionary a step, name of the feature to its value."""
    grounding = [ungrounded(run[:t], r) for t, r in enumerate(run)]
    new_action = [new_share(run[:t], message_of(r)) for t, r in enumerate(run)]
    new_result = [new_share(run[:t], result_of(r)) for t, r in enumerate(run)]
    return [
        at_step(run[:t], grounding[:t], new_action[:t], new_result[:t])  # nothing after the step, by construction
        for t in range(1, len(run) + 1)
    ]


class FirstIn:
    """Counts of the last `size` different keys that came in; when a further one comes, the first one is forgotten."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.counts: dict[Hashable, int] = {}

    def seen(self, key: Hashable) -> int:
        return self.counts.get(key, 0)

    def add(self, key: Hashable) -> None:
        if key not in self.counts and len(self.counts) == self.size:
            del self.counts[next(iter(self.counts))]
        self.counts[key] = min(self.counts.get(key, 0) + 1, MANY)


def is_call(record: StepRecord) -> bool:
    return record.tool not in ("", "respond")


def is_error(record: StepRecord) -> bool:
    return record.status == "error"


def tool_of(record: StepRecord) -> Hashable:
    return tuple(plain_encoder.words(record.tool))


def call_of(record: StepRecord) -> Hashable:
    return tool_of(record), tuple(plain_encoder.words(record.arguments))


def result_of(record: StepRecord) -> tuple[bytes, ...]:
    return tuple(plain_encoder.words(record.result))


def message_of(record: StepRecord) -> tuple[bytes, ...]:
    return tuple(plain_encoder.words(record.action))


@cache
def words_of(record: StepRecord) -> frozenset[bytes]:
    texts = (record.arguments, record.observation, record.action, record.result)
    return frozenset(word for text in texts for word in plain_encoder.words(text))


def vocabulary(run: Sequence[StepRecord]) -> set[bytes]:
    """All words of the steps; names of actors and tools, and statuses, are not among them."""
    return {word for record in run for word in words_of(record)}


def has_digit(word: bytes) -> bool:
    return any(48 <= byte <= 57 for byte in word)


def earlier(keys: Sequence[Hashable], size: int) -> list[int]:
    """For each key: how often it stood before it, as far as a memory of `size` keys knows."""
    memory = FirstIn(size)
    counts = []
    for key in keys:
        counts.append(memory.seen(key))
        memory.add(key)
    return counts


def in_a_row(flags: Sequence[bool]) -> int:
    """How many at the end are true."""
    return next((i for i, flag in enumerate(reversed(flags)) if not flag), len(flags))


def since(flags: Sequence[bool]) -> int:
    """Steps since the last true one, 0 if that is the last; FAR where there is none or it is long ago."""
    return min(next((i for i, flag in enumerate(reversed(flags)) if flag), FAR), FAR)


def average(values: Sequence[float]) -> float:
    """Each new value counts one half, what was before the other half; it begins at 0."""
    mean = 0.0
    for value in values:
        mean = (mean + value) / 2
    return mean


def share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0


def entropy(counts: Sequence[int]) -> float:
    return -sum(n / sum(counts) * math.log2(n / sum(counts)) for n in counts)


def ungrounded(before: Sequence[StepRecord], record: StepRecord) -> float:
    """Share of the call's identifiers that neither the run nor this step's observation held. 0 for a message."""
    known = vocabulary(before) | set(plain_encoder.words(record.observation))
    identifiers = [word for word in plain_encoder.words(record.arguments) if has_digit(word)]
    return share([word not in known for word in identifiers]) if is_call(record) else 0.0


def new_share(before: Sequence[StepRecord], words: Sequence[bytes]) -> float:
    known = vocabulary(before)
    return share([word not in known for word in words])


def at_step(
    run: Sequence[StepRecord], grounding: Sequence[float], new_action: Sequence[float], new_result: Sequence[float]
) -> dict[str, float]:
    """All features of the last step of `run`; of each step the shares that go into an average are given."""
    now = run[-1]
    calls = [r for r in run if is_call(r)]
    call_now = is_call(now)
    tools = Counter(map(tool_of, calls))
    seen_tools = earlier([tool_of(r) for r in calls], 32)
    failures = FirstIn(32)
    for r in calls:
        if is_error(r):
            failures.add(tool_of(r))
    seen_calls = earlier([call_of(r) for r in calls], 64)
    seen_both = earlier([(call_of(r), result_of(r)) for r in calls], 64)
    said = [r for r in run if not is_call(r) and message_of(r)]
    seen_messages = earlier([message_of(r) for r in said], 32)
    answered = [r for r in run if result_of(r)]
    seen_results = earlier([result_of(r) for r in answered], 64)
    repeated_calls = sum(n > 0 for n in seen_calls)
    repeated_messages = sum(n > 0 for n in seen_messages)
    last_calls = [call_of(r) if is_call(r) else None for r in run]
    last_tools = [tool_of(r) if is_call(r) else None for r in run]
    values: dict[str, float] = {
        "step": len(run),
        "log_step": math.log(1 + len(run)),
        "calls": len(calls),
        "messages": len(run) - len(calls),
        "is_message": not call_now,
        "is_error": is_error(now),
        "errors": sum(map(is_error, run)),
        "error_rate": share([is_error(r) for r in run]),
        "errors_in_a_row": in_a_row([is_error(r) for r in run]),
        "steps_since_error": since([is_error(r) for r in run]),
        "tools": len(tools),
        "failed_tools": len({tool_of(r) for r in calls if is_error(r)}),
        "tool_entropy": entropy(list(tools.values())) if tools else 0.0,
        "same_tool_in_a_row": in_a_row([tool == tool_of(now) for tool in last_tools]) if call_now else 0,
        "steps_since_call": since([is_call(r) for r in run]),
        "messages_in_a_row": in_a_row([not is_call(r) for r in run]),
        "tool_seen": seen_tools[-1] if call_now else 0,
        "tool_failures": failures.seen(tool_of(now)) if call_now else 0,
        "call_seen": seen_calls[-1] if call_now else 0,
        "same_call_in_a_row": in_a_row([call == call_of(now) for call in last_calls]) - 1 if call_now else 0,
        "most_repeated_call": max((n + 1 for n in seen_calls), default=0),
        "repeated_calls": repeated_calls,
        "message_seen": seen_messages[-1] if not call_now and message_of(now) else 0,
        "result_seen": seen_results[-1] if result_of(now) else 0,
        "call_and_result_seen": seen_both[-1] if call_now else 0,
        "repeat_rate": (repeated_calls + repeated_messages) / len(run),
        "ungrounded": grounding[-1],
        "ungrounded_average": average([x for x, r in zip(grounding, run, strict=True) if is_call(r)]),
        "ungrounded_calls": sum(x > 0 for x in grounding),
        "new_words_action": new_action[-1],
        "new_words_result": new_result[-1],
        "new_words_action_average": average(new_action),
        "new_words_result_average": average([x for x, r in zip(new_result, run, strict=True) if result_of(r)]),
        "log_vocabulary": math.log(1 + len(vocabulary(run))),
    }
    for name in TEXTS:
        sizes = [math.log(1 + len(getattr(r, name))) for r in run]
        values[f"size_{name}"] = sizes[-1]
        values[f"mean_size_{name}"] = sum(sizes) / len(sizes)
        values[f"largest_{name}"] = max(sizes)
    return {name: float(min(value, MANY)) for name, value in values.items()}
