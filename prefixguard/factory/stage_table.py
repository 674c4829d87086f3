"""How good trained auditors are: each served behind an endpoint, and asked by `audit` as it asks any model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

from prefixguard.auditor import (
    AuditedSystem,
    AuditPlan,
    AuditTable,
    audit,
    audit_runs,
    audit_table,
    audited_lines,
    trivial_baselines,
)
from prefixguard.errors import ConfigError, DataError
from prefixguard.escalate import Endpoint
from prefixguard.factory.labelled import LabelledRun, read_corpus
from prefixguard.factory.model_server import serve
from prefixguard.factory.prefix_rows import audited_records
from prefixguard.factory.skips import Skips
from prefixguard.factory.trained_model import Listener, engine_part, record_of
from prefixguard.factory.training_rows import read_rows
from prefixguard.runtime import Monitor
from prefixguard.stepview import StepRecord
from prefixguard.trace import Mistake, Outcome, Run


def evaluate(
    models: Sequence[str | os.PathLike[str]],
    *,
    corpus: Sequence[str | os.PathLike[str]],
    rows: str | os.PathLike[str] | None = None,
    monitor: Monitor | None = None,
    out: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    budget_tokens: int = 24_000,
    reply_tokens: int = 1024,
    listen: Listener | None = None,
) -> AuditTable:
    """Audit labelled runs with models of one's own, side by side, beside auditors that know nothing.

    models : Folders of models, such as the stages of a training in their order.
    corpus : File of labelled runs. May be repeated.
    rows : A file of factory build, such as test-verdicts.jsonl: only the runs that its rows are made of.
    monitor : A monitor whose own verdicts stand beside the models'.
    out : Folder for verdicts and replies; an evaluation goes on there where it stopped.
    limit : Only so many runs, spread evenly over the corpora.
    budget_tokens : Tokens of a prompt.
    reply_tokens : Tokens that a reply may have.
    listen: told what is done, how far it is, and of how much.
    The protocol is the online walk of `audit`, over HTTP on loopback; each model is in memory while it is asked.
    MissingExtraError without the extra `factory`, DataError where no run has a label.
    """
    if not models:
        raise ConfigError("no model to evaluate: name the folder of one.")
    names = _names(models)
    skips = Skips()
    wanted = None if rows is None else {row.run_id for row in read_rows(rows, Skips())}
    labelled: dict[str, LabelledRun] = {}
    for run in chain.from_iterable(read_corpus(path, skips) for path in corpus):
        if wanted is None or run.run_id in wanted:
            labelled.setdefault(run.run_id, run)
    chosen = audit_runs([as_run(run, budget_tokens) for run in labelled.values()])
    if limit is not None and limit < len(chosen):
        chosen = tuple(chosen[place * len(chosen) // limit] for place in range(limit))
    if not chosen:
        raise DataError(f"no run of {', '.join(map(str, corpus)) or 'no corpus'} has a label and is wanted.")
    systems = []
    for name, folder in zip(names, models, strict=True):
        kept = None if out is None else Path(out) / name
        systems.append(_audited(name, folder, chosen, kept, budget_tokens, reply_tokens, listen or (lambda *_: None)))
    if monitor is not None:
        plan = AuditPlan("monitor", None, gated=True)
        lines = audit(chosen, plan.audit_protocol(monitor))
        systems.append(audited_lines("monitor", chosen, lines))
    notes = [*skips.notes(), *(f"{name}: {_note(folder)}" for name, folder in zip(names, models, strict=True))]
    return audit_table(systems, trivial_baselines(chosen), notes=notes)


def as_run(labelled: LabelledRun, budget_tokens: int) -> Run[StepRecord]:
    """A labelled run as an audit is measured on it."""
    mistake = labelled.decisive
    step = None if mistake is None else mistake.step
    return Run(
        run_id=labelled.run_id,
        task_id=labelled.family or None,
        groups={},
        outcome=Outcome(labelled.run["outcome"]),
        records=audited_records(labelled.run, budget_tokens),
        source="corpus",
        mistake=None if mistake is None or step is None else Mistake(step, mistake.agent),
    )


def _audited(
    name: str,
    folder: str | os.PathLike[str],
    runs: Sequence[Run[StepRecord]],
    out: Path | None,
    budget_tokens: int,
    reply_tokens: int,
    listen: Listener,
) -> AuditedSystem:
    answering = engine_part("replies", "factory evaluate").answering
    done = 0

    def told(line: Any) -> None:
        nonlocal done
        done += 1
        listen(f"auditing with {name}", done, len(runs))

    with ExitStack() as open_things:
        url = open_things.enter_context(serve(answering(str(folder)), name))
        endpoint = Endpoint(name, url, max_reply_tokens=reply_tokens, temperature=0.0)
        plan = AuditPlan("online", endpoint, gated=False, budget_tokens=budget_tokens)
        protocol = plan.audit_protocol(None, 1, None if out is None else out / "replies")
        # The address is another one every time; what a model says does not depend on it.
        settings = plan.settings(protocol, "labelled", None) | {"base_url": None, "folder": str(folder)}
        lines = audit(runs, protocol, workers=1, out=out, settings=settings, listen=told)
    return audited_lines(name, runs, lines)


def _names(models: Sequence[str | os.PathLike[str]]) -> list[str]:
    """The last parts of the folders' names, as many as make them different."""
    parts = [Path(model).resolve().parts for model in models]
    for n in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-n:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    raise ConfigError("a model is named twice: name each folder once.")


def _note(folder: str | os.PathLike[str]) -> str:
    record = record_of(Path(folder))
    if record.get("form") == "short":
        return f"a tiny model ({record.get('stage', 'base')}), asked in a short form of the prompt"
    return f"trained by {record['stage']}" if "stage" in record else "no record of a training"
