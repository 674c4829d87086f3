"""JSON cut down to a size: lists to elements that differ, long texts to head and tail, keys never."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from typing import Any

from prefixguard.escalate import Masker
from prefixguard.induce.freezing import laid_out, on_a_line
from prefixguard.induce.model.outline import MAX_DEPTH, MAX_ELEMENTS, Place, is_below, is_table, spread, step, type_name

#: What is masked around a cut, so that a secret that straddles it is still seen whole.
MARGIN = 400
#: Words that tell of an error, in any text.
ERROR_WORDS = ("error", "traceback", "exception", "failed", "not found", "denied", "invalid")
#: Characters from which on what is shown a second time is named and not shown, and how deep it may be.
_MIRRORED, _MIRRORED_DEPTH = 300, 5
#: Around a remark of ours, which stands without the quotes of a text.
_BEGIN, _END = "\ue000", "\ue001"

Signature = tuple[Any, ...]


class Excerpt:
    """Cuts values down. kinds: places whose values name kinds (see `Outline`). main: lists that, with those around
    them, get all elements of the size; others get three at most. shown: the signatures of what was kept."""

    def __init__(
        self, masker: Masker, kinds: Collection[Place], main: Collection[Place], size: tuple[int, int, int]
    ) -> None:
        """size: characters of a text, elements of a list, elements of a list of runs."""
        self.masker, self.kinds, self.main = masker, kinds, main
        self.texts, self.elements, self.runs = size
        self.shown: set[Signature] = set()
        self._met: dict[str, Place] = {}

    def cut(self, value: Any, path: Place, key: str = "") -> Any:
        """The value, cut down. Longer lists show the first, one of every kind, one with an error and what follows it,
        one with several calls, the last two."""
        if isinstance(value, str):
            return self.text(value, key)
        if not isinstance(value, dict | list):
            return value
        if len(path) > MAX_DEPTH:
            return _remark("deeper")
        out: Any = self._object(value, path) if isinstance(value, dict) else self._elements(value, path, key)
        shown = on_a_line(out) if len(path) <= _MIRRORED_DEPTH else ""
        if len(shown) < _MIRRORED or self._met.setdefault(shown, path) is path:
            return out
        return _remark(f"shown already, at {''.join(self._met[shown])}")

    def text(self, text: str, key: str = "") -> str:
        """Head and tail of a text, secrets masked, with a mark that says how much is missing."""
        n = len(text)
        if n <= self.texts + 40:
            return self.masker.mask_field(key, text)
        head = max(self.texts * 2 // 3, 20)
        tail = max(self.texts - head, 10)
        first = self.masker.mask_field(key, text[: head + MARGIN])[:head]
        last = self.masker.mask_field(key, text[-(tail + MARGIN) :])[-tail:]
        return f"{first}<... {n - head - tail:,} of {n:,} characters cut ...>{last}"

    def _object(self, value: dict[str, Any], path: Place) -> dict[str, Any]:
        table = is_table(value)
        names = spread(list(value), self.runs) if table else list(value)
        out = {
            str(name): self.cut(value[name], (*path, ".*" if table else step(str(name))), str(name)) for name in names
        }
        if len(names) < len(value):
            out["..."] = _remark(f"{len(value) - len(names):,} more keys like these")
        return out

    def _elements(self, value: list[Any], path: Place, key: str) -> list[Any]:
        inner = (*path, "[*]")
        is_outer = any(is_below(one, inner) for one in self.main)  # messages, where their blocks hold the text
        most = self.elements if is_outer or path in self.main else min(self.elements, 3)
        if not any(isinstance(one, dict | list) or len(str(one)) >= 60 for one in spread(value, 50)):
            most = min(most, 6)  # names and numbers: a few tell what the others are
        out: list[Any] = []
        before = -1
        for i in [*self._chosen(value, inner, self.runs if _is_of_runs(value) else most), len(value)]:
            if i > before + 1:
                out.append(_remark(f"{i - before - 1:,} elements left out"))
            out += [self.cut(one, inner, key) for one in value[i : i + 1]]
            before = i
        return out

    def _chosen(self, value: list[Any], inner: Place, most: int) -> list[int]:
        """Positions of the elements to show, ascending."""
        n = len(value)
        signatures = {i: self.signature(value[i], inner) for i in spread(range(n), MAX_ELEMENTS)}
        wrong = list(islice((i for i in signatures if tells_error(value[i])), 1))
        several = list(islice((i for i in signatures if _has_several(value[i])), 1))
        firsts = sorted({sign: i for i, sign in reversed(signatures.items())}.values())
        after = [i + 1 for i in (*several, *firsts)]  # what follows an event explains it
        order = [0, n - 1, *wrong, 1, n - 2, *(i + 1 for i in wrong), *several, *firsts, *after, *range(2, n)]
        kept = sorted(islice(dict.fromkeys(i for i in order if 0 <= i < n), most))
        self.shown.update(signatures[i] for i in kept if i in signatures)
        return kept

    def signature(self, value: Any, path: Place, depth: int = 0) -> Signature:
        """What kind of thing a value is: the values that name kinds, and which of its fields hold something more."""
        if isinstance(value, list):
            inside = {self.signature(one, (*path, "[*]"), depth + 1) for one in value[:40] if isinstance(one, dict)}
            return ("list", *sorted(inside, key=repr)[:6])
        if not isinstance(value, dict):
            return (type_name(value),)
        parts: list[Any] = []
        for name, inner in sorted(value.items(), key=lambda pair: str(pair[0])):
            here = (*path, step(str(name)))
            if isinstance(inner, str) and here in self.kinds:
                parts.append((str(name), inner))
            elif inner is True:
                parts.append(str(name))
            elif isinstance(inner, dict | list) and inner:
                parts.append((str(name), *(self.signature(inner, here, depth + 1) if depth < 2 else ())))
        return tuple(parts)


def longest_inside(value: Any, depth: int = 0) -> int:
    """Elements of the longest list in a value; lists of a few are looked into too, as wrappers are. Names with their
    values, as spans have, are one thing's fields and no list."""
    if depth > 8 or not isinstance(value, dict | list):
        return 0
    if isinstance(value, dict):
        return max((longest_inside(inner, depth + 1) for inner in islice(value.values(), 100)), default=0)
    if all(isinstance(one, dict) and one.keys() == {"key", "value"} for one in value):
        return 0
    return max(len(value), *(longest_inside(one, depth + 1) for one in value if len(value) <= 3), 0)


def _is_of_runs(value: list[Any]) -> bool:
    """Do the elements hold lists of events themselves: at least four each, on the whole?"""
    some = spread(value, 20)
    if any(isinstance(one, list) and len(one) >= 2 for one in some):
        return True
    return sum(map(longest_inside, some)) >= 4 * max(len(some), 1)


def _has_several(event: Any) -> bool:
    return isinstance(event, dict) and any(
        isinstance(inner, list) and len(inner) > 1 and all(isinstance(one, dict) for one in inner)
        for inner in event.values()
    )


def tells_error(event: Any, depth: int = 0) -> bool:
    """Does a text in it begin like an error, or a field say that there was one?"""
    if isinstance(event, str):
        return any(word in event[:300].lower() for word in ERROR_WORDS)
    if depth >= 3 or not isinstance(event, dict | list):
        return False
    if isinstance(event, list):
        return any(tells_error(one, depth + 1) for one in event[:20])
    said = any(value is True and "err" in str(key).lower() for key, value in event.items())
    return said or any(tells_error(one, depth + 1) for one in event.values())


def _remark(text: str) -> str:
    return f"{_BEGIN}<{text}>{_END}"


def render_json(value: Any) -> str:
    """JSON for reading: one line where it is short, else a line a key. Remarks stand without quotes.

    >>> print(render_json({"a": [1, _remark("2 more")]}))
    {"a": [1, <2 more>]}
    """
    text = laid_out(value, width=140, indent=1).encode("utf-8", "replace").decode()
    return text.replace(f'"{_BEGIN}', "").replace(f'{_END}"', "")
