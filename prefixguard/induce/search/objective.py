"""The one objective: how well a spec reads the samples, by what the interpreter makes of them.

No term knows a format or a name of a key. Each compares what is in the raw runs with what stands in the records, or
says what records of an agent look like: calls have results, tools are few and come again, arguments parse, sides take
turns, and all of it holds in the third of the runs that is held back as in the others.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from prefixguard.errors import AdapterError, PrefixGuardError
from prefixguard.induce.search.columns import opened_json
from prefixguard.induce.search.evidence import MOST_EVENTS, Evidence, FoundRun
from prefixguard.induce.search.naming import named_parts, named_runs
from prefixguard.induce.search.speakers import Part, part_of
from prefixguard.induce.search.spoken_names import LEAST_OWN, own_share
from prefixguard.lexicon import words as name_words
from prefixguard.stepview import Adapter, StepRecord, canonical
from prefixguard.stepview.events import expand, opened
from prefixguard.stepview.parser import Parser

#: How well tools are named where nothing is called.
NO_CALLS = 0.35
#: Weight of every term in the total.
WEIGHTS = {
    "explained": 2.0,  # share of what the events say that stands in records
    "whole": 2.0,  # share of what the documents say that stands in records
    "once": 2.0,  # share of what stands in records that the runs say, and no more often
    "answered": 2.0,  # calls that have a result, results that have a call
    "tools": 1.5,  # names of tools are names, few and repeated, and tell the keys of the arguments
    "arguments": 1.0,  # arguments are there and parse
    "turns": 2.5,  # between two acts of the agent something arrives; the first act has seen something
    "grain": 1.5,  # a record holds the texts of one step, not those of a whole run
    "taken": 0.5,  # events that a rule takes
    "read": 2.0,  # files and runs that give records, several each
    "stable": 0.5,  # the terms above are the same in the held-back third
}
#: Words; of scripts without blanks, characters.
#: What names of the runs' own fields may add to the total; and those of kinds and fields take.
NAMED, NAMED_PARTS = 0.1, 0.2
_TORN = re.compile(r"^[^<{\[][^<]*</\w+>")
_WORD = re.compile(r"[0-9a-z_\u00c0-\u1fff]+|[^\W_]")
_NAME = re.compile(r"(?:[.~]?/)?[^\W\d][\w.:/\- ]{0,63}\Z")
#: Texts shorter than this many words are no text of a run: ids, times, names.
FEWEST_WORDS = 3
_HEAD, _TAIL = 1200, 800
#: Objects and lists inside each other that are looked into.
_DEEPEST = 24
#: Code points of a log that are looked at.
LONGEST_LOG = 200_000
#: Arguments longer than this count as text: a history that is given to a model is none.
_LONG = 400
#: Shorter arguments may stand by chance in what is said or seen beside the call.
_SHORT = 20
#: Share of its words that runs of one document may have in common: the same task, tried again.
_ALIKE = 0.25
#: A shorter result that half of the calls have alike is a state, and none.
_STAMP = 60
#: A text of this many words in this share of the runs is a prompt: no news, whether it is read or not.
LONG_PROMPT, PROMPTED = 20, 0.2
#: Words of a text that may be part of another one at least, and the share of such parts in one that is made of them.
_TOGETHER, _COMPOSED = 4, 0.5
#: Texts that begin alike, of which so many are looked for in others.
_BEGIN_ALIKE = 60
#: What making and preparing a candidate costs, see `Evidence.work`.
_MAKING = 10.0


@dataclass(frozen=True, slots=True)
class Judgement:
    """How well a spec reads the samples. terms: by name, each in [0, 1]; total: their weighted mean, 0 where the spec
    cannot be compiled or reads nothing. records: that were read. Not in the total, named: how much the names of the
    runs' own fields speak for runs, in [0, 1], and parts: how much those of kinds and fields speak against the
    rules, in [-1, 0]. why: what was wrong, "" where nothing was."""

    total: float
    terms: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    records: int = 0
    why: str = ""
    named: float = 0.0
    parts: float = 0.0

    @property
    def worth(self) -> float:
        """The total, and what names say."""
        return self.total + NAMED * self.named + NAMED_PARTS * self.parts if self.total else 0.0


#: Of what calls tell; without any, the rest speaks alone.
_OF_CALLS = ("answered", "tools", "arguments")
#: Total at which a reading is as likely right as wrong, and by how much it changes from one to nearly sure.
#: Of 48 readings of known formats, right were 40 of 40 from .92 on, 1 of 2 from .88 to .92, 3 of 6 below.
_EVEN, _SPREAD = 0.9, 0.015
#: The same for the term "once", whatever the others are: a text that several events repeat, such as what a model was
#: given, is no part of a step. 45 of the same readings have .9 and more, right or wrong; the others are intercode,
#: right at .63 and .65, and otel_genai_old, wrong at .42. So the numbers are a guess that asks about all three.
_EVEN_ONCE, _SPREAD_ONCE = 0.75, 0.05


def likely_right(judgement: Judgement) -> float:
    """Probability that the steps are read as they are, in [0, 1]."""
    names = [name for name in WEIGHTS if judgement.terms["tools"] != NO_CALLS or name not in _OF_CALLS]
    total = sum(WEIGHTS[name] * judgement.terms[name] for name in names) / sum(WEIGHTS[name] for name in names)
    once = 1 / (1 + math.exp((_EVEN_ONCE - judgement.terms["once"]) / _SPREAD_ONCE))
    return once / (1 + math.exp((_EVEN - total) / _SPREAD))


def judge(spec: Mapping[str, Any], evidence: Evidence, *, quick: bool = False) -> Judgement:
    """Runs the real interpreter on the samples (at most MOST_RUNS runs of MOST_EVENTS events). Never raises for a spec.
    Memoised by the spec. quick: on a quarter of the runs and events."""
    key = ("judged", canonical({k: v for k, v in spec.items() if k not in ("name", "description", "version")}), quick)
    if key not in evidence.cache:
        evidence.cache[key] = _judge(spec, evidence, quick)
    found: Judgement = evidence.cache[key]
    return found


def _judge(spec: Mapping[str, Any], evidence: Evidence, quick: bool) -> Judgement:
    try:
        adapter = Adapter(dict(spec), "candidate")
    except (AdapterError, RecursionError) as exc:
        return Judgement(0.0, why=str(exc))
    runs = evidence.runs(adapter)
    if not runs:
        return Judgement(0.0, why="no run is found")
    read = [_read(spec, adapter, run, evidence, quick) for run in (runs[:6] if quick else runs)]
    evidence.work += _MAKING + sum(1 + len(one.records) / 16 + (len(one.said) + len(one.told)) / 400 for one in read)
    whole = _terms(read)
    if not quick:
        whole["whole"] *= _inside_runs(adapter, runs, read, evidence)
    terms = dict(whole)
    thirds = [[one for i, one in enumerate(read) if (i % 3 == 2) == held] for held in (False, True)]
    if not quick and all(len(part) >= 2 for part in thirds):
        mine, held = map(_terms, thirds)
        terms["stable"] = 1 - sum(abs(mine[name] - held[name]) for name in mine) / len(mine)
    else:
        terms["stable"] = 0.5
    news = 1 - max(0.0, _alike(read) - _ALIKE)
    terms["read"] *= (0.5 + 0.5 * evidence.reach(adapter)) * news
    terms["once"] *= news
    n = sum(len(one.records) for one in read)
    if not n:
        return Judgement(0.0, terms, 0, "no record is read")
    total = sum(WEIGHTS[name] * value for name, value in terms.items()) / sum(WEIGHTS.values())
    named, parts = (named_runs(adapter, evidence), named_parts(spec)) if evidence.names else (0.0, 0.0)
    return Judgement(total, MappingProxyType(terms), n, named=named, parts=parts)


@dataclass(slots=True)
class _RunReading:
    """One run, read. said: words of the raw run; told: of its events; texts: by their hash, with their words; inner:
    share of the events' words that stand in long lists inside them; events, skipped, late: counted by the interpreter.
    unheard: the run ends with something that arrived, and no act of the agent behind it. is_log: it is one text, in
    which what is said twice stands twice. beside: one event holds the call and what was seen before it."""

    records: list[StepRecord]
    said: Counter[str]
    texts: Mapping[int, Sequence[str]]
    file: str = ""
    told: Counter[str] = field(default_factory=Counter)
    inner: float = 0.0
    events: int = 0
    skipped: int = 0
    late: int = 0
    unheard: bool = False
    is_log: bool = False
    beside: bool = False


def _read(spec: Mapping[str, Any], adapter: Adapter, run: FoundRun, evidence: Evidence, quick: bool) -> _RunReading:
    most = MOST_EVENTS // 3 if quick else MOST_EVENTS
    is_log = adapter.program.events.split is not None
    out = _RunReading([], *said(run.found.run, evidence, most, is_log), is_log=is_log)
    out.file = run.file
    out.beside = any(rule["emit"] in ("call", "step") and "observation" in rule for rule in spec["rules"])
    try:
        events = evidence.events(adapter, run)[:most]
        out.told, out.inner = (out.said, 0.0) if is_log else said_by(events, evidence, run, adapter, most)
        if is_log and events:
            events = [str(events[0])[:LONGEST_LOG]]
        parser = Parser(adapter.program, run.scope, live=False)
        for event in events:
            out.records.extend(parser.observe(event))
        out.records.extend(parser.end())
        out.unheard = parser._machine.has_pending
    except PrefixGuardError:
        return out
    except Exception:  # a sample is what strangers wrote
        return out
    out.events = max(1, parser.gaps.events)
    for name, n in parser.counters.items():
        if name.startswith("skipped: "):
            out.skipped += n
        elif name == "late_results":
            out.late = n
    return out


def said(
    value: Any, evidence: Evidence, most: int, is_log: bool = False
) -> tuple[Counter[str], dict[int, Sequence[str]]]:
    """Words of what a run or document says, of its texts each once, clipped as records are; and the texts by their
    hash, with the words of each. is_log: one text holds all events, so it counts whole; the clocks and counters
    of its lines do not."""
    key = ("said", id(value), most, is_log)
    if key not in evidence.cache:
        seen: dict[int, Sequence[str]] = {}
        is_text = is_log and isinstance(value, dict) and value.keys() >= {"text", "body", "section"}
        for text in _texts(value["body"] if is_text else value, most):
            if hash(text) in seen:
                continue
            found: Sequence[str] = words(text)
            if is_log:
                found = [word for word in _WORD.findall(text[:LONGEST_LOG].lower()) if not word.isdigit()]
            seen[hash(text)] = found
        news = seen.values() if is_log else _news(seen.values())
        evidence.cache[key] = Counter(word for found in news for word in found), seen, value
    ready: tuple[Counter[str], dict[int, Sequence[str]], Any] = evidence.cache[key]
    return ready[:2]


def _news(texts: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    """Words of texts, of a text that is put together from others, such as a prompt with all of the talk so far or a
    reply with the call in it, only what is new. That texts are alike does not count: the others stand in it whole."""
    known: dict[Sequence[str], list[Sequence[str]]] = defaultdict(list)
    for found in sorted(texts, key=len):
        told = [False] * len(found)
        i = 0
        while i <= len(found) - _TOGETHER:
            inner = max((one for one in known.get(found[i : i + _TOGETHER], ()) if found[i : i + len(one)] == one),
                        key=len, default=())  # fmt: skip
            told[i : i + len(inner)] = [True] * len(inner)
            i += max(1, len(inner))
        if len(found) >= _TOGETHER and len(known[found[:_TOGETHER]]) < _BEGIN_ALIKE:
            known[found[:_TOGETHER]].append(found)
        is_made = sum(told) >= _COMPOSED * len(found)
        yield [word for word, again in zip(found, told, strict=True) if not again] if is_made else found


def said_by(
    events: list[Any], evidence: Evidence, run: FoundRun, adapter: Adapter, most: int
) -> tuple[Counter[str], float]:
    """Words of the events of a run, as `said` has those of all of it; and the share of them that stands in lists of
    four and more inside an event, and nowhere before: high where the events are runs."""
    key = ("events", id(run), canonical(json.loads(adapter.to_bytes())["events"]), most)
    if key not in evidence.cache:
        seen: dict[int, tuple[bool, Sequence[str]]] = {}
        source = adapter.program.events
        if source.levels:
            events = [inner for event in events for inner, *_ in expand(source, copy(run.scope), event)]
        events = [opened(event, source) for event in events]
        placed = [one for event in events for one in _placed_texts(event, most)]
        for is_deep, text in sorted(placed, key=lambda one: one[0]):  # what stands outside lists is no list's
            seen.setdefault(hash(text), (is_deep, words(text)))
        counts = Counter(word for found in _news([found for _, found in seen.values()]) for word in found)
        deep = sum(len(found) for is_deep, found in seen.values() if is_deep)
        evidence.cache[key] = counts, deep / max(1, sum(len(found) for _, found in seen.values()))
    ready: tuple[Counter[str], float] = evidence.cache[key]
    return ready


def _placed_texts(value: Any, most: int, depth: int = 0) -> Iterator[tuple[bool, str]]:
    """Texts of an event, with whether each stands in a list of four and more."""
    if isinstance(value, dict) and depth < _DEEPEST:
        for item in value.values():
            yield from _placed_texts(item, most, depth + 1)
    elif isinstance(value, list) and depth < _DEEPEST and (len(value) < 4 or depth == 0):
        for item in value:
            yield from _placed_texts(item, most, depth + 1)
    else:
        yield from ((isinstance(value, list), text) for text in _texts(value, most, depth))


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[str, ...]:
    """Words of a text, clipped to head and tail as fields of records are."""
    if len(text) > _HEAD + _TAIL:
        text = f"{text[:_HEAD]} {text[-_TAIL:]}"
    return tuple(_WORD.findall(text.lower()))


def _texts(value: Any, most: int, depth: int = 0) -> Iterator[str]:
    """Texts of several words inside a value, JSON in strings opened; of lists the first `most` elements."""
    if isinstance(value, str):
        inner = opened_json(value) if len(value) > 30 and depth < _DEEPEST else None
        if inner is not None:
            yield from _texts(inner, most, depth + 1)
        elif value.count(" ") + value.count("\n") >= FEWEST_WORDS - 1 or (len(value) > 4 and not value.isascii()):
            yield value
    elif isinstance(value, dict | list) and depth < _DEEPEST:
        for item in value.values() if isinstance(value, dict) else value[:most]:
            yield from _texts(item, most, depth + 1)


def _alike(read: Sequence[_RunReading]) -> float:
    """Share of the words that another run of the same document said before; of texts that not all runs have."""
    runs = Counter(text for one in read for text in one.texts)
    common = {text for text, n in runs.items() if n >= 0.8 * len(read)}
    before: dict[str, set[int]] = defaultdict(set)
    again = whole = 0
    for one in read:
        known = before[one.file]
        for text, found in one.texts.items():
            if text not in common:
                whole += len(found)
                again += len(found) * (text in known)
        known.update(one.texts)
    return again / whole if whole else 0.0


def _inside_runs(adapter: Adapter, runs: Sequence[FoundRun], read: Sequence[_RunReading], evidence: Evidence) -> float:
    """Share of the words of the runs' documents that stands in runs."""
    words_in: dict[str, list[int]] = defaultdict(list)
    for run, one in zip(runs, read, strict=True):
        words_in[run.file].append(one.said.total())
    inside = whole = 0.0
    numbers = evidence.numbers(adapter)
    for path, counts in words_in.items():
        if path in evidence.values:
            inside += sum(counts) / len(counts) * numbers[path]
            whole += said(evidence.values[path], evidence, MOST_EVENTS)[0].total()
    return min(1.0, inside / whole) if whole else 1.0


def _terms(read: Sequence[_RunReading]) -> dict[str, float]:
    records = [record for one in read for record in one.records]
    explained = total = doubled = written = again_and_again = within = inside = 0
    everywhere = Counter(word for one in read for word in one.said)
    boiler = {word for word, n in everywhere.items() if len(read) >= 4 and n == len(read)}
    if len(boiler) == len(everywhere):  # the runs say nothing else
        boiler = set()
    runs_of = Counter(text for one in read for text in one.texts)
    often = {text for text, n in runs_of.items() if n >= max(3, PROMPTED * len(read))}
    for one in read:
        prompts = Counter(word for text in often & one.texts.keys() if len(one.texts[text]) >= LONG_PROMPT
                          for word in one.texts[text])  # fmt: skip
        told: Counter[str] = Counter()
        given: Counter[str] = Counter()
        seen: set[int] = set()
        for record in one.records:
            (told if len(record.arguments) > _LONG else given).update(words(record.arguments))
            if len(record.arguments) > _SHORT and (
                record.arguments in record.action or record.arguments in record.observation
            ):  # what says the call is said with it, and was not seen before it
                told.update(words(record.arguments))
            same = hash((record.tool, record.arguments, record.result))
            for name in ("observation", "action", "result"):
                text = getattr(record, name)
                again = (
                    not one.is_log and hash(text) in seen and (len(text) < 80 or same in seen)
                )  # it said or did the same again
                if text and not again:
                    seen.add(hash(text))
                    told.update(words(text))
            seen.add(same)
            whole = hash((record.tool, record.arguments, record.result, record.action))
            again_and_again += whole in seen
            seen.add(whole)
        for word, n in (one.said - prompts).items():
            if word not in boiler:
                total += n
                explained += min(n, told.get(word, 0) + given.get(word, 0))
        for word, n in (one.told - prompts).items():
            if word not in boiler:
                inside += n
                within += min(n, told.get(word, 0) + given.get(word, 0))
        written += told.total()
        doubled += sum(max(0, n - one.said.get(word, 0)) for word, n in told.items() if word in one.said)
    calls = [record for record in records if record.tool not in ("", "respond")]
    return {
        "explained": within / inside if inside else 0.5,
        "whole": explained / total if total else 0.5,
        "once": (1 - min(1.0, doubled / written)) * (1 - max(0.0, again_and_again / len(records) - 0.1))
        if written
        else 0.0,
        "answered": _answered(read, len(calls)),
        "tools": _tools(calls),
        "arguments": _arguments(calls),
        "turns": _turns(read),
        "grain": _grain(read, explained / max(1, total)),
        "taken": 1 - min(1.0, sum(one.skipped for one in read) / max(1, sum(one.events for one in read))),
        "read": _several(read),
    }


def _grain(read: Sequence[_RunReading], explained: float) -> float:
    """Do records hold the texts of one step each, and events no runs?"""
    texts = explained * sum(len(one.texts) for one in read)
    inner = sum(one.inner for one in read) / len(read)
    return min(1.0, 7 * sum(len(one.records) for one in read) / max(1.0, texts)) * (1 - max(0.0, inner - 0.3))


def _answered(read: Sequence[_RunReading], n_calls: int) -> float:
    """Calls that have a result, and results that have a call."""
    if not n_calls:
        return 0.4
    answered = 0.0
    own, own_seen = _own_spoken(read)
    results = Counter(r.result for one in read for r in one.records if r.result and r.tool not in ("", "respond"))
    stamps = {text for text, n in results.items() if len(text) < _STAMP and n >= max(8, 0.5 * n_calls)}
    for one in read:
        for i, record in enumerate(one.records):
            if record.tool in ("", "respond"):
                continue
            behind = one.records[i + 1].observation if i + 1 < len(one.records) else ""
            told = record.result and not own and not _echoes(record)
            before = one.records[i - 1] if i else record
            same = before.result == record.result and before.arguments != record.arguments  # it may answer no call
            last = i + 1 == len(one.records) and not record.result
            much = 0.5 if record.result in stamps else 0.7 if same else 1.0
            answered += much if told or last else 0.4 if behind and not own_seen else 0.0
    return answered / (n_calls + sum(one.late for one in read))


def _own_spoken(read: Sequence[_RunReading]) -> tuple[bool, bool]:
    """Does somebody speak of itself in most results, and in most of what steps have seen before their call? What comes
    back from a call says no `I will`."""
    records = [record for one in read for record in one.records]
    seen = [record.observation for record in records if record.observation] if read[0].beside else []
    return own_share([r.result for r in records if r.result]) >= LEAST_OWN, own_share(seen) >= LEAST_OWN


def _echoes(record: StepRecord) -> bool:
    """Does the result only say the call again, or all of it with its name?"""
    said, given = set(words(record.result[:600])), set(words(record.arguments[:600]))
    if len(said) < 3 or len(given) < 2:
        return False
    whole = len(said & given) >= 0.9 * len(given) and set(words(record.tool)) <= said
    whole = whole and len(said) <= 3 * len(given) + 5
    if whole or len(said & given) >= 0.9 * len(said):
        return True
    values = (opened_json(record.result) if record.result[:1] == "{" else None) or {}
    return any(canonical(opened_json(v) if isinstance(v, str) else v) == record.arguments for v in values.values())


def _tools(calls: Sequence[StepRecord]) -> float:
    if not calls:
        return NO_CALLS
    n = len(calls)
    counts = Counter(record.tool for record in calls)
    named = sum(k for tool, k in counts.items() if _is_name(tool)) / n
    few = min(1.0, 2 * math.sqrt(n) / len(counts))
    keys: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    whole: Counter[tuple[str, ...]] = Counter()
    for record in calls:
        shape = tuple(re.findall(r'[{,]"(\w+)":', record.arguments[:400])) if record.arguments[:1] == "{" else ()
        keys[record.tool][shape] += 1
        whole[shape] += 1
    told = sum(max(shapes.values()) for shapes in keys.values()) / n
    several = 1.0 if len(counts) > 1 else 0.9
    return named * (0.6 + 0.2 * few + 0.2 * told) * several


def _is_name(tool: str) -> bool:
    digits = sum(c.isdigit() for c in tool)
    speaks = part_of(tool)
    if (
        speaks is not None
        and len(name_words(tool)) == 1
        and speaks[0] in (Part.USER, Part.SAY, Part.SYSTEM)
        and speaks[1] >= 0.9
    ):
        return False  # who speaks, not what is called
    return bool(_NAME.match(tool)) and tool.count(" ") <= 3 and digits <= max(4, len(tool) // 3)


def _arguments(calls: Sequence[StepRecord]) -> float:
    if not calls:
        return 0.4
    worth = 0.0
    for record in calls:
        text = record.arguments
        spelled = text[:2] == '{"' and text[-1:] == "}"
        measured = spelled and ':"' not in text and "[" not in text  # figures alone are seldom what one asks for
        torn = 0.3 if _TORN.search(text) else 0.9  # an end without a beginning was cut elsewhere
        worth += 0.6 if measured else 1.0 if spelled else 0.5 if text in ("", "{}") else torn
    return worth / len(calls)


def _turns(read: Sequence[_RunReading]) -> float:
    """Between two acts one thing arrives, a result or something else; the first act of a run has seen something; a
    record is of an agent, and so is the end."""
    pairs = between = starts = acts = n = 0.0
    own, own_seen = _own_spoken(read)
    for one in read:
        records = one.records
        if not records:
            continue
        starts += bool(records[0].observation) and not own_seen
        for i, record in enumerate(records):
            n += 1
            acts += bool(record.action or record.tool not in ("", "respond"))
            if i:
                pairs += 1
                result, seen = bool(records[i - 1].result) and not own, bool(record.observation) and not own_seen
                other = bool(record.agent) and record.agent != records[i - 1].agent  # another one spoke
                between += 1.0 if result != seen or (other and not result) else 0.5 if result else 0.0
    if not n:
        return 0.0
    runs = sum(bool(one.records) for one in read)
    ends = sum(bool(one.records) and not one.unheard for one in read)
    return 0.5 * (between / pairs if pairs else 0.3) + 0.25 * acts / n + 0.15 * starts / runs + 0.1 * ends / runs


def _several(read: Sequence[_RunReading]) -> float:
    """Runs that give records, and several of them."""
    return sum(0.0 if not one.records else 0.5 if len(one.records) == 1 else 1.0 for one in read) / len(read)
