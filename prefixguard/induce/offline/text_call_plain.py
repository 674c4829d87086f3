"""Calls that are a fenced block, a line whose first word is a command, or plain code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from prefixguard.induce.offline.text_call_form import (
    MOST_NAMES,
    CallForm,
    Variant,
    example_of,
    first_word,
    of_text,
    ranked,
    rest_of,
)
from prefixguard.induce.offline.text_words import FUNCTION_WORDS, prose_share, word_set

_FENCE = re.compile(r"```([A-Za-z0-9_+#.-]*)[ \t]*\n(.*?)\n?[ \t]*```", re.S)
_SHOWN = word_set(
    """
    text txt plaintext plain markdown md output console log diff html css xml yaml yml csv
    """
)


def fenced(texts: list[str], at: str) -> CallForm | None:
    blocks = [[(m.group(1), m.group(2)) for m in _FENCE.finditer(text[:60_000])] for text in texts]
    counts = Counter(lang for found in blocks for lang in {lang for lang, _ in found})
    if not counts:
        return None
    total = sum(1 for found in blocks if found)
    langs = {lang: n for lang, n in counts.items() if lang and lang.lower() not in _SHOWN and n >= max(1, 0.03 * total)}
    if sum(langs.values()) < 0.5 * total and counts[""] >= 0.5 * total:
        return _fenced_commands(texts, at, [body for found in blocks for lang, body in found if lang == ""])
    chosen = sorted(langs, key=lambda lang: (-langs[lang], lang))[:6]
    if chosen and langs[chosen[0]] >= 0.95 * total >= 4:  # others only stand beside it: shown, not called
        chosen = chosen[:1]
    langs = {lang: langs[lang] for lang in chosen}
    with_code = sum(1 for found in blocks if any(lang in langs for lang, _ in found))
    share = with_code / len(texts)
    if not chosen or share < 0.05 or with_code < (1 if share >= 0.5 else 3):
        return None
    either = "|".join(map(re.escape, chosen))
    group = either if len(chosen) == 1 else f"(?:{either})"
    block = rf"(?s)```{group}\s*\n(.*?)\n\s*```" if not _tight(blocks) else rf"(?s)```{group}\s*\n(.*?)\n```"
    plain = block.replace("(.*?)", ".*?")
    one = sum(1 for found in blocks if sum(lang in langs for lang, _ in found) == 1) / len(texts)
    tool: Any = {"const": chosen[0]} if len(chosen) == 1 else of_text(rf"```({either})\b", at)
    strict = one >= 0.8 and share >= 0.8
    when: Any = {"re": plain}
    after: tuple[Variant, ...] = ()
    why = f"{share:.0%} of the texts hold a fenced block ({', '.join(chosen)})"
    if strict:
        several = any(sum(lang in langs for lang, _ in found) != 1 for found in blocks)
        when = {"re": plain, "not": {"re": rf"{plain}.*{plain.removeprefix('(?s)')}"}}
        after = (Variant(None, None, None, {"strip": at}),)
        why += ", exactly one" + ("; a text with none or several is a call without a tool" if several else "")
    return CallForm(
        when,
        tool,
        of_text(block, at),
        rest_of(plain, at),
        share,
        0.95 if strict else 0.6 + 0.3 * share,
        "fenced block",
        why,
        example_of(plain, texts),
        after=after,
        tools=ranked(langs),
    )


def _tight(blocks: Sequence[Sequence[tuple[str, str]]]) -> bool:
    """Does every block end with its fence at the start of a line? (The pattern has taken blanks before it away.)"""
    return all(not body.endswith((" ", "\t")) for found in blocks for _, body in found)


def _fenced_commands(texts: list[str], at: str, bodies: Sequence[str]) -> CallForm | None:
    """Blocks that name no language and hold a command."""
    share = sum("```" in text for text in texts) / len(texts)
    if share < 0.5:
        return None
    inner = commands([body for body in bodies if body.strip()], at)
    block = r"(?s)```[ \t]*\n(.*?)\n?[ \t]*```"
    plain = block.replace("(.*?)", ".*?")
    if inner is None:
        tool: Any = {"const": "execute"}
        arguments: Any = of_text(block, at)
    else:
        tool = of_text(rf"(?s)```[ \t]*\n\s*({COMMAND})", at)
        arguments = of_text(rf"(?s)```[ \t]*\n\s*(?:{COMMAND})?\s*(.*?)\s*```", at)
    return CallForm(
        {"re": plain} if share < 1 else None,
        tool,
        arguments,
        rest_of(plain, at),
        share,
        0.75,
        "fenced command",
        f"{share:.0%} of the texts hold a fenced block without a language",
        example_of(plain, texts),
        tools=inner.tools if inner is not None else (("execute", len(bodies)),),
    )


COMMAND = r"[A-Za-z_./][\w./-]*"
_FIRST = re.compile(rf"\s*({COMMAND})")
_JOINING = frozenset(["at", "to", "on", "in", "into", "onto", "from"])
_STATEMENTS = word_set(
    """
    select insert update delete create drop alter with show describe desc explain use set begin commit def
    import from class print return for while if try async await lambda assert raise const let var function
    """
)


def looks_like_code(texts: Sequence[str]) -> bool:
    """Do the texts begin as statements of SQL, Python or JavaScript do, or are they several lines of them?

    The rule: three in ten begin with a statement's word, or four in ten hold two such lines.
    """
    begin = sum(first_word(text).strip("`(;:").lower() in _STATEMENTS for text in texts)
    lines = sum(
        sum(
            first_word(line).strip("(;:").lower() in _STATEMENTS or re.match(r"\s*[\w.\[\]]+ ?= ?\S", line) is not None
            for line in text.split("\n")[:40]
        )
        >= 2
        for text in texts
    )
    return begin >= 0.3 * len(texts) or lines >= 0.4 * len(texts)


def commands(texts: list[str], at: str) -> CallForm | None:
    if not texts or looks_like_code(texts) or prose_share(texts) > 0.25:
        return None
    words = [match.group(1) if (match := _FIRST.match(text)) else "" for text in texts]
    counts = Counter(word for word in words if word)
    least = 2 if len(texts) >= 8 else 1
    kept = {word: n for word, n in counts.most_common() if n >= least}
    top = dict(sorted(kept.items(), key=lambda kv: (-kv[1], kv[0]))[:MOST_NAMES])
    share = sum(top.values()) / len(texts)
    if sum(n for word, n in top.items() if word.lower() in FUNCTION_WORDS) > 0.03 * len(texts):
        return None
    if share < 0.8 or (len(texts) >= 8 and len(top) > 0.34 * len(texts)):
        return None
    if len(texts) < 8 and not any(len(text) < 200 for text in texts):
        return None
    joining = _joining_words(texts, words, top)
    between = rf"(?:(?:{'|'.join(joining)})\s+)?" if joining else ""
    started = sum(1 for word in words if word) / len(texts)
    return CallForm(
        None,
        of_text(rf"^\s*({COMMAND})", at),
        {"strip": of_text(rf"(?s)^\s*(?:{COMMAND})?\s*{between}(.*)$", at)},
        None,
        started,
        0.5 + 0.35 * share,
        "first word",
        f"{share:.0%} of the texts begin with one of {len(top)} words that repeat",
        texts[0][:200],
        tools=ranked(top),
    )


def _joining_words(texts: Sequence[str], words: Sequence[str], names: Mapping[str, int]) -> list[str]:
    """`at`, `to` and the like, where they follow a name in nearly all of its texts."""
    after: dict[str, Counter[str]] = {}
    for text, word in zip(texts, words, strict=True):
        parts = text.split(None, 2)
        if word in names and len(parts) > 2 and parts[1] in _JOINING:
            after.setdefault(parts[1], Counter())[word] += 1
    return sorted(
        joining for joining, heads in after.items() if any(n >= 0.9 * names[head] for head, n in heads.items())
    )


def code(texts: list[str], at: str) -> CallForm | None:
    if not looks_like_code(texts) or prose_share(texts) > 0.5:
        return None
    return CallForm(
        None,
        {"const": "execute"},
        at,
        None,
        1.0,
        0.6,
        "code",
        "the texts begin as statements of a programming language do: the whole text is what is executed",
        texts[0][:200],
        tools=(("execute", len(texts)),),
    )
