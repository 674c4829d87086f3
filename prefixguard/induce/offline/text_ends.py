"""What is said only when a run is over: verdicts and totals in the last lines of a log's runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import re2

from prefixguard.induce.offline.outcome import judge_values
from prefixguard.induce.offline.text_heads import Lines, Mark
from prefixguard.induce.offline.text_lines import Token, heads_of, mask, regex_of, tokens_of
from prefixguard.induce.offline.text_runs import Span
from prefixguard.lexicon import Meaning, affinity, polarity

#: A line of a verdict is no longer than this.
LONGEST = 160
#: Lines at the end of a run that are looked at.
MOST_LINES = 40


@dataclass(frozen=True, slots=True)
class Verdict:
    """A line at the end of runs that says how they went.

    regex: RE2 with one group, the value. values: one a run, None where it is not said. success, failure: tests of the
    spec over the text of the value. whole: RE2 of what must be cut from records. confidence: in [0, 1].
    """

    regex: str
    values: tuple[str | None, ...]
    success: Any
    failure: Any
    whole: str
    confidence: float
    why: str


@dataclass(frozen=True, slots=True)
class Ends:
    """verdicts: best first. cuts: RE2 of what is taken out of events: totals, summaries, what the harness says."""

    verdicts: tuple[Verdict, ...]
    cuts: tuple[str, ...]
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Said:
    """A line at the end of a run. at: lines after the last event. apart: a ruler, or after a blank line."""

    run: int
    at: int
    apart: bool
    text: str
    tokens: tuple[Token, ...]


def find_ends(lines: Lines, marks: Sequence[Mark], spans: Sequence[Span], named: Mapping[str, str]) -> Ends:
    """Verdicts and tails. named: role by head, of heads that name one."""
    if len(spans) < 2:
        return Ends((), (), ())
    counts = Counter(mark.head for mark in marks)
    rare = {head for head, n in counts.items() if n <= 1.2 * len(spans) and len(counts) > 2}
    usual = _usual_openings(lines, marks)
    ends: list[_Said] = []
    inside: set[tuple[int, int]] = set()
    head_at = {(mark.doc, mark.line): mark for mark in marks}
    for run, span in enumerate(spans):
        last = _last_mark(head_at, span, rare)
        first = span.first if last is None else last
        region = [at for at in range(first, span.stop) if lines.docs[span.doc][at].strip()]
        for at in region if len(region) <= MOST_LINES else region[: MOST_LINES // 4] + region[-MOST_LINES:]:
            line = lines.docs[span.doc][at]
            inside.add((span.doc, at))
            mark = head_at.get((span.doc, at))
            if mark is not None and mark.head not in rare:
                line = line[sum(len(token.text) for token in tokens_of(line[:72])[: mark.length]) :]
            line = line.strip()
            if line and len(line) <= LONGEST:
                before = lines.docs[span.doc][first + 1 : at]
                opens = at > first and not any(one.strip() for one in before)
                if opens and usual not in ("", _first(line)):
                    ends.append(_Said(run, at - first, True, line, _tokens(line)))
                    continue
                apart = not lines.docs[span.doc][at - 1].strip() or not any(map(str.isalnum, line))
                ends.append(_Said(run, at - first, apart, line, _tokens(line)))
    elsewhere = _elsewhere(lines, head_at, inside, {_first(said.text) for said in ends})
    verdicts = _verdicts(ends, elsewhere, len(spans))
    cuts, why = _tails(lines, ends, elsewhere, len(spans))
    return Ends(tuple(verdicts), (*cuts, *(one.whole for one in verdicts[:2])), tuple(why))


def _usual_openings(lines: Lines, marks: Sequence[Mark]) -> str:
    """How most texts under the last kind of event begin, if they stand under a bare head; "" if they do not."""
    last = Counter(mark.head for mark in marks[-1:]).most_common(1)
    if not last:
        return ""
    openings: Counter[str] = Counter()
    for mark in marks:
        if mark.head == last[0][0]:
            below = (line.strip() for line in lines.docs[mark.doc][mark.line + 1 : mark.line + 4])
            openings[_first(next((line for line in below if line), ""))] += 1
    sign, n = openings.most_common(1)[0]
    return sign if n >= 0.6 * sum(openings.values()) else ""


def _last_mark(head_at: Mapping[tuple[int, int], Mark], span: Span, rare: set[str]) -> int | None:
    """Line of the last event that is not itself a line about the end."""
    for at in range(span.stop - 1, span.start - 1, -1):
        mark = head_at.get((span.doc, at))
        if mark is not None and mark.head not in rare:
            return at
    return None


_FIRST = re.compile(r"[A-Za-z_][\w]*|\d|\S")


def _first(line: str) -> str:
    """How a line begins: a word, a digit, a sign; words of success and failure are one."""
    match = _FIRST.match(line)
    found = match.group(0) if match is not None else ""
    return "#" if found.isdigit() else "±" if found.isalpha() and polarity(found) else found


def _tokens(line: str) -> tuple[Token, ...]:
    """Tokens of a line, words that hold digits as names that may differ from run to run."""
    return tuple(
        Token("id", token.text) if token.kind == "word" and any(map(str.isdigit, token.text)) else token
        for token in tokens_of(line)
    )


def _saying(said: _Said) -> str:
    """The line, without the names that may differ from run to run."""
    return "".join("%" if token.kind == "id" else token.text for token in said.tokens)


def _shape(tokens: Sequence[Token]) -> str:
    return "".join(
        "±" if token.kind == "word" and polarity(token.text) else mask((token,)) for token in tokens if token.kind
    )


def _elsewhere(
    lines: Lines, head_at: Mapping[tuple[int, int], Mark], inside: set[tuple[int, int]], firsts: set[str]
) -> Counter[str]:
    """Shapes of short lines that do not stand at the end of a run. firsts: how the lines begin that are asked for."""
    found: Counter[str] = Counter()
    for doc, all_lines in enumerate(lines.docs):
        for at, line in enumerate(all_lines):
            if (doc, at) in inside or not line or len(line) > LONGEST + 40 or line.isspace():
                continue
            mark = head_at.get((doc, at))
            if mark is not None:
                line = line[sum(len(token.text) for token in tokens_of(line[:72])[: mark.length]) :]
            line = line.strip()
            if line and len(line) <= LONGEST and _first(line) in firsts:
                found[_shape(_tokens(line))] += 1
    return found


def _verdicts(ends: Sequence[_Said], elsewhere: Mapping[str, int], runs: int) -> list[Verdict]:
    by_shape: dict[str, list[_Said]] = {}
    for said in ends:
        by_shape.setdefault(_shape(said.tokens), []).append(said)
    found = []
    for shape, sayings in sorted(by_shape.items()):
        told = {said.run for said in sayings}
        if len(told) < max(2, 0.3 * runs) or elsewhere.get(shape, 0) > 0.1 * len(sayings):
            continue
        if "#" in shape or "±" in shape:
            verdict = _numbers(sayings, runs) if "±" not in shape else _words(sayings, runs)
            if verdict is None and "±" in shape and "#" in shape:
                verdict = _numbers(sayings, runs)
            if verdict is not None:
                found.append(verdict)
    merged = _merged(by_shape, elsewhere, runs)
    if merged is not None:
        found.append(merged)
    return sorted(found, key=lambda one: (-one.confidence, one.regex))


def _words(sayings: Sequence[_Said], runs: int) -> Verdict | None:
    """A word that speaks of success in some runs and of failure in others."""
    values: list[str | None] = [None] * runs
    told_at = [i for i, token in enumerate(sayings[0].tokens) if token.kind == "word" and polarity(token.text)]
    varying = [i for i in told_at if len({said.tokens[i].text for said in sayings if len(said.tokens) > i}) > 1]
    if not varying and len({polarity(sayings[0].tokens[i].text) > 0 for i in told_at}) > 1:
        return None
    at = (varying or told_at)[0]
    for said in sayings:
        word = said.tokens[at].text if len(said.tokens) > at else ""
        values[said.run] = word if polarity(word) else None
    words = sorted({value for value in values if value is not None})
    good = [word for word in words if polarity(word) > 0]
    bad = [word for word in words if polarity(word) < 0]
    if not (good or bad):
        return None
    told = sum(value is not None for value in values)
    if not (good and bad) and (told < 0.6 * runs or len({_saying(said) for said in sayings}) > 2):
        return None
    # All of the samples went one way: the other is any other word there.
    slot_re = "|".join(words) if good and bad else r"\w+"
    parts = []
    for i, token in enumerate(sayings[0].tokens):
        parts.append(f"({slot_re})" if i == at else r"\w+" if i in varying else regex_of((token,)))
    regex = "".join(parts)
    closed = regex.replace(f"({slot_re})", f"(?:{slot_re})")
    return Verdict(
        rf"\b{regex}" if regex[:1].isalpha() else regex,
        tuple(values),
        _either(good) if good else "else",
        _either(bad) if bad else "else",
        closed,
        min(0.95, 0.55 + 0.4 * told / runs) if good and bad else 0.5,
        f"the last lines of {told} of {runs} runs say {' or '.join(words)}",
    )


def _either(words: Sequence[str]) -> Any:
    return words[0] if len(words) == 1 else {"in": list(words)}


def _merged(by_shape: Mapping[str, Sequence[_Said]], elsewhere: Mapping[str, int], runs: int) -> Verdict | None:
    """Different last lines for success and failure: "Task solved." and "Gave up: failed"."""
    kinds: dict[int, list[tuple[int, str, Sequence[_Said]]]] = {1: [], -1: []}
    for shape, sayings in sorted(by_shape.items()):
        texts = {_saying(said) for said in sayings}
        if "±" not in shape or len(sayings) < 2 or elsewhere.get(shape, 0) > 0.1 * len(sayings) or len(texts) > 3:
            continue
        sign = {polarity(t.text) for t in sayings[0].tokens if t.kind == "word" and polarity(t.text)}
        if len(sign) == 1:
            kinds[sign.pop()].append((len(sayings), shape, sayings))
    if not kinds[1] or not kinds[-1]:
        return None
    good = max(kinds[1], key=lambda one: (one[0], one[1]))
    bad = max(kinds[-1], key=lambda one: (one[0], one[1]))
    values: list[str | None] = [None] * runs
    for _, _, sayings in (good, bad):
        for said in sayings:
            values[said.run] = said.text
    told = sum(value is not None for value in values)
    if told < 0.6 * runs or {s.run for s in good[2]} & {s.run for s in bad[2]}:
        return None
    either = "|".join(sorted(regex_of(one[2][0].tokens) for one in (good, bad)))
    return Verdict(
        f"({either})",
        tuple(values),
        {"re": regex_of(good[2][0].tokens)},
        {"re": regex_of(bad[2][0].tokens)},
        f"(?:{either})",
        0.5 + 0.3 * told / runs,
        f"runs end with {good[2][0].text!r} or {bad[2][0].text!r}",
    )


def _numbers(sayings: Sequence[_Said], runs: int) -> Verdict | None:
    """A number that differs from run to run, beside words that speak of an outcome."""
    width = len(sayings[0].tokens)
    same = [said for said in sayings if len(said.tokens) == width]
    slots = [i for i, token in enumerate(sayings[0].tokens) if token.kind == "num"]
    varying = [i for i in slots if len({said.tokens[i].text for said in same}) > 1]
    if len(varying) > 1 or not slots:
        return None
    slot = varying[0] if varying else slots[-1]
    before = " ".join(t.text for t in sayings[0].tokens[:slot] if t.kind == "word")
    name = max((before.split() or [""]), key=lambda word: affinity(word, Meaning.OUTCOME))
    if affinity(name, Meaning.OUTCOME) < 0.5 or not re.search("[A-Za-z]", before):
        return None
    values: list[str | None] = [None] * runs
    for said in same:
        values[said.run] = said.tokens[slot].text
    numbers = [None if value is None else _number(value) for value in values]
    forms = judge_values(numbers, name)
    if not forms:
        return None
    form = forms[0]
    bound = form.success.get("ge") if isinstance(form.success, dict) else None
    if bound is None:
        return None
    good = sorted({v for v, n in zip(values, numbers, strict=True) if v is not None and n is not None and n >= bound})
    parts = []
    for i, token in enumerate(sayings[0].tokens):
        parts.append(
            r"(-?[0-9]+(?:\.[0-9]+)?)"
            if i == slot
            else regex_of((token,))
            if i not in slots
            else re.escape(token.text).replace("\\-", "-")
        )
    regex = "".join(parts)
    top = max(n for n in numbers if n is not None)
    whole_match = rf"^{int(bound)}(\.0+)?$" if bound >= top and float(bound).is_integer() else None
    if not whole_match and not good:
        return None
    success: Any = {"re": whole_match} if whole_match else {"in": good}
    told = sum(value is not None for value in values)
    return Verdict(
        regex,
        tuple(values),
        success,
        "else",
        regex.replace(r"(-?[0-9]+(?:\.[0-9]+)?)", r"-?[0-9]+(?:\.[0-9]+)?"),
        min(0.95, form.confidence + 0.2 * told / runs),
        f"the last lines of {told} of {runs} runs say {name!r} and a number: {form.why}",
    )


def _number(text: str) -> float | int:
    return (
        int(text) if text.lstrip("-").isdigit() else float(text) if re.fullmatch(r"-?\d+\.\d+", text) else float("nan")
    )


def _tails(lines: Lines, ends: Sequence[_Said], elsewhere: Mapping[str, int], runs: int) -> tuple[list[str], list[str]]:
    """Lines that stand at the end of nearly every run and nowhere else: from there on nothing is the agent's."""
    if runs < 3:
        return [], []
    by_shape: dict[str, list[_Said]] = {}
    for said in ends:
        if said.at == 0:
            continue
        # What comes right under other text may be the last result, if it is neither a number, a verdict nor a label.
        if said.apart or any(t.kind == "num" or (t.kind == "word" and polarity(t.text)) for t in said.tokens):
            by_shape.setdefault(mask(said.tokens) + "$", []).append(said)
        for head in heads_of(said.text):
            if not head.whole and head.words:
                by_shape.setdefault(head.key, []).append(said)
    cuts: list[str] = []
    why: list[str] = []
    for shape, sayings in sorted(by_shape.items(), key=lambda kv: (min(s.at for s in kv[1]), kv[0])):
        told = {said.run for said in sayings}
        if len(told) < (0.5 if runs >= 6 else 0.8) * runs or len(shape) < 3:
            continue
        if shape.endswith("$"):
            other = elsewhere.get(_shape(sayings[0].tokens), 0)
            regex = regex_of(sayings[0].tokens) + r"\s*(?:\n.*)?$"
        else:
            head = next(one for one in heads_of(sayings[0].text) if one.key == shape)
            other = lines.count(shape) - len(sayings)
            regex = regex_of(head.tokens) + r".*$"
        if other > (0.15 if len(told) >= 0.8 * runs else 0.0) * len(sayings):
            continue
        if any(re2.search(cut, f"\n{said.text}") for cut in cuts for said in sayings[:3]):
            continue
        cuts.append(r"(?s)(?:^|\n)[ \t]*" + regex)
        why.append(f"{sayings[0].text[:60]!r} ends {len(told)} of {runs} runs: cut, with what follows")
        if len(cuts) >= 3:
            break
    return cuts, why
