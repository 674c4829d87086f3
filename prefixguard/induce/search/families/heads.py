"""Heads of lines: what lines of a log begin with, found by repetition over the samples.

The start of a line is cut into tokens: times, numbers and ids are masked, words and signs stay. A head ends at a sign
that ends labels (`Thought 1:`, `AGENT >`, `[tool]`), behind `key=word`, or is a whole short line (`### Action`). Of the
heads that a line may have, the longest counts whose words are few and stand in most parts of the samples.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from prefixguard.induce.search.spoken_names import quoted, role_of

#: A head is no longer than this, in code points, words and tokens.
LONGEST_HEAD, MOST_WORDS, MOST_TOKENS = 90, 7, 36
#: Lines of all samples that are looked at; parts that one text is cut into where there are few texts.
MOST_LINES, PARTS = 40_000, 12
_TIME = (
    r"\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d|\d\d?:\d\d:\d\d(?:[.,]\d+)?"
    r"(?: ?[AP]M)?"
)
_TOKEN = re.compile(
    rf"(?P<time>{_TIME})|(?P<id>(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[A-Za-z0-9][\w-]*)|(?P<num>-?\d+(?:\.\d+)*)"
    r"|(?P<word>[A-Za-z_][\w'’]*(?:[.-][A-Za-z_]\w*)*)|(?P<space>[ \t]+)"
    r"|(?P<sign>[-=]>|<[-=]|(?P<one>[^\w\s])(?P=one)*)"
)
#: How a spec says what is masked: no stricter than the head around it needs.
_MASKS = {
    "time": r"[A-Z\d][\w:.,/+-]*(?: [\d:][\w:.,+-]*){0,2}(?: [AP]M)?",
    "num": r"-?\d[\d.]*",
    "id": r"[\w-]+",
    "level": "[A-Za-z]+",
}
_LEVELS = frozenset(["debug", "info", "warn", "warning", "error", "critical", "fatal", "trace", "notice"])
_CLOSERS = (":", ">", "]", "|", ")", "→", "»", "=>", "->", "*", "$", "#", "%", "<<", "←", "«", "<-")
PROMPTS = frozenset(["->", "<-", "=>", "<=", *(sign * n for sign in ">$#%<" for n in (1, 2, 3)), "→", "»", "←", "«"])


#: Words of which one stands in the line that begins a run.
RUN_WORDS = frozenset(
    """
    run task episode session trial question problem case incident job attempt game example instance
    conversation chat ticket query chain start started begin new opened
    """.split()  # noqa: SIM905, a list would be longer
)


def words_in(text: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Za-z]+", text)}


@dataclass(frozen=True)
class LineHead:
    """A head as it is over many lines. tokens: (kind, text), masked where kind is time, num or id. whole: it is all of
    its line."""

    tokens: tuple[tuple[str, str], ...]
    whole: bool

    @cached_property
    def key(self) -> str:
        return "".join(_masked(kind, text) for kind, text in self.tokens) + "\n" * self.whole

    @cached_property
    def skeleton(self) -> str:
        """The head with its words masked: heads of one logger share it."""
        found = "".join("W" if kind == "word" else _masked(kind, text) for kind, text in self.tokens)
        return re.sub(r"W(?:[ _#%-]*[W%])+", "W", re.sub(r" ?#", "", found)) + "\n" * self.whole

    @cached_property
    def words(self) -> str:
        """The words in it, or its signs where it has none."""
        found = [text for kind, text in self.tokens if kind == "word"]
        return " ".join(found) or "".join(text for kind, text in self.tokens if kind == "sign")

    @property
    def strong(self) -> bool:
        """Is it more than `word:`? A time, a number, brackets, a ruler."""
        return any(
            kind in ("time", "num", "id") or (kind == "sign" and text not in (":", "-", ".", ",", "'", '"', "/"))
            for kind, text in self.tokens
        )

    @property
    def worded(self) -> bool:
        """Does it hold a word?"""
        return any(kind == "word" for kind, _ in self.tokens)

    def regex(self, **groups: str) -> str:
        """RE2 of the head. groups: by kind of token (num, id), the name of a group for the last of that kind."""
        last = {kind: i for i, (kind, _) in enumerate(self.tokens)}
        out = []
        for i, (kind, text) in enumerate(self.tokens):
            if kind in _MASKS:
                named = groups.get(kind) and i == last[kind]
                out.append(f"(?P<{groups[kind]}>{_MASKS[kind]})" if named else _MASKS[kind])
            elif kind == "space":
                beside = {self.tokens[i - 1][0], self.tokens[min(i + 1, len(self.tokens) - 1)][1]}
                out.append(" " if text == " " and not beside & {"level", "|"} else "[ \\t]+")
            elif kind == "sign" and len(text) > 4:
                out.append(f"{quoted(text[0])}{{{len(text)}}}")
            else:
                out.append(quoted(text))
        plain = self.tokens[-1][0] in ("word", "num", "id") and not self.whole
        return "".join(out) + r"\b" * plain + r"[ \t]*$" * self.whole


def is_prompt(text: str) -> bool:
    """May the sign alone begin events, as prompts, arrows and bullets of a console do?"""
    return text in PROMPTS or (len(text) == 1 and not text.isascii())


def _masked(kind: str, text: str) -> str:
    if kind == "sign" and len(text) > 4:
        return f"{text[:3]}{len(text)}"
    return {"time": "@", "num": "#", "id": "%", "space": " ", "level": "!"}.get(kind, text)


@lru_cache(maxsize=65536)
def heads_of(line: str) -> tuple[LineHead, ...]:
    """The heads that a line may have, the shortest first. line: its first LONGEST_HEAD + 1 code points."""
    return tuple(_heads_of(line))


def _heads_of(line: str) -> Iterator[LineHead]:
    line = line.rstrip()
    if not line or line[0] in "\"'{},;" or (line[0] == "`" and line[:3] != "```"):
        return
    tokens = []
    for match in _TOKEN.finditer(line[:LONGEST_HEAD]):
        kind = match.lastgroup or "sign"
        tokens.append(("sign" if kind == "one" else kind, match[0]))
    stamped = any(kind == "time" for kind, _ in tokens)
    tokens = [("level", text) if kind == "word" and _is_level(text, stamped) else (kind, text) for kind, text in tokens]
    indented = tokens[0][0] == "space"
    if line.startswith("</") or (indented and (len(tokens) < 2 or not is_prompt(tokens[1][1]))):
        return
    words = 0
    for i, (kind, text) in enumerate(tokens[:MOST_TOKENS]):
        words += kind == "word"
        if words > MOST_WORDS:
            return
        after = tokens[i + 1] if i + 1 < len(tokens) else ("end", "")
        apart = after[0] in ("space", "end")
        if kind == "sign":
            ends = apart and (text.endswith(_CLOSERS) or (i == indented and is_prompt(text)) or text == "```")
            ends |= text == "`" and i in (1, 2) and tokens[0][1] in PROMPTS
        elif kind == "time":
            ends = i == 0 and apart
        else:  # key=word, or a word behind the end of a label
            before = [one for one in tokens[:i] if one[0] != "space"]
            labelled = kind == "word" and before and before[-1][1].endswith((":", "]", "|"))
            ends = bool(before and apart and (before[-1][1] == "=" or labelled))
        if ends and _balanced(tokens[: i + 1]):
            yield LineHead(tuple(tokens[: i + 1]), False)
            if indented:
                return
    if len(line) <= LONGEST_HEAD and len(tokens) <= MOST_TOKENS and tokens[-1][1][-1:] not in ",;({[":
        yield LineHead(tuple(tokens), True)


def _is_level(word: str, stamped: bool) -> bool:
    """Is it the level of a logger? `Error` without a time beside it is a name."""
    return word.lower() in _LEVELS and (stamped or word != word.capitalize())


def _balanced(tokens: Sequence[tuple[str, str]]) -> bool:
    text = "".join(text for kind, text in tokens if kind == "sign")
    return all(text.count(a) == text.count(b) for a, b in ("()", "[]", "{}"))


@dataclass(frozen=True, slots=True)
class HeadLine:
    """A line that begins with a head. doc, line: where. size: of the head, in code points. number: the last one in it,
    "" where there is none."""

    doc: int
    line: int
    head: LineHead
    size: int
    number: str


#: Lines of front matter at most.
LONGEST_FRONT = 40


def _front(lines: Sequence[str]) -> int:
    """Lines of front matter: `key: value` between two rulers at the very beginning; 0 where there is none."""
    ruler = lines[0].rstrip() if lines else ""
    if ruler not in ("---", "+++"):
        return 0
    shut = next((i for i, line in enumerate(lines[1:LONGEST_FRONT], 1) if line.rstrip() == ruler), 0)
    return shut + 1 if shut > 1 and all(re.match(r"\s|-|[\w.-]+ ?[:=]", line) for line in lines[1:shut]) else 0


class LogLines:
    """Lines of some texts with the heads that repeat over them."""

    def __init__(self, texts: Sequence[str], names: bool = True) -> None:
        self.names = names
        each = max(400, MOST_LINES // max(1, len(texts)))
        self.docs = [text.split("\n")[:each] for text in texts]
        self.heads: dict[str, LineHead] = {}
        self.counts: Counter[str] = Counter()
        self._parts: dict[str, set[tuple[int, int]]] = {}
        self._below: dict[str, set[str]] = {}
        self.headed = 0
        cut = 1 if len(texts) >= 6 else -(-PARTS // max(1, len(texts)))
        self.parts = sum(min(cut, len(lines)) for lines in self.docs)
        fronts = [_front(lines) for lines in self.docs]
        self.fronts = fronts if min(fronts, default=0) else [0] * len(fronts)
        for doc, lines in enumerate(self.docs):
            for at, line in enumerate(lines[self.fronts[doc] :], self.fronts[doc]):
                above = ""
                self.headed += any(not head.whole for head in heads_of(line[: LONGEST_HEAD + 1]))
                for head in heads_of(line[: LONGEST_HEAD + 1]):
                    key = head.key
                    self.heads.setdefault(key, head)
                    self.counts[key] += 1
                    self._parts.setdefault(key, set()).add((doc, at * cut // len(lines)))
                    self._below.setdefault(above, set()).add(key)
                    above = key
        self.kept = {key for key, n in self.counts.items() if n >= 2 and self.spread(key) >= self._least(key)}

    def spread(self, key: str) -> float:
        """Share of the parts of the samples in which the head stands."""
        return len(self._parts.get(key, ())) / max(1, self.parts)

    def _least(self, key: str) -> float:
        """How far it is spread at least; what speaks of runs or verdicts may stand once for each of two runs."""
        said = self.heads[key].words
        of_runs = self.names and (bool(words_in(said) & RUN_WORDS) or role_of(said) == "noise")
        return min(0.25, 2 / max(1, self.parts)) if of_runs else 0.25

    def parted(self, key: str) -> bool:
        """Do lines with this head go on with longer heads, few and spread over the samples? Behind a label a word is
        text, unless it is always there, or the label is on most lines and so is a stamp."""
        head, n = self.heads[key], self.counts[key]
        below = [one for one in self._below.get(key, ()) if one in self.kept and self.spread(one) >= 0.4]
        if head.worded:
            stamps = head.strong and n >= 0.6 * self.headed
            timed = any(kind == "time" for kind, _ in head.tokens[:2])
            below = [one for one in below if timed or stamps or not self.heads[one].whole]
            below = [one for one in below if stamps or self._same(key, one)]
        return 1 <= len(below) <= 16 and sum(self.counts[one] for one in below) >= 0.8 * n

    def _same(self, key: str, longer: str) -> bool:
        """Does the longer head add no more than signs and numbers, or `key=number`?"""
        more = self.heads[longer].tokens[len(self.heads[key].tokens) :]
        kinds = [kind for kind, _ in more if kind != "space"]
        return "word" not in kinds or (kinds[-1] in ("num", "id") and more[-2][1] == "=" and kinds.count("word") == 1)

    def found(self) -> list[HeadLine]:
        """Every line with a head that repeats: of the heads it may have, the longest as far as heads part."""
        out = []
        for doc, lines in enumerate(self.docs):
            for at, line in enumerate(lines[self.fronts[doc] :], self.fronts[doc]):
                best = None
                for head in heads_of(line[: LONGEST_HEAD + 1]):
                    if head.key not in self.kept:
                        break
                    best = head
                    if not self.parted(head.key):
                        break
                if best is not None:
                    size = sum(len(text) for _, text in best.tokens)
                    out.append(HeadLine(doc, at, best, size, (re.findall(r"\d+", line[:size]) or [""])[-1]))
        return out
