"""Calls that stand in text, as a grammar of two layers: a frame around the call (all of the text, a fence, a tag, a
label, the last line), and what the frame holds (JSON, a name and arguments, labelled lines, plain code).

Every form is a value of the spec, so it is measured by running it: on how many texts a tool is found, whether the tools
are few and repeat, whether the arguments parse. A name of a frame or a key only breaks ties.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import re2

from prefixguard.induce.search.spoken_frames import LEAST, NAMELESS, TEXT, CallFrame, call_frames
from prefixguard.induce.search.spoken_names import (
    COMMAND,
    NAME,
    code_share,
    names_share,
    prose_share,
    quoted,
    value_of,
)
from prefixguard.lexicon import Meaning, affinity
from prefixguard.stepview import MISSING
from prefixguard.stepview.values import read_json_or_literal

#: Texts that forms are measured on, and code points of each.
MOSTTEXTS, LONGEST = 100, 8_000


@dataclass(frozen=True, slots=True)
class SpokenCall:
    """One way in which a call stands in a text.

    tool, arguments, said, result: values of the spec; said is the text around the call, result what came back if the
    same text tells it, None where there is none. tools: names by how often. share: of the texts that hold such a call.
    sure: how much the form speaks for itself, in [0, 1]. why: a sentence.
    """

    tool: Any
    arguments: Any
    said: Any
    result: Any
    tools: tuple[tuple[str, int], ...]
    share: float
    sure: float
    why: str

    @property
    def score(self) -> float:
        return self.sure * min(1.0, 0.3 + self.share)

    @property
    def test(self) -> Any:
        """What is there where a text holds such a call."""
        if "first" in self.tool:  # names, or one that is always there: the text they stand in
            return self.tool["first"][0]["of"]
        return self.arguments if "const" in self.tool else self.tool

    def rule(self, when: dict[str, Any]) -> dict[str, Any]:
        """The rule for events that hold such a call. when: what else the event must be."""
        rule: dict[str, Any] = {"when": when, "emit": "call" if self.result is None else "step", "tool": self.tool}
        if not ("const" in self.tool and self.share > 0.999):
            rule["when"] = {**when, "value": self.test, "is": {"present": True}}
        for key, value in (("arguments", self.arguments), ("action", self.said), ("result", self.result)):
            if value is not None:
                rule[key] = value
        return rule


def spoken_calls(texts: Sequence[str], at: Any = "@.body", most: int = 4, called: bool = False) -> list[SpokenCall]:
    """The forms of calls in what an agent said, the surest first; none where the texts are speech.

    at: value of the text in the spec. most: forms of different tools that are told. called: the name of their field
    says that the texts are calls.
    """
    step = max(1, -(-len(texts) // MOSTTEXTS))
    kept = tuple(text[:LONGEST].encode("utf-8", "replace").decode() for text in texts[::step] if text.strip())
    out: list[SpokenCall] = []
    for one in _found(kept, called) if kept else ():
        names = {name for name, _ in one.tools}
        if all(names != {name for name, _ in other.tools} for other in out):
            values = {part: placed(getattr(one, part), at) for part in ("tool", "arguments", "said", "result")}
            out.append(replace(one, **values))
    return out[:most]


@lru_cache(maxsize=256)
def _found(texts: tuple[str, ...], called: bool) -> list[SpokenCall]:
    """All forms, the surest first."""
    kept = list(texts)
    found: list[SpokenCall] = []
    for frame in call_frames(kept, called):
        inner = _texts(frame.inner, kept)
        if len(inner) < max(1, LEAST * len(kept)):
            continue
        if frame.tools is not None:
            names = _texts(frame.tools, kept)
            found += _made(frame, frame.tools, frame.inner, names, len(kept), 1.0, "its arguments")
        else:
            found += [form for body in (_json, _named, _constant) for form in body(frame, inner, len(kept))]
    return sorted((one for one in found if one.score > 0.1), key=lambda one: -one.score)


def _texts(value: Any, texts: list[str]) -> list[str]:
    """The values in the texts, where there are any."""
    return [one for one in map(value_of(value), texts) if isinstance(one, str) and one.strip()]


def placed(value: Any, at: Any, of: str = TEXT) -> Any:
    """The value with another text (a value) in place of the path `of`."""
    if isinstance(value, dict):
        return {key: placed(one, at, of) for key, one in value.items()}
    if isinstance(value, list):
        return [placed(one, at, of) for one in value]
    return at if value == of else value


# --- what a frame holds


def _made(
    frame: CallFrame, tool: Any, arguments: Any, names: list[str], total: int, sure: float, why: str,
    said: Any = None, result: Any = None,
) -> Iterator[SpokenCall]:  # fmt: skip
    counts = Counter(names)
    share = len(names) / total
    fit = names_share(names)
    if share < LEAST or fit < 0.6:
        return
    if len(counts) == 1 < total // 2:
        sure *= 0.75  # a word that never changes may be no tool's name
    parts = [part for part in (frame.said, said) if part is not None]
    around = parts[0] if len(parts) == 1 else {"join": parts} if parts else None
    tools = tuple(counts.most_common())
    yield SpokenCall(tool, arguments, around, result, tools, share, sure * frame.sure * fit, f"{frame.why} {why}")


_THOUGHTS = ("thought", "thoughts", "reasoning", "rationale", "plan", "explanation")


def _json(frame: CallFrame, inner: list[str], total: int) -> Iterator[SpokenCall]:
    objects = [one for one in map(read_json_or_literal, inner) if isinstance(one, dict)]
    if len(objects) < max(1, 0.6 * len(inner), LEAST * total):
        return
    is_python = any(read_json_or_literal(text) is not MISSING and "'" in text[:3] for text in inner)

    def at(path: str) -> dict[str, Any]:
        return {"json": frame.inner, "path": path} | ({"python": True} if is_python else {})

    flat = [dict(_leaves(one)) for one in objects]
    keys = Counter(path for one in flat for path in one)
    said = next((at(path) for path in keys if path.rsplit(".", 1)[-1].lower() in _THOUGHTS), None)
    for path, n in keys.items():
        names = [one[path] for one in flat if isinstance(one.get(path), str) and re.fullmatch(NAME, one[path])]
        if n < 0.3 * len(objects) or len(names) < 0.9 * n:
            continue
        stem = path.rsplit(".", 1)[0]
        beside = [key for key in keys if key.rsplit(".", 1)[0] == stem and key != path]
        filled = Counter(key for one in flat for key in beside if isinstance(one.get(key), dict | list))
        ranked = sorted(beside, key=lambda key: (-(filled[key] / n) - affinity(key, Meaning.ARGUMENTS), key))
        named = ranked[0] if ranked and (filled[ranked[0]] or affinity(ranked[0], Meaning.ARGUMENTS) > 0.4) else None
        prior = 0.1 * affinity(path, Meaning.TOOL)
        if named is not None:
            sure = 0.75 + 0.15 * min(1.0, filled[named] / n) + prior
            yield from _made(frame, at(path), at(named), names, total, sure, f"JSON with the tool at {path}", said)
        else:
            rest = {
                key.rsplit(".", 1)[-1]: at(key) for key in sorted(beside) if said is None or key not in said["path"]
            }
            values: Any = {"object": rest} if rest and len(rest) <= 16 else frame.inner
            sure = 0.6 + prior - 0.2 * bool(not rest)
            yield from _made(frame, at(path), values, names, total, sure, f"JSON with the tool at {path}", said)
    single = [next(iter(one)) for one in objects if len(one) == 1 and isinstance(next(iter(one.values())), dict)]
    if len(single) >= 0.6 * len(objects):
        tool = {"re": rf"^\{{\s*[\"']({NAME})[\"']\s*:", "of": frame.inner}
        value = {"re": rf"(?s)^\{{\s*[\"']{NAME}[\"']\s*:\s*(.*)\}}$", "of": frame.inner}
        yield from _made(frame, tool, value, single, total, 0.8, "JSON with the tool as its only key")


def _leaves(value: dict[str, Any], path: str = "$", depth: int = 0) -> Iterator[tuple[str, Any]]:
    for key, inner in list(value.items())[:24]:
        if isinstance(key, str) and re.fullmatch(r"[A-Za-z_]\w*", key):
            yield f"{path}.{key}", inner
            if isinstance(inner, dict) and depth < 2:
                yield from _leaves(inner, f"{path}.{key}", depth + 1)


#: What may stand between a name and its arguments, and what ends them; how sure the form is.
_SEPARATORS: tuple[tuple[str, str, float], ...] = (
    (r"\(", r"\)", 0.95), (r"\[", r"\]", 0.95), (r"[^\w{]+(?:[a-z]+[^\w{]+){0,3}(?={)", "", 0.92),
    (r"[ \t]*[:|>=-]+[ \t]+", "", 0.6), (r"(?:\s+|$)", "", 0.4),
)  # fmt: skip
_WORD = re.compile(r"[A-Za-z_][\w.:/-]*")


def _named(frame: CallFrame, inner: list[str], total: int) -> Iterator[SpokenCall]:
    """A name behind words that never change, then arguments."""
    for slot in range(4):
        before: Counter[str] = Counter()
        for text in inner:
            found = list(_WORD.finditer(text[:120]))[: slot + 1]
            if len(found) > slot:
                before[_DIGITS.sub("0", text[: found[slot].start()])] += 1
        for prefix, n in before.most_common(2):
            if n >= 0.3 * len(inner) and not set("\n{") & set(prefix) and len(prefix) <= 60:
                yield from _behind(frame, inner, prefix, total, plain=not slot or n >= 0.6 * len(inner))


_DIGITS = re.compile(r"\d+")


def _behind(frame: CallFrame, texts: list[str], prefix: str, total: int, plain: bool) -> Iterator[SpokenCall]:
    """plain: may a word alone be the name, without brackets or JSON behind it?"""
    start = "(?s)^" + _DIGITS.sub(r"\\d+", quoted(prefix))
    for opening, closing, sure in _SEPARATORS if plain else _SEPARATORS[:3]:
        opens = opening.replace("(?={)", "")
        around = f"{prefix}NAME{opening}...{closing}".replace("\\", "")
        arrow = _answered(start, opens, closing, texts) if closing else None
        if arrow is not None:
            regex = rf"{start}({NAME}){opens}(.*?){closing}{arrow}(.*)$"
        elif opening != opens:
            arrow = _under(f"{start}{NAME}{opens}", texts)
            regex = rf"{start}({NAME}){opens}(\{{.*\}})[\s`)\]]*$"
            if arrow is not None:
                regex = rf"{start}({NAME}){opens}(\{{[^\n]*\}})(?:{arrow}(.*))?$"
        elif closing:
            regex = rf"{start}({NAME}){opens}(.*?){closing}?\s*;?$"
        elif frame.name == NAMELESS:
            regex = rf"{start}({COMMAND}){opens}{_LINK}(.*)$"
        else:
            regex = rf"{start}({NAME}){opens}(.*)$"
        pattern = re2.compile(regex)
        matches = [match for match in map(pattern.search, texts) if match is not None]
        if len(matches) < max(1, 0.25 * len(texts), LEAST * total):
            continue
        names = [match.group(1) for match in matches]
        of_shell = sum(name in _PROGRAMS for name in names) >= 0.3 * len(names)
        if frame.name not in ("", NAMELESS) and frame.why.startswith("a block") and of_shell:
            continue  # of a language: the tool is its shell
        if not closing and opening == opens:  # nothing but a word and what follows: speech has that too
            if frame.name == NAMELESS:  # a block without a language holds a command
                sure = max(sure, 0.9)
            sure *= 1 - prose_share([match.group(0) for match in matches])
            sure *= (1.3 if prefix.strip() else 1) * (0.7 if len(set(names)) == 1 else 1)
        if code_share(texts) > 0.5 and not prefix.strip():
            sure *= 0.5
        parts: list[Any] = [{"re": regex, "of": frame.inner, "group": i} for i in (1, 2, 3)]
        if arrow is None:
            parts[2] = None
        yield from _made(frame, parts[0], parts[1], names, total, min(0.95, sure), around, result=parts[2])


#: A word that links a command with what it is given.
_LINK = r"(?:(?:at|from|in|into|on|onto|to|with)\s+)?"
#: Programs that any shell runs.
_PROGRAMS = frozenset("cat cd cp curl cut echo find git grep head ls mkdir mv pip python python3 pytest rm sed".split())  # noqa: SIM905


def _answered(start: str, opens: str, closing: str, texts: list[str]) -> str | None:
    """What stands between a call and its result, where the same text tells both."""
    for arrow in (r"\s*(?:->|=>|→|⇒)\s*", r"\s*(?:returned|returns|==?|:)\s+"):
        pattern = re2.compile(rf"{start}{NAME}{opens}.*?{closing}{arrow}")
        if sum(pattern.search(text) is not None for text in texts) >= 0.7 * len(texts):
            return arrow
    return None


def _under(start: str, texts: list[str]) -> str | None:
    """What stands between a call in JSON on one line and its result, where the lines below it are the result."""
    called = [text for text in texts if re2.search(rf"{start}\{{[^\n]*\}}", text)]
    ended = [text for text in called if re2.search(rf"{start}\{{[^\n]*\}}[ \t]*\n", text)]
    return r"[ \t]*\n" if called and len(ended) >= 0.7 * len(called) else None


def _constant(frame: CallFrame, inner: list[str], total: int) -> Iterator[SpokenCall]:
    """All of it is what is executed, by the one tool that the frame is named after; but for calls that name theirs."""
    if not frame.name or len(inner) < LEAST * total or prose_share(inner) > 0.4:
        return
    if frame.name.lower() in ("json", "thought", *_THOUGHTS):
        return
    sure = 0.55 + 0.25 * (frame.why.startswith("a block") or frame.said is None) + 0.1 * (code_share(inner) > 0.3)
    name = frame.name.strip().lower().replace(" ", "_")
    tool: Any = {"const": name}
    arguments: Any = frame.inner
    opened = Counter(found[1] for text in inner if (found := re.match(r"(?s)\s*([A-Za-z_]\w*)\[.*\]\s*$", text)))
    named = [word for word, n in opened.most_common() if n >= max(2, 0.05 * len(inner))]
    if named:
        alone = Counter(text.strip() for text in inner if re.fullmatch(NAME, text.strip()))
        every = dict.fromkeys([*named, *(word for word, n in alone.items() if n >= max(2, 0.01 * len(inner)))])
        either = "|".join(map(quoted, every))
        tool = {"first": [{"re": rf"^\s*({either})(?:\[|\s|$)", "of": frame.inner}, {"const": named[0]}]}
        given = {"re": rf"(?s)^\s*(?:{'|'.join(map(quoted, named))})\[(.*?)\]?\s*$", "of": frame.inner}
        arguments = {"first": [given, {"strip": {"cut": rf"^\s*(?:{either})(?:\s|$)", "of": frame.inner}}]}
    yield SpokenCall(
        tool, arguments, frame.said, None, ((name, len(inner)),), len(inner) / total, sure * frame.sure,
        f"{frame.why} what is executed",
    )  # fmt: skip
