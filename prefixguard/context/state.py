"""Streaming context: what has happened in the run so far, as numbers, updated in O(length of the step).

State has a fixed size whatever the run's length: one Bloom filter of words, six tables of recent hashes with counts,
and counters. The same function serves training and the live path. Causal by construction: a feature of step t reads
records 1..t only. A packed state has one length, with all numbers at fixed places, little-endian.
"""

from __future__ import annotations

import math
import struct

import numpy as np
from numpy.typing import NDArray

from prefixguard.context import bloom
from prefixguard.context.recent import MOST, RecentCounts
from prefixguard.encoder import Tokens
from prefixguard.errors import SavedSessionError
from prefixguard.stepview.record import FIELDS, StepRecord

_ARGUMENTS, _OBSERVATION, _ACTION, _RESULT = (FIELDS.index(f) for f in ("arguments", "observation", "action", "result"))
_TOOL = FIELDS.index("tool")
_AFTER_ARGUMENTS = bytes([_ARGUMENTS + 2])  # the tag of the next field
#: For `bytes.translate`: 1 for a digit, 0 for any other byte.
_DIGIT = bytes(48 <= byte <= 57 for byte in range(256))
_NEW_WORDS, _NO_WORDS = 64, np.zeros(0, dtype=np.uint64)
_MADE_UP = 8
_FAR = 50.0  # "long ago" for steps since an event
_DECAY = 0.5
_MASK = (1 << 64) - 1
_ODD = np.arange(1, 1 << 15, 2, dtype=np.uint64)
#: No feature is greater: counters that would grow for ever stop here.
_GREATEST = np.array(MOST, dtype=np.float32)


#: What is kept of a run, in the order in which it is packed: counts, hashes, numbers, lists of numbers, and tables.
COUNTS = (
    "step",
    "calls_n",
    "messages_n",
    "errors",
    "error_streak",
    "tools_n",
    "failed_tools",
    "same_tool",
    "same_call",
    "message_streak",
    "most_repeated",
    "repeated_calls",
    "repeated_steps",
    "ungrounded_calls",
    "vocabulary",
    "saturated",
)
HASHES = ("last_call", "last_tool")
NUMBERS = ("since_error", "since_call", "entropy_sum", "ungrounded", "new_action", "new_result")
LISTS = ("means", "maxima")
TABLES = ("calls", "results", "call_results", "messages", "tools", "tool_failures")


class ContextState:
    """What is kept of a run. Fixed size, at most 19.5 KB; `saturated` counts words past the Bloom filter's capacity."""

    __slots__ = (*COUNTS, *HASHES, *NUMBERS, *LISTS, *TABLES, "made_up", "new_words", "words")

    def __init__(self) -> None:
        #: Of the last step: which of its tokens, at most 8, are identifiers of the call that were nowhere before. Not
        #: packed, since no later step asks for it.
        self.made_up: tuple[int, ...] = ()
        #: Hashes of the first words of the last call, at most 64, that the run had not held; not packed either.
        self.new_words: NDArray[np.uint64] = _NO_WORDS
        self.words = np.zeros(bloom.N_BYTES, dtype=np.uint8)
        self.calls, self.results, self.call_results = RecentCounts(64), RecentCounts(64), RecentCounts(64)
        self.messages = RecentCounts(32)
        self.tools, self.tool_failures = RecentCounts(32), RecentCounts(32)
        self.step = self.calls_n = self.messages_n = self.errors = self.error_streak = 0
        self.tools_n = self.failed_tools = self.same_tool = self.same_call = self.message_streak = 0
        self.most_repeated = self.repeated_calls = self.repeated_steps = self.ungrounded_calls = 0
        self.vocabulary = self.saturated = 0
        self.last_call = self.last_tool = 0
        self.since_error = self.since_call = _FAR
        self.entropy_sum = 0.0  # sum over tools of n * log2(n)
        self.ungrounded = self.new_action = self.new_result = 0.0
        self.means = [0.0, 0.0, 0.0, 0.0]
        self.maxima = [0.0, 0.0, 0.0, 0.0]


def start() -> ContextState:
    """The context of a run before its first step."""
    return ContextState()


def _hash(h: NDArray[np.uint64]) -> int:
    """One order-dependent hash of a sequence of token hashes; 0 only for the empty sequence."""
    n = len(h)
    if n == 0:
        return 0
    weights = _ODD[:n] if n <= len(_ODD) else np.arange(1, 2 * n, 2, dtype=np.uint64)
    return int(h.dot(weights)) or 1


def _share(flags: NDArray[np.bool_]) -> float:
    return int(np.count_nonzero(flags)) / len(flags) if len(flags) else 0.0


def _distinct(h: NDArray[np.uint64]) -> int:
    """How many different ones there are among one or more; sorts `h`."""
    h.sort()
    return 1 + int(np.count_nonzero(h[1:] != h[:-1]))


def update(state: ContextState, record: StepRecord, tokens: Tokens) -> NDArray[np.float32]:
    """Take one record into the state (in place) and return the context vector after it.

    tokens: of the serialised record (`encoder.tokenize`). Returns float32 (N_FEATURES,), in the order of FEATURES.
    """
    s = state
    s.step += 1
    b = tokens.bounds
    is_call = record.tool not in ("", "respond")
    is_error = record.status == "error"

    # counts
    if is_call:
        s.calls_n += 1
        s.since_call, s.message_streak = 0.0, 0
    else:
        s.messages_n += 1
        s.since_call = min(s.since_call + 1, _FAR)
        s.message_streak += 1
    if is_error:
        s.errors += 1
        s.error_streak += 1
        s.since_error = 0.0
    else:
        s.error_streak = 0
        s.since_error = min(s.since_error + 1, _FAR)
    tool = _hash(tokens.field(_TOOL))
    tool_seen = failures = 0
    if is_call:
        tool_seen = s.tools.bump(tool)
        s.tools_n += tool_seen == 0
        n = tool_seen + 1
        s.entropy_sum += n * math.log2(n) - (tool_seen * math.log2(tool_seen) if tool_seen else 0.0)
        if is_error:
            failures = s.tool_failures.bump(tool) + 1
            s.failed_tools += failures == 1
        else:
            failures = s.tool_failures.get(tool)
        s.same_tool = s.same_tool + 1 if tool == s.last_tool else 1
        s.last_tool = tool
    else:
        s.same_tool, s.last_tool = 0, 0
    entropy = max(math.log2(s.calls_n) - s.entropy_sum / s.calls_n, 0.0) if s.calls_n else 0.0

    # repeats
    call_seen = message_seen = both_seen = 0
    result = _hash(tokens.field(_RESULT))
    result_seen = s.results.bump(result) if result else 0
    if is_call:
        call = (_hash(tokens.hashes[b[_ARGUMENTS] : b[_ARGUMENTS + 1]]) + 3 * tool + 1) & _MASK
        call_seen = s.calls.bump(call)
        both_seen = s.call_results.bump((call + 5 * result) & _MASK)
        s.same_call = s.same_call + 1 if call == s.last_call else 0
        s.last_call = call
        s.repeated_calls += call_seen > 0
        s.most_repeated = max(s.most_repeated, call_seen + 1)
        s.repeated_steps += call_seen > 0
    else:
        s.same_call, s.last_call = 0, 0
        message = _hash(tokens.field(_ACTION))
        message_seen = s.messages.bump(message) if message else 0
        s.repeated_steps += message_seen > 0

    # sizes
    sizes: list[float] = []
    for i, text in enumerate((record.arguments, record.action, record.result, record.observation)):
        size = math.log1p(len(text))
        mean = s.means[i] = s.means[i] + (size - s.means[i]) / s.step
        largest = s.maxima[i] = max(s.maxima[i], size)
        sizes += (size, mean, largest)

    # grounding and novelty
    ungrounded, new_action, new_result = _take_words(s, tokens, is_call)
    if is_call:
        s.ungrounded_calls += ungrounded > 0
        s.ungrounded += (ungrounded - s.ungrounded) * _DECAY
    s.new_action += (new_action - s.new_action) * _DECAY
    if result:
        s.new_result += (new_result - s.new_result) * _DECAY

    out = np.array(
        (
            s.step,
            math.log1p(s.step),
            s.calls_n,
            s.messages_n,
            not is_call,
            is_error,
            s.errors,
            s.errors / s.step,
            s.error_streak,
            s.since_error,
            s.tools_n,
            s.failed_tools,
            entropy,
            s.same_tool,
            s.since_call,
            s.message_streak,
            tool_seen,
            failures,
            call_seen,
            s.same_call,
            s.most_repeated,
            s.repeated_calls,
            message_seen,
            result_seen,
            both_seen,
            s.repeated_steps / s.step,
            *sizes,
            ungrounded,
            s.ungrounded,
            s.ungrounded_calls,
            new_action,
            new_result,
            s.new_action,
            s.new_result,
            math.log1p(s.vocabulary),
        ),
        dtype=np.float32,
    )
    return np.minimum(out, _GREATEST, out=out)


def _take_words(s: ContextState, tokens: Tokens, is_call: bool) -> tuple[float, float, float]:
    """Take the words of a step into the state.

    Returns the share of the call's identifiers that are not grounded (see `_ungrounded`), and of the words of the
    action and of the result the share that the run has not seen before this step.
    """
    b = tokens.bounds
    low, high = b[_ARGUMENTS], b[_RESULT + 1]
    s.made_up, s.new_words = (), _NO_WORDS
    if low == high:
        return 0.0, 0.0, 0.0
    words = tokens.hashes[low:high]
    where = bloom.places(words)
    new = bloom.missing(s.words, where)
    ungrounded, of_arguments = 0.0, new[: b[_ARGUMENTS + 1] - low]
    if np.count_nonzero(of_arguments):
        ungrounded = _ungrounded(s, tokens, of_arguments) if is_call else 0.0
        s.new_words = words[: len(of_arguments)][of_arguments][:_NEW_WORDS].copy()
    new_action = _share(new[b[_ACTION] - low : b[_ACTION + 1] - low])
    new_result = _share(new[b[_RESULT] - low :])
    if np.count_nonzero(new):
        s.vocabulary += _distinct(words[new])
        s.saturated = max(s.vocabulary - bloom.CAPACITY, 0)
        bloom.insert(s.words, bloom.select(where, new))
    return ungrounded, new_action, new_result


def _ungrounded(s: ContextState, tokens: Tokens, new: NDArray[np.bool_]) -> float:
    """Share of the identifiers among the arguments' words that neither the run nor this step's observation held.

    An identifier is a word with a digit: what an agent must have read somewhere, unless it made it up.
    new: which words of the arguments the run has not held.
    """
    b = tokens.bounds
    low, high = b[_ARGUMENTS], b[_ARGUMENTS + 1]
    first = int(tokens.starts[low])
    digits = tokens.document[first : tokens.document.index(_AFTER_ARGUMENTS, first)].translate(_DIGIT)
    if 1 not in digits:
        return 0.0
    # Between two words there is no digit, so a word may be said to last until the next one begins.
    identifier = np.logical_or.reduceat(np.frombuffer(digits, np.bool_), tokens.starts[low:high] - first)
    unseen = (identifier & new).nonzero()[0]
    if len(unseen) and b[_OBSERVATION] < b[_OBSERVATION + 1]:
        missing = tokens.hashes[low:high][unseen]
        arrived = np.sort(tokens.field(_OBSERVATION))
        unseen = unseen[arrived.take(arrived.searchsorted(missing), mode="clip") != missing]
    s.made_up = tuple((unseen[:_MADE_UP] + low).tolist())
    return len(unseen) / int(np.count_nonzero(identifier)) if len(unseen) else 0.0


def knows(state: ContextState, words: NDArray[np.uint64]) -> list[bool]:
    """Of each word, by its hash, whether the run has held it in arguments, observations, texts or results."""
    known: list[bool] = (~bloom.missing(state.words, bloom.places(words))).tolist()
    return known


_FIXED = struct.Struct(f"<{len(COUNTS) + len(HASHES)}Q{len(NUMBERS) + 4 * len(LISTS)}d")
_MOST_COUNTED = 1 << 53
_MOST_NUMBER = 1e18  # the sum of n * log2(n) over more steps than a run can have

#: Length of a packed context.
PACKED_BYTES = _FIXED.size + sum(getattr(ContextState(), name).packed_bytes for name in TABLES) + bloom.N_BYTES


def pack(state: ContextState) -> bytes:
    """All of the state, `PACKED_BYTES` long."""
    whole = [getattr(state, name) for name in COUNTS + HASHES]
    numbers = [getattr(state, name) for name in NUMBERS] + state.means + state.maxima
    tables = [getattr(state, name).pack() for name in TABLES]
    return b"".join((_FIXED.pack(*whole, *numbers), *tables, state.words.tobytes()))


def unpack(data: bytes, into: ContextState | None = None) -> ContextState:
    """The state that `pack` was given; into: a fresh one that takes it.

    Raises SavedSessionError for bytes that no state packs to.
    """
    state = ContextState() if into is None else into
    if len(data) != PACKED_BYTES:
        raise SavedSessionError(f"The saved context has {len(data)} bytes, not {PACKED_BYTES}: the session is damaged.")
    values = _FIXED.unpack_from(data)
    counts, hashes = values[: len(COUNTS)], values[len(COUNTS) : len(COUNTS) + len(HASHES)]
    numbers = values[len(COUNTS) + len(HASHES) :]
    if max(counts) >= _MOST_COUNTED or not all(math.isfinite(x) and 0 <= x <= _MOST_NUMBER for x in numbers):
        raise SavedSessionError("The saved context holds numbers that no run gives: the session is damaged.")
    for name, value in zip(COUNTS + HASHES + NUMBERS, counts + hashes + numbers, strict=False):
        setattr(state, name, value)
    state.means, state.maxima = list(numbers[-8:-4]), list(numbers[-4:])
    at = _FIXED.size
    for name in TABLES:
        table = getattr(state, name)
        table.unpack(data[at : at + table.packed_bytes])
        at += table.packed_bytes
    state.words = np.frombuffer(data, np.uint8, bloom.N_BYTES, at).copy()
    return state
