"""Lines that a run's text holds once and that say something of the whole run: a verdict at the end, a task at the
beginning. A line is known by what stands around the word that differs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import re2

from prefixguard.induce.search.seen_runs import SeenRun, Values, read_value
from prefixguard.lexicon import polarity
from prefixguard.stepview import MISSING

#: Lines at the beginning and at the end of a run that are looked at, their length, and templates that are read.
HEAD_LINES, TAIL_LINES, LONGEST_LINE, MOST_TEMPLATES = 12, 15, 200, 40
#: Characters at both ends of a run that are looked at, and templates that are counted.
SPAN, MOST_TOLD = 4000, 20_000
#: Share of the runs whose text must hold the line.
LEAST_SHARE = 0.4
_TOLD = re.compile(r"""[\w)\]"']["']?\s*(?::|=|->|=>)\s*["']?(?=[^\s"'])""")
_WORD = re.compile(r"[A-Za-z_]+|\d+(?:\.\d+)?")
_ID = re.compile(r"[A-Za-z]\w*(?:[.-]\w+)*[.-]?\d[\w-]*")


def text_columns(runs: Sequence[SeenRun]) -> list[Values]:
    """Columns of lines said once in the text of a run; name: the words before the value."""
    return told_in([run.text for run in runs], "$.text", "text")


def told_in(texts: Sequence[str], of: Any, near: str) -> list[Values]:
    """Columns of lines said once in these texts, one a run, "" for none. of: the value of the spec that finds them."""
    told: dict[str, dict[int, str]] = {}
    for i, text in enumerate(texts):
        ends = text if len(text) <= 2 * SPAN else _ends(text)
        lines = [line.rstrip() for line in ends.splitlines()]
        lines = [line for line in lines if line.strip() and len(line) <= LONGEST_LINE]
        for line in dict.fromkeys([*lines[:HEAD_LINES], *lines[HEAD_LINES:][-TAIL_LINES:]]):
            for template in _templates(line):
                found = re.search(template, line)
                if found is not None and (template in told or len(told) < MOST_TOLD):
                    told.setdefault(template, {}).setdefault(i, found["told"])
    likely = [one for one, said in told.items() if len(said) >= max(2, LEAST_SHARE * len(texts)) and _speaks(said)]
    columns: list[Values] = []
    likely.sort(key=lambda one: (-_judges(told[one]), -len(told[one]), len(one)))
    for template in likely[:MOST_TEMPLATES]:
        pattern = re2.compile(template)
        matches = [pattern.search(text) for text in texts]
        values = tuple(MISSING if one is None else one["told"] for one in matches)
        elsewhere = sum(values[i] != said for i, said in told[template].items())  # the same words stand before, too
        if elsewhere > 0.05 * len(told[template]) or any(values == other.values for other in columns):
            continue
        before = re.sub(r"\\[sd]|\[\^\\n\]", " ", template.partition("(?P")[0].removeprefix("(?m)^"))
        name = " ".join(re.findall(r"[A-Za-z]+", before)[-3:])
        columns.append(Values({"re": template, "of": of}, name, values, near))
    return columns


def text_keys(runs: Sequence[SeenRun]) -> list[Values]:
    """Ids in the first lines, near "end": of use to find the row of a run in a file beside it, and for no more."""
    told: dict[str, int] = {}
    for run in runs:
        lines = [line for line in run.text[:SPAN].splitlines() if line.strip()][:HEAD_LINES]
        found = [general(line[: one.start()]) for line in lines for one in _ID.finditer(line[:LONGEST_LINE])]
        for before in dict.fromkeys(found):
            told[before] = told.get(before, 0) + 1
    columns: list[Values] = []
    for before in [before for before, n in told.items() if n >= 0.9 * len(runs)][:MOST_TEMPLATES]:
        spec = {"re": rf"(?m)^{before}(?P<told>{_ID.pattern})", "of": "$.text"}
        values = read_value(spec, runs)
        if not any(values == other.values for other in columns):
            columns.append(Values(spec, "", values, "end"))
    return columns


def _ends(text: str) -> str:
    """Whole lines of the beginning and of the end."""
    return text[:SPAN].rpartition("\n")[0] + "\n" + text[-SPAN:].partition("\n")[2]


def _speaks(said: dict[int, str]) -> bool:
    """Do the values differ, or is the one that they all have a word of success or failure?"""
    values = set(said.values())
    return len(values) > 1 or any(polarity(value) for value in values)


def _judges(said: dict[int, str]) -> int:
    """2: one of few values is a word of success or failure; 1: all are numbers; 0: neither."""
    values = set(said.values())
    if len(values) <= 8 and any(polarity(value) for value in values):
        return 2
    return int(all(re.fullmatch(r"-?\d+(\.\d+)?", value) for value in values))


def _templates(line: str) -> Iterator[str]:
    """The line with one value open: what stands behind a name and a sign, up to a blank or to the end, or a word of
    success or failure, or a number. Around it the whole line, or only the two words before it, or one before a word."""
    signs = [sign.end() for sign in _TOLD.finditer(line)][:6]
    for at in signs:
        for before in _befores(line[:at], (2,)):
            yield f"(?m)^{before}(?P<told>[^\\n]{{1,120}}?)[\"']?\\s*$"
            if re.match(r"[\w.+-]+[^\w.+-]", line[at:]):
                yield f"(?m)^{before}(?P<told>[\\w.+-]+)"
    for word in _WORD.finditer(line):
        judges = bool(polarity(word[0]))
        if word.start() not in signs and (judges or re.fullmatch(r"[01](?:\.\d+)?", word[0])):
            for before in _befores(line[: word.start()], (1,) if judges else ()):
                yield f"(?m)^{before}(?P<told>[\\w.]+){general(line[word.end() :])}$"


def _befores(text: str, last_words: Sequence[int]) -> Iterator[str]:
    """All that stands before, and only so many words of it."""
    yield general(text)
    for n in last_words:
        last = re.search(rf"(?:\S+\s+){{{n - 1}}}\S+\s*$", text)
        if last is not None and last.start() > 0:
            yield rf"[^\n]*?{general(last[0])}"


def general(text: str) -> str:
    """A pattern for text in which numbers and blanks may differ."""
    parts = re.split(r"(\d+|\s+)", text)
    return "".join(r"\d+" if p.isdigit() else r"\s+" if p.isspace() else re.escape(p) for p in parts if p)
