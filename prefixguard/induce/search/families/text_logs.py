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
from prefixguard.induce.search.places import own_leaves, spell
from prefixguard.induce.search.spoken_names import quoted
from prefixguard.lexicon import polarity
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
        value = evidence.values.get(file.path)
        rows = value if isinstance(value, list) else [value]
        lists = {"$[*]" if rows is value and file.kind is Kind.JSON else "": rows}
        if isinstance(value, dict):
            lists |= {spell("$", (key, None)): part for key, part in value.items() if isinstance(part, list)}
        for runs, records in lists.items():
            total[file.kind.value, runs] += len(records[:200])
            for place, text in (leaf for record in records[:200] for leaf in own_leaves(record)):
                if isinstance(text, str) and text.strip().count("\n") + 1 >= LEAST_LINES:
                    found.setdefault((file.kind.value, runs, spell("$", place)), []).append(text)
    ranked = sorted(found.items(), key=lambda one: (-sum(map(len, one[1])), one[0]))
    for (form, runs, path), texts in ranked[:2]:
        if len(texts) >= 0.5 * total[form, runs]:
            container = {"format": form} | ({"runs": runs} if runs else {})
            yield LogSource(container, path, _some([render(text) for text in texts]))


# --- where runs begin


#: Ways in which runs may stand in the texts that are told, and heads that are tried as their beginning.
MOST_SPLITS, MOST_BEGINNINGS = 3, 16


def run_splits(lines: LogLines, marks: Sequence[HeadLine]) -> list[RunSplit]:
    """Ways in which runs may stand in the texts, the surest first."""
    docs = len(lines.docs)
    found = [RunSplit(None, tuple((doc, 0) for doc in range(docs)), sure=0.6 if docs > 1 else 0.35)]
    by_key: dict[str, list[HeadLine]] = {}
    for mark in marks:
        by_key.setdefault(mark.head.key, []).append(mark)
    usual = max(map(len, by_key.values()), default=0)
    able = [mine for mine in by_key.values() if max(2, docs) <= len(mine) <= 0.75 * usual and _may_begin(mine[0].head)]
    for mine in sorted(able, key=lambda mine: (not _speaks(mine[0].head), -len(mine)))[:MOST_BEGINNINGS]:
        found += _judged(lines, marks, mine)
    often = [mark for mine in by_key.values() if len(mine) >= 0.5 * usual and _may_begin(mine[0].head) for mark in mine]
    starts = _restarts([mark for mark in often if any(kind == "num" for kind, _ in mark.head.tokens)])
    if len(starts) > max(2, docs):
        at = {(mark.doc, mark.line) for mark in starts}
        before = [one for one, two in pairwise(marks) if (two.doc, two.line) in at and one.doc == two.doc]
        # The one head before every start, and nowhere else, begins the run.
        for key, n in Counter(mark.head.key for mark in before).most_common(1):
            if n >= 0.9 * len(starts) and len(by_key[key]) <= 1.1 * n:
                found += (replace(one, sure=max(0.75, one.sure)) for one in _judged(lines, marks, by_key[key]))
        found += _counted(starts)
    found.sort(key=lambda one: -one.sure)
    return [one for one in found[:MOST_SPLITS] if one.sure >= found[0].sure - 0.12]


def _speaks(head: LineHead) -> bool:
    """Does the head speak of runs?"""
    return bool(words_in(head.words) & RUN_WORDS)


def _may_begin(head: LineHead) -> bool:
    return head.tokens[0][0] not in ("word", "num") or not head.whole or _speaks(head)


def _judged(lines: LogLines, marks: Sequence[HeadLine], starts: list[HeadLine]) -> Iterator[RunSplit]:
    """Runs that begin at every line with this head: what stands between them has several events, and begins alike."""
    at = {(mark.doc, mark.line) for mark in starts}
    pieces: list[list[str]] = []
    above, doc = 0, -1
    for mark in marks:
        if (mark.doc, mark.line) in at:
            pieces.append([])
            doc = mark.doc
        elif mark.doc == doc:
            pieces[-1].append(mark.head.key)
        else:
            above += 1
    full = [piece for piece in pieces if piece]
    one_a_text = len({mark.doc for mark in starts}) == len(starts)  # then the text is the run
    if one_a_text or len(full) < 0.8 * len(pieces) or above > 0.1 * len(marks):
        return
    again = sum(max(Counter(piece).values()) > 1 for piece in full) / len(full)
    alike = Counter(piece[0] for piece in full).most_common(1)[0][1] / len(full)
    if again < 0.5:
        return
    head = starts[0].head
    rests = [lines.docs[mark.doc][mark.line][mark.size :].strip() for mark in starts]
    counts = all(one.number and two.number and int(two.number) > int(one.number) for one, two in pairwise(starts))
    sure = 0.35 * alike * again + 0.25 * _speaks(head) + 0.15 * counts + 0.15 * (above == 0)
    regex = (
        "(?m)^" + head.regex(num="number" if counts else "", id="id") + ("" if head.whole else r"[ \t]*(?P<title>.*)$")
    )
    if head.whole and not head.worded:  # a ruler: the line under it tells the run
        under = [lines.docs[mark.doc][mark.line + 1 : mark.line + 2] or [""] for mark in starts]
        number = all(re.fullmatch(r"\d+", one[0].strip()) for one in under)
        regex = regex.removesuffix("$") + r"\n" + (r"(?P<number>\d+)\s*$" if number else "(?P<title>.*)$")
        sure += 0.15 + 0.25 * number
    closing = Counter(match[0] for rest in rests if (match := re.search(r'\s*([=#*~_\]"-])\1*$', rest)))
    for end, n in closing.most_common(1):
        if n >= 0.95 * len(rests):
            opening = '[^"]*"' * (end == '"')
            regex = regex.removesuffix("(?P<title>.*)$") + rf"{opening}(?P<title>.*?){quoted(end)}$"
    part: dict[str, Any] = {"split": {"head": regex}}
    if sections := _sections(lines, at):
        part["section"] = sections
    yield RunSplit(part, tuple(sorted(at)), head.key, min(0.95, sure))


def _restarts(counted: Sequence[HeadLine]) -> list[HeadLine]:
    """Where a counter in the heads starts again."""
    counted = sorted(counted, key=lambda mark: (mark.doc, mark.line))
    return [
        two for one, two in zip([None, *counted], counted, strict=False)
        if int(two.number) in (0, 1) and (one is None or one.doc != two.doc or int(two.number) < int(one.number))
    ]  # fmt: skip


def _counted(starts: Sequence[HeadLine]) -> Iterator[RunSplit]:
    """Runs that begin with these lines, where they have the same head with the same number."""
    ((head, number), n) = Counter((mark.head, mark.number) for mark in starts).most_common(1)[0]
    if n >= 0.9 * len(starts):
        at = max(i for i, (kind, _) in enumerate(head.tokens) if kind == "num")
        exact = tuple(("sign", number) if i == at else token for i, token in enumerate(head.tokens))
        runs = {"split": {"head": "(?m)^" + LineHead(exact, head.whole).regex()}}
        yield RunSplit(runs, tuple((mark.doc, mark.line) for mark in starts), sure=0.7)


def _sections(lines: LogLines, starts: set[tuple[int, int]]) -> list[str]:
    """RE2 of headings above several runs: one word of success or failure changes in them, or they count."""
    told: dict[str, set[str]] = {}
    atop: dict[str, set[int]] = {}
    counted: Counter[str] = Counter()
    last = (-1, 0)
    for doc, line in sorted(starts):
        top = last[1] + 1 if last[0] == doc else 0
        for text in map(str.rstrip, lines.docs[doc][max(top, line - 12) : line]):
            if not 3 < len(text) < 90 or not re.search(r"[-=#*]{3}|^[A-Z][A-Z ]+\d+$", text):
                continue
            text = re.sub(r"([-=#*])\1{2,}", r"\1\1\1", text)
            for word in filter(polarity, text.split()):
                shape = text.replace(word, "\0")
                told.setdefault(shape, set()).add(word)
                atop.setdefault(shape, set()).update([doc] * (last[0] != doc))
            counted[re.sub(r"\b\d+$", "\0", text)] += 1
        last = (doc, line)
    found = [
        (shape, rf"(?P<verdict>{'|'.join(sorted(values))})")
        for shape, values in told.items()
        if len(values) > 1 and len(atop[shape]) == len({doc for doc, _ in starts})
    ]
    few = [key for key, n in counted.items() if "\0" in key and (n <= 0.5 * len(starts) or len(starts) < 4)]
    found += [(key, r"(?P<part>\d+)") for key in few[:1]]
    ruled = [(re.sub(r"(\\?[-=#*])\1{2,}", r"\1+", quoted(key)), group) for key, group in found]
    return [r"(?m)^" + key.replace("\0", group) + r"[ \t]*$" for key, group in ruled]
