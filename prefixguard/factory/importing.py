"""Published sets of labelled runs, as the factory's form: what they say of mistakes, and what their licences allow."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.errors import ConfigError, DataError, TraceError
from prefixguard.factory.corpus_report import CorpusReport
from prefixguard.factory.labelled import WIDE, LabelledRun, MistakeLabel, records_of, write_corpus
from prefixguard.factory.out_place import file_for
from prefixguard.factory.skips import Skips
from prefixguard.stepview import ReadReport, StepRecord, load_adapter, read_runs, wide_view
from prefixguard.trace import Run, read_named


@dataclass(frozen=True, slots=True)
class PublishedSet:
    """A published set. adapter: reads it, every entry a record of its own. licence: of its text. may_train: whether
    that allows training. split: side on which all of it stands; "" where it is split by the set or by `build`."""

    adapter: str
    licence: str
    may_train: bool
    split: str = ""


#: The sets, by name. A set without a licence is all rights reserved: it may be measured on, and never trained on.
SETS = {
    "aftraj": PublishedSet("aftraj", "CC BY 4.0", may_train=True),
    "aegis": PublishedSet("aegis", "MIT", may_train=True),
    "mast": PublishedSet("mast", "CC BY 4.0", may_train=True, split="test"),
    "whoandwhen": PublishedSet("whoandwhen_turns", "none stated for the data", may_train=False, split="test"),
    "tracertraj": PublishedSet("tracertraj", "none stated", may_train=False, split="test"),
}
#: The test side of AFTraj, beside its tables.
_AFTRAJ_TEST, _LARGEST = "splits_test.json", 64 << 20


def import_set(name: str, runs: str | os.PathLike[str], out: str | os.PathLike[str]) -> CorpusReport:
    """Make a corpus of a published set, as its makers publish it.

    name : aftraj (safe and unsafe runs, step and agent), aegis and mast (failure modes, without steps), whoandwhen,
        tracertraj (failed runs, step and agent).
    runs : file or folder of the set. For aftraj the folder with `splits_test.json`, which says what its test side is.
    out : the corpus, a file of JSON lines.

    Steps are counted anew: from 1, and only agents act (users and environments are what agents observe next). A label
    on an entry where no agent acted loses its step and keeps its agent; it is counted. Who&When was read as it is
    published; the other four as their makers describe their fields. Sets without a licence (Who&When's data,
    TracerTraj) get `may_train` false, which `build` heeds; MAST stands on the test side.
    Raises ConfigError for another name, TraceError where nothing can be read.
    """
    if name not in SETS:
        raise ConfigError(f"no set called {name!r}: one of {', '.join(SETS)}.")
    out = file_for(out, [runs])
    chosen, report, skips = SETS[name], ReadReport(), Skips()
    test = _aftraj_test(Path(runs)) if name == "aftraj" else None
    counts = {"runs": 0, "safe": 0, "with a step": 0, "with modes": 0, "agent is not who acted": 0}
    adapter = wide_view(load_adapter(chosen.adapter), WIDE)

    def made_runs() -> Iterator[LabelledRun]:
        for run in read_runs(runs if isinstance(runs, str) else Path(runs), adapter, report=report):
            split = chosen.split if test is None else "test" if run.run_id in test else "train"
            try:
                made, records = _labelled(run, name, chosen, split, skips)
            except DataError as exc:
                skips.add(str(exc).partition(": ")[2] or str(exc), run.run_id)
                continue
            counts["runs"] += 1
            counts["safe"] += made.is_safe
            counts["with a step"] += made.decisive is not None
            counts["with modes"] += any(one.kind for one in made.mistakes)
            first = made.decisive
            if first is not None and first.step is not None:
                counts["agent is not who acted"] += records[first.step - 1].agent != first.agent
            yield made

    write_corpus(out, made_runs())
    for where, _ in report.skipped:
        skips.add("it could not be read", where)
    if report.empty:
        skips.counts["no step in it"] = sum(report.empty.values())
        skips.places["no step in it"] = [f"outcome {outcome}" for outcome in sorted(report.empty)]
    notes = [f"Licence: {chosen.licence}. {'' if chosen.may_train else 'For tests only: build never trains on it.'}"]
    if name == "aftraj" and test is None:
        notes.append(f"No {_AFTRAJ_TEST} beside the tables: the published test side is not known, and build splits.")
    return CorpusReport(Path(out), counts, skips, tuple(note.strip() for note in notes))


def as_messages(records: Sequence[StepRecord]) -> tuple[list[dict[str, Any]], dict[int, int]]:
    """Records as messages that `openai_chat` reads to the same agents' steps, and the new step of every agent's one.

    What others did is a user's message, which is what the next agent observes; what an environment did right after a
    call is the call's result.
    """
    messages: list[dict[str, Any]] = []
    steps: dict[int, int] = {}
    waiting = ""  # the id of a call without a result

    def observed(*texts: str) -> None:
        messages.extend({"role": "user", "content": text} for text in texts if text)

    def returned(record: StepRecord) -> None:
        answer: dict[str, Any] = {"role": "tool", "tool_call_id": waiting, "content": record.result}
        messages.append(answer | ({"is_error": True} if record.status == "error" else {}))

    for record in records:
        observed(record.observation)
        waiting = "" if record.observation else waiting
        if record.actor != "agent":
            if waiting and record.actor == "environment" and record.result and not record.action:
                returned(record)
            else:
                observed(record.action, record.result)
            waiting = ""
            continue
        steps[record.index] = len(steps) + 1
        said: dict[str, Any] = {"role": "assistant", "content": record.action}
        if record.agent:
            said["name"] = record.agent
        messages.append(said)
        if record.tool in ("", "respond") and not record.arguments:
            observed(record.result)
            waiting = ""
            continue
        waiting = f"call-{steps[record.index]}"
        function = {"name": record.tool, "arguments": record.arguments or "{}"}
        said["tool_calls"] = [{"id": waiting, "type": "function", "function": function}]
        if record.result:
            returned(record)
            waiting = ""
    return messages, steps


def _labelled(
    run: Run[StepRecord], name: str, chosen: PublishedSet, split: str, skips: Skips
) -> tuple[LabelledRun, tuple[StepRecord, ...]]:
    """The run in the form, and its records there. DataError where it cannot be."""
    messages, steps = as_messages(run.records)
    if not steps:
        raise DataError(f"{run.run_id}: no agent acted in it")
    mistakes = [MistakeLabel(None, fault.agent, fault.mode or "", "imported") for fault in run.faults]
    if run.mistake is not None:
        step = steps.get(run.mistake.step or 0)
        if step is None:
            skips.add("the step of a label, where no agent acted; the run is kept", run.run_id)
        mistakes.insert(0, MistakeLabel(step, run.mistake.agent, "", "imported"))
    plain = {"run_id": run.run_id, "task_id": run.task_id, "outcome": run.outcome.value, "messages": messages}
    records = records_of(plain)
    expected = [(one.agent, one.tool or "respond", one.action) for one in run.records if one.actor == "agent"]
    if [(one.agent, one.tool or "respond", one.action) for one in records if one.actor == "agent"] != expected:
        raise DataError(f"{run.run_id}: it does not read back as the same steps")
    task = hashlib.sha256((run.task_id or run.run_id).encode("utf-8", "replace")).hexdigest()[:16]
    found = LabelledRun(
        {key: value for key, value in plain.items() if value is not None},
        "imported",
        tuple(mistakes),
        family=f"{name}/{task}",
        provenance={"set": name, "place": Path(run.source).name},
        licence=chosen.licence,
        may_train=chosen.may_train,
        split=split,
    )
    return found, records


def _aftraj_test(source: Path) -> frozenset[str] | None:
    """Ids of the published test side; None where the file that says so is not there."""
    path = (source if source.is_dir() else source.parent) / _AFTRAJ_TEST
    if not path.exists():
        return None
    try:
        value = json.loads(read_named(path, _LARGEST))
        return frozenset(str(one) for key in ("test_safe", "test_unsafe") for one in value[key])
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise TraceError(f"{path}: not the list of the test side, which has test_safe and test_unsafe.") from exc
