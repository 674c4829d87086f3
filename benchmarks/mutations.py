"""Folders of runs, changed by a seeded program so that they say the same in another form.

    python benchmarks/mutations.py RUNS TARGET KIND [--adapter NAME] [--layout NAME] [--seed N]

What is read from the changed folder is compared with what is read from the unchanged one: the steps, tools, arguments,
results, outcomes and tasks are the same, only where they stand differs. A kind that a layout has nothing for (a
notebook has no keys) changes nothing and says so.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agreement import Reading, readings

from prefixguard.stepview import canonical, load_adapter, read_runs

KINDS = ("rename_keys", "nest", "split_files", "drop_call_ids", "shuffle_fields", "noise_fields", "move_outcome")


@dataclass(frozen=True)
class Layout:
    """What the program must know of a format to change it.

    runs: where a document's runs are: "" the document (or the line), "[*]" its elements, ".*" its values, or the name
    of the key with the list; "@key" groups lines by that key (lines are events), or is "@" where the file is one run.
    events: names of the keys whose lists hold events; "@" for lines. outcome: paths in the run ("reward",
    "turn_history.rewards"), empty where the outcome stands beside the run already, or is text.
    """

    runs: str = ""
    events: tuple[str, ...] = ()
    outcome: tuple[str, ...] = ()


LAYOUTS: dict[str, Layout] = {
    "tau_bench": Layout("[*]", ("traj",), ("reward", "info")),
    "tau2": Layout("simulations", ("messages",), ("reward_info", "review", "user_only_review")),
    "sweagent": Layout("", ("trajectory", "history")),
    "minisweagent": Layout("", ("messages",)),
    "terminal_bench": Layout(),
    "webshop_react": Layout(),
    "mind2web_abp": Layout("", (), ("result_status", "final_result_response")),
    "intercode": Layout(".*", (), ("summary", "turn_history.rewards", "info")),
    "reflexion": Layout(),
    "whoandwhen": Layout("", ("history",), ("is_correct", "is_corrected")),
    "sentinel": Layout("@", ("@",)),
    "otel_genai": Layout("@trace", ("spans",)),
    "otel_genai_old": Layout("", ("spans",)),
    "openinference": Layout("@", ("spans",)),
    "atif": Layout("", ("steps",)),
    "claude_code": Layout("@", ("@",)),
    "openai_agents": Layout("@trace_id", ("@",)),
    "openai_responses": Layout("", ("items",), ("grade",)),
    "a2a": Layout("", ("history",), ("status",)),
    "mcp": Layout("@", ("@",)),
    "anthropic_messages": Layout("", ("messages",), ("grade",)),
    "langgraph": Layout("", ("messages",), ("evaluation",)),
    "langgraph_dumpd": Layout("", ("messages",), ("feedback_stats",)),
    "smolagents": Layout("", ("steps",), ("correct",)),
    "autogen": Layout("", ("messages",)),
    "inspect": Layout("samples", ("messages",), ("scores",)),
    "openhands": Layout("", ("history",), ("test_result",)),
}


@dataclass(frozen=True)
class Mutation:
    """A changed folder. reference: what must be read from it. changed: how many places were."""

    kind: str
    folder: Path
    reference: tuple[Reading, ...]
    changed: int


@dataclass
class _File:
    """A file of the folder. lines: values of a JSONL file, or one value; None where it is text."""

    path: str
    lines: list[Any] | None
    jsonl: bool
    text: str


def mutate(
    source: Path, target: Path, kind: str, layout: Layout, reference: Sequence[Reading], *, seed: int = 0
) -> Mutation:
    """Write the changed copy of `source` to `target`, which must not exist. reference: the reading of the source, its
    places relative to it. The same seed gives the same bytes."""
    if kind not in KINDS:
        raise ValueError(f"no mutation {kind!r}; there are {', '.join(KINDS)}")
    dice = random.Random(f"{kind}:{seed}")
    files = [_read(path, source) for path in sorted(source.rglob("*")) if path.is_file()]
    held = {_place(run.place)[0] for run in reference}
    arguments = {r.arguments for run in reference for r in run.records if r.arguments.startswith(("{", "["))}
    work = _Work(files, held, arguments, layout, reference, dice)
    changed = getattr(work, kind)()
    for file in work.files:
        path = target / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_text_of(file), encoding="utf-8")
    return Mutation(kind, target, tuple(reference), changed)


def _read(path: Path, root: Path) -> _File:
    name = path.relative_to(root).as_posix()
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        return _File(name, [json.loads(text)], False, "")
    except ValueError:
        pass
    try:
        return _File(name, [json.loads(line) for line in text.splitlines() if line.strip()], True, "")
    except ValueError:
        return _File(name, None, False, text)


def _text_of(file: _File) -> str:
    if file.lines is None:
        return file.text
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in file.lines)


def _place(place: str) -> tuple[str, int, str]:
    """File, position from 1 and group of a reading's place."""
    found = re.fullmatch(r"(.*?) (?:(?:run |line )?(\d+)|group (.+))", place)
    return (found[1], int(found[2] or 0), found[3] or "") if found else (place, 1, "")


def _is_attribute(value: dict[str, Any]) -> bool:
    return set(value) == {"key", "value"} and isinstance(value["key"], str) and isinstance(value["value"], dict)


class _Work:
    """One mutation of one folder."""

    def __init__(
        self, files: list[_File], held: set[str], arguments: set[str], layout: Layout, reference: Sequence[Reading],
        dice: random.Random,
    ) -> None:  # fmt: skip
        self.files = files
        self.held = held
        self.arguments = arguments
        self.layout = layout
        self.reference = reference
        self.said = {text for run in reference for r in run.records for text in (r.result, r.action, r.observation)}
        self.dice = dice
        self.changed = 0

    # --- names

    def rename_keys(self) -> int:
        """All keys get names that mean nothing, the same key the same one; those of arguments stay. In text, the words
        that begin many lines."""
        names: Counter[str] = Counter()
        for file in self.files:
            self._collect(file.lines if file.lines is not None else [], names)
        order = sorted(names)
        self.dice.shuffle(order)
        self.names = {name: f"k{i}" for i, name in enumerate(order, 1)}
        for file in self.files:
            if file.lines is not None:
                file.lines = [self._renamed(value) for value in file.lines]
            if file.lines is None or file.path.endswith(".ipynb"):
                self._rename_heads(file)
        return self.changed

    def _protected(self, value: Any) -> bool:
        return isinstance(value, dict | list) and bool(value) and canonical(value) in self.arguments

    def _collect(self, value: Any, names: Counter[str]) -> None:
        if isinstance(value, list):
            for one in value:
                self._collect(one, names)
        elif isinstance(value, dict) and not self._protected(value) and "nbformat" not in value:
            if _is_attribute(value):
                names.update(part for part in value["key"].split(".") if not part.isdigit())
                return
            for key, one in value.items():
                if not key.isdigit() and not key.endswith("Value"):
                    names[key] += 1
                self._collect(one, names)

    def _renamed(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._renamed(one) for one in value]
        if not isinstance(value, dict) or self._protected(value) or "nbformat" in value:
            return value
        if _is_attribute(value):
            self.changed += 1
            return {
                "key": ".".join(self.names.get(part, part) for part in value["key"].split(".")),
                "value": value["value"],
            }
        self.changed += len(value)
        return {self.names.get(key, key): self._renamed(one) for key, one in value.items()}

    def _rename_heads(self, file: _File) -> None:
        text = "".join(_outputs(file.lines[0])) if file.lines else file.text
        head = re.compile(r"(?m)^((?:\x1b\[[0-9;]*m)*)([A-Za-z][A-Za-z-]{2,20})(?= \d+:|:| \(step)")
        often = Counter(found[2] for found in head.finditer(text))
        known = sorted(word for word, n in often.items() if n >= 5)
        syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
        names = {w: "".join(random.Random(f"{w}:head").sample(syllables, 3)).capitalize() for w in known}

        def renamed(part: str) -> str:
            return head.sub(lambda m: m[1] + names.get(m[2], m[2]), part)

        if file.lines:
            _map_outputs(file.lines[0], renamed)
        else:
            file.text = renamed(file.text)
        self.changed += sum(often[word] for word in known)

    # --- forms

    def nest(self) -> int:
        """Documents and events each one object deeper."""

        def event(value: Any) -> Any:
            if isinstance(value, dict):
                self.changed += 1
                return {"entry": value}
            return value

        def walk(value: Any, name: str = "") -> Any:
            if isinstance(value, list):
                inner = [walk(one) for one in value]
                return [event(one) for one in inner] if name in self.layout.events else inner
            if isinstance(value, dict) and not self._protected(value):
                return {key: walk(one, key) for key, one in value.items()}
            return value

        for file in self._run_files():
            lines = [walk(value) for value in file.lines or []]
            if file.jsonl and "@" in self.layout.events:
                file.lines = [event(value) for value in lines]
            else:
                file.lines = [{"version": 3, "payload": value} for value in lines]
                self.changed += 1
        return self.changed

    def split_files(self) -> int:
        """A file a run."""
        for file in self._run_files():
            pieces = self._pieces(file)
            if pieces is None or len(pieces) < 2:
                continue
            self.files.remove(file)
            stem = re.sub(r"\.jsonl?$", "", file.path)
            for n, lines in enumerate(pieces, 1):
                grouped = self.layout.runs.startswith("@")
                self.files.append(_File(f"{stem}-{n:04d}.json{'l' if grouped else ''}", lines, grouped, ""))
            self.changed += len(pieces)
        return self.changed

    def _pieces(self, file: _File) -> list[list[Any]] | None:
        """The lines of each run of a file; None where the file is one run."""
        at = self.layout.runs
        lines = file.lines or []
        if at.startswith("@"):
            groups: dict[str, list[Any]] = defaultdict(list)
            for value in lines:
                groups[_group(value, at[1:])].append(value)
            return list(groups.values()) if at != "@" else None
        if file.jsonl and at == "":
            return [[value] for value in lines]
        document = lines[0] if lines else None
        if at == "[*]" and isinstance(document, list):
            return [[value] for value in document]
        if at == ".*" and isinstance(document, dict):
            return [[value] for value in document.values()]
        if at and isinstance(document, dict) and isinstance(document.get(at), list):
            others = {key: value for key, value in document.items() if key != at and key != "tasks"}
            return [[{**others, at.rstrip("s"): value}] for value in document[at]]
        return None

    def _run_files(self) -> list[_File]:
        return [
            file
            for file in self.files
            if file.lines is not None and file.path in self.held and not file.path.endswith(".ipynb")
        ]

    def shuffle_fields(self) -> int:
        """Keys of every object in another order."""

        def walk(value: Any) -> Any:
            if isinstance(value, list):
                return [walk(one) for one in value]
            if not isinstance(value, dict) or "nbformat" in value:
                return value
            keys = list(value)
            if not all(
                key.isdigit() for key in keys
            ):  # runs by number stay in order: position is part of what they say
                self.dice.shuffle(keys)
            self.changed += len(keys) > 1
            return {key: walk(value[key]) for key in keys}

        for file in self.files:
            if file.lines is not None:
                file.lines = [walk(value) for value in file.lines]
        return self.changed

    def noise_fields(self) -> int:
        """Fields that say nothing: constants, counters, ids, coins, long texts, on runs and events."""
        words = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "juniper", "kelp")
        counter = 0

        def noise(long: bool) -> dict[str, Any]:
            nonlocal counter
            counter += 1
            self.changed += 1
            out: dict[str, Any] = {
                "region": "north-4", "revision": counter, "beacon": str(uuid.UUID(int=self.dice.getrandbits(128))),
                "sampled": self.dice.random() < 0.5, "weight": round(self.dice.random(), 4),
            }  # fmt: skip
            if long:
                out["remark"] = " ".join(self.dice.choice(words) for _ in range(40))
                out["notice"] = "This file was written by the archive service. " * 6
            return out

        def mixed(value: dict[str, Any], long: bool) -> dict[str, Any]:
            extra = {key: one for key, one in noise(long).items() if key not in value}
            items = [*value.items(), *extra.items()]
            self.dice.shuffle(items)
            return dict(items)

        def walk(value: Any, name: str = "") -> Any:
            if isinstance(value, list):
                inner = [walk(one) for one in value]
                if name in self.layout.events:
                    inner = [mixed(one, n % 4 == 0) if isinstance(one, dict) else one for n, one in enumerate(inner)]
                return inner
            if isinstance(value, dict) and not self._protected(value):
                return {key: walk(one, key) for key, one in value.items()}
            return value

        for file in self._run_files():
            lines = [walk(value) for value in file.lines or []]
            if file.jsonl and "@" in self.layout.events:
                file.lines = [mixed(value, n % 4 == 0) for n, value in enumerate(lines)]
            elif not self.layout.runs.startswith("@"):
                file.lines = [self._each_run(value, file.jsonl, lambda run, _: mixed(run, True)) for value in lines]
            else:
                file.lines = lines
        return self.changed

    def _each_run(self, document: Any, jsonl: bool, change: Callable[[dict[str, Any], int], dict[str, Any]]) -> Any:
        at = self.layout.runs
        if at == "" or jsonl:
            return change(document, 1) if isinstance(document, dict) else document
        if at == "[*]" and isinstance(document, list):
            return [change(run, n) for n, run in enumerate(document, 1)]
        if at == ".*" and isinstance(document, dict):
            return {key: change(run, n) for n, (key, run) in enumerate(document.items(), 1)}
        if isinstance(document, dict) and isinstance(document.get(at), list):
            return {**document, at: [change(run, n) for n, run in enumerate(document[at], 1)]}
        return document

    # --- joins

    def drop_call_ids(self) -> int:
        """Ids that a call and its result share are gone from both."""
        for file in self._run_files():
            if self.layout.events == ():
                continue
            for scope in self._pieces(file) or [file.lines or []]:
                seen: dict[str, Counter[str]] = defaultdict(Counter)
                self._ids(scope, "", seen)
                joined = {
                    value for value, paths in seen.items()
                    if sum(paths.values()) > 1 and any(re.search(r"call|tool|use", p, re.I) for p in paths)
                }  # fmt: skip
                for n, value in enumerate(scope):
                    scope[n] = self._without(value, joined)
        return self.changed

    def _ids(self, value: Any, path: str, seen: dict[str, Counter[str]]) -> None:
        if isinstance(value, str):
            value = None if value in self.said else _inner(value)
        if isinstance(value, list):
            for one in value:
                self._ids(one, f"{path}[]", seen)
        elif isinstance(value, dict) and not self._protected(value):
            if _is_attribute(value) and _names_an_id(value["key"]):
                seen[str(value["value"].get("stringValue"))][f"{path}.{value['key']}"] += 1
                return
            for key, one in value.items():
                if isinstance(one, str) and _names_an_id(key):
                    seen[one][f"{path}.{key}"] += 1
                else:
                    self._ids(one, f"{path}.{key}", seen)

    def _without(self, value: Any, joined: set[str]) -> Any:
        if isinstance(value, str):
            inner = None if value in self.said else _inner(value)
            before = self.changed
            if inner is None or self._protected(inner):
                return value
            inner = self._without(inner, joined)
            return json.dumps(inner, ensure_ascii=False) if self.changed > before else value
        if isinstance(value, list):
            for n, one in enumerate(value):
                if isinstance(one, dict) and _is_attribute(one) and one["value"].get("stringValue") in joined:
                    one["value"] = {"stringValue": ""}
                    self.changed += 1
                value[n] = self._without(one, joined)
        elif isinstance(value, dict) and not self._protected(value):
            for key in list(value):
                if isinstance(value[key], str) and value[key] in joined and _names_an_id(key):
                    del value[key]
                    self.changed += 1
                else:
                    value[key] = self._without(value[key], joined)
        return value

    # --- outcome

    def move_outcome(self) -> int:
        """How a run ended is gone from it, and stands in a file beside it: in one list for files that are a run each,
        in a result.json for each run of a file of many."""
        if not self.layout.outcome:
            return 0
        told = {_place(run.place)[:2]: run.outcome for run in self.reference}
        lists: dict[str, dict[str, list[str]]] = {}
        verdict: dict[str, Any]
        alone = Counter(file.path.rpartition("/")[0] for file in self._run_files())
        for file in self._run_files():
            if self.layout.runs.startswith("@"):
                continue
            pieces = self._pieces(file)
            folder, _, name = file.path.rpartition("/")
            stem = name.rsplit(".", 1)[0]
            if pieces is None:
                file.lines = [self._no_outcome(value) for value in file.lines or []]
                if alone[folder] == 1:
                    verdict = {"judged_at": "2026-05-04", "accomplished": told.get((file.path, 1)) == "success"}
                    self.files.append(_File(f"{folder}/verdict.json".lstrip("/"), [verdict], False, ""))
                    continue
                kept = lists.setdefault(folder, {"passed": [], "failed": []})
                kept["passed" if told.get((file.path, 1)) == "success" else "failed"].append(stem)
                continue
            self.files.remove(file)
            for n, lines in enumerate(pieces, 1):
                outcome = told.get((file.path, n))
                if outcome is None:  # a run without a record: nobody compares it
                    continue
                at = f"{folder}/{stem}/{n:04d}".lstrip("/")
                self.files.append(_File(f"{at}/run.json", [self._no_outcome(lines[0])], False, ""))
                verdict = {"judged_at": "2026-05-04", "accomplished": outcome == "success"}
                self.files.append(_File(f"{at}/result.json", [verdict], False, ""))
        for folder, kept in lists.items():
            self.files.append(_File(f"{folder}/outcomes.json".lstrip("/"), [kept], False, ""))
        return self.changed

    def _no_outcome(self, run: Any) -> Any:
        at = self.layout.runs.rstrip("s")
        inner = run[at] if isinstance(run, dict) and at and isinstance(run.get(at), dict) else run
        for path in self.layout.outcome:
            value = inner
            *above, last = path.split(".")
            for name in above:
                value = value.get(name) if isinstance(value, dict) else None
            if isinstance(value, dict) and value.pop(last, None) is not None:
                self.changed += 1
        return run


#: Ids of events and traces: without them there are no runs.
_NO_JOIN = {"uuid", "traceid", "spanid", "parentspanid", "trace_id", "parent_id", "span_id"}


def _inner(text: str) -> Any:
    """The JSON that a string holds, if it is an object or an array; else None."""
    if text[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except ValueError:
            return None
    return None


def _names_an_id(key: str) -> bool:
    return key.lower().endswith("id") and key.lower() not in {
        "uuid",
        "traceid",
        "spanid",
        "parentspanid",
        "trace_id",
        "parent_id",
        "span_id",
    }


def _group(value: Any, key: str) -> str:
    if key == "trace":  # lines of export requests, one trace each
        return json.dumps(value)[:0] + str(value["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"])
    return str(value.get(key) or value.get("id"))


def _outputs(notebook: dict[str, Any]) -> list[str]:
    return [
        "".join(output["text"]) if isinstance(output.get("text"), list) else output.get("text", "")
        for cell in notebook["cells"]
        for output in cell.get("outputs", ())
    ]


def _map_outputs(notebook: dict[str, Any], change: Callable[[str], str]) -> None:
    """All outputs as one, since cuts between them fall anywhere."""
    text = change("".join(_outputs(notebook)))
    first = True
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            if "text" in output:
                output["text"] = [text] if first else []
                first = False


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--adapter", required=True)
    parser.add_argument("--layout", choices=sorted(LAYOUTS), required=True)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    shutil.rmtree(args.target, ignore_errors=True)
    reference = readings(read_runs(args.runs, load_adapter(args.adapter)), args.runs)
    done = mutate(args.runs, args.target, args.kind, LAYOUTS[args.layout], reference, seed=args.seed)
    print(f"{done.kind}: {done.changed} places changed, {len(done.reference)} runs, in {done.folder}")


if __name__ == "__main__":
    main()
