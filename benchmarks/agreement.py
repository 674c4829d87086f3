"""How far two readings of the same runs agree: two adapters', or an adapter's and the truth.

    python benchmarks/agreement.py RUNS ADAPTER OTHER     OTHER: an adapter, or a truth.jsonl

Runs are matched by equal content, then by place, then by what they share; the records of matched runs are aligned in
order (the alignment that keeps most content in common). Two records are the same step if at least half of their words
are common, in whichever fields the words stand, or nine tenths of those of the deed (tool, arguments, action). Two
conventions that are no errors are counted, not hidden: `split speech` (what the agent says before a call as a record of
its own; `records_joined` is the agreement with such a record counted as part of its call) and `result as observation`
(what came back stands in the next record's observation).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from prefixguard.stepview import FIELDS, StepRecord, load_adapter, read_runs
from prefixguard.trace import Run

#: Records are the same step from this share of common words on.
SAME = 0.5
#: Texts are the same from this share on.
EQUAL_TEXT = 0.9
_MOST_WORDS = 400
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Reading:
    """One run as somebody read it. place: where it stands, for matching; task: None where none is named."""

    place: str
    task: str | None
    outcome: str
    records: tuple[StepRecord, ...]


@dataclass(frozen=True)
class Agreement:
    """Shares in [0, 1]; None where there is nothing to compare.

    runs: 2 matched / (runs of both). records: 2 same steps / (records of both), of all runs. records_joined: split
    speech counted as part of its call. tools, tools_renamed (each name may stand for another one), actors, status:
    equal, of same steps. arguments: equal, of same steps with any; results: equal text, of same steps with any.
    observations, actions: mean share of common words, of same steps with any. outcomes: equal, of matched runs.
    tasks: adjusted Rand index of the partitions of matched runs. identical: nothing differs at all.
    """

    runs: float
    records: float
    records_joined: float
    tools: float | None
    tools_renamed: float | None
    actors: float | None
    arguments: float | None
    results: float | None
    status: float | None
    observations: float | None
    actions: float | None
    outcomes: float | None
    tasks: float | None
    identical: bool
    counts: dict[str, int]


def readings(runs: Iterable[Run[StepRecord]], root: Path | None = None) -> list[Reading]:
    """Runs of an adapter. root: the folder they are in, left out of places."""
    start = f"{root}/" if root is not None else ""
    return [Reading(r.source.removeprefix(start), r.task_id, r.outcome.value, r.records) for r in runs]


def read_truth(path: Path) -> list[Reading]:
    """A file of truth: lines as of `parse --json`, with run, file and position instead of run_id."""
    runs: dict[int, list[dict]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        runs[one["run"]].append(one)
    return [
        Reading(
            f"{lines[0]['file']} {lines[0]['position']}",
            lines[0]["task_id"],
            lines[0]["outcome"],
            tuple(StepRecord(o["step"], agent="", **{name: o[name] for name in FIELDS}) for o in lines),
        )
        for lines in runs.values()
    ]


class _Words:
    """Words of texts, each text once."""

    def __init__(self) -> None:
        self._known: dict[str, Counter[str]] = {}

    def of(self, text: str) -> Counter[str]:
        found = self._known.get(text)
        if found is None:
            words = _WORD.findall(text.lower())[:_MOST_WORDS]
            found = Counter(words or ([text.strip()] if text.strip() else []))
            if len(self._known) > 50_000:
                self._known.clear()
            self._known[text] = found
        return found

    def common(self, a: str, b: str) -> float:
        """Share of common words; 1 for equal texts."""
        return 1.0 if a == b else dice(self.of(a), self.of(b))


def dice(a: Counter[str], b: Counter[str]) -> float:
    """Twice the common words over all words; 0 where there is none."""
    total = a.total() + b.total()
    if len(b) < len(a):
        a, b = b, a
    return 2 * sum(min(n, b[word]) for word, n in a.items() if word in b) / total if total else 0.0


def agree(a: Sequence[Reading], b: Sequence[Reading]) -> Agreement:
    """Agreement of two readings of the same runs, in any order. Symmetric but for the direction of renaming."""
    words = _Words()
    pairs = _match_runs(a, b, words)
    counts: Counter[str] = Counter(
        runs_a=len(a),
        runs_b=len(b),
        runs_matched=len(pairs),
        records_a=sum(len(run.records) for run in a),
        records_b=sum(len(run.records) for run in b),
    )
    steps: list[tuple[StepRecord, StepRecord]] = []
    for i, j in pairs:
        one, other = a[i].records, b[j].records
        aligned = _align(one, other, words)
        same = [(x, y) for x, y in aligned if x is not None and y is not None]
        steps += [(one[x], other[y]) for x, y in same]
        counts["split_speech"] += _split_speech(one, other, aligned, words)
        counts["result_as_observation"] += _shifted(one, other, same, words)
    counts["records_same"] = len(steps)
    both = counts["records_a"] + counts["records_b"]
    matched = [(a[i], b[j]) for i, j in pairs]
    return Agreement(
        runs=_share(2 * len(pairs), len(a) + len(b)),
        records=_share(2 * len(steps), both),
        records_joined=_share(2 * len(steps), both - counts["split_speech"]),
        tools=_mean([x.tool == y.tool for x, y in steps]),
        tools_renamed=_renamed([(x.tool, y.tool) for x, y in steps]),
        actors=_mean([x.actor == y.actor for x, y in steps]),
        arguments=_mean([x.arguments == y.arguments for x, y in steps if x.arguments or y.arguments]),
        results=_mean([words.common(x.result, y.result) >= EQUAL_TEXT for x, y in steps if x.result or y.result]),
        status=_mean([x.status == y.status for x, y in steps]),
        observations=_mean(
            [words.common(x.observation, y.observation) for x, y in steps if x.observation or y.observation]
        ),
        actions=_mean([words.common(x.action, y.action) for x, y in steps if x.action or y.action]),
        outcomes=_mean([x.outcome == y.outcome for x, y in matched]),
        tasks=rand_index([(x.task, y.task) for x, y in matched]) if matched else None,
        identical=len(a) == len(b) == len(pairs)
        and all(_content(x) == _content(y) and x.outcome == y.outcome for x, y in matched)
        and rand_index([(x.task, y.task) for x, y in matched]) == 1.0,
        counts=dict(counts),
    )


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 1.0


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None


def _content(run: Reading) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(getattr(record, name) for name in FIELDS) for record in run.records)


# --- runs


def _match_runs(a: Sequence[Reading], b: Sequence[Reading], words: _Words) -> list[tuple[int, int]]:
    """Pairs of positions, each run at most once."""
    pairs: list[tuple[int, int]] = []
    left, right = dict.fromkeys(range(len(a))), dict.fromkeys(range(len(b)))
    keys = (lambda run: (run.place, _content(run)), lambda run: run.place, _content)
    for key in keys:
        waiting: dict[object, list[int]] = defaultdict(list)
        for j in right:
            waiting[key(b[j])].append(j)
        for i in list(left):
            found = waiting.get(key(a[i]))
            if found and (key is not keys[1] or _overlap(_bag(a[i], words), _bag(b[found[0]], words)) >= 0.3):
                j = found.pop(0)
                pairs.append((i, j))
                del left[i], right[j]
    bags_a = {i: _bag(a[i], words) for i in left}
    bags_b = {j: _bag(b[j], words) for j in right}
    spread = Counter(word for bag in bags_b.values() for word in bag)
    where: dict[str, list[int]] = defaultdict(list)
    rare = max(20, len(bags_b) // 20)
    for j, bag in bags_b.items():
        for word in bag:
            if spread[word] <= rare:
                where[word].append(j)
    scored = []
    for i, bag in bags_a.items():
        votes = Counter(j for word in bag for j in where.get(word, ()))
        for j, _ in votes.most_common(8):
            score = _overlap(bag, bags_b[j])
            if score >= 0.3:
                scored.append((-score, i, j))
    for _, i, j in sorted(scored):
        if i in left and j in right:
            pairs.append((i, j))
            del left[i], right[j]
    return sorted(pairs)


def _bag(run: Reading, words: _Words) -> frozenset[str]:
    out: set[str] = set()
    for record in run.records[:60]:
        for text in (record.arguments, record.action, record.result, record.observation):
            out.update(words.of(text))
    return frozenset(out)


def _overlap(a: frozenset[str], b: frozenset[str]) -> float:
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 0.0


# --- steps


def _align(a: Sequence[StepRecord], b: Sequence[StepRecord], words: _Words) -> list[tuple[int | None, int | None]]:
    """Positions side by side in order; None where one reading has no such step."""
    start, end = 0, 0
    while start < min(len(a), len(b)) and _same_texts(a[start], b[start]):
        start += 1
    while end < min(len(a), len(b)) - start and _same_texts(a[-1 - end], b[-1 - end]):
        end += 1
    head: list[tuple[int | None, int | None]] = [(k, k) for k in range(start)]
    tail: list[tuple[int | None, int | None]] = [(len(a) - end + k, len(b) - end + k) for k in range(end)]
    inner_a, inner_b = a[start : len(a) - end], b[start : len(b) - end]
    bags_a, bags_b = [_words_of(r, words) for r in inner_a], [_words_of(r, words) for r in inner_b]
    n, m = len(bags_a), len(bags_b)
    alike = [[_alike(x, y) + 0.01 * (x[2] == y[2]) for y in bags_b] for x in bags_a]
    best = [[0.0] * (m + 1) for _ in range(n + 1)]
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            best[i][j] = max(best[i + 1][j], best[i][j + 1])
            if alike[i][j] >= SAME:
                best[i][j] = max(best[i][j], best[i + 1][j + 1] + alike[i][j])
    middle: list[tuple[int | None, int | None]] = []
    i = j = 0
    while i < n or j < m:
        if i < n and j < m and alike[i][j] >= SAME and best[i][j] == best[i + 1][j + 1] + alike[i][j]:
            middle.append((start + i, start + j))
            i, j = i + 1, j + 1
        elif j >= m or (i < n and best[i][j] == best[i + 1][j]):
            middle.append((start + i, None))
            i += 1
        else:
            middle.append((None, start + j))
            j += 1
    return head + middle + tail


def _same_texts(x: StepRecord, y: StepRecord) -> bool:
    return (x.tool, x.arguments, x.action, x.result) == (y.tool, y.arguments, y.action, y.result)


def _words_of(record: StepRecord, words: _Words) -> tuple[Counter[str], Counter[str], str]:
    """Words of what was done, words of that and of what came back, and the tool."""
    done: Counter[str] = Counter()
    for text in (record.tool, record.arguments, record.action):
        done.update(words.of(text))
    return done, done + words.of(record.result), record.tool


def _alike(x: tuple[Counter[str], Counter[str], str], y: tuple[Counter[str], Counter[str], str]) -> float:
    """Common words; the same deed is the same step even if what came back differs (that is a figure of its own)."""
    whole = dice(x[1], y[1])
    return max(whole, SAME) if whole >= SAME or dice(x[0], y[0]) >= EQUAL_TEXT else whole


def _split_speech(
    a: Sequence[StepRecord], b: Sequence[StepRecord], aligned: list[tuple[int | None, int | None]], words: _Words
) -> int:
    """Records of one reading that the other has as the action of the call after them."""
    found = 0
    for (x, y), (next_x, next_y) in pairwise(aligned):
        if next_x is None or next_y is None:
            continue
        if y is None and x is not None:
            found += _is_part(a[x], b[next_y], words)
        elif x is None and y is not None:
            found += _is_part(b[y], a[next_x], words)
    return found


def _is_part(speech: StepRecord, of: StepRecord, words: _Words) -> bool:
    said = words.of(speech.action)
    inside = words.of(of.action)
    common = sum(min(n, inside[word]) for word, n in said.items())
    return bool(said) and not speech.result and common >= 0.8 * said.total()


def _shifted(a: Sequence[StepRecord], b: Sequence[StepRecord], same: list[tuple[int, int]], words: _Words) -> int:
    """Results of one reading that the other has in a later observation."""
    found = 0
    for x, y in same:
        for one, rest, other in ((a[x], a[x + 1 : x + 3], b[y]), (b[y], b[y + 1 : y + 3], a[x])):
            wanted = words.of(other.result)
            if wanted and not one.result:
                seen = sum((words.of(record.observation) for record in rest), Counter())
                found += sum(min(n, seen[w]) for w, n in wanted.items()) >= 0.8 * wanted.total()
    return found


def _renamed(pairs: list[tuple[str, str]]) -> float | None:
    """Share of steps whose names agree if each name of one reading may stand for one of the other."""
    together = Counter(pairs)
    taken_a: set[str] = set()
    taken_b: set[str] = set()
    good = 0
    for (x, y), n in sorted(together.items(), key=lambda item: (-item[1], item[0])):
        if x not in taken_a and y not in taken_b:
            taken_a.add(x)
            taken_b.add(y)
            good += n
    return round(good / len(pairs), 4) if pairs else None


def rand_index(pairs: Sequence[tuple[str | None, str | None]]) -> float:
    """Adjusted Rand index of two partitions; a run without a task is a part of its own.

    >>> rand_index([("x", "1"), ("x", "1"), ("y", "2")])
    1.0
    """
    labels = [(x if x is not None else f"\0{k}", y if y is not None else f"\0{k}") for k, (x, y) in enumerate(pairs)]

    def together(counter: Counter) -> int:
        return sum(n * (n - 1) // 2 for n in counter.values())

    both = together(Counter(labels))
    one, other = together(Counter(x for x, _ in labels)), together(Counter(y for _, y in labels))
    total = len(labels) * (len(labels) - 1) // 2
    if one == other == both:
        return 1.0
    expected = one * other / total
    highest = (one + other) / 2
    return round((both - expected) / (highest - expected), 4) if highest != expected else 0.0


def worst(a: Sequence[Reading], b: Sequence[Reading], most: int = 5) -> list[str]:
    """Examples of what differs, for a person who looks for the cause."""
    words = _Words()
    out: list[str] = []
    pairs = _match_runs(a, b, words)
    for side, runs, seen in (("first", a, {i for i, _ in pairs}), ("second", b, {j for _, j in pairs})):
        out += [f"run only in the {side} reading: {run.place}" for k, run in enumerate(runs) if k not in seen][:most]
    kinds: Counter[str] = Counter()
    for i, j in pairs:
        for x, y in _align(a[i].records, b[j].records, words):
            one = a[i].records[x] if x is not None else None
            other = b[j].records[y] if y is not None else None
            for name in ("record",) if one is None or other is None else FIELDS:
                if one is not None and other is not None and getattr(one, name) == getattr(other, name):
                    continue
                kinds[name] += 1
                if kinds[name] <= most:
                    show = [repr(r if name == "record" else getattr(r, name, None))[:300] for r in (one, other)]
                    out.append(f"{name} at {a[i].place}:\n    {show[0]}\n    {show[1]}")
        if a[i].outcome != b[j].outcome:
            kinds["outcome"] += 1
            if kinds["outcome"] <= most:
                out.append(f"outcome at {a[i].place}: {a[i].outcome} / {b[j].outcome}")
    return [*out, f"differences: {dict(kinds)}"] if kinds else out


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("adapter")
    parser.add_argument("other")
    parser.add_argument("--show", type=int, default=0, help="so many examples of each difference")
    args = parser.parse_args()
    one = readings(read_runs(args.runs, load_adapter(args.adapter)))
    other = (
        read_truth(Path(args.other))
        if args.other.endswith(".jsonl")
        else readings(read_runs(args.runs, load_adapter(args.other)))
    )
    print(json.dumps(asdict(agree(one, other)), indent=1))
    if args.show:
        print("\n".join(worst(one, other, args.show)), file=sys.stderr)


if __name__ == "__main__":
    main()
