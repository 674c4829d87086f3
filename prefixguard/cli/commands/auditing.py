"""`prefixguard audit`: whether, where and by whom finished runs went wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefixguard.bundle import Trust
from prefixguard.cli.command import Older, command
from prefixguard.cli.console import say, say_proxy, visible, write_json
from prefixguard.cli.progress import Activity
from prefixguard.cli.shown import notes_of, refuse_empty
from prefixguard.errors import DataError, OutputError, UsageError
from prefixguard.escalate import ConfidenceMap, Endpoint
from prefixguard.runtime import NewTasks, load
from prefixguard.stepview import Adapter, ReadReport, StepRecord, adapter_for, read_runs, recognise, wide_view
from prefixguard.trace import Outcome, Run, read_named

if TYPE_CHECKING:
    from prefixguard.auditor import AuditLine

#: The file of calibrated confidences in an audit's folder, and the bytes of one at most.
_CONFIDENCE, _LARGEST = "confidence.json", 1 << 20


@command(
    {
        "audit": "runs workers out",
        "AuditPlan": "known_failed every confirm budget_tokens mask logprobs",
        "Endpoint": "base_url key_from timeout temperature price_in price_out",
    },
    words={
        "runs": "File, folder, glob or tar of runs.",
        "out": "Folder for verdicts and replies; an audit goes on there where it stopped.",
        "timeout": "Seconds for one request.",
    },
    json="The table as JSON, instead of a line a run.",
    older={"mark": Older("--threshold", "float | None")},
)
def audit_runs(
    out: Path | None,
    workers: int,
    price_in: float | None,
    price_out: float | None,
    base_url: str | None,
    logprobs: bool,
    known_failed: bool,
    budget_tokens: int,
    runs: str,
    as_json: bool,
    adapter: str | None = None,
    labels: Path | None = None,
    monitor: Path | None = None,
    model: str | None = None,
    protocol: str | None = None,
    limit: int | None = None,
    run_id: list[str] | None = None,
    threshold: float | None = None,
    reply_tokens: int | None = 2048,
    temperature: float | None = 0.0,
    confidence: Path | None = None,
    published: str | None = None,
    events: bool = False,
    full: bool = False,
    trust: Trust | None = None,
    **given: Any,
) -> None:
    """Say of finished runs whether something went decisively wrong, at which step, and which agent did it.

    A JSON line a run on standard output: verdict, questions, raw replies, cost; beside it what the set's labels say. On
    standard error a table: the auditor beside auditors that know nothing (a fixed step, the most active agent, chance),
    whose figures are often good. Labels are never sent and never decide how a run is gone through. An answer that is
    missing or cannot be read is an error, never "safe".

    Exit codes: 0 done; 2 bad input, or nobody answers; 3 interrupted (with --out the same command goes on).

    Examples:

        prefixguard audit runs/ --model gpt-4.1 --out audit
        prefixguard audit runs/ --model qwen --base-url http://localhost:8000/v1 --protocol post-hoc
        prefixguard audit runs/ --monitor monitors/mine --model qwen --base-url http://localhost:8000/v1
        prefixguard audit runs/ --monitor monitors/mine
        prefixguard audit labelled/ --model qwen --base-url http://localhost:8000/v1 --logprobs --out audit
        prefixguard audit runs/ --protocol hypotheses --model gpt-4.1-mini --limit 20

    adapter : name or file of the adapter. Default: the monitor's, else the one that fits best.
    labels : Outcomes beside the runs, and of failed ones the decisive step and its agent:
        run_id,outcome[,task_id,mistake_step,mistake_agent] as .jsonl or .csv. Default for a corpus of the factory: its
        own labels.
    monitor : folder of a monitor's bundle: only what it escalates is sent; alone: its own verdict.
    model : ask this language model. Without it no text of a run leaves this machine.
    protocol : online: prefix by prefix, until it alarms; post-hoc: the whole run at once; step-by-step;
        binary-search; hypotheses: 14 failure modes, each verified; monitor: no model. Default: online with --model,
        else monitor.
    limit : only the first so many runs.
    run_id : only this run. May be repeated.
    threshold : with --monitor: the risk above which it escalates. Default: its WATCH threshold.
    reply_tokens : tokens that a reply may have.
    temperature : sent if given; 0 where a server takes it.
    confidence : A confidence.json of another audit: confidences are calibrated by it.
    published : show published figures beside it: aftraj, whoandwhen/hand-crafted ...
    events : count steps in the table as source entries, as published figures do.
    full : the whole table: every row, figure and difference.
    """
    from prefixguard.auditor import AuditPlan, audit, audit_report, published_rows

    if (price_in is None) != (price_out is None):
        raise UsageError("a price alone gives no cost: give both --price-in and --price-out.")
    if temperature is not None and not 0 <= temperature < math.inf:
        raise UsageError(f"--temperature {temperature}: a number, 0 or more.")
    endpoint = None
    if model is not None:
        server = {name: given.pop(name) for name in ("key_from", "timeout")}
        endpoint = Endpoint(
            model,
            base_url,
            price_in=price_in,
            price_out=price_out,
            max_reply_tokens=reply_tokens,
            temperature=temperature,
            **server,
        )
        say_proxy(endpoint.proxy)
    elif base_url is not None:
        raise UsageError("--base-url says where a model is: name it with --model.")
    plan = AuditPlan(
        protocol or "",
        endpoint,
        monitor is not None,
        known_failed=known_failed,
        mark=threshold,
        budget_tokens=budget_tokens,
        logprobs=logprobs,
        confidence=None if confidence is None else _read_confidence(confidence),
        **{name: given[name] for name in ("every", "confirm", "mask")},
    )
    if published is not None:
        published_rows(published)  # a name that is not there is found out before anything is asked
    if trust and monitor is None:
        raise UsageError("--trust is for a monitor: name one with --monitor.")
    opened = None if monitor is None else load(monitor, adapter=adapter, trust=trust)
    reader = opened.bundle.adapter if opened is not None else _adapter(adapter, runs)
    # A model is shown more of long texts than a monitor reads; a character is at least a third of a token.
    view = reader if endpoint is None else wide_view(reader, 3 * budget_tokens)
    chosen, report = _chosen(runs, view, labels, limit, set(run_id or ()))
    for note in notes_of(report):
        say(note)
    if opened is not None:
        _say_misread(runs, reader.name, report)
        made_with = NewTasks(opened.bundle.manifest)
        used = sum(made_with.was_used(run) for run in chosen)
        if used:
            say(
                f"IN SAMPLE: {used:,} of {len(chosen):,} runs are of tasks that the monitor was made or its alarm set "
                "with. What it lets through, or says alone, is better there than on new ones."
            )
    if known_failed and (ended_well := sum(run.outcome is Outcome.SUCCESS for run in chosen)):
        say(
            f"--known-failed says that all runs failed; the labels call {ended_well:,} of {len(chosen):,} successes. "
            "What is said of those is wrong from the start: leave them out, or the option."
        )
    own: dict[str, Sequence[StepRecord]] = {}
    if opened is not None and endpoint is not None:
        ids = {run.run_id for run in chosen}
        own = {run.run_id: run.records for run in read_runs(runs, reader) if run.run_id in ids}
    way = plan.audit_protocol(opened, workers, None if out is None else out / "replies", own)
    settings = plan.settings(way, reader.sha256, opened)
    with Activity("Auditing") as work:
        told = 0

        def listen(line: AuditLine) -> None:
            nonlocal told
            told += 1
            work.on_runs(told)
            if not as_json:
                write_json(line.as_json())

        lines = audit(chosen, way, workers=workers, out=out, settings=settings, listen=listen)
    gated = opened is not None and endpoint is not None
    said = audit_report(
        chosen,
        lines,
        plan.protocol,
        gated=gated,
        priced=price_in is not None,
        published=published,
        events=events,
        full=full,
        proxy=None if endpoint is None else endpoint.proxy,
    )
    say(said.to_text())
    if as_json:
        write_json(said.as_json())
    if logprobs and confidence is None:
        _keep_confidence(chosen, lines, out)


def _chosen(
    runs: str, view: Adapter, labels: Path | None, limit: int | None, wanted: set[str]
) -> tuple[list[Run[StepRecord]], ReadReport]:
    """The runs to audit: those that are wanted (empty: all), and of them the first so many."""
    from prefixguard.factory import CORPUS_ADAPTER, corpus_labels

    report, chosen = ReadReport(), list[Run[StepRecord]]()
    known = corpus_labels(runs) if labels is None and view.name == CORPUS_ADAPTER else labels
    for run in read_runs(runs, view, labels=known, report=report):
        if not wanted or run.run_id in wanted:
            chosen.append(run)
        if limit is not None and len(chosen) >= limit:
            break
    refuse_empty(report, runs)
    missing = wanted - {run.run_id for run in chosen}
    if missing or not chosen:
        named = f"called {visible(sorted(missing)[0])}" if missing else "there"
        raise UsageError(f"{runs}: no run {named}. See: prefixguard parse {runs}")
    return chosen, report


def _adapter(adapter: str | None, runs: str) -> Adapter:
    """The adapter that is named, else the shipped one that reads the runs best."""
    if adapter is not None:
        return adapter_for(adapter, runs)
    well = [one for one in recognise(runs) if one.reads_well]
    if not well:
        raise UsageError(
            f"{runs}: no shipped adapter reads it well. Name one with --adapter; see: prefixguard adapters"
        )
    say(f"Read as {well[0].name}. Another one: --adapter NAME.")
    return adapter_for(well[0].name, runs)


def _say_misread(runs: str, name: str, report: ReadReport) -> None:
    """A warning where a monitor's adapter seems to be that of another format. Looks closer only where little was read:
    fewer than two steps a run, or most events skipped."""
    skipped = sum(report.events_skipped.values())
    if report.records >= 2 * report.runs and 2 * skipped <= report.events:
        return
    well = [one.name for one in recognise(runs) if one.reads_well]
    if well and name not in well:
        say(
            f"The monitor's adapter {name} reads little of these runs ({report.records:,} steps in {report.runs:,}); "
            f"{well[0]} reads them well. Its risks mean little here: a monitor of that format, or --adapter {well[0]}."
        )


def _read_confidence(path: Path) -> ConfidenceMap:
    """A map that `fit_confidence` wrote. UsageError where it cannot be read."""
    try:
        return ConfidenceMap.from_json(json.loads(read_named(path, _LARGEST)))
    except (ValueError, RecursionError) as exc:  # errors of ours among them
        raise UsageError(f"--confidence {path}: {exc} Name the {_CONFIDENCE} of an audit with --logprobs.") from exc


def _keep_confidence(runs: Sequence[Run[StepRecord]], lines: Sequence[AuditLine], out: Path | None) -> None:
    """Fits it on the verdicts of labelled runs, and writes it into the audit's folder; says it where that cannot be."""
    from prefixguard.auditor import confidence_pairs, fit_confidence

    if not confidence_pairs(runs, lines):
        say("No labelled verdict has a confidence: does the server send log-probabilities?")
        return
    try:
        fitted = fit_confidence(runs, lines)
    except DataError as exc:
        say(f"Confidences stay as they are: {exc}")
        return
    said = f"Confidence, fitted on {fitted.pairs:,} labelled verdicts ({fitted.right:,} right)"
    if out is None:
        say(f"{said}: name a folder with --out, and it is kept there.")
        return
    path = out / _CONFIDENCE
    try:
        path.write_text(json.dumps(fitted.to_json(), indent=1) + "\n", encoding="utf-8")
    except OSError as exc:
        raise OutputError(f"{path}: {exc.strerror or exc}.") from exc
    say(f"{said}, is in {path}. Use it on other runs: --confidence {path}")
