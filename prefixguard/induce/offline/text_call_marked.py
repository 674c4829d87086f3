"""Calls that stand under labels (`Action: X`, `Action Input: Y`) or in tags."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from prefixguard.induce.offline.text_call_brackets import bracketed
from prefixguard.induce.offline.text_call_form import (
    IDENTIFIER,
    NAME,
    THOUGHT_NAMES,
    CallForm,
    example_of,
    of_text,
    ranked,
    rest_of,
    share_of,
    vocabulary,
)
from prefixguard.induce.offline.text_call_json import json_at
from prefixguard.induce.offline.text_words import is_prose

_LABEL_LINE = re.compile(
    r"(?m)^[ \t]*(?:[*#_]{1,3}[ \t]*)?([A-Za-z][A-Za-z_ ]{0,24}?)[ \t]*(?:\*\*)?:(?:\*\*)?[ \t]*(.*)$"
)


def labelled(texts: list[str], at: str) -> CallForm | None:
    found: dict[str, list[str]] = {}
    followers: dict[str, Counter[str]] = {}
    for text in texts:
        seen: list[str] = []
        for match in _LABEL_LINE.finditer(text[:20_000]):
            label = match.group(1).strip()
            if label in seen:
                continue
            if seen:
                followers.setdefault(seen[-1], Counter())[label] += 1
            seen.append(label)
            found.setdefault(label, []).append(match.group(2).strip().strip("`*\"'"))
            if len(seen) >= 12:
                break
    best: tuple[float, str, str, dict[str, int]] | None = None
    for label in sorted(found):
        values = found[label]
        if len(values) < max(2, 0.3 * len(texts)) or not followers.get(label):
            continue
        names = vocabulary([value for value in values if IDENTIFIER.fullmatch(value)], len(values))
        if sum(names.values()) < 0.8 * len(values):
            continue
        follower, n = sorted(followers[label].items(), key=lambda kv: (-kv[1], kv[0]))[0]
        if n < 0.5 * len(values) or _LABEL_LINE.match(f"{follower}: ") is None:
            continue
        score = n + 0.1 * len(values) * any(word in label.lower() for word in ("action", "tool", "function", "command"))
        if best is None or score > best[0]:
            best = (score, label, follower, names)
    if best is None:
        return _labelled_call(found, texts, at)
    _, label, follower, names = best
    later = sorted(other for other in followers.get(follower, Counter()) if other != label)
    head, tail = _label_head(label), _label_head(follower)
    stop = "|".join(map(re.escape, [x for x in later if followers[follower][x] >= 2][:8]))
    end = rf"(?:^[ \t]*(?:{stop}):|\z)" if stop else r"\z"
    whole = rf"(?ms){head}.*?{tail}.*?{end}"
    share = len(found[label]) / len(texts)
    return CallForm(
        {"re": f"(?m){head}"} if share < 1 else None,
        of_text(rf"(?m){head}[`*\"' \t]*([A-Za-z_][\w.:/-]*)", at),
        of_text(rf"(?ms){tail}[ \t]*(.*?)\s*{end}", at),
        rest_of(whole, at),
        share,
        min(0.97, 0.6 + 0.4 * share),
        "labelled lines",
        f"{share:.0%} of the texts have a line {label!r} with one of {len(names)} names, then {follower!r}",
        example_of(f"(?m){head}", texts),
        tools=ranked(names),
    )


def _label_head(label: str) -> str:
    return rf"^[ \t]*(?:[*#_]{{1,3}}[ \t]*)?{re.escape(label)}[ \t]*(?:\*\*)?:(?:\*\*)?"


def _labelled_call(found: Mapping[str, list[str]], texts: list[str], at: str) -> CallForm | None:
    """`Action: name[arguments]` inside a longer text."""
    for label in sorted(found, key=lambda one: (-len(found[one]), one)):
        values = found[label]
        if len(values) < max(2, 0.5 * len(texts)) or all(
            text.lstrip().startswith(label) and "\n" not in text.strip() for text in texts
        ):
            continue
        inner = bracketed(values, at)
        if inner is None or inner.share < 0.8:
            continue
        head = _label_head(label)
        share = len(values) / len(texts)
        return CallForm(
            {"re": f"(?m){head}"} if share < 1 else None,
            of_text(rf"(?m){head}[ \t]*({NAME})", at),
            of_text(rf"(?ms){head}[ \t]*{NAME}[\[(](.*?)[\])]?\s*(?:^[A-Z]\w+:|\z)", at),
            rest_of(rf"(?ms){head}.*", at),
            share,
            0.85,
            "labelled call",
            f"{share:.0%} of the texts have a line {label!r} that holds {inner.name}",
            example_of(f"(?m){head}", texts),
            tools=inner.tools,
        )
    return None


_OPEN_TAG = re.compile(r"<([A-Za-z_][\w.-]{0,40})(?:=([\w.-]{1,60})|\s+name=[\"']([\w.-]{1,60})[\"'])?\s*>")


def tagged(texts: list[str], at: str) -> CallForm | None:
    named: Counter[str] = Counter()  # tags whose name stands inside the opening tag
    names: dict[str, list[str]] = {}
    styles: dict[str, str] = {}
    plain: dict[str, list[str]] = {}
    last: Counter[str] = Counter()
    for text in texts:
        ended = text.rstrip()[-3:].endswith(">") or text.rstrip().endswith("```")
        seen = set()
        for match in _OPEN_TAG.finditer(text[:40_000]):
            tag, by_equal, by_attribute = match.groups()
            close = text.find(f"</{tag}>", match.end())
            if tag in seen or close < 0:
                continue
            seen.add(tag)
            if by_equal or by_attribute:
                named[tag] += 1
                names.setdefault(tag, []).append(by_equal or by_attribute)
                styles.setdefault(tag, "=" if by_equal else "name")
            else:
                plain.setdefault(tag, []).append(text[match.end() : close].strip())
            if ended and not text[close + len(tag) + 3 :].strip():
                last[tag] += 1
            if len(seen) >= 16:
                break
    for tag, n in sorted(named.items(), key=lambda kv: (-kv[1], kv[0])):
        words = vocabulary(names[tag], n)
        if n >= max(2, 0.1 * len(texts)) and words:
            opening = rf"<{tag}=([\w.-]+)\s*>" if styles[tag] == "=" else rf"<{tag}\s+name=[\"']([\w.-]+)[\"']\s*>"
            whole = rf"(?s){opening}\s*(.*?)\s*</{tag}>"
            share = n / len(texts)
            return CallForm(
                {"re": whole} if share < 1 else None,
                of_text(opening, at),
                {"re": whole, "of": at, "group": 2},
                rest_of(rf"(?s)(?:<\w+>\s*)?{opening}.*</{tag}>(?:\s*</\w+>)?", at),
                share,
                0.95,
                "tag with a name",
                f"{share:.0%} of the texts hold <{tag}> with one of {len(words)} names",
                example_of(whole, texts),
                tools=ranked(words),
            )
    return _plain_tags(texts, at, plain, last)


def _plain_tags(texts: list[str], at: str, plain: Mapping[str, list[str]], last: Counter[str]) -> CallForm | None:
    calls = {
        tag: bodies
        for tag, bodies in plain.items()
        if tag.lower() not in THOUGHT_NAMES
        and last[tag] >= 0.6 * len(bodies)
        and len(bodies) >= max(2, 0.02 * len(texts))
        and not is_prose(bodies)
    }
    total = sum(map(len, calls.values()))
    if not calls or total < 0.3 * len(texts) or len(calls) > 12:
        return None
    tags = sorted(calls, key=lambda tag: (-len(calls[tag]), tag))
    alternatives = "|".join(map(re.escape, tags))
    whole = rf"(?s)<({alternatives})>\s*(.*?)\s*</(?:{alternatives})>"
    share = min(1.0, share_of(whole, texts))
    if len(tags) == 1:
        inside = of_text(rf"(?s)<{tags[0]}>\s*(.*?)\s*</{tags[0]}>", at)
        form = json_at(calls[tags[0]], inside, {"json": inside}, f"<{tags[0]}> with a JSON object")
        if form is not None:
            return replace(
                form,
                when={"re": whole} if share < 1 else None,
                action=rest_of(whole, at),
                share=share * form.share,
                example=example_of(whole, texts),
            )
    return CallForm(
        {"re": whole} if share < 1 else None,
        {"re": whole, "of": at, "group": 1},
        {"re": whole, "of": at, "group": 2},
        rest_of(whole, at),
        share,
        0.85,
        "tags",
        f"{share:.0%} of the texts end with one of the tags {', '.join(tags)}",
        example_of(whole, texts),
        tools=ranked({tag: len(calls[tag]) for tag in tags}),
    )
