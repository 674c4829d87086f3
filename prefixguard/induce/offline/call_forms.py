"""How a call stands in the agent's text: which part is the tool, which the arguments, which is only said.

Forms are told by their shape over all the texts, never by known names of tools: a form holds if enough texts have it
and the names it yields are few and repeat. They are tried from the most specific to the least; the first that holds
is taken. Text that has none of them is speech.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import re2

from prefixguard.induce.offline.text_words import FUNCTION_WORDS, is_prose, prose_share, sampled
from prefixguard.stepview import decode_text

#: More names than this are no vocabulary of tools.
MOST_NAMES = 64
_NAME = r"[A-Za-z_][\w.-]*"
_IDENTIFIER = re.compile(r"[A-Za-z_][\w.:/-]{0,60}")
_THOUGHT_NAMES = frozenset(
    [
        "think",
        "thinking",
        "thought",
        "thoughts",
        "reason",
        "reasoning",
        "reflect",
        "reflection",
        "plan",
        "analysis",
        "scratchpad",
    ]
)
_TOOL_KEYS = [
    "tool",
    "tool_name",
    "name",
    "function",
    "function_name",
    "action",
    "action_name",
    "action_type",
    "command",
    "cmd",
    "op",
    "operation",
    "api",
    "method",
    "type",
]
_ARGUMENT_KEYS = [
    "arguments",
    "args",
    "parameters",
    "params",
    "input",
    "inputs",
    "action_input",
    "tool_input",
    "kwargs",
    "parameter",
    "action_args",
    "payload",
]


@dataclass(frozen=True, slots=True)
class Variant:
    """Some of the texts. when: a test for use under the path of the text; None: whatever is left.

    tool, arguments, action: values of the spec, None where there is none. emits: "call" or "say".
    """

    when: Any
    tool: Any
    arguments: Any
    action: Any
    emits: str = "call"


@dataclass(frozen=True, slots=True)
class CallForm:
    """How tool and arguments stand in a text.

    when: a test of the spec ("this text is such a call") to use under the key `at`; None if all texts are.
    tool, arguments, action: values of the spec (action: the rest of the text, None where there is none). share: of the
    texts that have the form, in [0, 1]. confidence: in [0, 1]. name: of the form. extra: exceptions, to be tried before
    this form. after: what to do with texts that are not of this form; empty: they are speech. tools: names found, the
    most frequent first.
    """

    when: Any
    tool: Any
    arguments: Any
    action: Any
    share: float
    confidence: float
    name: str
    why: str
    example: str
    extra: tuple[Variant, ...] = ()
    after: tuple[Variant, ...] = ()
    tools: tuple[tuple[str, int], ...] = ()

    def variants(self) -> tuple[Variant, ...]:
        """Exceptions, the form itself, and the rest, in the order in which rules should try them."""
        return (*self.extra, Variant(self.when, self.tool, self.arguments, self.action), *self.after)


def infer_call_form(texts: Sequence[str], at: str) -> CallForm | None:
    """The form of calls in what an agent said or did; None where the texts are speech.

    texts: raw, one a step. at: path of the text in the spec, such as "@.content".
    """
    kept = [text for text in sampled(texts) if text.strip()]
    if not kept:
        return None
    recognisers: tuple[Callable[[list[str], str], CallForm | None], ...] = (
        _labelled,
        _tagged,
        _json_call,
        _bracketed,
        _fenced,
        _commands,
        _code,
    )
    for recognise in recognisers:
        form = recognise(kept, at)
        if form is not None:
            return form
    return None


# --- small vocabularies


def vocabulary(names: Sequence[str], of: int) -> dict[str, int]:
    """Names that repeat, most frequent first; empty if they are too many for a set of tools.

    A name counts if it occurs twice or makes up a tenth; names that do not repeat may be a tenth of all occurrences.
    """
    counts = Counter(names)
    total = len(names)
    kept = {
        name: n
        for name, n in sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))
        if n >= 2 or n >= 0.1 * max(total, 1)
    }
    if not kept or len(kept) > MOST_NAMES or sum(kept.values()) < 0.9 * total:
        return {}
    if total >= 12 and len(kept) > 0.5 * total:
        return {}
    return kept


def _of(regex: str, at: str) -> dict[str, Any]:
    return {"re": regex, "of": at}


def _rest(regex: str, at: str) -> dict[str, Any]:
    return {"strip": {"cut": regex, "of": at}}


def _share(regex: str, texts: Sequence[str]) -> float:
    pattern = re2.compile(regex)
    return sum(1 for text in texts if pattern.search(text)) / len(texts)


def _example(regex: str, texts: Sequence[str]) -> str:
    pattern = re2.compile(regex)
    return next((text[:200] for text in texts if pattern.search(text)), texts[0][:200])


def _ranked(names: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(names.items(), key=lambda kv: (-kv[1], kv[0])))


# --- Action: X / Action Input: Y

_LABEL_LINE = re.compile(
    r"(?m)^[ \t]*(?:[*#_]{1,3}[ \t]*)?([A-Za-z][A-Za-z_ ]{0,24}?)[ \t]*(?:\*\*)?:(?:\*\*)?[ \t]*(.*)$"
)


def _labelled(texts: list[str], at: str) -> CallForm | None:
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
        names = vocabulary([value for value in values if _IDENTIFIER.fullmatch(value)], len(values))
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
        _of(rf"(?m){head}[`*\"' \t]*([A-Za-z_][\w.:/-]*)", at),
        _of(rf"(?ms){tail}[ \t]*(.*?)\s*{end}", at),
        _rest(whole, at),
        share,
        min(0.97, 0.6 + 0.4 * share),
        "labelled lines",
        f"{share:.0%} of the texts have a line {label!r} with one of {len(names)} names, then {follower!r}",
        _example(f"(?m){head}", texts),
        tools=_ranked(names),
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
        inner = _bracketed(values, at)
        if inner is None or inner.share < 0.8:
            continue
        head = _label_head(label)
        share = len(values) / len(texts)
        return CallForm(
            {"re": f"(?m){head}"} if share < 1 else None,
            _of(rf"(?m){head}[ \t]*({_NAME})", at),
            _of(rf"(?ms){head}[ \t]*{_NAME}[\[(](.*?)[\])]?\s*(?:^[A-Z]\w+:|\z)", at),
            _rest(rf"(?ms){head}.*", at),
            share,
            0.85,
            "labelled call",
            f"{share:.0%} of the texts have a line {label!r} that holds {inner.name}",
            _example(f"(?m){head}", texts),
            tools=inner.tools,
        )
    return None


# --- <tag>...</tag>

_OPEN_TAG = re.compile(r"<([A-Za-z_][\w.-]{0,40})(?:=([\w.-]{1,60})|\s+name=[\"']([\w.-]{1,60})[\"'])?\s*>")


def _tagged(texts: list[str], at: str) -> CallForm | None:
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
                _of(opening, at),
                {"re": whole, "of": at, "group": 2},
                _rest(rf"(?s)(?:<\w+>\s*)?{opening}.*</{tag}>(?:\s*</\w+>)?", at),
                share,
                0.95,
                "tag with a name",
                f"{share:.0%} of the texts hold <{tag}> with one of {len(words)} names",
                _example(whole, texts),
                tools=_ranked(words),
            )
    return _plain_tags(texts, at, plain, last)


def _plain_tags(texts: list[str], at: str, plain: Mapping[str, list[str]], last: Counter[str]) -> CallForm | None:
    calls = {
        tag: bodies
        for tag, bodies in plain.items()
        if tag.lower() not in _THOUGHT_NAMES
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
    share = min(1.0, _share(whole, texts))
    if len(tags) == 1:
        inside = _of(rf"(?s)<{tags[0]}>\s*(.*?)\s*</{tags[0]}>", at)
        form = _json_at(calls[tags[0]], inside, {"json": inside}, f"<{tags[0]}> with a JSON object")
        if form is not None:
            return replace(
                form,
                when={"re": whole} if share < 1 else None,
                action=_rest(whole, at),
                share=share * form.share,
                example=_example(whole, texts),
            )
    return CallForm(
        {"re": whole} if share < 1 else None,
        {"re": whole, "of": at, "group": 1},
        {"re": whole, "of": at, "group": 2},
        _rest(whole, at),
        share,
        0.85,
        "tags",
        f"{share:.0%} of the texts end with one of the tags {', '.join(tags)}",
        _example(whole, texts),
        tools=_ranked({tag: len(calls[tag]) for tag in tags}),
    )


# --- a JSON object in the text


def _json_call(texts: list[str], at: str) -> CallForm | None:
    ways: tuple[tuple[str, str | None], ...] = (
        ("a JSON object", None),
        ("a JSON object in a fenced block", r"(?s)```(?:json|JSON)?\s*(\{.*?\})\s*```"),
        ("a JSON object in the text", r"(?s)(\{.*\})"),
    )
    for label, regex in ways:
        if regex is None:
            bodies = [text for text in texts if text.lstrip()[:1] == "{"]
            inside: Any = at
        else:
            pattern = re2.compile(regex)
            found = (pattern.search(text[:60_000]) for text in texts if "{" in text)
            bodies = [match.group(1) for match in found if match is not None]
            inside = _of(regex, at)
        if len(bodies) < max(1, 0.3 * len(texts)):
            continue
        form = _json_at(bodies, inside, {"json": inside}, label)
        if form is None:
            continue
        share = form.share * len(bodies) / len(texts)
        if share < 0.3:
            continue
        test = r"^\s*\{" if regex is None else regex
        action = form.action if regex is None else _rest(regex.replace("(\\{", "(?:\\{"), at)
        return replace(
            form,
            when=None if share > 0.999 else {"re": test},
            action=action,
            share=share,
            example=_example(test, texts),
        )
    return None


def _json_at(bodies: Sequence[str], inside: Any, value: dict[str, Any], label: str) -> CallForm | None:
    """The form of texts that are JSON objects; share: of the texts that are such a call."""
    objects: list[dict[str, Any]] = []
    for body in bodies:
        try:
            found = decode_text(body)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            objects.append(found)
    if len(objects) < max(1, 0.5 * len(bodies)):
        return None
    best: tuple[float, str, str, dict[str, int], Sequence[dict[str, Any]]] | None = None
    levels: list[tuple[str, Sequence[dict[str, Any]]]] = [("$", objects)]
    for key in sorted({key for one in objects for key in list(one)[:40]}):
        nested = [one[key] for one in objects if isinstance(one.get(key), dict)]
        if len(nested) >= 0.8 * len(objects) and key.lower() not in _ARGUMENT_KEYS:
            levels.append((f"$.{key}" if key.isidentifier() else f"$[{_quoted(key)}]", nested))
    for place, dicts in levels:
        for key in sorted({key for one in dicts for key in list(one)[:40]}):
            values = [one[key] for one in dicts if isinstance(one.get(key), str)]
            if len(values) < 0.9 * len(dicts):
                continue
            names = vocabulary([value for value in values if _IDENTIFIER.fullmatch(value)], len(values))
            if sum(names.values()) < 0.9 * len(values):
                continue
            named = key.lower() in _TOOL_KEYS
            beside = any(
                isinstance(one.get(other), dict) for one in dicts[:50] for other in list(one)[:40] if other != key
            )
            if not named and not beside:
                continue
            score = (
                (2 - _TOOL_KEYS.index(key.lower()) / 20 if named else 0)
                + 1.5 * beside
                + 0.2 * (len(names) > 1)
                + 0.1 * (place == "$")
            )
            if best is None or score > best[0]:
                best = (score, place, key, names, dicts)
    if best is None:
        return None
    _, place, key, names, dicts = best
    others = sorted({other for one in dicts for other in list(one)[:40] if other != key})
    arguments_key = _arguments_key(dicts, others)
    thoughts = [
        other
        for other in others
        if other != arguments_key
        and (
            other.lower() in _THOUGHT_NAMES
            or is_prose([one[other] for one in dicts if isinstance(one.get(other), str)], least=3)
        )
    ]

    def inner(name: str, place: str = place) -> dict[str, Any]:
        return {**value, "path": f"{place}.{name}" if name.isidentifier() else f"{place}[{_quoted(name)}]"}

    if arguments_key is not None:
        arguments: Any = inner(arguments_key)
    else:
        left = [other for other in others if other not in thoughts][:24]
        arguments = {"object": {other: inner(other) for other in left}} if left else None
    outer = sorted({k for one in objects for k in list(one)[:40]}) if place != "$" else []
    spoken = [inner(one) for one in thoughts] + [
        inner(k, "$")
        for k in outer
        if is_prose([one[k] for one in objects if isinstance(one.get(k), str)], least=3) or k.lower() in _THOUGHT_NAMES
    ]
    action = None if not spoken else spoken[0] if len(spoken) == 1 else {"join": spoken}
    return CallForm(
        None,
        inner(key),
        arguments,
        action,
        len(objects) / len(bodies),
        0.95 if arguments_key is not None else 0.85,
        label,
        f"{len(objects)} of {len(bodies)} are JSON with {key!r}, one of {len(names)} names"
        + (f", and {arguments_key!r}" if arguments_key else ""),
        bodies[0][:200],
        tools=_ranked(names),
    )


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _arguments_key(dicts: Sequence[dict[str, Any]], others: Sequence[str]) -> str | None:
    best: tuple[float, str] | None = None
    for other in others:
        values = [one[other] for one in dicts if other in one]
        objects = sum(isinstance(one, dict) for one in values)
        named = other.lower() in _ARGUMENT_KEYS
        if not named and objects < 0.6 * len(values):
            continue
        score = objects / len(values) + named + len(values) / len(dicts)
        if score >= 1.4 and (best is None or score > best[0]):
            best = (score, other)
    return best[1] if best is not None else None


# --- name[arguments], name(arguments)

_CALL = re.compile(rf"\s*({_NAME})([\[(])")
_BARE = re.compile(rf"\s*({_NAME})\s*")


def _bracketed(texts: list[str], at: str) -> CallForm | None:
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
    if bracket == "(" and _looks_like_code([text for text in texts if _CALL.match(text)]):
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
    tools = _ranked({**names, **bare})
    example = next(text for text in texts if (m := _CALL.match(text)) and m.group(1) in names)[:200]
    form = f"name{bracket}arguments{closing[bracket]}"
    inner = rf"(?s)^\s*{_NAME}{opens}(.*?){closes}?\s*$"
    if covered >= 0.9:
        if bare:
            alone = "|".join(map(re.escape, bare))
            extra = (*extra, Variant({"re": rf"^\s*(?:{alone})\s*$"}, {"strip": at}, None, None))
        return CallForm(
            None,
            _of(rf"^\s*({_NAME}){opens}", at),
            {"first": [_of(inner, at), at]},
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
    tool = _of(rf"^\s*({every})(?:{opens}|\s|$)", at)
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
                _of(rf"(?s)^\s*(?:{called}){opens}(.*?){closes}?\s*$", at),
                _of(rf"(?s)^\s*(?:{every})\s*(.*?)\s*$", at),
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
        if name.lower() in _THOUGHT_NAMES or (names[name] >= 0.15 * total and names[name] >= 5):
            plain = re.escape(name)
            found.append(
                Variant(
                    {"re": rf"^\s*{plain}{opens}"},
                    {"const": name},
                    None,
                    _of(rf"(?s)^\s*{plain}{opens}(.*?){closes}?\s*$", at),
                )
            )
    return tuple(found)


def _first_word(text: str) -> str:
    parts = text.split(None, 1)
    return parts[0] if parts else ""


def _alike(some: Sequence[str], others: Sequence[str]) -> bool:
    """Do two sets of texts begin with the same words?"""
    words = {_first_word(text) for text in some}
    return sum(_first_word(text) in words for text in others) >= 0.5 * len(others)


# --- fenced blocks

_FENCE = re.compile(r"```([A-Za-z0-9_+#.-]*)[ \t]*\n(.*?)\n?[ \t]*```", re.S)
_SHOWN = frozenset(
    [
        "text",
        "txt",
        "plaintext",
        "plain",
        "markdown",
        "md",
        "output",
        "console",
        "log",
        "diff",
        "html",
        "css",
        "xml",
        "yaml",
        "yml",
        "csv",
    ]
)


def _fenced(texts: list[str], at: str) -> CallForm | None:
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
    tool: Any = {"const": chosen[0]} if len(chosen) == 1 else _of(rf"```({either})\b", at)
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
        _of(block, at),
        _rest(plain, at),
        share,
        0.95 if strict else 0.6 + 0.3 * share,
        "fenced block",
        why,
        _example(plain, texts),
        after=after,
        tools=_ranked(langs),
    )


def _tight(blocks: Sequence[Sequence[tuple[str, str]]]) -> bool:
    """Does every block end with its fence at the start of a line? (The pattern has taken blanks before it away.)"""
    return all(not body.endswith((" ", "\t")) for found in blocks for _, body in found)


def _fenced_commands(texts: list[str], at: str, bodies: Sequence[str]) -> CallForm | None:
    """Blocks that name no language and hold a command."""
    share = sum("```" in text for text in texts) / len(texts)
    if share < 0.5:
        return None
    inner = _commands([body for body in bodies if body.strip()], at)
    block = r"(?s)```[ \t]*\n(.*?)\n?[ \t]*```"
    plain = block.replace("(.*?)", ".*?")
    if inner is None:
        tool: Any = {"const": "execute"}
        arguments: Any = _of(block, at)
    else:
        tool = _of(rf"(?s)```[ \t]*\n\s*({_COMMAND})", at)
        arguments = _of(rf"(?s)```[ \t]*\n\s*(?:{_COMMAND})?\s*(.*?)\s*```", at)
    return CallForm(
        {"re": plain} if share < 1 else None,
        tool,
        arguments,
        _rest(plain, at),
        share,
        0.75,
        "fenced command",
        f"{share:.0%} of the texts hold a fenced block without a language",
        _example(plain, texts),
        tools=inner.tools if inner is not None else (("execute", len(bodies)),),
    )


# --- a first word that is a command; plain code

_COMMAND = r"[A-Za-z_./][\w./-]*"
_FIRST = re.compile(rf"\s*({_COMMAND})")
_JOINING = frozenset(["at", "to", "on", "in", "into", "onto", "from"])
_STATEMENTS = frozenset(
    [
        "select",
        "insert",
        "update",
        "delete",
        "create",
        "drop",
        "alter",
        "with",
        "show",
        "describe",
        "desc",
        "explain",
        "use",
        "set",
        "begin",
        "commit",
        "def",
        "import",
        "from",
        "class",
        "print",
        "return",
        "for",
        "while",
        "if",
        "try",
        "async",
        "await",
        "lambda",
        "assert",
        "raise",
        "const",
        "let",
        "var",
        "function",
    ]
)


def _looks_like_code(texts: Sequence[str]) -> bool:
    """Do the texts begin as statements of SQL, Python or JavaScript do, or are they several lines of them?

    The rule: three in ten begin with a statement's word, or four in ten hold two such lines.
    """
    begin = sum(_first_word(text).strip("`(;:").lower() in _STATEMENTS for text in texts)
    lines = sum(
        sum(
            _first_word(line).strip("(;:").lower() in _STATEMENTS or re.match(r"\s*[\w.\[\]]+ ?= ?\S", line) is not None
            for line in text.split("\n")[:40]
        )
        >= 2
        for text in texts
    )
    return begin >= 0.3 * len(texts) or lines >= 0.4 * len(texts)


def _commands(texts: list[str], at: str) -> CallForm | None:
    if not texts or _looks_like_code(texts) or prose_share(texts) > 0.25:
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
        _of(rf"^\s*({_COMMAND})", at),
        {"strip": _of(rf"(?s)^\s*(?:{_COMMAND})?\s*{between}(.*)$", at)},
        None,
        started,
        0.5 + 0.35 * share,
        "first word",
        f"{share:.0%} of the texts begin with one of {len(top)} words that repeat",
        texts[0][:200],
        tools=_ranked(top),
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


def _code(texts: list[str], at: str) -> CallForm | None:
    if not _looks_like_code(texts) or prose_share(texts) > 0.5:
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


__all__ = ["MOST_NAMES", "CallForm", "Variant", "infer_call_form", "vocabulary"]
