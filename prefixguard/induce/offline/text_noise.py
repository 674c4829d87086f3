"""Blocks of lines that a library prints over and over into a log: the same warning, the same traceback."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from prefixguard.induce.offline.text_lines import Token, heads_of, literal, mask, regex_of, tokens_of

#: A block is printed at least so often, and has at least and at most so many lines.
LEAST = 8
SHORTEST = 4
LONGEST = 400


@dataclass(frozen=True, slots=True)
class Block:
    """first: the masked head of its first line. last: the end of its last line. regex: RE2 of all of it. count: how
    often it stands in the samples."""

    first: str
    last: str
    regex: str
    count: int


def _mask(line: str) -> str:
    return mask(tokens_of(line[:100]))


def repeated_blocks(texts: Sequence[str]) -> tuple[Block, ...]:
    """Blocks that begin with a line that has a time, say the same every time, and end with the same line."""
    starts: dict[str, list[tuple[int, int]]] = {}
    docs = [text.split("\n") for text in texts]
    for doc, lines in enumerate(docs):
        for at, line in enumerate(lines):
            if line[:1].isdigit() or line[:1] == "[":
                tokens = tokens_of(line[:72])
                if any(token.kind == "time" for token in tokens[:3]):
                    starts.setdefault(_mask(line), []).append((doc, at))
    found = []
    for first, places in sorted(starts.items(), key=lambda kv: (-len(kv[1]), kv[0]))[:20]:
        if len(places) < LEAST:
            continue
        block = _block(docs, first, places)
        if block is not None:
            found.append(block)
    return tuple(found[:4])


def _block(docs: Sequence[Sequence[str]], first: str, places: Sequence[tuple[int, int]]) -> Block | None:
    """The block from these lines on: its last line is the last that (nearly) all of them have, not too far below."""
    some = places[:: max(1, len(places) // 40)]
    common: Counter[str] = Counter()
    depth: dict[str, int] = {}
    for doc, at in some:
        lines = docs[doc][at + 1 : at + 1 + LONGEST]
        seen: dict[str, int] = {}
        for n, line in enumerate(lines, 1):
            if len(line.strip()) < 12:
                continue
            key = _mask(line)
            if key == first:
                break
            seen.setdefault(key, n)
        for key, n in seen.items():
            common[key] += 1
            depth[key] = max(depth.get(key, 0), n)
    shared = [key for key, n in common.items() if n >= 0.95 * len(some)]
    if len(shared) < SHORTEST:
        return None
    last = max(shared, key=lambda key: (depth[key], key))
    start = docs[places[0][0]][places[0][1]]
    end = next((line for doc, at in some for line in docs[doc][at + 1 : at + 1 + LONGEST] if _mask(line) == last), None)
    if end is None:
        return None
    head = next(heads_of(start), None)
    begin = regex_of(head.tokens) if head is not None else regex_of(tokens_of(start[:40]))
    opening: list[Token] = []
    for token in tokens_of(end[:72]):
        if token.kind in ("num", "time") or len(opening) >= 8:
            break
        opening.append(token)
    tail = "".join(literal(token.text) for token in opening)
    if len(tail) < 8:
        return None
    return Block(first, last, rf"(?s){begin}.*?\n{tail}[^\n]*", len(places))


def blocked_lines(texts: Sequence[str], blocks: Sequence[Block]) -> set[tuple[int, int]]:
    """(text, line) of all lines of blocks."""
    found: set[tuple[int, int]] = set()
    if not blocks:
        return found
    ends = {block.first: block.last for block in blocks}
    for doc, text in enumerate(texts):
        until, since = "", 0
        for at, line in enumerate(text.split("\n")):
            if until:
                found.add((doc, at))
                if at - since > LONGEST or _mask(line) == until:
                    until = ""
            elif line[:1].isdigit() or line[:1] == "[":
                key = _mask(line)
                if key in ends:
                    until, since = ends[key], at
                    found.add((doc, at))
    return found
