"""Calls such as name[arguments] and name(arguments)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from prefixguard.induce.offline.text_call_form import (
    NAME,
    THOUGHT_NAMES,
    CallForm,
    Variant,
    first_word,
    of_text,
    ranked,
    vocabulary,
)
from prefixguard.induce.offline.text_call_plain import looks_like_code
from prefixguard.induce.offline.text_words import is_prose

_CALL = re.compile(rf"\s*({NAME})([\[(])")
_BARE = re.compile(rf"\s*({NAME})\s*")


def bracketed(texts: list[str], at: str) -> CallForm | None:
    closing = {"[": "]", "(": ")"}
    found: dict[str, list[tuple[str, str]]] = {"[": [], "(": []}
    for text in texts:
        match = _CALL.match(text)
        if match is None:
            continue
        stripped = text.strip()
        closed = stripped.endswith(closing[match.group(2)])
        inside = stripped[match.end() - (len(text) - len(text.lstrip())) :]
        if closed or "\n" not in stripped:
            found[match.group(2)].append((match.group(1), inside[:-1] if closed else inside))
    bracket = max(found, key=lambda one: (len(found[one]), one == "["))
    pairs = found[bracket]
    names = vocabulary([name for name, _ in pairs], len(pairs))
    share = sum(names.values()) / len(texts)
    if not names or share < (0.05 if bracket == "[" and sum(names.values()) >= 10 else 0.5):
        return None
    if bracket == "(" and looks_like_code([text for text in texts if _CALL.match(text)]):
        return None
    bare = Counter(
        match.group(1) for match in map(_BARE.fullmatch, texts) if match is not None and match.group(1) not in names
    )
    bare = Counter({name: n for name, n in bare.items() if n >= 2 and n >= 0.005 * len(texts)})
    if len(bare) > 12:
        bare = Counter()
    opens = "\\" + bracket
    closes = "\\" + closing[bracket]
    arguments = [inside for name, inside in pairs if name in names]
    extra = _thoughts(names, pairs, len(texts), at, opens, closes)
    covered = share + sum(bare.values()) / len(texts)
    why = f"{share:.0%} of the texts are name{bracket}...{closing[bracket]} with {len(names)} names"
    tools = ranked({**names, **bare})
    example = next(text for text in texts if (m := _CALL.match(text)) and m.group(1) in names)[:200]
    form = f"name{bracket}arguments{closing[bracket]}"
    inner = rf"(?s)^\s*{NAME}{opens}(.*?){closes}?\s*$"
    if covered >= 0.9:
        if bare:
            alone = "|".join(map(re.escape, bare))
            extra = (*extra, Variant({"re": rf"^\s*(?:{alone})\s*$"}, {"strip": at}, None, None))
        return CallForm(
            None,
            of_text(rf"^\s*({NAME}){opens}", at),
            {"first": [of_text(inner, at), at]},
            None,
            covered,
            min(0.97, 0.5 + 0.5 * covered),
            form,
            why,
            example,
            extra,
            tools=tools,
        )
    every = "|".join(map(re.escape, [*names, *bare]))
    called = "|".join(map(re.escape, names))
    tool = of_text(rf"^\s*({every})(?:{opens}|\s|$)", at)
    rest = [text for text in texts if not (m := _CALL.match(text)) or m.group(1) not in names]
    rest = [text for text in rest if not ((m := _BARE.match(text)) and m.group(1) in bare)]
    after: tuple[Variant, ...] = ()
    takers = [name for name in names if any(len(inside.split()) > 1 for n, inside in pairs if n == name)]
    if rest and not is_prose(rest):
        if len(takers) == 1 and _alike(arguments, rest):
            after = (Variant(None, {"const": takers[0]}, at, None),)
            why += f"; the rest is what stands inside {takers[0]}{bracket}{closing[bracket]} elsewhere"
        else:
            after = (Variant(None, None, at, None),)
    test = rf"^\s*(?:(?:{called}){opens}" + (rf"|(?:{'|'.join(map(re.escape, bare))})(?:\s|$))" if bare else ")")
    return CallForm(
        {"re": test},
        tool,
        {
            "first": [
                of_text(rf"(?s)^\s*(?:{called}){opens}(.*?){closes}?\s*$", at),
                of_text(rf"(?s)^\s*(?:{every})\s*(.*?)\s*$", at),
            ]
        },
        None,
        covered,
        min(0.9, 0.5 + covered / 2),
        form,
        why,
        example,
        extra,
        after,
        tools,
    )


def _thoughts(
    names: Mapping[str, int], pairs: Sequence[tuple[str, str]], total: int, at: str, opens: str, closes: str
) -> tuple[Variant, ...]:
    """Names whose brackets hold thoughts: prose, and frequent or called so, beside names that hold none."""
    prose = {name for name in names if is_prose([inside for n, inside in pairs if n == name], least=2)}
    if len(prose) == len(names):
        return ()
    found = []
    for name in sorted(prose):
        if name.lower() in THOUGHT_NAMES or (names[name] >= 0.15 * total and names[name] >= 5):
            plain = re.escape(name)
            found.append(
                Variant(
                    {"re": rf"^\s*{plain}{opens}"},
                    {"const": name},
                    None,
                    of_text(rf"(?s)^\s*{plain}{opens}(.*?){closes}?\s*$", at),
                )
            )
    return tuple(found)


def _alike(some: Sequence[str], others: Sequence[str]) -> bool:
    """Do two sets of texts begin with the same words?"""
    words = {first_word(text) for text in some}
    return sum(first_word(text) in words for text in others) >= 0.5 * len(others)
