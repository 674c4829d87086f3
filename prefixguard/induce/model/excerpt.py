"""JSON cut down to a size: lists to elements that differ, long texts to head and tail, keys never."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from prefixguard.errors import PrefixGuardError
from prefixguard.escalate import Masker
from prefixguard.induce.model.outline import is_table, spread, step, type_name
from prefixguard.stepview import canonical

#: What is masked around a cut, so that a secret that straddles it is still seen whole.
_MARGIN = 400
#: Elements of a list among which kinds are looked for.
_LOOKED_AT = 400
_INLINE = 140

#: Words that tell of an error, in any text of an event.
_ERROR_WORDS = ("error", "traceback", "exception", "failed", "not found", "denied", "invalid")

Signature = tuple[Any, ...]


class Omitted(str):
    """A mark inside an excerpt, written without quotes."""

    __slots__ = ()


class Excerpt:
    """Cuts values down. texts: characters kept of a text. elements: of a list; longer ones show the first, one of every
    kind, one with an error, one with several calls, the last. runs: elements of a list of big things. kinds: paths
    whose values name kinds (see `Outline`). main: lists that, with those around them, get all `elements`; others get
    three at most. fresh: where given, only containers at or above these paths are shown; the others are as in what was
    shown before."""

    def __init__(
        self,
        masker: Masker,
        kinds: Collection[str],
        main: Collection[str],
        size: tuple[int, int, int],
        fresh: Collection[str] | None = None,
    ) -> None:
        """size: characters of a text, elements of a list, elements of a list of runs."""
        self.masker, self.kinds, self.main = masker, kinds, main
        self.texts, self.elements, self.runs = size
        self.fresh = fresh
        self.shown: set[Signature] = set()

    def _is_known(self, path: str) -> bool:
        return self.fresh is not None and not any(one.startswith(path) for one in self.fresh)

    def cut(self, value: Any, path: str = "$", key: str = "", depth: int = 0) -> Any:
        """The value, cut down. path: where it is, as `Outline` spells it."""
        if isinstance(value, str):
            return self.text(value, key)
        if depth > 24 and isinstance(value, dict | list):
            return Omitted("<deeper>")
        if isinstance(value, dict | list) and value and self._is_known(path):
            return Omitted("<as before>")
        if isinstance(value, dict):
            if is_table(value):
                names = list(value)
                taken = spread(names, self.runs)
                out = {name: self.cut(value[name], f"{path}.*", name, depth + 1) for name in taken}
                if len(names) > len(taken):
                    out["..."] = Omitted(f"<{len(names) - len(taken):,} more keys like these>")
                return out
            return {
                str(name): self.cut(inner, path + step(str(name)), str(name), depth + 1)
                for name, inner in value.items()
            }
        if isinstance(value, list):
            return self._elements(value, path, key, depth)
        return value

    def text(self, text: str, key: str = "") -> str:
        """Head and tail of a text, secrets masked, with a mark that says how much is missing."""
        n = len(text)
        if n <= self.texts + 40:
            return self.masker.mask_field(key, text)
        head = max(self.texts * 2 // 3, 20)
        tail = max(self.texts - head, 10)
        first = self.masker.mask_field(key, text[: head + _MARGIN])[:head]
        last = self.masker.mask_field(key, text[-(tail + _MARGIN) :])[-tail:]
        return f"{first}<... {n - head - tail:,} of {n:,} characters cut ...>{last}"

    def _elements(self, value: list[Any], path: str, key: str, depth: int) -> Any:
        inner = f"{path}[*]"
        outer = any(one.startswith(inner) for one in self.main)  # messages, where their blocks hold the text
        some = self.elements if outer or path in self.main else min(self.elements, 3)
        if not any(isinstance(one, dict | list) for one in value):
            if all(not isinstance(one, str) or len(one) < 60 for one in spread(value, 50)):
                some = min(some, 6)  # names and numbers: a few tell what the others are
            shown = value if len(value) <= some else value[: max(some - 1, 1)] + value[-1:]
            out: list[Any] = [self.cut(one, inner, key, depth + 1) for one in shown]
            if len(value) > len(shown):
                out.insert(len(out) - 1, Omitted(f"<{len(value) - len(shown):,} more>"))
            return out
        most = self.runs if _is_big(value) else some
        taken = self.chosen(value, path, most)
        out = []
        before = -1
        for i in taken:
            if i > before + 1:
                out.append(Omitted(f"<{i - before - 1:,} elements left out>"))
            out.append(self.cut(value[i], inner, "", depth + 1))
            before = i
        if before + 1 < len(value):
            out.append(Omitted(f"<{len(value) - before - 1:,} elements left out>"))
        return out

    def chosen(self, value: list[Any], path: str, most: int) -> list[int]:
        """Positions of the elements to show, ascending."""
        n = len(value)
        signatures = {i: self.signature(value[i], f"{path}[*]") for i in spread(range(n), _LOOKED_AT)}
        if n <= most:
            self.shown.update(signatures.values())
            return list(range(n))
        wanted: dict[int, None] = dict.fromkeys(range(min(2, most)))
        if most > 2:
            wanted[n - 1] = None
        taken = {signatures[i] for i in wanted if i in signatures}
        fresh = [i for i, sign in signatures.items() if sign not in taken]
        firsts: dict[Signature, int] = {}
        for i in fresh:
            firsts.setdefault(signatures[i], i)
        several = next((i for i, one in _looked(value, signatures) if _has_several(one)), None)
        wrong = next((i for i, one in _looked(value, signatures) if _tells_error(one)), None)
        order = list(firsts.values())
        order[2:2] = [i for i in (several, wrong) if i is not None]
        order += [i + 1 for i in order if i + 1 < n]  # what follows an event explains it
        order += list(range(2, n))
        for i in order:
            if len(wanted) >= most:
                break
            wanted[i] = None
        self.shown.update(signatures[i] for i in wanted if i in signatures)
        return sorted(wanted)

    def signature(self, value: Any, path: str, depth: int = 0) -> Signature:
        """What kind of thing a value is: the values that name kinds, and which of its fields hold something more."""
        if isinstance(value, dict):
            parts: list[Any] = []
            for name, inner in sorted(value.items(), key=lambda pair: str(pair[0])):
                here = path + step(str(name))
                if isinstance(inner, str) and here in self.kinds:
                    parts.append((str(name), inner))
                elif inner is True:
                    parts.append(str(name))
                elif isinstance(inner, dict | list) and inner:
                    deep = self.signature(inner, here, depth + 1) if depth < 2 else ()
                    parts.append((str(name), *deep))
            return tuple(parts)
        if isinstance(value, list):
            inside = {self.signature(one, f"{path}[*]", depth + 1) for one in value[:40] if isinstance(one, dict)}
            return ("list", *sorted(inside, key=repr)[:6])
        return (type_name(value),)


def _looked(value: list[Any], signatures: dict[int, Signature]) -> list[tuple[int, Any]]:
    return [(i, value[i]) for i in signatures]


def _is_big(value: list[Any]) -> bool:
    """Do the elements hold lists of events themselves, as runs do: at least four each, on the whole?"""
    some = spread(value, 20)
    if any(isinstance(one, list) and len(one) >= 2 for one in some):
        return True
    return sum(_longest_inside(one) for one in some) >= 4 * max(len(some), 1)


def _longest_inside(value: Any, depth: int = 0) -> int:
    """Elements of the longest list in a value; lists of a few are looked into too, as wrappers are."""
    if depth > 8 or not isinstance(value, dict | list):
        return 0
    if isinstance(value, dict):
        return max((_longest_inside(inner, depth + 1) for inner in list(value.values())[:100]), default=0)
    if _is_attributes(value):
        return 0
    deep = max((_longest_inside(one, depth + 1) for one in value), default=0) if len(value) <= 3 else 0
    return max(len(value), deep)


def _is_attributes(value: list[Any]) -> bool:
    """A list of names with their values, as spans have: one thing's fields, not a list of events."""
    return all(isinstance(one, dict) and len(one) == 2 and "key" in one and "value" in one for one in value)


def _has_several(event: Any) -> bool:
    return isinstance(event, dict) and any(
        isinstance(inner, list) and len(inner) > 1 and all(isinstance(one, dict) for one in inner)
        for inner in event.values()
    )


def _tells_error(event: Any, depth: int = 0) -> bool:
    if isinstance(event, str):
        head = event[:300].lower()
        return any(word in head for word in _ERROR_WORDS)
    if isinstance(event, dict) and depth < 3:
        return any(
            (inner is True and "err" in str(name).lower()) or _tells_error(inner, depth + 1)
            for name, inner in event.items()
        )
    return isinstance(event, list) and depth < 3 and any(_tells_error(one, depth + 1) for one in event[:20])


def render_json(value: Any, indent: int = 0) -> str:
    """JSON for reading: one line where it is short, else a line a key. Marks stand without quotes.

    >>> print(render_json({"a": [1, Omitted("<2 more>")]}))
    {"a": [1, <2 more>]}
    """
    line = _line(value)
    if len(line) + indent <= _INLINE or not isinstance(value, dict | list) or not value:
        return line
    pad = " " * (indent + 1)
    if isinstance(value, dict):
        rows = [f"{pad}{_quoted(str(name))}: {render_json(inner, indent + 1)}" for name, inner in value.items()]
        return "{\n" + ",\n".join(rows) + "}"
    return "[\n" + ",\n".join(pad + render_json(inner, indent + 1) for inner in value) + "]"


def _line(value: Any) -> str:
    if isinstance(value, Omitted):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(str(name))}: {_line(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_line, value)) + "]"
    if isinstance(value, str):
        return _quoted(value)
    try:
        return canonical(value)
    except (PrefixGuardError, ValueError, TypeError):
        return "null"


def _quoted(text: str) -> str:
    return json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False)
