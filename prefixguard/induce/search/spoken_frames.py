"""Where calls stand in what an agent said: all of it, a fence, a tag, a label, the last line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import re2

from prefixguard.induce.search.spoken_names import NAME, names_share, prose_share, quoted

#: The text itself, in values that are not placed yet.
TEXT = "@.text"
#: Least share of the texts that hold a call of a form.
LEAST = 0.05


@dataclass(frozen=True, slots=True)
class CallFrame:
    """Where a call stands. inner: value of what it holds. said: value of the text around it. name: the language or the
    label, "" where it has none. sure: in [0, 1]. tools: value of the tool's name, where the frame tells it."""

    inner: Any
    said: Any
    name: str
    sure: float
    why: str
    tools: Any = None


#: The tool of a block that names no language, where its first words are no tools.
NAMELESS = "execute"

_FENCE = re.compile(r"```([A-Za-z0-9_+#.-]*)[ \t]*\n(.*?)\n?[ \t]*```", re.S)
_SHOWN = frozenset(
    """
    text txt plaintext plain markdown md output console log diff html css xml csv
    """.split()  # noqa: SIM905, a list would be longer
)
_TAG = re.compile(r"<([A-Za-z_][\w.-]{0,40})((?:=[\w.-]+|\s+\w+=[\"'][\w.-]{1,60}[\"'])?)\s*>")
_LABEL = re.compile(r"(?m)^[ \t]*([*#_]{0,3}[ \t]*)([A-Za-z][A-Za-z_ ]{0,24}?)[ \t]*(\*{0,2}:\*{0,2})[ \t]*(.*)$")


def call_frames(texts: list[str], called: bool = False) -> Iterator[CallFrame]:
    """Frames of calls in the texts. called: their field says that they are calls as a whole."""
    yield CallFrame({"strip": TEXT}, None, NAMELESS if called else "", 1.0, "the text is")
    yield from _fences(texts)
    yield from _tags(texts)
    yield from _labels(texts)
    last = r"(?s)(?:^|\n)([^\n]+?)\s*$"
    if sum("\n" in text.strip() for text in texts) >= 0.2 * len(texts):
        yield CallFrame(
            {"re": last, "of": TEXT}, _around(last.replace("([^", "(?:[^"), texts), "", 0.85, "the last line is"
        )
    for opening, closing in ("{}", "[]"):
        inside = quoted(opening) if opening == "{" else rf"\[{NAME}[({{]"
        end = quoted(closing)
        regex = rf"(?s)({inside}.*{end})\s*$" if opening == "{" else rf"(?s)\[({NAME}[({{].*){end}\s*$"
        if sum(opening in text and not text.lstrip().startswith("{") for text in texts) >= LEAST * len(texts):
            said = {"strip": {"re": r"(?s)^(.*?)" + (inside if opening == "[" else quoted("{")), "of": TEXT}}
            yield CallFrame(
                {"re": regex, "of": TEXT}, said, "", 0.8, f"{opening}...{closing} at the end of the text is"
            )


def _around(regex: str, texts: list[str]) -> Any:
    """The text without the frame; None where nothing is left in any."""
    pattern = re2.compile(regex)
    if any(pattern.sub("", text).strip() for text in texts if pattern.search(text)):
        return {"strip": {"cut": regex, "of": TEXT}}
    return None


def _fences(texts: list[str]) -> Iterator[CallFrame]:
    languages = Counter(name for text in texts for name in {match[1] for match in _FENCE.finditer(text)})
    total = sum("```" in text for text in texts)
    for language, n in languages.most_common(4):
        if n < max(1, 0.1 * total) or language.lower() in _SHOWN:
            continue
        regex = rf"(?s)```{re.escape(language)}[ \t]*\n(.*?)\n?[ \t]*```"
        said = _around(regex.replace("(.*?)", ".*?"), texts)
        yield CallFrame({"re": regex, "of": TEXT}, said, language or NAMELESS, 0.95, f"a block ```{language} is")


def _tags(texts: list[str]) -> Iterator[CallFrame]:
    """Tags around calls; an attribute, or the tag itself, may name the tool."""
    tally: Counter[tuple[str, str | None]] = Counter()
    for text in texts:
        found = [match for match in _TAG.finditer(text) if f"</{match[1]}>" in text]
        tally.update({(match[1], match[2].strip().partition("=")[0] if match[2] else None) for match in found})
    often = []
    for (tag, key), n in tally.most_common(15):
        if n < max(1, LEAST * len(texts)):
            continue
        if key is None:
            often.append(tag)
            said = _around(rf"(?s)<{tag}>\s*.*?\s*</{tag}>", texts)
            inner: Any = {"re": rf"(?s)<{tag}>\s*(.*?)\s*</{tag}>", "of": TEXT}
            yield CallFrame(inner, said, tag, 0.9, f"<{tag}> is")
        else:
            opening = rf"<{tag}\s+{key}=[\"']([\w.-]+)[\"']\s*>" if key else rf"<{tag}=([\w.-]+)\s*>"
            said = _around(rf"(?s)(?:<\w+>\s*)?{opening}.*</{tag}>(?:\s*</\w+>)?", texts)
            inner = {"re": rf"(?s){opening}\s*(.*?)\s*</{tag}>", "of": TEXT, "group": 2}
            yield CallFrame(inner, said, tag, 0.95, f"<{tag}> names the tool; it is", {"re": opening, "of": TEXT})
    bodies = {tag: [m[1] for m in re.finditer(rf"(?s)<{tag}>(.*?)</{tag}>", "\n".join(texts))] for tag in often}
    tools = [
        tag
        for tag in often
        if prose_share(bodies[tag]) < 0.5 and not any(f"<{x}>" in b for x in often for b in bodies[tag])
    ]
    if len(tools) > 1:
        either = "|".join(map(re.escape, sorted(tools)))
        regex = rf"(?s)<({either})>\s*(.*?)\s*</(?:{either})>"
        name, inner = ({"re": regex, "of": TEXT, "group": group} for group in (1, 2))
        yield CallFrame(inner, _around(regex, texts), "", 0.9, "tags named after tools; inside is", name)


def _labels(texts: list[str]) -> Iterator[CallFrame]:
    """Labels of lines. One whose text is a name that repeats, with the label after it, is a call of two lines."""
    counts: Counter[tuple[str, str, str]] = Counter()
    values: dict[tuple[str, str, str], list[str]] = {}
    after: dict[tuple[str, str, str], Counter[tuple[str, str, str]]] = {}
    for text in texts:
        last = None
        for match in _LABEL.finditer(text):
            label = (match[1], match[2], match[3])
            counts[label] += 1
            values.setdefault(label, []).append(match[4].strip().strip("`*\"'"))
            if last is not None:
                after.setdefault(last, Counter())[label] += 1
            last = label
    often = [label for label, n in counts.most_common(12) if n >= max(1, LEAST * len(texts))]
    stops = "|".join(sorted(_label_re(label) for label in often))
    for label in often:
        regex = rf"(?ms)^[ \t]*{_label_re(label)}[ \t]*(.*?)\s*(?:^[ \t]*(?:{stops})|\z)"
        said = {"strip": {"re": rf"(?ms)\A(.*?)^[ \t]*{_label_re(label)}", "of": TEXT}}
        nexts = after.get(label)
        follower = nexts.most_common(1)[0][0] if nexts else None
        if names_share(values[label]) >= 0.9 and follower is not None:
            inner = {"re": regex.replace(_label_re(label), _label_re(follower), 1), "of": TEXT}
            tool = {"re": rf"(?m)^[ \t]*{_label_re(label)}[ \t`*\"']*({NAME})", "of": TEXT}
            yield CallFrame(inner, said, "", 0.95, f"{label[1]!r} names the tool; {follower[1]!r} is", tool)
        yield CallFrame({"re": regex, "of": TEXT}, said, label[1], 0.9, f"what follows {label[1]!r} is")


def _label_re(label: tuple[str, str, str]) -> str:
    return "".join(map(re.escape, label)).replace("\\ ", " ")
