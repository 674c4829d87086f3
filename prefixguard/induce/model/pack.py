"""The sample pack: what a language model is shown of the samples, within a budget of tokens.

First the files, then for every group of files that look alike: all places with their types and values, excerpts of the
runs that differ most, and one event of every kind that the excerpts miss. Tokens are counted as four characters each,
which is close for English and JSON and never asks a tokenizer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prefixguard.errors import ConfigError
from prefixguard.escalate import Masker
from prefixguard.induce.model.excerpt import Excerpt, Signature, render_json
from prefixguard.induce.model.logtext import line_heads, pieces, repeated_lines
from prefixguard.induce.model.outline import Outline, is_table, spread, step
from prefixguard.induce.samples import Kind, SampleFile, Samples

#: Characters that count as one token.
CHARACTERS = 4
_LEAST = 500
_MOST = 200_000
_GROUPS = 8
_DOCUMENTS = 40
#: From generous to lean: characters of a text, elements of a list, elements of a list of runs.
_SIZES = (
    (6000, 60, 12),
    (3000, 30, 6),
    (1500, 20, 3),
    (900, 16, 3),
    (600, 14, 2),
    (400, 13, 2),
    (280, 12, 2),
    (200, 11, 2),
    (140, 10, 2),
    (100, 9, 1),
    (70, 8, 1),
    (50, 7, 1),
    (40, 5, 1),
    (30, 3, 1),
)


@dataclass(frozen=True, slots=True)
class Pack:
    """What is shown. tokens: of the text, by the rule above. files: paths of which something is shown. cut: sentences
    about what is not. masked: different likely secrets taken out, by kind."""

    text: str
    tokens: int
    files: tuple[str, ...]
    cut: tuple[str, ...]
    masked: Mapping[str, int] = field(default_factory=dict)


def sample_pack(samples: Samples, tokens: int = 12_000, masker: Masker | None = None) -> Pack:
    """The pack of these samples, never longer than `tokens`. The same samples give the same text.

    masker: what masks likely secrets; None for one of its own. ConfigError for a budget out of range.
    """
    if not _LEAST <= tokens <= _MOST:
        raise ConfigError(f"a sample pack of {tokens} tokens: from {_LEAST} to {_MOST:,}.")
    masker = masker if masker is not None else Masker()
    room = tokens * CHARACTERS
    groups = _groups(samples)
    cut: list[str] = []
    files: list[str] = []
    parts = [_tree(samples, groups, room // 8)]
    if len(groups) > _GROUPS:
        cut.append(f"{len(groups) - _GROUPS} small groups of files are named and not shown")
    shown = groups[:_GROUPS]
    left = room - len(parts[0]) - 2
    weights = [math.log2(2 + sum(file.size for file in group)) ** 2 for group in shown]
    for i in sorted(range(len(shown)), key=lambda j: weights[j]):  # small ones first; what they leave is for the big
        share = int(left * weights[i] / sum(weights[j] for j in range(len(shown)) if weights[j] >= weights[i]))
        share = max(share, min(left, 600)) if i else left
        text, met = _group(shown[i], min(share, left) - 2, masker, cut)
        if text:
            parts.append(text)
            files += met
            left -= len(text) + 2
    parts[1:] = parts[:0:-1]  # the biggest group first
    text = "\n\n".join(parts)
    if len(text) > room:  # cannot happen; the budget is a promise all the same
        text = text[: room - 20] + "\n<... cut ...>"
        cut.append("the pack was cut at its end")
    for path, why in samples.left_out[:5]:
        cut.append(f"{path}: {why}")
    return Pack(text, -(-len(text) // CHARACTERS), tuple(files), tuple(cut), masker.counts)


def _groups(samples: Samples) -> list[list[SampleFile]]:
    """Files that look alike: of the same kind, depth and suffix, and of the same name where names repeat. Big first."""
    beside: dict[tuple[str, str], int] = {}
    for file in samples.files:
        folder, _, name = file.path.rpartition("/")
        beside[folder, _suffix(name)] = beside.get((folder, _suffix(name)), 0) + 1
    names = Counter(file.path.rpartition("/")[2] for file in samples.files)
    found: dict[tuple[Any, ...], list[SampleFile]] = {}
    for file in samples.files:
        folder, _, name = file.path.rpartition("/")
        suffix = _suffix(name)
        root = type(file.value).__name__ if file.kind in (Kind.JSON, Kind.ZIP) else ""
        role = name if names[name] > 2 and beside[folder, suffix] <= 3 else ""
        found.setdefault((file.kind, folder.count("/"), suffix, role, root), []).append(file)
    return sorted(found.values(), key=lambda group: (-sum(file.size for file in group), group[0].path))


def _suffix(name: str) -> str:
    """The last suffix, with the one before where that is a word too: `.traj.json`, but not `.5_turns.json`."""
    parts = name.split(".")[1:][-2:]
    return "".join(f".{part}" for i, part in enumerate(parts) if i == len(parts) - 1 or part.isalpha())


def _tree(samples: Samples, groups: list[list[SampleFile]], room: int) -> str:
    lines = [f"# Files ({len(samples.files)})"]
    for i, group in enumerate(groups):
        kind = group[0].kind.value
        paths = [f"{file.path} ({file.size:,})" for file in spread(group, 6)]
        line = f"group {i + 1}, {kind}, {len(group)} file(s), bytes in brackets: " + "; ".join(paths)
        if len(group) > 6:
            line += f"; ... {len(group) - 6} more"
        if sum(map(len, lines)) + len(line) > room:
            lines.append(f"... {len(groups) - i} more groups")
            break
        lines.append(line)
    return "\n".join(lines)[:room]


def _group(group: list[SampleFile], room: int, masker: Masker, cut: list[str]) -> tuple[str, list[str]]:
    """One group in at most `room` characters, and the files shown of it."""
    file = group[0]
    title = f"# {file.path if len(group) == 1 else f'{len(group)} files like {file.path}'} ({file.kind.value})"
    if room < len(title) + 40:
        cut.append(f"{file.path}: no room")
        return "", []
    if file.kind is Kind.PARQUET:
        return f"{title}\nA parquet table; its rows are not shown.", [file.path]
    room -= len(title) + 1
    if file.kind in (Kind.TEXT, Kind.NOTEBOOK):
        body, files = _texts(group, room, masker)
    else:
        body, files = _documents(group, room, masker, cut)
    return f"{title}\n{body}"[: room + len(title) + 1], files


def _texts(group: list[SampleFile], room: int, masker: Masker) -> tuple[str, list[str]]:
    first = max(group, key=lambda file: (min(len(file.text), 40_000), file.path))
    texts = [file.text for file in group]
    heads = line_heads(texts, masker)
    parts = [f"{first.text.count(chr(10)) + 1:,} lines, {len(first.text):,} characters, rendered as a terminal would"]
    if first.kind is Kind.NOTEBOOK:
        parts[0] += " (outputs of all cells)"
    said = f"How lines {'of all files ' * (len(texts) > 1)}begin, digits as 0:\n" + "\n".join(heads)
    if heads and len(said) < room * 0.4:
        parts.append(said)
    said = "Lines that come again, digits as 0:\n" + "\n".join(again := repeated_lines(texts, masker))
    if again and len(said) < room * 0.1:
        parts.append(said)
    left = room - sum(len(part) + 1 for part in parts)
    others = [file for file in spread(group, 3) if file is not first][:1]
    share = left if not others else left * 3 // 4
    shown = [first.path]
    parts.append(f"## {first.path}\n" + pieces(first.text, max(share - len(first.path) - 300, 100), masker))
    for file in others:
        left = room - sum(len(part) + 1 for part in parts)
        if left > 500:
            parts.append(f"## {file.path}\n" + pieces(file.text, left - len(file.path) - 300, masker))
            shown.append(file.path)
    return "\n".join(parts)[:room], shown


def _documents(group: list[SampleFile], room: int, masker: Masker, cut: list[str]) -> tuple[str, list[str]]:
    taken = spread(group, _DOCUMENTS)
    outline = Outline(len(taken))
    read = [(file, outline.add(file.value, _root(file))) for file in taken]
    told, missing = outline.tree(masker, room * 2 // 5)
    if missing:
        cut.append(f"{group[0].path}: {missing} deep places are not listed")
    kinds = {path for path, place in outline.places.items() if place.discriminates}
    main = outline.main_lists()
    head = f"Places (of {len(read)} file(s); types; share of the objects that have it; values or sizes):\n{told}"
    left = room - len(head) - 1
    differing = _differing(read)
    body, files, shown = _excerpts(differing, left * 4 // 5, masker, kinds, main)
    left -= len(body) + 1
    others = ""
    if left > 200:
        others = _other_kinds([file for file, _ in read], masker, kinds, main, shown, left)
    return "\n".join(part for part in (head, body, others) if part)[:room], files


def _root(file: SampleFile) -> str:
    """What a path begins with: `$`, and for files of several documents what is between."""
    return "(lines)" if file.kind is Kind.JSONL else "(members)" if file.kind is Kind.ZIP else "$"


def _differing(read: list[tuple[SampleFile, set[str]]]) -> list[tuple[SampleFile, set[str] | None]]:
    """A file of middling size, then those that have most of what the ones before have not; at most three, each with
    what is new in it (None for the first: everything)."""
    order = sorted(read, key=lambda pair: (pair[0].size, pair[0].path))
    first = order[len(order) // 2]
    chosen: list[tuple[SampleFile, set[str] | None]] = [(first[0], None)]
    covered = set(first[1])
    while len(chosen) < 3:
        file, met = max(order, key=lambda pair: (len(pair[1] - covered), -pair[0].size, pair[0].path))
        if not met - covered:
            break
        chosen.append((file, {path.partition("=")[0] for path in met - covered}))
        covered |= met
    return chosen


def _excerpts(
    files: Sequence[tuple[SampleFile, set[str] | None]], room: int, masker: Masker, kinds: set[str], main: set[str]
) -> tuple[str, list[str], set[Signature]]:
    parts: list[str] = []
    names: list[str] = []
    shown: set[Signature] = set()
    for i, (file, fresh) in enumerate(files):
        left = room - sum(len(part) + 1 for part in parts)
        share = left if i == len(files) - 1 else left * 3 // 4
        fresh = fresh if names else None  # nothing to compare with where the first did not fit
        title = f"## {file.path}{', what is new in it' if fresh is not None else ''}\n"
        text, signatures = _fitted(file, fresh, share - len(title), masker, kinds, main)
        if text:
            parts.append(title + text)
            names.append(file.path)
            shown |= signatures
    return "\n".join(parts), names, shown


def _fitted(
    file: SampleFile, fresh: set[str] | None, room: int, masker: Masker, kinds: set[str], main: set[str]
) -> tuple[str, set[Signature]]:
    """The excerpt at the most generous size that fits; nothing where none does."""
    text = ""
    for size in _SIZES:
        excerpt = Excerpt(masker, kinds, main, size, fresh)
        text = render_json(excerpt.cut(file.value, _root(file)))
        if len(text) <= room:
            return text, excerpt.shown
    return (text[: room - 30] + "\n<... cut off here ...>", set()) if room > 400 else ("", set())


def _other_kinds(
    files: Sequence[SampleFile], masker: Masker, kinds: set[str], main: set[str], shown: set[Signature], room: int
) -> str:
    """One event of every kind that no excerpt shows, the frequent ones first."""
    excerpt = Excerpt(masker, kinds, (), (200, 3, 1))
    met: dict[Signature, list[Any]] = {}
    for file in files:
        for path, where, event in _events(file.value, _root(file), sorted(main)):
            sign = excerpt.signature(event, f"{path}[*]")
            entry = met.setdefault(sign, [0, f"{file.path} {where}", path, event])
            entry[0] += 1
    lines: list[str] = []
    size = 60
    for sign, (count, where, path, event) in sorted(met.items(), key=lambda item: (-item[1][0], item[1][1])):
        line = f"{count:,} like {where}: {_one_line(excerpt.cut(event, f'{path}[*]'))}"
        if sign in shown or size + len(line) + 1 > room or len(lines) >= 24:
            continue
        lines.append(line)
        size += len(line) + 1
    return "Further kinds of elements, one of each:\n" + "\n".join(lines) if lines else ""


def _one_line(value: Any) -> str:
    return " ".join(part.strip() for part in render_json(value).split("\n"))


def _events(value: Any, path: str, lists: Sequence[str]) -> list[tuple[str, str, Any]]:
    """Elements of these lists in one document: path of the list, where, the element; about 1,000 at most."""
    out: list[tuple[str, str, Any]] = []
    stack: list[tuple[str, str, Any]] = [(path, path, value)]
    while stack and len(out) < 1000:
        here, spelled, inner = stack.pop()
        if not any(one.startswith(here) for one in lists):
            continue
        if isinstance(inner, dict):
            in_table = is_table(inner)
            for name, deep in reversed(list(inner.items())[:500]):
                if isinstance(deep, dict | list):
                    spelled_step = step(str(name))
                    stack.append((f"{here}.*" if in_table else here + spelled_step, spelled + spelled_step, deep))
        elif isinstance(inner, list):
            if here in lists:
                out += [(here, f"{spelled}[{i}]", one) for i, one in enumerate(inner) if isinstance(one, dict)]
            stack.extend((f"{here}[*]", f"{spelled}[{i}]", one) for i, one in reversed(list(enumerate(inner))[:200]))
    return out
