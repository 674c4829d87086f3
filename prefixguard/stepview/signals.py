"""What a step took besides its text: seconds, tokens, dollars, and how sure the model was of its words.

All of it is optional, and absent is not zero. An adapter says where the figures stand (`signals` of the spec) and, by
the name, their unit. What no step can have taken is left out and counted. Steps have a duration where the events say
one, or where they say when they happened: then it is the time since the step before, or since what the agent was told.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from prefixguard.errors import TraceError
from prefixguard.stepview.compiling import Site
from prefixguard.stepview.paths import MISSING, Scope
from prefixguard.stepview.values import compile_value


class Signals(NamedTuple):
    """What one step took. None: nobody says.

    seconds : of the whole step: the model's and the tool's. tokens_in, tokens_out : of the model's reply. dollars : US.
    logprob_mean, logprob_min : of the reply's tokens, natural logarithms, 0 or less.
    """

    seconds: float | None = None
    tokens_in: float | None = None
    tokens_out: float | None = None
    dollars: float | None = None
    logprob_mean: float | None = None
    logprob_min: float | None = None

    def to_json(self) -> dict[str, float]:
        """What is known, by name.

        >>> Signals(seconds=1.5).to_json()
        {'seconds': 1.5}
        """
        return {name: value for name, value in zip(SIGNALS, self, strict=True) if value is not None}


SIGNALS: Final = Signals._fields
#: The least and the greatest that a step can have taken: 30 days, a thousand million tokens, a million dollars.
_RANGES: Final = {
    "seconds": (0.0, 30 * 86_400.0), "tokens_in": (0.0, 1e9), "tokens_out": (0.0, 1e9), "dollars": (0.0, 1e6),
    "logprob_mean": (-1e4, 0.0), "logprob_min": (-1e4, 0.0),
}  # fmt: skip
#: Keys of `signals` in a spec: the signal, and what its unit is multiplied by.
UNITS: Final = {**{name: (name, 1.0) for name in SIGNALS}, "milliseconds": ("seconds", 1e-3)}
KEYS: Final = (*UNITS, "logprobs", "began", "ended", "at")
#: Ways of saying how long it took; a spec has one of them.
_DURATIONS: Final = ({"seconds"}, {"milliseconds"}, {"began", "ended"})
#: Counters of a parser.
LEFT_OUT, JUMPS = "signals_left_out", "clock_jumps"
_MOST_NUMBERS: Final = 100_000
_LONGEST: Final = 64

#: Figures of one event, or of a step in the making: those of `SIGNALS`, then the time in seconds since 1970; NaN where
#: there is none. None: there are none at all.
Figures = tuple[float, ...]
_PACKED: Final = struct.Struct(f"<{len(SIGNALS) + 1}d")
_NONE: Final = (math.nan,) * (len(SIGNALS) + 1)


def compile_signals(spec: Any, site: Site) -> Callable[[Scope], tuple[Figures | None, int]]:
    """The closure from the scope of an event to its figures, and how many could not be believed."""
    example = 'an object such as {"tokens_in": "@.usage.input_tokens", "milliseconds": "@.latency_ms", "at": "@.time"}.'
    site.keys(spec, (*KEYS, "comment"), example)
    if sum(bool(names & spec.keys()) for names in _DURATIONS) > 1 or ("began" in spec) != ("ended" in spec):
        raise site.error('"seconds", "milliseconds", or "began" with "ended": one of them.')
    getters = [(key, compile_value(spec[key], site.at(key))) for key in KEYS if key in spec]

    def read(scope: Scope) -> tuple[Figures | None, int]:
        found, lost = dict.fromkeys(SIGNALS, math.nan), 0
        times = dict.fromkeys(("began", "ended", "at"), math.nan)
        for key, get in getters:
            value = get(scope)
            if value is MISSING or value is None or value == "" or value == []:
                continue
            if key == "logprobs":
                numbers = _numbers(value)
                if not numbers:
                    lost += 1
                    continue
                found["logprob_mean"], found["logprob_min"] = math.fsum(numbers) / len(numbers), min(numbers)
            elif key in times:
                times[key] = moment_of(value)
                lost += math.isnan(times[key])
            else:
                name, unit = UNITS[key]
                numbers = _numbers(value)
                found[name] = math.fsum(numbers) * unit if numbers else math.inf
        if "began" in spec:
            found["seconds"] = round(times["ended"] - times["began"], 6)
        for name, (low, high) in _RANGES.items():
            if not math.isnan(found[name]) and not low <= found[name] <= high:
                found[name] = math.nan
                lost += 1
        figures = (*found.values(), times["at"])
        return (None if all(map(math.isnan, figures)) else figures), lost

    return read


def _numbers(value: Any) -> list[float]:
    """The number, or those of a list (tokens of several kinds, of which null is none); [] where one is no number."""
    given = value[:_MOST_NUMBERS] if isinstance(value, list) else [value]
    found = [_number(one) for one in given if one is not None]
    return found if all(map(math.isfinite, found)) else []


def _number(value: Any) -> float:
    """NaN for what is no number. Protocols write some numbers as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str) or len(str(value)[:99]) > _LONGEST:
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def moment_of(value: Any) -> float:
    """Seconds since 1970 of ISO 8601, or of a number of seconds, milliseconds, microseconds or nanoseconds, which dates
    from 1973 to 5138 tell apart; a number below that counts seconds from any beginning. NaN where it is no time.

    >>> moment_of("1970-01-01T00:01:00Z"), moment_of(1_700_000_000_000), moment_of("1700000000000000000")
    (60.0, 1700000000.0, 1700000000.0)
    """
    number = _number(value)
    if math.isnan(number) and isinstance(value, str) and len(value) <= _LONGEST:
        try:
            said = datetime.fromisoformat(value)
            return (said if said.tzinfo else said.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return math.nan
    for unit in (1.0, 1e3, 1e6, 1e9):
        if 0 <= number < 1e11 * unit:
            return number / unit
    return math.nan


def packed(figures: Figures | None) -> bytes:
    """The figures in little memory, for steps that wait."""
    return b"" if figures is None else _PACKED.pack(*figures)


def unpacked(data: bytes) -> Figures:
    """What was packed; all NaN where nothing was. TraceError for bytes that no figures pack to."""
    if len(data) not in (0, _PACKED.size):
        raise TraceError("The saved signals of a step are damaged. Restore the run from the state that was saved.")
    return _PACKED.unpack(data) if data else _NONE


def timeless(data: bytes) -> bytes:
    """Packed figures without their time, which a clock that jumped has made useless."""
    return data and _PACKED.pack(*unpacked(data)[:-1], math.nan)


def added(data: bytes, more: bytes) -> bytes:
    """Figures of two events of one step, packed: seconds, tokens and dollars add up; the first mean, the least minimum
    and the latest time hold."""
    if not data or not more:
        return data or more
    one, other = unpacked(data), unpacked(more)
    both = [a if math.isnan(b) else b if math.isnan(a) else a + b for a, b in zip(one, other, strict=True)]
    if not math.isnan(one[4]):
        both[4] = one[4]
    for place, best in ((5, min), (6, max)):
        if not math.isnan(one[place] + other[place]):
            both[place] = best(one[place], other[place])
    return _PACKED.pack(*both)


@dataclass(slots=True, eq=False)
class StepClock:
    """When the step before was over, as far as events say.

    now : of the latest event with a time. since : when the agent was last told something, or ended a step; None: nobody
    knows, since there was none yet, or the clock jumped.
    """

    now: float | None = None
    since: float | None = None

    def tick(self, at: float) -> bool:
        """An event happened then; NaN: nobody knows when. Returns whether the clock jumped: back by more than a second,
        or 30 days ahead."""
        if math.isnan(at):
            return False
        jumped = self.now is not None and not -1.0 <= at - self.now <= _RANGES["seconds"][1]
        if jumped:
            self.since = None
        self.now = at if jumped or self.now is None else max(at, self.now)
        return jumped

    def rest(self) -> None:
        """What the agent does next begins now."""
        self.since = self.now

    def signals(self, data: bytes) -> Signals | None:
        """Of a step that is over, from its packed figures; None where there are none."""
        if not data:
            return None
        *figures, at = unpacked(data)
        if not math.isnan(at):
            if math.isnan(figures[0]) and self.since is not None:
                figures[0] = round(max(at - self.since, 0.0), 6)
            self.since = at if self.since is None else max(at, self.since)
        if all(map(math.isnan, figures)):
            return None
        return Signals(*(None if math.isnan(value) else value for value in figures))

    def state(self) -> list[float | None]:
        """As plain values; `resume` takes it."""
        return [self.now, self.since]

    def resume(self, state: Any) -> None:
        """TraceError where it is no state of this."""
        good = isinstance(state, list) and len(state) == 2
        if not good or not all(one is None or (type(one) in (int, float) and math.isfinite(one)) for one in state):
            raise TraceError("state.machine.clock is damaged. Restore the run from the state that was saved.")
        self.now, self.since = state
