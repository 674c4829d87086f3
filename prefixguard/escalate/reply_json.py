"""The JSON in a model's reply: whole objects with their places, objects as models write them, and the answers.

Three readers, from strict to tolerant. `json_objects` reads JSON alone and says why one is broken; an object that
names a key twice says two things and is not read, nor are NaN and infinities, which no JSON has. `read_object` reads
also what language models write: single quotes, trailing commas, bare words, quotes that are not escaped.
`find_answers` reads the objects of answer blocks outside of the thought; without blocks, bare ones. Replies are
hostile: nothing is evaluated, and depth, length and tries are bounded. A library that repairs JSON is not used: it
makes objects of replies that were cut off or contradict themselves, which are no answers here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

#: Places of a text that are tried, whole and broken; an answer has a few objects.
MAX_TRIES = 400
_OBJECT, _OBJECT_OR_LIST = re.compile(r"\{"), re.compile(r"[{\[]")
#: What reasoning models put around what they think before they answer.
_THOUGHT_TAGS = re.compile(r"<(?P<end>/?)(?:think|thinking|thought|reasoning|scratchpad)>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FoundJson:
    """JSON at one place of a text.

    value: the object (or list); None where it is broken. at: where it begins and ends; a broken one ends where it
    begins. fault: why it cannot be read, a clause for the model that wrote it; "" where it can. lenient: whether it is
    no strict JSON.
    """

    value: Any
    at: tuple[int, int]
    fault: str = ""
    lenient: bool = False


def json_objects(text: str, begin: int = 0, *, lists: bool = False) -> Iterator[FoundJson]:
    """Objects of a text from `begin` on, outermost first: what lies in a whole one is not told again, what lies in a
    broken one is. lists: lists as well.

    >>> [(found.value, found.at) for found in json_objects('So: {"a": 1}, not {"a": {}}.')]
    [({'a': 1}, (4, 12)), ({'a': {}}, (18, 27))]
    >>> [found.fault for found in json_objects('{"a": 1, "a": 2}')]
    ["the key 'a' stands twice in one object; combine the two"]
    """
    opening = _OBJECT_OR_LIST if lists else _OBJECT
    position = begin
    for _ in range(MAX_TRIES):
        met = opening.search(text, position)
        if met is None:
            return
        start = met.start()
        try:
            value, position = _WHOLE.raw_decode(text, start)
        except (ValueError, RecursionError) as exc:
            position = start + 1
            yield FoundJson(None, (start, start), _fault(exc))
        else:
            yield FoundJson(value, (start, position))


def without_thoughts(text: str) -> str:
    """The text without blocks of thought, and without all before an end of one that has no beginning. Linear in the
    text. A block that does not end is left standing.

    >>> without_thoughts("It may be A. </think>B<THINK>, or C?</THINK>.")
    'B.'
    """
    kept: list[str] = []
    at, thought = 0, None  # where what is kept begins, and where the thought that is open does
    for tag in _THOUGHT_TAGS.finditer(text):
        if not tag["end"]:
            thought = tag.start() if thought is None else thought
            continue
        if thought is None:
            kept.clear()
        else:
            kept.append(text[at:thought])
        at, thought = tag.end(), None
    return "".join((*kept, text[at:]))


def _fault(exc: Exception) -> str:
    if isinstance(exc, json.JSONDecodeError):
        return f"the JSON breaks off at line {exc.lineno}, column {exc.colno}: {exc.msg}"
    return "the JSON is nested too deeply" if isinstance(exc, RecursionError) else str(exc)[:200]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:80]!r} stands twice in one object; combine the two")
        found[key] = value
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_WHOLE = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant)


#: Characters of one object, and how deep objects and lists may stand in each other.
MAX_OBJECT = 64 * 1024
MAX_DEPTH = 8

_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"[+-]?\d{1,40}(?:\.\d{1,40})?(?:[eE][+-]?\d{1,4})?(?![\w.])", re.ASCII)
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9-]{0,39}(?![\w.])", re.ASCII)
_ESCAPE = re.compile(r"u([0-9a-fA-F]{4})|.", re.DOTALL)
_QUOTES = {'"': re.compile(r'["\\]'), "'": re.compile(r"['\\]"), "\u201c": re.compile(r"[\u201d\\]")}
_ENDS = {"{": "}", "[": "]"}
# what stands behind a text: the end, or another entry
_CLOSES = re.compile(r"\s*(?:[}\]]|\Z|,\s*(?:[\"'\u201c{}\[\]\d+-]|\Z|\w{1,40}\s*[:,\]}]))")
_WORDS = {"true": True, "false": False, "null": None, "none": None, "nan": math.nan, "infinity": math.inf}
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


class BrokenJson(ValueError):
    """No object. cut: the text ends before the object does. position: where reading stopped."""

    def __init__(self, message: str, position: int, *, cut: bool = False) -> None:
        super().__init__(message)
        self.position, self.cut = position, cut


class JsonObject(dict[str, Any]):
    """An object, its keys in lower case. clashing: keys with several different values; the last one is kept."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        folded = [(key.strip().lower(), value) for key, value in pairs]
        super().__init__(folded)
        self.clashing = frozenset(key for key, value in folded if repr(value) != repr(self[key]))


def read_object(text: str, start: int) -> FoundJson:
    """The object whose brace stands at `start`, a `JsonObject`. BrokenJson where there is none.

    >>> read_object("{'answer': SAFE,}", 0).value
    {'answer': 'SAFE'}
    """
    part = text[start : start + MAX_OBJECT]
    try:
        value, end = _STRICT.raw_decode(part)
        if isinstance(value, JsonObject):
            return FoundJson(value, (start, start + end))
    except (ValueError, RecursionError):
        pass
    reader = _LenientReader(part, start)
    return FoundJson(reader.container(0), (start, start + reader.at), lenient=True)


def _integer(digits: str) -> int | float:
    """An integer; one that no step has becomes infinite instead of costing time."""
    return int(digits) if len(digits) <= 18 else math.copysign(math.inf, -1 if digits.startswith("-") else 1)


_STRICT = json.JSONDecoder(strict=False, object_pairs_hook=JsonObject, parse_int=_integer, parse_constant=float)


class _LenientReader:
    """Reads a text that begins with a brace. at: where it reads on. base: where the text stands in the reply."""

    def __init__(self, text: str, base: int) -> None:
        self.text, self.base, self.at = text, base, 0

    def container(self, depth: int) -> JsonObject | list[Any]:
        """The object or list that begins here. A comma before its end is allowed."""
        end = _ENDS[self.text[self.at]]
        self.at += 1
        pairs: list[tuple[str, Any]] = []  # the keys of a list are ""
        while self._next() != end:
            key = self._key() if end == "}" else ""
            pairs.append((key, self._value(depth + 1)))
            if self._next() == ",":
                self.at += 1
                self._next()
            elif self._next() != end:
                raise self._broken("two entries without a comma")
        self.at += 1
        return JsonObject(pairs) if end == "}" else [value for _, value in pairs]

    def _broken(self, message: str) -> BrokenJson:
        return BrokenJson(message, self.base + self.at)

    def _next(self) -> str:
        """The character after white space, where reading goes on."""
        met = _SPACE.match(self.text, self.at)
        self.at = met.end() if met else self.at
        if self.at >= len(self.text):
            raise BrokenJson("the object does not end", self.base + self.at, cut=True)
        return self.text[self.at]

    def _key(self) -> str:
        """A key and its colon."""
        if self.text[self.at] in _QUOTES:
            key = self._string(key=True)
        elif (met := _WORD.match(self.text, self.at)) is not None:
            key, self.at = met.group(), met.end()
        else:
            raise self._broken("a key is no text")
        if self._next() != ":":
            raise self._broken("a key without its value")
        self.at += 1
        self._next()
        return key

    def _value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise self._broken("nested too deep")
        char = self.text[self.at]
        if char in _ENDS:
            return self.container(depth)
        if char in _QUOTES:
            return self._string()
        met = _NUMBER.match(self.text, self.at) or _WORD.match(self.text, self.at)
        if met is None:
            raise self._broken("neither text nor number")
        said, self.at = met.group(), met.end()
        if met.re is _WORD:
            return _WORDS.get(said.lower(), said)
        return _integer(said) if said.lstrip("+-").isdigit() else float(said)

    def _string(self, *, key: bool = False) -> str:
        """A text. In a value, a quotation mark ends it only where another entry can follow: marks inside need no
        escape."""
        begin, ends, parts = self.at, _QUOTES[self.text[self.at]], []
        self.at += 1
        while met := ends.search(self.text, self.at):
            parts.append(self.text[self.at : met.start()])
            self.at = met.end()
            if met.group() != "\\":
                if key or _CLOSES.match(self.text, self.at):
                    return "".join(parts)
                parts.append(met.group())
                continue
            escape = _ESCAPE.match(self.text, self.at)
            if escape is None:
                break
            code = escape.group(1)
            parts.append(chr(int(code, 16)) if code else _ESCAPED.get(escape.group(), escape.group()))
            self.at = escape.end()
        raise BrokenJson("a text does not end", self.base + len(self.text), cut="}" not in self.text[begin:])


#: Characters of a reply that are read, from its end: the answer comes last.
MAX_READ = 256 * 1024
#: Braces that are tried: a reply with more is no answer.
MAX_OBJECTS = 60

_MARKS = re.compile(r"<(?P<close>/?)(?P<tag>think|thinking|reasoning|answer)\s{0,4}>|(?P<brace>\{)", re.IGNORECASE)
_TAG = re.compile(r"</?(?:think|thinking|reasoning|answer)\s{0,4}>", re.IGNORECASE)
_END_OF_THOUGHT = re.compile(r"</(?:think|thinking|reasoning)\s{0,4}>", re.IGNORECASE)
_ANSWER_KEY = re.compile(r"answer[\"'\u201d]?\s{0,20}:", re.IGNORECASE)
_QUOTED_KEY = re.compile(r"[\"']answer[\"']\s{0,20}:", re.IGNORECASE)
_DECORATION = re.compile(r"[\s`]*")

#: What stands where an answer could stand: its object, or why there is none.
_Entry = JsonObject | str


@dataclass(frozen=True, slots=True)
class Answers:
    """What a reply answers.

    objects: the answer objects, in order; each has the key "answer". fault: why there is none to be read ("no-verdict",
    "truncated", "malformed", "answer-in-thought"), "" where there is. notes: what was tolerated, one entry each.
    """

    objects: tuple[JsonObject, ...]
    fault: str = ""
    notes: tuple[str, ...] = ()


def find_answers(text: str, *, all_thought: bool = False) -> Answers:
    """The answers in a reply's text.

    A thought is what stands between its tags, and everything before an end tag that was never opened. In a thought that
    is never closed, and in a text that is `all_thought`, only an answer block that ends it counts.
    """
    scan = _Scan(text)
    scan.read()
    entries, notes = scan.tagged or scan.bare, scan.notes
    uncounted = (all_thought or scan.thought_open) and not (scan.tagged and scan.ends_with_block)
    if uncounted or not entries:
        return Answers((), "answer-in-thought" if entries or scan.dropped else "no-verdict", tuple(notes))
    if isinstance(entries[-1], str):
        return Answers((), entries[-1], tuple(notes))
    objects = tuple(entry for entry in entries if not isinstance(entry, str))
    notes += ["thought not closed"] * scan.thought_open + ["no answer block"] * (not scan.tagged)
    notes += ["an earlier answer was broken"] * (len(objects) < len(entries))
    return Answers(objects, "", tuple(dict.fromkeys(notes)))


class _Scan:
    """One pass over a reply: tags, and the objects between them."""

    def __init__(self, text: str) -> None:
        self.notes: list[str] = []
        if len(text) > MAX_READ:
            self.notes.append("long reply, only its end was read")
        self.text = text[-MAX_READ:]
        self.tagged: list[_Entry] = []  # in answer blocks
        self.bare: list[_Entry] = []  # outside of them
        self.thought_open = False
        self.dropped = False  # was there an answer in a thought?
        self.ends_with_block = False
        self._in_block = False
        self._in_this_block = 0

    def read(self) -> None:
        position = tried = 0
        while met := _MARKS.search(self.text, position):
            if not met["brace"]:
                position = self._tag(met["tag"].lower(), met["close"] == "/", met.end())
                continue
            if self.text[met.end() : met.end() + 1] == "{":  # a template's braces, copied
                position = met.end()
                continue
            tried += 1
            if tried > MAX_OBJECTS:
                self._add("malformed")
                break
            position = self._brace(met.start())
        if self._in_block:
            self.ends_with_block = bool(self._in_this_block)
            if self._in_this_block:
                self.notes.append("answer block not closed")
            else:
                self.tagged.append("truncated")

    def _tag(self, name: str, closing: bool, end: int) -> int:
        """Reads a tag that ends at `end`; where to read on."""
        if name == "answer":
            if self._in_block:
                if not self._in_this_block:
                    self.tagged.append("malformed")
                elif not closing:
                    self.notes.append("answer block not closed")
            self.ends_with_block = closing and self._in_block and _DECORATION.fullmatch(self.text, end) is not None
            self._in_block, self._in_this_block = not closing, 0
        elif closing:  # a thought that began without its tag
            self.dropped = self.dropped or bool(self.tagged or self.bare)
            self.tagged, self.bare = [], []
            self._in_block = self.thought_open = False
        elif not self.thought_open:
            close = _END_OF_THOUGHT.search(self.text, end)
            if close is None:
                self.thought_open = True
                return end
            self.dropped = self.dropped or _QUOTED_KEY.search(self.text, end, close.start()) is not None
            return close.end()
        return end

    def _brace(self, start: int) -> int:
        """Reads what begins with this brace; where to read on."""
        try:
            found = read_object(self.text, start)
        except BrokenJson as exc:
            if self._in_block or _ANSWER_KEY.search(self.text, start, exc.position):
                self._add("truncated" if exc.cut else "malformed")
                tag = _TAG.search(self.text, exc.position)  # what else stands in it is no answer
                return tag.start() if tag else len(self.text)
            return start + 1 if exc.cut else max(start + 1, exc.position)
        if "answer" in found.value:
            self._add(found.value)
            if found.lenient:
                self.notes.append("not strict JSON")
        elif self._in_block:
            self._add("malformed")
        return found.at[1]

    def _add(self, entry: _Entry) -> None:
        if self._in_block:
            self.tagged.append(entry)
            self._in_this_block += 1
        else:
            self.bare.append(entry)
