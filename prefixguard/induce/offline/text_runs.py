"""Where runs of a log begin and end, what stands above them, and what is said only when they are over."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from prefixguard.induce.offline.text_heads import Lines, Mark
from prefixguard.induce.offline.text_lines import Head, Token, heads_of, literal, mask, regex_of, tokens_of, whole_line
from prefixguard.lexicon import polarity, words

_RUN_WORDS = frozenset(
    [
        "run",
        "task",
        "episode",
        "trial",
        "question",
        "problem",
        "instance",
        "session",
        "example",
        "test",
        "case",
        "query",
        "goal",
        "instruction",
        "conversation",
        "start",
        "begin",
        "sample",
        "game",
        "rollout",
        "trajectory",
        "attempt",
        "id",
    ]
)


@dataclass(frozen=True, slots=True)
class Span:
    """A run in the samples: its lines, from `start` (of its separator) to before `stop`; `first`: its first event."""

    doc: int
    start: int
    first: int
    stop: int


@dataclass(slots=True)
class RunPlan:
    """How runs are told apart.

    head: RE2 of the line(s) a run begins with; "" if a file is a run. from_text: the head is an event too, so events
    are read from all of the run's text. groups: what the head captures ("title", "number"), with the values found.
    used: keys of heads that are separators, so no events. sections: RE2 of headings above runs. verdicts: values of
    the section group "verdict", one a run.
    """

    head: str
    spans: list[Span]
    why: str
    from_text: bool = False
    groups: dict[str, list[str]] = field(default_factory=dict)
    used: tuple[str, ...] = ()
    sections: list[str] = field(default_factory=list)
    verdicts: list[str | None] = field(default_factory=list)


def numbers_of(lines: Lines, mark: Mark) -> int | None:
    """The counter in the head of a mark."""
    for token in tokens_of(lines.docs[mark.doc][mark.line][:72])[: mark.length]:
        if token.kind == "num" and token.text.lstrip("-").isdigit():
            return int(token.text[:12])
    return None


def plan_runs(lines: Lines, found: Sequence[Mark], keys: Sequence[str]) -> RunPlan:
    """Runs by a separator that recurs, by counters that restart, or one a file."""
    by_doc: dict[int, list[Mark]] = {}
    for mark in found:
        by_doc.setdefault(mark.doc, []).append(mark)
    restarts = _restarts(lines, by_doc)
    best = _separator(lines, by_doc, restarts)
    if best is not None:
        return best
    total = sum(map(len, restarts.values())) if restarts is not None else 0
    if restarts is not None and total >= 2 and total > len(by_doc):
        plan = _by_counter(lines, by_doc, restarts)
        if plan is not None:
            return plan
    spans = [Span(doc, 0, marks[0].line, len(lines.docs[doc])) for doc, marks in sorted(by_doc.items())]
    return RunPlan("", spans, "one run a file")


def _restarts(lines: Lines, by_doc: dict[int, list[Mark]]) -> dict[int, list[int]] | None:
    """Lines of the events at which a counter starts again, by document; None where there are no counters."""
    counted = 0
    total = 0
    found: dict[int, list[int]] = {}
    for doc, marks in by_doc.items():
        last: int | None = None
        for mark in marks:
            number = numbers_of(lines, mark)
            total += 1
            if number is None:
                continue
            counted += 1
            if last is None or number < last:
                found.setdefault(doc, []).append(mark.line)
            last = number
    return found if counted >= 0.5 * total else None


def _separator(lines: Lines, by_doc: dict[int, list[Mark]], restarts: dict[int, list[int]] | None) -> RunPlan | None:
    kinds = Counter(mark.head for marks in by_doc.values() for mark in marks)
    most = max(kinds.values())
    seen: Counter[str] = Counter()
    order: dict[str, int] = {}
    for doc, marks in by_doc.items():
        opening: set[str] = set()
        for at in range(min(marks[0].line + 1, 400)):
            line = lines.docs[doc][at]
            if not line.strip():
                continue
            here = {head.key: head for head in heads_of(line)}
            whole = whole_line(line)
            if whole is not None:
                here.setdefault(whole.key, whole)
            for key in here:
                if at == marks[0].line and (key not in kinds or kinds[key] > 0.6 * most):
                    continue
                order.setdefault(key, at)
                opening.add(key)
        seen.update(opening)
    best: tuple[float, int, str, list[tuple[int, int, int]]] | None = None
    for key, docs in sorted(seen.items()):
        if docs < 0.8 * len(by_doc):
            continue
        places = lines.places.get(key) or _places(lines, key)
        if len(places) <= max(1, len(by_doc)):
            continue
        starts = _followed(places, by_doc)
        if len(starts) < 2 or len(starts) < 0.8 * len(places):
            continue
        score = _quality(lines, by_doc, key, places, starts, restarts)
        if score < 0.6:
            continue
        if best is None or score > best[0] + 0.02 or (score > best[0] - 0.02 and order[key] < best[1]):
            best = (max(score, best[0] if best is not None else 0.0), order[key], key, starts)
    if best is None:
        return None
    return _built(lines, by_doc, best[2], best[3], kinds)


def _places(lines: Lines, key: str) -> list[tuple[int, int]]:
    """Lines that are, as a whole, such a head (rulers and numbers are not among the heads of events)."""
    found = []
    for doc, all_lines in enumerate(lines.docs):
        for at, line in enumerate(all_lines):
            if line and len(line) <= 90 and not line.isspace():
                whole = whole_line(line)
                if whole is not None and whole.key == key:
                    found.append((doc, at))
    lines.places[key] = found
    if found:
        head = whole_line(lines.docs[found[0][0]][found[0][1]])
        if head is not None:
            lines.heads.setdefault(key, head)
    return found


def _followed(places: Sequence[tuple[int, int]], by_doc: dict[int, list[Mark]]) -> list[tuple[int, int, int]]:
    """(doc, line of the separator, line of the first event after it), where an event comes before the next one."""
    found = []
    for i, (doc, at) in enumerate(places):
        stop = places[i + 1][1] if i + 1 < len(places) and places[i + 1][0] == doc else 1 << 60
        following = next((mark.line for mark in by_doc.get(doc, ()) if at < mark.line < stop), None)
        if following is not None:
            found.append((doc, at, following))
    return found


def _quality(
    lines: Lines,
    by_doc: dict[int, list[Mark]],
    key: str,
    places: Sequence[tuple[int, int]],
    starts: Sequence[tuple[int, int, int]],
    restarts: dict[int, list[int]] | None,
) -> float:
    """How well a line separates runs, in about [0, 1.2]."""
    kind_at = {(doc, mark.line): mark.head for doc, marks in by_doc.items() for mark in marks}
    first = Counter(kind_at[doc, line] for doc, _, line in starts)
    steady = first.most_common(1)[0][1] / len(starts)
    events = sum(len(marks) for marks in by_doc.values())
    if events / len(starts) < 2:
        return 0.0
    named = bool(_RUN_WORDS & set(words(lines.heads[key].name))) if key in lines.heads else False
    bonus = 0.12 * named
    if restarts is not None:
        wanted = {(doc, line) for doc, lines_ in restarts.items() for line in lines_}
        got = {(doc, line) for doc, _, line in starts}
        both = len(wanted & got)
        return 0.0 if not both else 2 * both / (len(wanted) + len(got)) + 0.05 * named
    gaps = [line - at for _, at, line in starts]
    near = sum(gap <= 12 for gap in gaps) / len(gaps)
    before: Counter[str] = Counter()
    for doc, at, _ in starts:
        last = [mark.head for mark in by_doc[doc] if mark.line < at]
        if last:
            before[last[-1]] += 1
    ends = before.most_common(1)[0][1] / sum(before.values()) if before else 1.0
    # A head that opens every cycle separates steps, not runs: then each segment has one event of each kind.
    kinds = len({mark.head for marks in by_doc.values() for mark in marks})
    if events / len(starts) <= kinds and not named:
        return 0.3
    text = lines.heads[key].key if key in lines.heads else key
    ruled = any(sign * 4 in text for sign in "-=#*_~") or "#" in text
    return 0.35 * steady + 0.25 * near + 0.2 * ends + 0.1 * ruled + bonus


def _built(
    lines: Lines, by_doc: dict[int, list[Mark]], key: str, starts: Sequence[tuple[int, int, int]], kinds: Counter[str]
) -> RunPlan:
    head = lines.heads[key]
    groups: dict[str, list[str]] = {}
    regex = "(?m)^" + _captured(lines, head, [lines.docs[doc][at] for doc, at, _ in starts], groups)
    n = 1
    while head.whole and n <= 4 and all(at + n < len(lines.docs[doc]) for doc, at, _ in starts):
        if sum(at + n >= line for _, at, line in starts) > 0.05 * len(starts):
            break
        nexts = [whole_line(lines.docs[doc][at + n]) for doc, at, _ in starts]
        blank = sum(not lines.docs[doc][at + n].strip() for doc, at, _ in starts)
        common = Counter(one.key for one in nexts if one is not None).most_common(1)
        if blank >= 0.95 * len(starts):
            regex += r"\n"
            n += 1
            continue
        if not common or common[0][1] < 0.95 * len(starts):
            titled = _title(lines, starts, n, groups)
            if titled:
                regex += r"\n" + titled
            break
        follower = next(one for one in nexts if one is not None and one.key == common[0][0])
        regex += r"\n" + _captured(lines, follower, [lines.docs[doc][at + n] for doc, at, _ in starts], groups)
        n += 1
    spans = []
    for i, (doc, at, first) in enumerate(starts):
        stop = starts[i + 1][1] if i + 1 < len(starts) and starts[i + 1][0] == doc else len(lines.docs[doc])
        spans.append(Span(doc, at, first, stop))
    plan = RunPlan(regex, spans, f"a run begins at {head.name or key!r}, {len(starts)} times", groups=groups)
    plan.used = tuple(k for k in kinds if k.startswith(key.removesuffix("$")))
    _sections(lines, by_doc, plan)
    return plan


def _captured(lines: Lines, head: Head, found: Sequence[str], groups: dict[str, list[str]]) -> str:
    """RE2 of a separating line, with its number and the text after it captured where they differ between runs."""
    numbers = [[t.text for t in tokens_of(line[:72])[: len(head.tokens)] if t.kind == "num"] for line in found]
    regex = regex_of(head.tokens)
    if head.numbers and "number" not in groups:
        first = [row[0] for row in numbers if row]
        if len(set(first)) > 1 or len(first) == 1:
            groups["number"] = first
            regex = regex_of(head.tokens, "number")
    if head.whole:
        return regex + r"[ \t]*$"
    rest = [line[len(_start(line, head)) :].strip() for line in found]
    if sum(map(bool, rest)) >= 0.5 * len(rest) and "title" not in groups:
        closing = Counter(match.group(0) for one in rest if (match := re.search(r"([=#*~_\]-])\1*$", one)))
        sign, n = closing.most_common(1)[0] if closing else ("", 0)
        if n == len(rest):
            groups["title"] = [one[: -len(sign)].strip() for one in rest]
            return regex + rf"[ \t]*(?P<title>.*?)[ \t]*{literal(sign)}[ \t]*$"
        groups["title"] = rest
        return regex + r"[ \t]*(?P<title>.*)$"
    return regex + ".*$"


def _start(line: str, head: Head) -> str:
    return "".join(token.text for token in tokens_of(line[:72])[: len(head.tokens)])


def _title(lines: Lines, starts: Sequence[tuple[int, int, int]], n: int, groups: dict[str, list[str]]) -> str:
    """A line under the separator that differs from run to run: what the run is about."""
    texts = [lines.docs[doc][at + n].strip() for doc, at, _ in starts]
    if "title" in groups or len(set(texts)) < 0.3 * len(texts) or not all(texts):
        return ""
    heads = [next(iter(heads_of(text)), None) for text in texts]
    keys = Counter(one.key for one in heads if one is not None and not one.whole)
    if keys and keys.most_common(1)[0][1] >= 0.95 * len(texts):
        head = next(one for one in heads if one is not None and one.key == keys.most_common(1)[0][0])
        return _captured(lines, head, texts, groups)
    return ""


def _by_counter(lines: Lines, by_doc: dict[int, list[Mark]], restarts: dict[int, list[int]]) -> RunPlan | None:
    """Runs begin at the event whose counter starts again: always the same head with the same number."""
    first: Counter[tuple[str, int]] = Counter()
    starts = []
    for doc, at_lines in sorted(restarts.items()):
        wanted = set(at_lines)
        for mark in by_doc[doc]:
            if mark.line in wanted:
                first[mark.head, numbers_of(lines, mark) or 0] += 1
                starts.append((doc, mark.line))
    (key, number), n = first.most_common(1)[0]
    if n < 0.9 * len(starts):
        return None
    parts = []
    for token in lines.heads[key].tokens:
        parts.append(Token("sign", str(number)) if token.kind == "num" and number is not None else token)
    regex = "(?m)^" + "".join(literal(token.text) if token.kind != "time" else regex_of((token,)) for token in parts)
    spans = []
    for i, (doc, at) in enumerate(starts):
        stop = starts[i + 1][1] if i + 1 < len(starts) and starts[i + 1][0] == doc else len(lines.docs[doc])
        spans.append(Span(doc, at, at, stop))
    return RunPlan(regex, spans, f"a counter starts again at {number}, {len(starts)} times", from_text=True)


# --- headings above runs


def _sections(lines: Lines, by_doc: dict[int, list[Mark]], plan: RunPlan) -> None:
    """Headings that stand between runs, not in every gap, and differ in a word that says how runs went."""
    found: dict[str, list[tuple[int, int, Head]]] = {}
    last_line = {}
    for doc, marks in by_doc.items():
        last_line[doc] = [mark.line for mark in marks]
    for span in plan.spans:
        before = max((line for line in last_line[span.doc] if line < span.start), default=-1)
        for at in range(max(before + 1, span.start - 12), span.start):
            whole = whole_line(lines.docs[span.doc][at])
            if whole is None or not whole.words:
                continue
            labels = [head.key for head in heads_of(lines.docs[span.doc][at]) if not head.whole]
            if not any(lines.count(key) >= 0.6 * len(plan.spans) for key in labels):  # else: said of every run
                found.setdefault(whole.key, []).append((span.doc, at, whole))
    runs = len(plan.spans)
    templates: dict[tuple[str, ...], dict[str, list[tuple[int, int]]]] = {}
    shown: dict[tuple[str, ...], Head] = {}
    for _key, places in sorted(found.items()):
        head = places[0][2]
        if len(places) > 0.5 * runs:
            continue
        for i, token in enumerate(head.tokens):
            if token.kind == "word" and polarity(token.text):
                shape = tuple("±" if i == j else _ruled(t) for j, t in enumerate(head.tokens))
                templates.setdefault(shape, {}).setdefault(token.text, []).extend((doc, at) for doc, at, _ in places)
                shown.setdefault(shape, head)
    told = max(
        (one for one in sorted(templates) if len(templates[one]) >= 2),
        key=lambda one: (len(templates[one]), sum(map(len, templates[one].values()))),
        default=None,
    )
    if told is not None:
        values = templates[told]
        parts = [
            rf"(?P<verdict>{'|'.join(sorted(values))})" if sign == "±" else _ruler(token)
            for sign, token in zip(told, shown[told].tokens, strict=True)
        ]
        plan.sections.append("(?m)^" + "".join(parts) + r"[ \t]*$")
        where = sorted((doc, at, word) for word, places in values.items() for doc, at in places)
        for span in plan.spans:
            above = [word for doc, at, word in where if doc == span.doc and at < span.start]
            plan.verdicts.append(above[-1] if above else None)
    for _key, places in sorted(found.items()):
        head = places[0][2]
        if head.numbers == 1 and 2 <= len(places) <= 0.5 * runs and _RUN_WORDS & set(words(head.name)):
            plan.sections.append("(?m)^" + regex_of(head.tokens, "part") + r"[ \t]*$")
            break


def _ruled(token: Token) -> str:
    """The token, of a ruler only its sign: rulers of headings differ in length."""
    return token.text[0] + "+" if token.kind == "sign" and len(token.text) > 2 else mask((token,))


def _ruler(token: Token) -> str:
    return literal(token.text[0]) + "+" if token.kind == "sign" and len(token.text) > 2 else regex_of((token,))
