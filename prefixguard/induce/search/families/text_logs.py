"""Where samples hold logs, and where runs begin in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from prefixguard.induce.samples import Kind
from prefixguard.induce.search.evidence import Evidence
from prefixguard.induce.search.families.heads import RUN_WORDS, HeadLine, LineHead, LogLines, words_in
from prefixguard.induce.search.spoken_names import quoted
from prefixguard.stepview import render

#: Texts that are looked at, code points of one and of all.
MOST_TEXTS, LONGEST_TEXT, MOST_TEXT = 40, 200_000, 1_500_000
#: A log has at least so many lines.
LEAST_LINES = 4


@dataclass(frozen=True, slots=True)
class LogSource:
    """Logs of one make. container: of the spec, without `runs` of text. of: path of the text in a run, "" where the run
    is the text. texts: some of them."""

    container: dict[str, Any]
    of: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunSplit:
    """How runs stand in the texts. runs: the part of the container, None where a text is a run. starts: (doc, line) of
    each run's first line. own: key of the head that begins runs and no event, "" where there is none. sure: in [0, 1].
    """

    runs: dict[str, Any] | None
    starts: tuple[tuple[int, int], ...]
    own: str = ""
    sure: float = 0.5


def log_sources(evidence: Evidence) -> Iterator[LogSource]:
    """Ways in which the samples hold logs: a folder with a log a run, files of text, notebooks, texts inside JSON."""
    yield from _folders(evidence)
    for kind, name in ((Kind.TEXT, "text"), (Kind.NOTEBOOK, "notebook")):
        files = [(file.path, file.text) for file in evidence.files if file.kind is kind and file.text.strip()]
        size: Counter[str] = Counter()
        for path, text in files:
            size[PurePosixPath(path).suffix] += len(text)
        for suffix, _ in size.most_common(2):
            mine = [(path, text) for path, text in files if PurePosixPath(path).suffix == suffix]
            typical = sorted(text.count("\n") for _, text in mine)[len(mine) // 2]
            names = Counter(PurePosixPath(path).name for path, _ in mine)
            mine = [one for one in mine if one[1].count("\n") >= min(LEAST_LINES, typical)]
            if not mine:
                continue
            (common, n), glob = names.most_common(1)[0], f"**/*{suffix}" if suffix else "**/*"
            if n > 1 and n >= 0.5 * len(mine) and len(names) > 1:  # one name in many folders; others are other things
                mine = [(path, text) for path, text in mine if PurePosixPath(path).name == common]
                glob = f"**/{common}"
            yield LogSource({"format": name, "files": glob}, "", _some([text for _, text in mine]))
    yield from _inside_json(evidence)


def _some(texts: Sequence[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for text in texts[:: max(1, -(-len(texts) // MOST_TEXTS))]:
        if not kept or sum(map(len, kept)) + min(len(text), LONGEST_TEXT) <= MOST_TEXT:
            kept.append(text[:LONGEST_TEXT])
    return tuple(kept)


def _folders(evidence: Evidence) -> Iterator[LogSource]:
    """A folder a run: a JSON file in several folders, with a text at the same place in or below each."""
    homes: dict[str, list[PurePosixPath]] = {}
    for file in evidence.files:
        if file.kind is Kind.JSON:
            homes.setdefault(PurePosixPath(file.path).name, []).append(PurePosixPath(file.path).parent)
    logs: dict[tuple[str, str], list[str]] = {}
    for file in evidence.files:
        if file.kind is not Kind.TEXT:
            continue
        path = PurePosixPath(file.path)
        for marker, folders in homes.items():
            above = next((up for up in list(path.parents)[:4] if up in folders), None)
            if above is not None and len(folders) > 1:
                logs.setdefault((marker, path.relative_to(above).as_posix()), []).append(file.text)
    for (marker, relative), texts in sorted(logs.items(), key=lambda one: (-sum(map(len, one[1])), one[0]))[:2]:
        if len(texts) > 1:
            member = re.sub(r"\W", "_", PurePosixPath(marker).stem)
            name = "log" if member != "log" else "text"
            members = {member: marker, name: {"path": relative, "format": "text"}}
            yield LogSource({"format": "folder", "marker": marker, "members": members}, f"$.{name}", _some(texts))


def _inside_json(evidence: Evidence) -> Iterator[LogSource]:
    """A field of the record of a run holds its whole log."""
    found: dict[tuple[str, str, str], list[str]] = {}
    total: Counter[tuple[str, str]] = Counter()
    for file in evidence.files:
        if file.kind not in (Kind.JSON, Kind.JSONL):
            continue
        value, form = evidence.values[file.path], "jsonl" if file.kind is Kind.JSONL else "json"
        places: dict[str, list[Any]] = {"": value} if form == "jsonl" else {"": [value]}
        if form == "json":
            lists = value.items() if isinstance(value, dict) else ()
            places |= {f"$.{key}[*]": part for key, part in lists if isinstance(part, list) and str(key).isidentifier()}
            if isinstance(value, list):
                places = {"$[*]": value}
        for runs, records in places.items():
            for record in records[:200]:
                total[form, runs] += 1
                for path, text in _lines_in(record, "$"):
                    found.setdefault((form, runs, path), []).append(text)
    ranked = sorted(found.items(), key=lambda one: (-sum(map(len, one[1])), one[0]))
    for (form, runs, path), texts in ranked[:2]:
        if len(texts) >= 0.5 * total[form, runs]:
            container = {"format": form} | ({"runs": runs} if runs else {})
            yield LogSource(container, path, _some([render(text) for text in texts]))


def _lines_in(value: Any, path: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and depth < 3:
        for key, inner in list(value.items())[:60]:
            if isinstance(key, str) and re.fullmatch(r"[A-Za-z_]\w*", key):
                yield from _lines_in(inner, f"{path}.{key}", depth + 1)
    elif isinstance(value, str) and value.strip().count("\n") + 1 >= LEAST_LINES:
        yield path, value


# --- where runs begin


def run_splits(lines: LogLines, marks: Sequence[HeadLine], most: int = 3) -> list[RunSplit]:
    """Ways in which runs may stand in the texts, the surest first."""
    docs = len(lines.docs)
    whole = RunSplit(None, tuple((doc, 0) for doc in range(docs)), sure=0.6 if docs > 1 else 0.35)
    found = [whole]
    kinds = Counter(mark.head.key for mark in marks)
    usual = max(kinds.values(), default=0)
    by_key: dict[str, list[HeadLine]] = {}
    for mark in marks:
        by_key.setdefault(mark.head.key, []).append(mark)
    said = Counter(word for key, n in kinds.items() for word in words_in(lines.heads[key].words) for _ in range(n))
    lines.common = frozenset(word for word, n in said.items() if n >= 0.6 * len(marks))
    able = [key for key, n in kinds.items() if max(2, docs) <= n <= 0.75 * usual and _may_begin(lines, key)]
    for key in sorted(able, key=lambda key: (not _speaks(lines, key), -kinds[key]))[:MOST_BEGINNINGS]:
        split = _judged(lines, marks, by_key[key])
        if split is not None:
            found.append(split)
    restarts = _restarts(lines, marks)
    if restarts is not None:
        found.append(restarts)
    found.sort(key=lambda one: -one.sure)
    return [one for one in found[:most] if one.sure >= found[0].sure - 0.12]


#: Heads that are tried as the beginning of runs.
MOST_BEGINNINGS = 16


def _speaks(lines: LogLines, key: str) -> bool:
    """Does the head speak of runs, in words that few heads have?"""
    return bool((words_in(lines.heads[key].words) - lines.common) & RUN_WORDS)


def _may_begin(lines: LogLines, key: str) -> bool:
    head = lines.heads[key]
    return head.tokens[0][0] not in ("word", "num") or not head.whole or _speaks(lines, key)


def _judged(lines: LogLines, marks: Sequence[HeadLine], starts: list[HeadLine]) -> RunSplit | None:
    """Runs that begin at every line with this head: what stands between them has several events, and begins alike."""
    at = {(mark.doc, mark.line) for mark in starts}
    if len({mark.doc for mark in starts}) == len(starts):
        return None  # one a text: the text is the run
    pieces: list[list[str]] = []
    above, bare, docs, doc = 0, 0, 0, -1
    piece: list[str] | None = None
    for mark in marks:
        if mark.doc != doc:
            doc, piece, docs = mark.doc, None, docs + 1
            bare += bool(pieces) and not pieces[-1]
        if (doc, mark.line) in at:
            piece = []
            pieces.append(piece)
        elif piece is None:
            above += 1
        else:
            piece.append(mark.head.key)
    full = [piece for piece in pieces if piece]
    if len(full) < 0.8 * len(pieces) or above > 0.1 * len(marks):
        return None
    again = sum(max(Counter(piece).values()) > 1 for piece in full) / len(full)
    alike = Counter(piece[0] for piece in full).most_common(1)[0][1] / len(full)
    if again < 0.5:
        return None
    head = starts[0].head
    rests = [lines.docs[mark.doc][mark.line][mark.size :].strip() for mark in starts]
    numbers = [_last_number(lines, mark) for mark in starts]
    counts = all(a is not None and b is not None and b > a for a, b in pairwise(numbers))
    ruled = any(kind == "sign" and (len(text) >= 3 or text == "#") for kind, text in head.tokens)
    sure = 0.35 * alike * again + 0.25 * _speaks(lines, head.key) + 0.15 * ruled + 0.15 * counts
    sure += 0.15 * (above == 0) - 0.3 * (bare + (not pieces[-1]) > 0.5 * docs)  # before the first, behind the last
    sure += 0.1 * ((len(set(rests)) > 0.8 * len(rests) and any(rests)) or head.whole)
    regex = (
        "(?m)^" + head.regex(num="number" if counts else "", id="id") + ("" if head.whole else r"[ \t]*(?P<title>.*)$")
    )
    if head.whole and not head.worded:  # a ruler: the line under it tells the run
        under = [lines.docs[mark.doc][mark.line + 1 : mark.line + 2] or [""] for mark in starts]
        number = all(re.fullmatch(r"\d+", one[0].strip()) for one in under)
        regex = regex.removesuffix("$") + r"\n" + (r"(?P<number>\d+)\s*$" if number else "(?P<title>.*)$")
        sure += 0.25 * number
    quotes = Counter(match[1] for rest in rests if (match := re.match(r'((?:[\w.-]+[=:] ?)?")[^"]*"$', rest)))
    if quotes and quotes.most_common(1)[0][1] >= 0.95 * len(rests):
        regex = regex.removesuffix("(?P<title>.*)$") + rf'{quoted(quotes.most_common(1)[0][0])}(?P<title>.*)"$'
    closing = Counter(match[0] for rest in rests if (match := re.search(r"\s*([=#*~_\]-])\1*$", rest)))
    if closing and closing.most_common(1)[0][1] >= 0.95 * len(rests):
        regex = regex.removesuffix("(?P<title>.*)$") + rf"(?P<title>.*?){quoted(closing.most_common(1)[0][0])}$"
    part: dict[str, Any] = {"split": {"head": regex}}
    sections = _sections(lines, at)
    if sections:
        part["section"] = sections
    return RunSplit(part, tuple(sorted(at)), head.key, min(0.95, sure))


def _last_number(lines: LogLines, mark: HeadLine) -> float | None:
    found = re.findall(r"\d+", lines.docs[mark.doc][mark.line][: mark.size])
    return float(found[-1]) if found else None


def _restarts(lines: LogLines, marks: Sequence[HeadLine]) -> RunSplit | None:
    """Runs begin where a counter in the heads starts again: always the same head with the same number."""
    firsts: Counter[tuple[str, float]] = Counter()
    starts: list[tuple[int, int]] = []
    last: tuple[int, float] | None = None
    counts = Counter(mark.head.key for mark in marks)
    usual = 0.5 * max(counts.values(), default=0)
    often = {key for key, n in counts.items() if n >= usual and _may_begin(lines, key)}
    for mark in (one for one in marks if one.head.key in often and any(kind == "num" for kind, _ in one.head.tokens)):
        number = _last_number(lines, mark)
        if number is None:
            continue
        if number in (0, 1) and (last is None or last[0] != mark.doc or number < last[1]):
            firsts[mark.head.key, number] += 1
            starts.append((mark.doc, mark.line))
        last = (mark.doc, number)
    if len(starts) <= max(2, len(lines.docs)):
        return None
    (key, number), n = firsts.most_common(1)[0]
    if n < 0.9 * len(starts):
        return None
    head = lines.heads[key]
    above = _above(marks, set(starts))
    split = None if above is None else _judged(lines, marks, above)
    if split is not None:
        return replace(split, sure=max(0.75, split.sure))
    at = max(i for i, (kind, _) in enumerate(head.tokens) if kind == "num")
    exact = tuple(("sign", f"{number:g}") if i == at else token for i, token in enumerate(head.tokens))
    return RunSplit({"split": {"head": "(?m)^" + LineHead(exact, head.whole).regex()}}, tuple(starts), "", 0.7)


def _above(marks: Sequence[HeadLine], starts: set[tuple[int, int]]) -> list[HeadLine] | None:
    """The one head that stands before every start, and nowhere else: it begins the run."""
    found = [one for one, two in pairwise(marks) if (two.doc, two.line) in starts and one.doc == two.doc]
    keys = Counter(mark.head.key for mark in found)
    key, n = keys.most_common(1)[0] if keys else ("", 0)
    whole = [mark for mark in marks if mark.head.key == key]
    return whole if n >= 0.9 * len(starts) and len(whole) <= 1.1 * n else None


def _sections(lines: LogLines, starts: set[tuple[int, int]]) -> list[str]:
    """RE2 of headings above several runs, which differ in a word or a number."""
    tally: dict[str, list[str]] = {}
    first = {doc: min(line for at, line in starts if at == doc) for doc, _ in starts}
    atop: dict[str, set[int]] = {}
    for doc, line in starts:
        for at in range(line - 1, max(-1, line - 12), -1):
            text = lines.docs[doc][at].rstrip()
            if (doc, at) in starts:
                break
            if 3 < len(text) < 90 and re.search(r"[-=#*]{3}|^[A-Z][A-Z ]+\d+$", text):
                key = re.sub(r"\d+", "0", re.sub(r"([-=#*])\1{2,}", r"\1\1\1", text))
                tally.setdefault(key, []).append(text)
                if line == first[doc]:
                    atop.setdefault(key, set()).add(doc)
    out: list[str] = []
    keys = [key for key, found in tally.items() if len(found) <= 0.5 * len(starts) or len(starts) < 4]
    by_shape: dict[tuple[str, ...], list[str]] = {}
    above: dict[tuple[str, ...], set[int]] = {}
    for key in keys:
        words = key.split()
        for i in range(len(words)):
            if words[i].isalpha():
                shape = (*words[:i], "\0", *words[i + 1 :])
                by_shape.setdefault(shape, []).append(words[i])
                above.setdefault(shape, set()).update(atop.get(key, ()))
    for shape, values in by_shape.items():
        if len(values) > 1 and above[shape] == first.keys():
            shown = [rf"(?P<verdict>{'|'.join(sorted(values))})" if word == "\0" else _ruled(word) for word in shape]
            out.append(r"(?m)^" + " ".join(shown) + r"[ \t]*$")
    numbered = [key for key in keys if re.search(r"\b0$", key) and key.count("0") == 1]
    out += [r"(?m)^" + _ruled(key).replace("0", r"(?P<part>\d+)") + r"[ \t]*$" for key in numbered[:1]]
    return out


def _ruled(text: str) -> str:
    return re.sub(r"(\\?[-=#*])\1{2,}", r"\1+", quoted(text))
