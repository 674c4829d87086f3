"""The answer objects of a reply: those in its answer blocks, outside of its thought; without blocks, bare ones."""

from __future__ import annotations

import re
from dataclasses import dataclass

from prefixguard.escalate.lenient_json import BrokenJson, JsonObject, read_object

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
    if (all_thought or scan.thought_open) and not (scan.tagged and scan.ends_with_block):
        return Answers((), "answer-in-thought" if entries or scan.dropped else "no-verdict", tuple(notes))
    if not entries:
        return Answers((), "answer-in-thought" if scan.dropped else "no-verdict", tuple(notes))
    if isinstance(entries[-1], str):
        return Answers((), entries[-1], tuple(notes))
    if scan.thought_open:
        notes.append("thought not closed")
    if not scan.tagged:
        notes.append("no answer block")
    objects = tuple(entry for entry in entries if not isinstance(entry, str))
    if len(objects) < len(entries):
        notes.append("an earlier answer was broken")
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
        return found.end

    def _add(self, entry: _Entry) -> None:
        if self._in_block:
            self.tagged.append(entry)
            self._in_this_block += 1
        else:
            self.bare.append(entry)
