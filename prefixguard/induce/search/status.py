"""Whether a step went well: from flags beside its result, from an exit code in its text, or from what errors say.

A flag that tells how the run ended, not the step, is refused: one that only the last event of runs has, or that never
changes within a run but does between runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import re2

from prefixguard.induce.proposal import LeftOut, Mapped
from prefixguard.lexicon import Meaning, affinity, path_names, polarity

#: What errors say. Only those that the samples hold become part of a spec.
_SAYINGS: tuple[str, ...] = (
    r'(?i:^\s*(?:\{\s*|# \w+ = )?"?(?:error|fatal|failure|failed|invalid|could not|cannot|can\'t|unable to|usage:)\b)',
    r"(?i:^\s*unknown (?:command|action|tool|function|option|argument)\b)",
    r"(?i:^\s*no (?:results|such)\b)",
    r"Traceback \(most recent call last\)|(?m:^\[ERROR\])|BUILD FAILURE|Segmentation fault",
    r"(?m:^(?:\w+\.)*\w*(?:Error|Exception)\b(?:[:(]|$))",
    r"(?m:^(?:/bin/)?\w*sh: )|command not found|No such file or directory",
    r"(?m:^\S+ \S{1,200} (?:was |is )?not found\b)",
    r"(?i:permission denied|syntax ?error|\btimed out\b)",
    r"(?m:^\w[\w.-]*: (?:cannot|can't|missing|unknown|invalid|failed|unrecognized|illegal)\b)",
)
_NEGATION = re.compile(
    r"(?i)\b(not|no|invalid|error|errors|fail(?:ed|s)?|cannot|can't|couldn't|could not|unable|wrong|denied|missing|"
    r"does ?n[o']t|malformed|unexpected|illegal|unknown|refused)\b"
)
#: Beginnings of texts that are of one run, or of a search that found nothing.
_OF_ONE_RUN = re.compile(r"[/\d\\]|\w\.\w|(?i:^no (?:matches|hits|entries))")
#: A line that states an exit code, in the first and the last lines of a text.
_CODE = re.compile(r"(?i)(?P<before>.{0,30}?\b(?:exit|return)\w*?[ _-]?(?:code|status)\W{1,8}?)-?\d{1,3}\b")
#: Names of numbers of which 0 is ok.
_CODE_NAME = re.compile(r"(?i)exit|code$|^rc$|errno")
#: Words of a flag that its name gives a meaning.
_TRUTH = {"1": 1, "true": 1, "yes": 1, "0": -1, "false": -1, "no": -1}
#: Words that a flag may have, and characters of one.
_MOST_WORDS, _LONGEST_WORD = 12, 40


@dataclass(frozen=True, slots=True)
class StatusForm:
    """The `status` list of a spec, and where it comes from: rules, the last without a condition; places that tell the
    status, and those that look as if they did and were refused."""

    rules: tuple[Mapping[str, Any], ...]
    mapped: tuple[Mapped, ...]
    left_out: tuple[LeftOut, ...]


def infer_status(
    results: Sequence[str],
    flags: Mapping[str, Sequence[Any]] | None = None,
    runs: Sequence[Hashable] | None = None,
    said: str = "",
) -> StatusForm:
    """Status rules from what result events hold.

    results: texts that came back, one a result event, raw. flags: by path of the spec ("@.is_error"), the plain values
    beside them, one a result event, None where absent. runs: to which run each belongs, in order; without it no flag
    can be told from a verdict by its place, only by its name. said: the flag that a person says is the status.
    """
    pattern = re2.compile("|".join(_SAYINGS))
    bad = [pattern.search(text) is not None for text in results]
    rules: list[Mapping[str, Any]] = []
    mapped: list[Mapped] = []
    left_out: list[LeftOut] = []
    for path, values in sorted((flags or {}).items()):
        found = _flag(path, values, bad, path == said)
        if found is None:
            continue
        tests, why, confidence = found
        refusal = _verdict(values, runs) if runs is not None and path != said else ""
        if refusal:
            left_out.append(LeftOut(path, refusal))
            continue
        rules += [{"when": {path: test}, "is": status} for test, status in tests]
        present = sum(value is not None for value in values) / max(1, len(values))
        mapped.append(Mapped(path, "status", present, confidence, why))
    last = "ok" if results or mapped else "unknown"
    is_flagged = bool(mapped)
    before, share = _exit_code(results)
    if share:
        zero, some = ({"result": {"re": rf"(?m)^\s*{_loose(before)}{code}\b"}} for code in ("0", "-?[0-9]+"))
        if share >= 0.9:
            last = "error"
            rules += [{"when": {"result": {"present": False}}, "is": "unknown"}, {"when": zero, "is": "ok"}]
        else:
            rules += [{"when": zero, "is": "ok"}, {"when": some, "is": "error"}]
        mapped.append(Mapped("result", "status", share, 0.9, f"{share:.0%} of the results state {before}N; 0 is ok"))
    # A format that flags its errors is believed: a test run that prints FAILED is no step that failed.
    if last == "ok" and not is_flagged and (sayings := _sayings(results)):
        rules.append({"when": {"result": {"re": "|".join(sayings)}}, "is": "error"})
        told = f"texts that say what errors say ({len(sayings)} forms found in the samples)"
        mapped.append(Mapped("result", "status", 1.0, 0.6, told))
    return StatusForm((*rules, {"is": last}), tuple(mapped), tuple(left_out))


def _verdict(values: Sequence[Any], runs: Sequence[Hashable]) -> str:
    """Why these values tell how runs ended; empty where they do not."""
    of_run: dict[Hashable, list[str | None]] = {}
    for run, value in zip(runs, values, strict=True):
        of_run.setdefault(run, []).append(None if value is None else repr(value))
    long = [found for found in of_run.values() if len(found) >= 2]
    present = [found for found in long if any(found)]
    if len(present) >= 2 and all(found[-1] and not any(found[:-1]) for found in present):
        return "only the last event of a run has it: it tells how the run ended, not the step"
    if len({found[0] for found in long}) > 1 and all(len(set(found)) == 1 for found in long):
        return "it never changes within a run but does between runs: it tells of the run, not of the step"
    before = {value for found in long for value in found[:-1]}
    changed = sum(found[-1] not in before for found in long)
    # Enough earlier events that a flag of steps would have shown among them.
    if len(before) == 1 and changed >= 3 and sum(len(found) - 1 for found in long) >= 5 * len(long):
        return "it changes at the last event of runs only: it tells how the run ended, not the step"
    return ""


def _flag(
    path: str, values: Sequence[Any], bad: Sequence[bool], is_said: bool
) -> tuple[list[tuple[Any, str]], str, float] | None:
    """Tests of one flag with the status they mean, why, confidence; None where it is no status. By what its name and
    its words say, else by which of its values stand beside results that read as errors. bad: whether each does."""
    name = (path_names(path) or [path])[-1]
    sign = polarity(name) or (-1 if is_said or _CODE_NAME.search(name) or affinity(name, Meaning.ERROR) >= 0.6 else 0)
    here = [value for value in values if value not in (None, "", [], {})]
    some = here or [value for value in values if value is not None]
    for tests, key, signs in _readings(name, some, sign, len(here) < len(values)):
        if -1 in signs.values():
            return _tests(tests, signs), f"{name!r} says so by its name or its words", 0.9
        groups: dict[Any, list[bool]] = {}
        for value, was_bad in zip(values, bad, strict=True):
            groups.setdefault(key(value), []).append(was_bad)
        rates = {one: sum(found) / len(found) for one, found in groups.items()}
        signs = {one: -1 if rate >= 0.8 and len(groups[one]) >= 3 else int(rate <= 0.2) for one, rate in rates.items()}
        if set(signs.values()) == {1, -1}:
            return _tests(tests, signs), f"{name!r} goes with results that read as errors", 0.7
    return None


Tests = dict[Any, Any]


def _readings(
    name: str, here: Sequence[Any], sign: int, is_rare: bool
) -> list[tuple[Tests, Callable[[Any], Any], dict[Any, int]]]:
    """Ways to part the values of a flag: a test for each part, in which part a value is, and what is known of the parts
    from what they are called: 1 that they went well, -1 that they did not."""
    if not here:
        return []
    if all(isinstance(value, bool) for value in here):
        return [({True: True, False: False}, lambda value: value, {True: sign, False: -sign} if sign else {})]
    if all(isinstance(value, int | float) for value in here):
        if {200, 201, 204} & set(here) and all(100 <= value <= 599 for value in here):
            http: Tests = {True: {"ge": 400}, False: {"ge": 100}}
            return [(http, lambda value: None if value is None else value >= 400, {True: -1, False: 1})]
        if 0 not in here or max(map(abs, here)) > 255:
            return []
        is_code = _CODE_NAME.search(name) or affinity(name, Meaning.ERROR) >= 0.6
        known = {False: -sign, True: sign} if is_code else {}
        codes: Tests = {False: 0, True: {"type": "number"}}
        return [(codes, lambda value: None if value is None else value != 0, known)]
    found: list[tuple[Tests, Callable[[Any], Any], dict[Any, int]]] = []
    if all(isinstance(value, str) and len(value) <= _LONGEST_WORD for value in here) and len(set(here)) <= _MOST_WORDS:
        signs = {word: sign * _TRUTH.get(word.lower(), 0) or polarity(word) for word in sorted(set(here))}
        if len(signs) > 1:
            found.append((dict.fromkeys(signs), lambda value: value, signs if {1, -1} <= set(signs.values()) else {}))
    if is_rare:
        present: Tests = {True: {"present": True}}
        found.append((present, lambda value: value not in (None, "", [], {}), {True: -1} if sign < 0 else {}))
    return found


def _tests(tests: Tests, signs: Mapping[Any, int]) -> list[tuple[Any, str]]:
    """The test of each part with its status; of words one for all that mean the same."""
    found: dict[str, list[Any]] = {}
    for one, test in tests.items():
        if signs.get(one):
            found.setdefault("ok" if signs[one] > 0 else "error", []).append(one if test is None else test)
    return [(same[0] if len(same) == 1 else {"in": same}, status) for status, same in found.items()]


def _exit_code(texts: Sequence[str]) -> tuple[str, float]:
    """What stands before the number on a line that states an exit code, and the share of the texts that have it."""
    counts: Counter[str] = Counter()
    for text in texts:
        lines = [line.strip() for line in text.strip().split("\n")]
        counts.update({found["before"] for line in (*lines[:2], *lines[-2:]) if (found := _CODE.match(line))})
    before, n = min(counts.items(), key=lambda item: (-item[1], item[0]), default=("", 0))
    return before, n / len(texts) if n >= 2 else 0.0


def _loose(literal: str) -> str:
    return re.sub(r"\\([ <>])", r"\1", re.escape(literal))


def _sayings(texts: Sequence[str]) -> list[str]:
    """Expressions for what errors say in these texts: general ones that occur, and openings that repeat and deny. What
    nearly all of several texts say is part of a frame."""
    found = []
    rest = list(texts)
    for saying in _SAYINGS:
        pattern = re2.compile(saying)
        n = sum(pattern.search(text) is not None for text in texts)
        if n and (n <= 0.9 * len(texts) or len(texts) <= 2):
            found.append(saying)
            rest = [text for text in rest if pattern.search(text) is None]
    openings: Counter[str] = Counter()
    for text in rest:
        words = text.strip().split("\n", 1)[0][:160].split()
        opening = " ".join(words[:3])[:60]
        if len(words) >= 2 and _NEGATION.search(" ".join(words[:7])) and not _OF_ONE_RUN.search(opening):
            openings[opening] += 1
    kept = sorted(opening for opening, n in openings.items() if n >= max(3, 0.003 * len(texts)))
    if 0 < sum(openings[one] for one in kept) <= 0.6 * len(texts):
        found.append(rf"^\s*(?:{'|'.join(map(_loose, kept[:12]))})")
    return found
