"""Whether a step went well: from flags beside its result, from an exit code in its text, or from what errors say.

A flag that tells how the run ended, not the step, is refused: one that only the last event of runs has, or that never
changes within a run but does between runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import re2

from prefixguard.induce.proposal import LeftOut, Mapped

_BAD_NAME = re.compile(r"(?i)err|fail|exception|fault|timed_?out|timeout|denied|refused|reject|abort|crash|invalid")
_GOOD_NAME = re.compile(r"(?i)(^|_|\b|is)(ok|okay|success|succeeded|successful|passed|valid|done)(_|\b|$)|success")
_CODE_NAME = re.compile(r"(?i)exit_?(code|status)?$|return_?code|^rc$|ret_?code|status_?code|exit_?value|errno")
_BAD_WORDS = frozenset(
    """
    error errored err fail failed failure exception timeout timedout denied rejected aborted invalid ko bad
    cancelled canceled crashed refused fatal
    """.split()  # noqa: SIM905, a list would be longer
)
_GOOD_WORDS = frozenset(
    "ok okay success succeeded successful completed complete done passed pass finished valid good".split()  # noqa: SIM905
)

#: What errors say. Only those that the samples hold become part of a spec.
_SAYINGS: tuple[str, ...] = (
    r'(?i:^\s*(?:# \w+ = ")?error\b)',
    r'^\s*\{\s*"error"\s*:\s*[^n\s]',
    r"(?i:^\s*(?:fatal|failure|failed)\b)",
    r"Traceback \(most recent call last\)",
    r"(?m:^(?:\w+\.)*\w*(?:Error|Exception)\b(?:[:(]|$))",
    r"(?m:^\[ERROR\])",
    r"(?i:^\s*invalid\b)",
    r"(?i:^\s*unknown (?:command|action|tool|function|option|argument)\b)",
    r"(?i:^\s*(?:could not|cannot|can't|unable to)\b)",
    r"(?i:^\s*no (?:results|such)\b)",
    r"(?m:^(?:/bin/)?\w*sh: )",
    r"(?m:command not found)",
    r"No such file or directory",
    r"(?m:^\S+ \S{1,200} (?:was |is )?not found\b)",
    r"(?i:permission denied)",
    r"(?i:syntax ?error)",
    r"(?i:^\s*usage: )",
    r"(?i:\btimed out\b)",
    r"(?m:^\w[\w.-]*: (?:cannot|can't|missing|unknown|invalid|failed|unrecognized|illegal)\b)",
    r"BUILD FAILURE",
    r"Segmentation fault",
)
_NEGATION = re.compile(
    r"(?i)\b(not|no|invalid|error|errors|fail(?:ed|s)?|cannot|can't|couldn't|could not|unable|wrong|denied|missing|"
    r"does ?n[o']t|malformed|unexpected|illegal|unknown|refused)\b"
)


#: Texts that are looked at, spread over all; code points of each.
MOST_TEXTS, LONGEST = 3000, 60_000


@dataclass(frozen=True, slots=True)
class StatusForm:
    """The `status` list of a spec, and where it comes from.

    rules: as the spec has them, the last without a condition. mapped, left_out: places that tell the status, and those
    that look as if they did and were refused. errors: share of the results that the rules call errors, in [0, 1].
    confidence: in [0, 1]. why: a sentence for a person.
    """

    rules: tuple[Mapping[str, Any], ...]
    mapped: tuple[Mapped, ...]
    left_out: tuple[LeftOut, ...]
    errors: float
    confidence: float
    why: str


def sampled(texts: Sequence[str]) -> list[str]:
    """At most MOST_TEXTS of the texts, evenly spread, each cut to LONGEST and free of lone surrogates."""
    step = max(1, -(-len(texts) // MOST_TEXTS))
    return [text[:LONGEST].encode("utf-8", "replace").decode("utf-8") for text in texts[::step]]


def infer_status(
    results: Sequence[str],
    flags: Mapping[str, Sequence[Any]] | None = None,
    runs: Sequence[Hashable] | None = None,
) -> StatusForm:
    """Status rules from what result events hold.

    results: texts that came back, one a result event, raw. flags: by path of the spec ("@.is_error"), the plain values
    beside them, one a result event, None where absent. runs: to which run each belongs, in order; without it no flag
    can be told from a verdict by its place, only by its name.
    """
    texts = sampled(results)
    stated = list(flags.items()) if flags else []
    bad = _says_error(results) if stated else []
    rules: list[Mapping[str, Any]] = []
    mapped: list[Mapped] = []
    left_out: list[LeftOut] = []
    for path, values in sorted(stated):
        refusal = _verdict(values, runs)
        found = _flag(path, values, bad)
        if found is None:
            continue
        if refusal:
            left_out.append(LeftOut(path, refusal))
            continue
        tests, why, confidence = found
        rules.extend({"when": {path: test}, "is": status} for test, status in tests)
        present = sum(value is not None for value in values) / max(1, len(values))
        mapped.append(Mapped(path, "status", present, confidence, why))
    reasons = [one.why for one in mapped]
    code = _exit_code(texts)
    last: Mapping[str, Any] = {"is": "ok"}
    if code is not None:
        zero, some, share, shown = code
        if share >= 0.5:
            rules.append({"when": {"result": {"present": False}}, "is": "unknown"})
        rules.append({"when": {"result": {"re": zero}}, "is": "ok"})
        if share >= 0.9:
            last = {"is": "error"}
            why = f"{share:.0%} of the results state {shown}; 0 is ok, another or none an error"
        else:
            rules.append({"when": {"result": {"re": some}}, "is": "error"})
            why = f"{share:.0%} of the results state {shown}; 0 is ok, another an error"
        mapped.append(Mapped("result", "status", share, 0.9, why))
        reasons.append(why)
    # A format that flags its errors is believed: a test run that prints FAILED is no step that failed.
    if last["is"] == "ok" and not any(_flags_errors(values, one) for (_, values), one in _mapped_flags(stated, mapped)):
        sayings = _sayings(texts)
        if sayings:
            rules.append({"when": {"result": {"re": "|".join(sayings)}}, "is": "error"})
            shown = f"texts that say what errors say ({len(sayings)} forms found in the samples)"
            mapped.append(Mapped("result", "status", 1.0, 0.6, shown))
            reasons.append(shown)
    if not texts and not mapped:
        return StatusForm(({"is": "unknown"},), (), tuple(left_out), 0.0, 0.5, "nothing comes back for an action")
    rules.append(last)
    return StatusForm(
        tuple(rules),
        tuple(mapped),
        tuple(left_out),
        _errors(rules, results, flags or {}),
        max((one.confidence for one in mapped), default=0.4),
        "; ".join(reasons) or "no result says that anything went wrong",
    )


def _mapped_flags(
    stated: Sequence[tuple[str, Sequence[Any]]], mapped: Sequence[Mapped]
) -> list[tuple[tuple[str, Sequence[Any]], Mapped]]:
    by_path = {one.raw: one for one in mapped}
    return [((path, values), by_path[path]) for path, values in stated if path in by_path]


def _flags_errors(values: Sequence[Any], one: Mapped) -> bool:
    """Does a flag of errors (a boolean, or something that is there only then) say of every result how it went?"""
    there = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in there):
        return one.coverage >= 0.5 or not all(there) or len(there) < len(values)
    return one.coverage < 0.6 and not all(isinstance(value, int | float) for value in there)


def _last_name(path: str) -> str:
    return re.split(r"[.\[\]\"']+", path.rstrip("\"']"))[-1] or path


def _verdict(values: Sequence[Any], runs: Sequence[Hashable] | None) -> str:
    """Why these values tell how runs ended; empty where they do not."""
    if runs is None or len(runs) != len(values):
        return ""
    of_run: dict[Hashable, list[Any]] = {}
    for run, value in zip(runs, values, strict=True):
        of_run.setdefault(run, []).append(value)
    long = [found for found in of_run.values() if len(found) >= 2]
    if len(long) < 2:
        return ""
    present = [found for found in long if any(value is not None for value in found)]
    if len(present) >= 2 and all(
        found[-1] is not None and all(value is None for value in found[:-1]) for found in present
    ):
        return "only the last event of a run has it: it tells how the run ended, not the step"
    kinds = {repr(found[0]) for found in long}
    if len(kinds) > 1 and all(len({repr(value) for value in found}) == 1 for found in long):
        return "it never changes within a run but does between runs: it tells of the run, not of the step"
    if len(present) == len(long):
        ends = {repr(found[-1]) for found in long}
        befores = {repr(value) for found in long for value in found[:-1]}
        if len(ends) > 1 and len(befores) == 1 and sum(repr(f[-1]) not in befores for f in long) >= 2 and _none(long):
            return "it changes at the last event of runs only: it tells how the run ended, not the step"
    return ""


def _none(long: Sequence[Sequence[Any]]) -> bool:
    """Are there enough earlier events that a flag of steps would have shown among them?"""
    changed = sum(found[-1] != found[0] for found in long)
    return changed >= 3 and sum(len(found) - 1 for found in long) >= 5 * len(long)


Tests = list[tuple[Any, str]]


def _flag(path: str, values: Sequence[Any], bad: Sequence[bool]) -> tuple[Tests, str, float] | None:
    """Tests of one flag with the status they mean, why, confidence; None where it is no status."""
    name = _last_name(path)
    pairs = [(value, bad[i] if i < len(bad) else False) for i, value in enumerate(values) if value is not None]
    if not pairs:
        return None
    if all(isinstance(value, bool) for value, _ in pairs):
        return _boolean(name, pairs)
    if all(isinstance(value, int) and not isinstance(value, bool) for value, _ in pairs):
        return _number(name, pairs)
    texts = [value for value, _ in pairs if isinstance(value, str)]
    if len(texts) == len(pairs) and len(set(texts)) <= 12 and max(map(len, texts)) <= 40:
        enum = _enum(name, pairs)
        if enum is not None:
            return enum
    if _BAD_NAME.search(name) and len(pairs) < len(values):
        return [({"present": True}, "error")], f"{name!r} holds something only where a step went wrong", 0.9
    filled = [(value, was_bad) for value, was_bad in pairs if value not in ("", [], {})]
    if filled and len(filled) < 0.6 * len(values) and len(filled) >= 3:
        told = sum(was_bad or _BAD_NAME.search(str(value)[:400]) is not None for value, was_bad in filled)
        if told >= 0.8 * len(filled):
            return [({"present": True}, "error")], f"{name!r} holds something where the result reads as an error", 0.7
    if _BAD_NAME.search(name) and any(value in ("", [], {}) for value, _ in pairs):
        return [({"present": True}, "error")], f"{name!r} holds something only where a step went wrong", 0.85
    return None


def _boolean(name: str, pairs: Sequence[tuple[Any, bool]]) -> tuple[Tests, str, float] | None:
    if _BAD_NAME.search(name) and not _GOOD_NAME.search(name):
        return [(True, "error"), (False, "ok")], f"{name!r} is true where a step went wrong", 0.95
    if _GOOD_NAME.search(name):
        return [(False, "error"), (True, "ok")], f"{name!r} is true where a step went well", 0.95
    rate = {flag: _rate([was_bad for value, was_bad in pairs if value is flag]) for flag in (True, False)}
    if abs(rate[True] - rate[False]) >= 0.5 and sum(was_bad for _, was_bad in pairs) >= 3:
        worse = rate[True] > rate[False]
        return (
            [(worse, "error"), (not worse, "ok")],
            f"{name!r} is {str(worse).lower()} where results read as errors",
            0.75,
        )
    return None


def _number(name: str, pairs: Sequence[tuple[Any, bool]]) -> tuple[Tests, str, float] | None:
    values = [value for value, _ in pairs]
    if all(100 <= value <= 599 for value in values) and sum(value in (200, 201, 204) for value in values) >= 1:
        return [({"ge": 400}, "error"), ({"ge": 100}, "ok")], f"{name!r} holds codes as HTTP has them", 0.9
    small = all(-255 <= value <= 255 for value in values)
    if not small:
        return None
    if _CODE_NAME.search(name):
        return [(0, "ok"), ({"type": "number"}, "error")], f"{name!r} is an exit code: 0 is ok", 0.95
    zeros = [was_bad for value, was_bad in pairs if value == 0]
    others = [was_bad for value, was_bad in pairs if value != 0]
    if len(zeros) >= 0.3 * len(pairs) and len(others) >= 3 and _rate(others) - _rate(zeros) >= 0.5:
        return [(0, "ok"), ({"type": "number"}, "error")], f"{name!r} is not 0 where results read as errors", 0.75
    return None


def _enum(name: str, pairs: Sequence[tuple[Any, bool]]) -> tuple[Tests, str, float] | None:
    counts = Counter(value for value, _ in pairs)
    words = {value: set(re.split(r"[^a-z]+", value.lower())) for value in counts}
    bad = sorted(value for value in counts if words[value] & _BAD_WORDS)
    good = sorted(value for value in counts if words[value] & _GOOD_WORDS and value not in bad)
    if bad and good:
        return (
            [(_one_of(bad), "error"), (_one_of(good), "ok")],
            f"{name!r} says {', '.join(bad)} or {', '.join(good)}",
            0.95,
        )
    if good and sum(counts[value] for value in good) == len(pairs) and re.search(r"(?i)status|state|result", name):
        return [(_one_of(good), "ok"), ({"present": True}, "error")], f"{name!r} says {', '.join(good)}", 0.8
    if len(counts) < 2 or len(pairs) < 6:
        return None
    rates = {value: _rate([was_bad for other, was_bad in pairs if other == value]) for value in counts}
    bad = sorted(value for value in counts if rates[value] >= 0.6 and counts[value] >= 2)
    good = sorted(value for value in counts if rates[value] <= 0.2)
    if bad and good and len(bad) + len(good) == len(counts):
        return (
            [(_one_of(bad), "error"), (_one_of(good), "ok")],
            f"{name!r} is {', '.join(bad)} where results read as errors",
            0.7,
        )
    return None


def _one_of(values: Sequence[str]) -> Any:
    return values[0] if len(values) == 1 else {"in": list(values)}


def _rate(values: Sequence[bool]) -> float:
    return sum(values) / len(values) if values else 0.0


# --- text

_INTEGER = re.compile(r"-?\d+")
_CODE_LINE = re.compile(r"(?i)exit|return|\brc\b|code|status")


def _exit_code(texts: Sequence[str]) -> tuple[str, str, float, str] | None:
    """A line that states an exit code: RE2 for 0, RE2 for any, share of the results, how it looks."""
    masks: Counter[tuple[str, str, bool]] = Counter()
    values: dict[tuple[str, str, bool], Counter[str]] = {}
    for text in texts:
        lines = [line.strip() for line in text.strip().split("\n")]
        ends = {(line, True) for line in lines[:2]} | {(line, False) for line in lines[-2:]}
        seen = set()
        for line, first in sorted(ends):
            for found in list(_INTEGER.finditer(line[:160]))[:3]:
                before, after = line[: found.start()], line[found.end() :]
                if len(before) > 40 or not _CODE_LINE.search(before):
                    continue
                closing = re.match(r"[^\w\s]*(?:/\w+>)?", after)
                shape = (before, closing.group(0)[:24] if closing is not None else "", first)
                if shape not in seen:
                    seen.add(shape)
                    masks[shape] += 1
                    values.setdefault(shape, Counter())[found.group(0)] += 1
                break
    best: tuple[int, tuple[str, str, bool]] | None = None
    for shape, n in sorted(masks.items()):
        codes = values[shape]
        stated = re.search(r"(?i)(exit|return|\brc\b).{0,12}$", shape[0]) is not None
        few = len(codes) <= 12 and all(abs(int(code[:9])) <= 255 for code in codes)
        if not few or n < 2 or (n < 0.02 * len(texts) and not stated) or not (codes["0"] or stated):
            continue
        if not stated and not (n >= 0.3 * len(texts) and len(codes) > 1):
            continue
        if best is None or n > best[0]:
            best = (n, shape)
    if best is None:
        return None
    n, (before, after, _) = best
    start = r"(?m)^\s*" + _loose(before)
    end = re.escape(after) if after else r"\b"
    return f"{start}0{end}", f"{start}-?[0-9]+{end}", n / len(texts), f"{before}N{after}"


def _loose(literal: str) -> str:
    return re.escape(literal).replace(r"\ ", " ").replace(r"\<", "<").replace(r"\>", ">")


def _says_error(results: Sequence[str]) -> list[bool]:
    pattern = re2.compile("|".join(_SAYINGS))
    return [pattern.search(text[:4000].encode("utf-8", "replace").decode("utf-8")) is not None for text in results]


def _sayings(texts: Sequence[str]) -> list[str]:
    """Expressions for what errors say in these texts: general ones that occur, and openings that repeat and deny."""
    found = [saying for saying in _SAYINGS if _occurs(saying, texts)]
    covered = re2.compile("|".join(found)) if found else None
    openings: Counter[str] = Counter()
    for text in texts:
        if covered is not None and covered.search(text):
            continue
        line = text.strip().split("\n", 1)[0]
        words = line.split()
        if not len(words) >= 2 or len(line) > 160 or not _NEGATION.search(" ".join(words[:7])):
            continue
        opening = " ".join(words[:3])[:60]
        if not re.search(
            r"[/\d\\]|\w\.\w|(?i:^no (?:matches|hits|entries))", opening
        ):  # names of files and numbers are of one run
            openings[opening] += 1
    least = max(3, 0.003 * len(texts))
    kept = [opening for opening, n in sorted(openings.items(), key=lambda kv: (-kv[1], kv[0])) if n >= least][:12]
    if kept and sum(openings[one] for one in kept) <= 0.6 * len(texts):
        found.append(r"^\s*(?:" + "|".join(map(_loose, sorted(kept))) + ")")
    return found


def _occurs(saying: str, texts: Sequence[str]) -> bool:
    """Is it in some of the texts, and not in so many that it must be part of a frame?"""
    pattern = re2.compile(saying)
    n = sum(1 for text in texts if pattern.search(text))
    return 0 < n <= 0.9 * len(texts) or (0 < n == len(texts) <= 2)


def _errors(rules: Sequence[Mapping[str, Any]], results: Sequence[str], flags: Mapping[str, Sequence[Any]]) -> float:
    """Share of the results that the rules call errors, judged as the spec would."""
    n = 0
    patterns = {
        rule["when"]["result"]["re"]: re2.compile(rule["when"]["result"]["re"])
        for rule in rules
        if "re" in rule.get("when", {}).get("result", {})
    }
    for i, text in enumerate(results):
        text = text.encode("utf-8", "replace").decode("utf-8")
        for rule in rules:
            when = rule.get("when")
            if when is None or all(
                (patterns[test["re"]].search(text) is not None if "re" in test else not text)
                if key == "result"
                else i < len(flags[key]) and _holds(test, flags[key][i])
                for key, test in when.items()
            ):
                n += rule["is"] == "error"
                break
    return n / len(results) if results else 0.0


def _holds(test: Any, value: Any) -> bool:
    if not isinstance(test, dict):
        return bool(value == test) and isinstance(value, bool) == isinstance(test, bool)
    if "in" in test:
        return value in test["in"]
    if "ge" in test:
        return isinstance(value, int | float) and value >= test["ge"]
    if "type" in test:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return value not in (None, "", [], {})
