"""The sample pack: what a language model is shown of the samples, within a budget of tokens.

First the files, then for every group of files that look alike: all places with their types and values, excerpts of the
files that differ most, and one event of every kind that the excerpts miss. Tokens are counted as four characters each,
which is close for English and JSON and never asks a tokenizer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from prefixguard.errors import ConfigError
from prefixguard.escalate import Masker
from prefixguard.induce.model.excerpt import Excerpt, Signature, longest_inside, render_json
from prefixguard.induce.model.logtext import lines_again, pieces
from prefixguard.induce.model.outline import Outline, Place, is_table, spread, step
from prefixguard.induce.samples import Kind, SampleFile, Samples

#: Characters that count as one token.
CHARACTERS = 4
_LEAST, _MOST = 500, 200_000
#: Groups that are shown, documents of one that are looked at, and files of which excerpts are shown.
_GROUPS, _DOCUMENTS, _EXCERPTS = 8, 40, 3
#: The most of the room that all files that hold no events get, where others do.
_COMPANIONS = 0.1
#: From generous to lean: characters of a text, elements of a list, elements of a list of runs.
_SIZES = (
    *((6000, 60, 12), (3000, 30, 6), (1500, 20, 3), (900, 16, 3), (600, 14, 2), (400, 13, 2), (280, 12, 2)),
    *((200, 11, 2), (140, 10, 2), (100, 9, 1), (70, 8, 1), (50, 7, 1), (40, 5, 1), (30, 3, 1)),
)
#: Elements of the main lists of a document that are looked at for kinds; kinds that are shown, and how cut.
_EVENTS, _KINDS, _KIND_SIZE = 1000, 24, (200, 3, 1)

_Group = list[SampleFile]


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
    cut = [f"{path}: {why}" for path, why in samples.left_out[:5]]
    if len(groups) > _GROUPS:
        cut.append(f"{len(groups) - _GROUPS} small groups of files are named and not shown")
    head = _tree(samples, groups, room // 8)
    left = room - len(head) - 2
    shown = groups[:_GROUPS]
    weights = [math.log2(2 + sum(file.size for file in group)) ** 2 for group in shown]
    beside = _companions(shown)
    order = sorted(range(len(shown)), key=lambda i: (i not in beside, weights[i]))  # what they leave is for the others
    parts: dict[int, str] = {}
    files: list[str] = []
    for n, i in enumerate(order):
        share = left if n == len(order) - 1 else int(left * weights[i] / sum(weights[j] for j in order[n:]))
        if i in beside:
            share = min(share, int(_COMPANIONS * room / len(beside)))
        text, met = _shown(shown[i], share - 2, masker, cut)
        if text:
            parts[i] = text
            files += met
            left -= len(text) + 2
    text = "\n\n".join([head, *(parts[i] for i in sorted(parts))])
    return Pack(text, -(-len(text) // CHARACTERS), tuple(files), tuple(cut), masker.counts)


def _groups(samples: Samples) -> list[_Group]:
    """Files that look alike: of the same kind, depth and suffix, and of the same name where names repeat. Big first."""

    def suffix(name: str) -> str:
        """The last suffix, with the one before where that is a word too: `.traj.json`, but not `.5_turns.json`."""
        before, last = ["", "", *name.split(".")[1:]][-2:]
        return f".{before}.{last}" if before.isalpha() else f".{last}"

    parts = [file.path.rpartition("/") for file in samples.files]
    beside = Counter((folder, suffix(name)) for folder, _, name in parts)
    names = Counter(name for _, _, name in parts)
    found: dict[tuple[Any, ...], _Group] = {}
    for file, (folder, _, name) in zip(samples.files, parts, strict=True):
        root = type(file.value).__name__ if file.kind in (Kind.JSON, Kind.ZIP) else ""
        role = name if names[name] > 2 and beside[folder, suffix(name)] <= 3 else ""
        found.setdefault((file.kind, folder.count("/"), suffix(name), role, root), []).append(file)
    return sorted(found.values(), key=lambda group: (-sum(file.size for file in group), group[0].path))


def _companions(groups: Sequence[_Group]) -> set[int]:
    """Groups that hold no events, where others do: reports, notes and what else lies beside runs."""
    events = {
        i
        for i, group in enumerate(groups)
        if group[0].kind is Kind.JSONL
        or (group[0].kind in (Kind.JSON, Kind.ZIP) and max(longest_inside(file.value) for file in spread(group, 9)) > 3)
    }
    texts = {i for i, group in enumerate(groups) if group[0].kind in (Kind.TEXT, Kind.NOTEBOOK)}
    return set(range(len(groups))) - (events or texts) if events or texts else set()


def _tree(samples: Samples, groups: Sequence[_Group], room: int) -> str:
    lines = [f"# Files ({len(samples.files)})"]
    for i, group in enumerate(groups, 1):
        paths = [f"{file.path} ({file.size:,})" for file in spread(group, 6)]
        more = f"; ... {len(group) - 6} more" if len(group) > 6 else ""
        kind = f"group {i}, {group[0].kind.value}, {len(group)} file(s), bytes in brackets: "
        lines.append(kind + "; ".join(paths) + more)
        if sum(map(len, lines)) > room:
            lines[-1] = f"... {len(groups) - i + 1} more groups"
            break
    return "\n".join(lines)[:room]


def _shown(group: _Group, room: int, masker: Masker, cut: list[str]) -> tuple[str, list[str]]:
    """One group in at most `room` characters, and the files shown of it."""
    file = group[0]
    title = f"# {file.path if len(group) == 1 else f'{len(group)} files like {file.path}'} ({file.kind.value})\n"
    if room < len(title) + 40:
        cut.append(f"{file.path}: no room")
        return "", []
    if file.kind is Kind.PARQUET:
        return f"{title}A parquet table; its rows are not shown.", [file.path]
    if file.kind in (Kind.TEXT, Kind.NOTEBOOK):
        body, files = _texts(group, room - len(title), masker)
    else:
        body, files = _documents(group, room - len(title), masker, cut)
    return f"{title}{body}"[:room], files


def _texts(group: _Group, room: int, masker: Masker) -> tuple[str, list[str]]:
    first = max(group, key=lambda file: (min(len(file.text), 40_000), file.path))
    cells = " (outputs of all cells)" if first.kind is Kind.NOTEBOOK else ""
    size = f"{first.text.count(chr(10)) + 1:,} lines, {len(first.text):,} characters"
    parts = [f"{size}, rendered as a terminal would{cells}"]
    begin, again = lines_again([file.text for file in group], masker)
    of_all = "of all files " * (len(group) > 1)
    for title, lines, share in ((f"How lines {of_all}begin", begin, 0.4), ("Lines that come again", again, 0.1)):
        said = "\n".join([f"{title}, digits as 0:", *lines])
        if lines and len(said) < room * share:
            parts.append(said)
    shown: list[str] = []
    for file in [first, *(file for file in spread(group, 3) if file is not first)][:2]:
        left = room - sum(len(part) + 1 for part in parts)
        share = left if shown or len(group) == 1 else left * 3 // 4
        if left > 500 or not shown:
            parts.append(f"## {file.path}\n{pieces(file.text, max(share - len(file.path) - 300, 100), masker)}")
            shown.append(file.path)
    return "\n".join(parts)[:room], shown


def _documents(group: _Group, room: int, masker: Masker, cut: list[str]) -> tuple[str, list[str]]:
    taken = spread(group, _DOCUMENTS)
    outline = Outline(len(taken))
    has = [outline.add(file.value, _root(file)) for file in taken]
    told, missing = outline.tree(masker, room * 2 // 5)
    if missing:
        cut.append(f"{group[0].path}: {missing} deep places are not listed")
    kinds = {path for path, met in outline.places.items() if met.discriminates}
    main = outline.main_lists()
    of = f"of {len(taken)} file(s); types; share of the objects that have it; values or sizes"
    parts = [f"Places ({of}):\n{told}"]
    left = room - len(parts[0]) - 1
    reserve = left // 5  # for further kinds
    names: list[str] = []
    shown: set[Signature] = set()
    chosen = _differing(taken, has)
    for n, file in enumerate(chosen, 1):
        title = f"## {file.path}\n"
        share = (left - reserve) * (1 if n == len(chosen) else 2) // (1 if n == len(chosen) else 3)
        text, signatures = _fitted(file, share - len(title), masker, kinds, main)
        if text:
            parts.append(title + text)
            names.append(file.path)
            shown |= signatures
            left -= len(parts[-1]) + 1
    if left > 200:
        parts += _other_kinds(taken, Excerpt(masker, kinds, (), _KIND_SIZE), main, shown, left)
    return "\n".join(parts)[:room], names


def _root(file: SampleFile) -> str:
    """What a path begins with: `$`, and for files of several documents what is between."""
    return {Kind.JSONL: "(lines)", Kind.ZIP: "(members)"}.get(file.kind, "$")


def _differing(files: Sequence[SampleFile], has: Sequence[set[tuple[Place, str]]]) -> list[SampleFile]:
    """A file of middling size, then those that have most of what the ones before have not."""
    order = sorted(zip(files, has, strict=True), key=lambda pair: (pair[0].size, pair[0].path))
    file, met = order[len(order) // 2]
    chosen, covered = [file], set(met)
    while len(chosen) < _EXCERPTS:
        file, met = max(order, key=lambda pair: (len(pair[1] - covered), -pair[0].size, pair[0].path))
        if met <= covered:
            break
        chosen.append(file)
        covered |= met
    return chosen


def _fitted(
    file: SampleFile, room: int, masker: Masker, kinds: set[Place], main: set[Place]
) -> tuple[str, set[Signature]]:
    """The excerpt at the most generous size that fits, and what kinds it shows; nothing where none does."""
    text = ""
    for size in _SIZES:
        excerpt = Excerpt(masker, kinds, main, size)
        text = render_json(excerpt.cut(file.value, (_root(file),)))
        if len(text) <= room:
            return text, excerpt.shown
    return (f"{text[: room - 30]}\n<... cut off here ...>" if room > 400 else "", set())


def _other_kinds(
    files: Sequence[SampleFile], excerpt: Excerpt, main: set[Place], shown: set[Signature], room: int
) -> list[str]:
    """One event of every kind that no excerpt shows, the frequent ones first."""
    counts: Counter[Signature] = Counter()
    first: dict[Signature, tuple[str, Place, Any]] = {}
    for file in files:
        events = chain.from_iterable(_at(file.value, (*path[1:], "[*]"), path[0]) for path in sorted(main))
        for path, where, event in islice(events, _EVENTS):
            sign = excerpt.signature(event, path)
            counts[sign] += 1
            first.setdefault(sign, (f"{file.path} {where}", path, event))
    lines: list[str] = []
    left = room - 60
    for sign, n in sorted(counts.items(), key=lambda item: (-item[1], first[item[0]][0])):
        where, path, event = first[sign]
        cut = render_json(excerpt.cut(event, path)).split("\n")
        line = f"{n:,} like {where}: {' '.join(part.strip() for part in cut)}"
        if sign not in shown and len(line) < left and len(lines) < _KINDS:
            lines.append(line)
            left -= len(line) + 1
    return ["\n".join(["Further kinds of elements, one of each:", *lines])] if lines else []


def _at(value: Any, steps: Place, where: str, path: Place = ()) -> Iterator[tuple[Place, str, Any]]:
    """Objects at a place of a document: the place, where this one is, the object."""
    path = path or (where,)
    if not steps:
        if isinstance(value, dict):
            yield path, where, value
        return
    inside: list[tuple[str, Any]] = []
    if isinstance(value, list) and steps[0] == "[*]":
        inside = [(f"[{i}]", one) for i, one in enumerate(value[:_EVENTS])]
    elif isinstance(value, dict):
        inside = [(step(str(key)), one) for key, one in islice(value.items(), _EVENTS)]
        inside = [(said, one) for said, one in inside if said == steps[0] or (steps[0] == ".*" and is_table(value))]
    for said, one in inside:
        yield from _at(one, steps[1:], where + said, (*path, steps[0]))
