"""`induce_adapter`: from sample files to a frozen adapter. Everything it decides it says, and nothing unchecked is
written.

Source: PrefixGuard 4.1: an adapter is induced once, offline, frozen before training, reviewed for structure only.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from prefixguard.errors import AdapterError, ConfigError, EndpointError, MissingExtraError, TraceError, UsageError
from prefixguard.induce.checks import CheckReport, unused, waiving
from prefixguard.induce.checks import check_adapter as check_opened
from prefixguard.induce.drafting import checked
from prefixguard.induce.fragments import answers, completed, places_of_events, said_of
from prefixguard.induce.freezing import Frozen, check_name, check_target, freeze, name_for, write_draft
from prefixguard.induce.golden import Golden, golden_samples
from prefixguard.induce.model import Endpoint, ModelResult, propose_with_model
from prefixguard.induce.proposal import Asker, Choice, Option, Proposal, take_first
from prefixguard.induce.report import Report
from prefixguard.induce.samples import Samples, open_samples
from prefixguard.induce.search.door import propose_by_search
from prefixguard.induce.search.run_fields import TAKEN
from prefixguard.stepview import Adapter, Recognised, adapter_for, canonical, load_adapter
from prefixguard.stepview import recognise as recognise_shipped
from prefixguard.trace import is_read_once, read_labels

#: Where adapters go unless it is said otherwise: a folder of this name, here.
OUT = Path("stepview_adapters")
#: A question that nobody answers is decided by the likeliest answer if that has this probability, and left open
#: otherwise.
SURE = 0.5

#: A proposal, its adapter and what the checks say.
_Draft: TypeAlias = tuple[Proposal, Adapter | None, CheckReport]


@dataclass(frozen=True, slots=True)
class Induced:
    """What an induction came to.

    adapter: None where the spec could not be compiled. proposal, report: None where a shipped adapter was taken
    instead. paths: None where no adapter was written: a check failed, a question is open, or whoever was asked said no.
    draft: the spec, its report and what a model said, where a file was named for them, or a folder, or a model was
    asked, and no adapter came of it; not an adapter yet. open: questions that nobody answered and that the samples do
    not decide.
    """

    adapter: Adapter | None
    proposal: Proposal | None
    report: Report | None
    paths: Frozen | None
    draft: tuple[Path, ...] = ()
    open: tuple[Choice, ...] = ()

    @property
    def ok(self) -> bool:
        """Every check passed (or is waived) and no question is open; a shipped adapter counts."""
        return self.report is None or (self.report.check.ok and not self.open)


def induce_adapter(
    samples: str | Path,
    *,
    name: str | None = None,
    out: str | Path | None = None,
    model: str | None = None,
    base_url: str | None = None,
    offline: bool = False,
    rounds: int = 4,
    price_in: float | None = None,
    price_out: float | None = None,
    pack_tokens: int = 12_000,
    mask: bool = True,
    hints: Mapping[str, str] = MappingProxyType({}),
    fragments: Sequence[str | Path] | None = None,
    sure: float = SURE,
    waive: Mapping[str, str] = MappingProxyType({}),
    labels: str | Path | None = None,
    draft: str | Path | None = None,
    recognise: bool = True,
    overwrite: bool = False,
    write: bool = True,
    ask: Asker = take_first,
    offer: Callable[[Sequence[Recognised]], bool] | None = None,
    approve: Callable[[Adapter, Report], bool] | None = None,
    listen: Callable[[str], None] | None = None,
) -> Induced:
    """Make an adapter for the format of these samples and freeze it in the folder `out`.

    samples : file, folder, glob or archive with a few raw runs.
    name : name of the adapter. Default: after the samples.
    out : folder that the adapter goes into, and the draft if a check fails, to be mended by hand. Default:
        stepview_adapters, where a draft is kept only if a model was asked.
    model : ask this language model; the key is read from OPENAI_API_KEY. Samples leave this machine only where one is
        named.
    base_url : where the model is: any server that speaks chat completions.
    offline : ask no model, whatever else is said; without a model none is asked.
    rounds : proposals that the model may make, from 1 to 20.
    price_in : price of a million tokens that are sent, in any currency, for the line of costs.
    price_out : price of a million tokens that come back.
    pack_tokens : tokens of samples that the model is shown.
    mask: mask likely secrets in what the model is shown.
    hints : a part of the spec, as docs/adapter-spec.md has it: events=$.trajectory[*], container.runs=$.runs[*],
        run.task=$.goal, 'run.outcome={"of":"$.reward","type":"number","success":{"ge":1},"failure":"else"}'; or
        success=VALUE: which value of the outcome is one (a number: at least that). The rest is inferred around it. May
        be repeated. Short: outcome, task, id, runs; and of steps role, tool, arguments, call_id, result, action.
    fragments : a .json with parts of the spec, as with hints. May be repeated.
    sure : the least probability with which a question that nobody answers is decided, from 0 to 1 (where the steps
        are, the square root of it); below it nothing is frozen.
    waive : a leak that is harmless, or an overlap with the outcome, and why: PATH=REASON. It stands in the spec. May be
        repeated.
    labels: a file of outcomes beside the samples; they have the last word.
    draft : keep the spec here too, and its report beside it, whatever the checks say: to be mended by hand, and frozen
        with check-adapter --freeze.
    recognise : look whether a shipped adapter reads the samples.
    overwrite: replace an adapter of that name.
    write : write the adapter; otherwise only check and report.
    ask: asked where the samples do not decide; the default takes the likeliest. offer: told which shipped adapters read
    the samples well; True takes the best of them and induces nothing. approve: asked before anything is written.
    listen: told what is being done, a sentence each.
    Raises TraceError (nothing to read), ConfigError (a name, a hint, an endpoint), OutputError (already there).
    """
    tell = listen if listen is not None else lambda _: None
    if is_read_once(samples) or (labels is not None and is_read_once(labels)):
        raise UsageError("samples and labels are read several times, and a stream only once. Save them to a file.")
    name = check_name(name if name is not None else name_for(samples))
    said = said_of(hints, tuple(fragments or ()))
    if not 0 <= sure <= 1:
        raise ConfigError(f"sure is a probability from 0 to 1, not {sure}.")
    if model is None and base_url is not None:
        raise ConfigError("a base URL without a model: name the --model too, or leave both out.")
    endpoint = None
    if model is not None and not offline:
        endpoint = Endpoint(model, base_url, price_in=price_in, price_out=price_out)
    folder = OUT if out is None else Path(out)
    if write:
        check_target(folder, name, overwrite)
    if labels is not None:
        read_labels(Path(labels))  # what is no file of labels is refused before anything is inferred
    tell("reading the samples")
    opened = open_samples(samples)
    shipped: tuple[Recognised, ...] = ()
    if recognise:
        tell("looking for a shipped adapter that reads them")
        shipped = tuple(one for one in recognise_shipped(samples) if one.reads_well)
        if shipped and offer is not None and offer(shipped):
            return Induced(load_adapter(shipped[0].name), None, None, None)
    asked: ModelResult | None = None
    notes: list[str] = []
    if endpoint is not None:
        tell(f"asking {endpoint.shown}")
        shown = {key: value for key, value in said.hints.items() if key not in ("fragment", "run.outcome")}
        try:
            asked = propose_with_model(
                opened,
                endpoint,
                name=name,
                rounds=rounds,
                pack_tokens=pack_tokens,
                hints=shown,
                labels=None if labels is None else str(labels),
                waive=waive,
                mask=mask,
                listen=tell,
            )
            notes += asked.waivers
        except (EndpointError, MissingExtraError) as exc:
            notes.append(f"The language model could not be asked ({exc}) This is offline inference.")
            tell(notes[-1])
    transcript = asked.transcript.to_jsonl() if asked is not None else None
    wanted = [Path(draft)] if draft is not None else []
    unfinished = [folder / f"{name}.draft.json"] if write and (out is not None or asked is not None) else []

    def check_draft(proposal: Proposal) -> _Draft:
        spec = waiving({**proposal.spec, "name": name}, waive)
        return replace(proposal, spec=spec), *checked(spec, samples, labels, listen=lambda at: tell(f"checking: {at}"))

    drafts = [check_draft(asked.proposal)] if asked is not None and asked.proposal is not None else []
    if not any(check.ok for _, _, check in drafts):
        tell("inferring the structure")
        known = {**said.hints, "labels": str(labels)} if labels is not None else said.hints
        try:
            inferred = propose_by_search(opened, name=name, hints=known, ask=ask)
        except TraceError as exc:
            if not drafts:
                for path in (*wanted, *unfinished) if transcript is not None else ():
                    write_draft(path, None, "", transcript)
                raise TraceError(_where_to_look(str(exc), opened)) from exc
        else:
            drafts.append(check_draft(replace(inferred, spec=completed(inferred.spec, said.fragment))))
    proposal, adapter, check = max(drafts, key=lambda draft: (draft[1] is not None, draft[2].ok, draft[2].score()))
    choices = (*proposal.choices, *_told_of_no_run(proposal.spec, check))
    unanswered = tuple(choice for choice in choices if ask is take_first and _is_open(choice, sure))
    done = adapter is not None and check.ok and not unanswered
    golden = golden_samples(samples, adapter) if adapter is not None and done else None
    notes += [f"Left open: {question(choice)}" for choice in unanswered]
    notes += golden.notes if golden is not None else ()
    usage = None if asked is None else replace(asked.usage, why=_not_taken(asked, proposal))
    report = Report(opened, proposal, check, shipped, usage, tuple(notes))
    paths = None
    if adapter is not None and golden is not None and (approve is None or approve(adapter, report)) and write:
        tell("writing")
        page = report.to_markdown()
        paths = freeze(
            adapter, report.to_dict(), page, golden, folder, transcript=transcript, overwrite=overwrite
        )
    drafts_at = wanted if done else wanted + unfinished
    drafted = [write_draft(path, proposal.spec, report.to_markdown(), transcript) for path in drafts_at]
    return Induced(adapter, proposal, report, paths, drafted[0] if drafted else (), unanswered)


def freeze_mended(
    spec: str | Path | Mapping[str, Any],
    samples: str | Path,
    *,
    mended: Sequence[str],
    induced: Induced | None = None,
    out: str | Path = OUT,
    labels: str | Path | None = None,
    waive: Mapping[str, str] = MappingProxyType({}),
    overwrite: bool = False,
) -> Induced:
    """Check and freeze a spec that a person has mended after an induction, or written.

    spec: the path of its .json, or the spec itself. mended: what was changed by hand and why, a sentence each: it
    stands in the report. waive: as in `induce_adapter`. induced: the induction it began with, whose report is kept in
    the new one.
    Writes nothing where a check fails. Raises AdapterError for a spec that is wrong, otherwise as `induce_adapter`.
    """
    given = json.loads(load_adapter(spec).to_bytes()) if isinstance(spec, str | Path) else dict(spec)
    name = check_name(str(given.get("name", "")))
    check_target(out, name, overwrite)
    given = waiving(given, waive)
    adapter, check = checked(given, samples, labels)
    if adapter is None:
        raise AdapterError(check.findings[0].what)
    golden = golden_samples(samples, adapter) if check.ok else Golden({}, b"")
    before = induced.report if induced is not None else None
    if before is None:
        before = Report(open_samples(samples), Proposal({}, origin="hand"), check)
    proposal = replace(before.proposal, spec=given)
    report = replace(before, proposal=proposal, check=check, notes=golden.notes, mended=tuple(mended))
    paths = None
    if check.ok:
        paths = freeze(adapter, report.to_dict(), report.to_markdown(), golden, out, overwrite=overwrite)
    return Induced(adapter, proposal, report, paths)


def check_adapter(
    adapter: str | Path | Adapter,
    runs: str | Path,
    *,
    labels: str | Path | None = None,
    processes: bool = True,
    waive: Mapping[str, str] = MappingProxyType({}),
    listen: Callable[[str], None] | None = None,
) -> CheckReport:
    """Does an adapter read these runs as it should, and nothing that a live run does not show?

    adapter: a shipped name, the path of a .json file, or an opened one.
    runs : file, folder, glob or tar of runs that it shall read.
    labels: outcomes beside the runs, for the statistical leak checks.
    processes : read the runs in a second process too, under another hash seed and locale.
    waive : a finding that is harmless, and why, as if the spec waived it: PLACE=REASON, as the finding says. May be
        repeated.
    listen: told the name of each check. Raises AdapterError for a spec that is wrong; runs that cannot be read are a
    finding.
    """
    if labels is not None:
        read_labels(Path(labels))
    opened = adapter_for(adapter, runs)
    waived = Adapter(waiving(json.loads(opened.to_bytes()), waive)) if waive else opened
    report = check_opened(waived, runs, labels=labels, processes=processes, listen=listen)
    findings = (*report.findings, *unused(waive, report.findings))
    return replace(report, adapter_name=opened.name, sha256=opened.sha256, findings=findings)


def _told_of_no_run(spec: Mapping[str, Any], check: CheckReport) -> Iterator[Choice]:
    """A question about the outcome where the spec says where it is and no run of the samples has one there."""
    outcome = spec.get("run", {}).get("outcome")
    if outcome is not None and check.figures.get("runs", 0) and not check.figures.get("outcomes_known", 1):
        told = Option(canonical(outcome.get("of", outcome))[:80], outcome, 0.0, "it finds the outcome of no run")
        none = Option("none of these", None, TAKEN, "no run has an outcome")
        yield Choice("outcome", (told, none), 1, "an outcome that no sample has is no outcome")


def _is_open(choice: Choice, sure: float) -> bool:
    """Is what was taken, be it nothing, less likely than asked for? All else rests on the
    steps, so they must be surer: by the square root, 0.71 for 0.5."""
    least = math.sqrt(sure) if choice.field == "events" else sure
    return choice.options[choice.taken].confidence < least


def question(choice: Choice) -> str:
    """What the samples do not decide, the answers with their probabilities, and the flags that give them."""
    shown = "; ".join(f"{option.label} ({option.confidence:.0%})" for option in choice.options)
    flags = answers(choice)
    return f"What is {choice.field}? {shown}.{' Answer with: ' + ' or '.join(flags) if flags else ''}"


def _where_to_look(why: str, samples: Samples) -> str:
    """With the hints that would say where events are, from what is in the samples."""
    flags = " or ".join(f"--hint 'events={place}'" for place in places_of_events(samples))
    return f"{why} Lists in these samples: {flags}." if flags else why


def _not_taken(asked: ModelResult, taken: Proposal) -> str:
    """A sentence where what the model proposed is not what is taken."""
    if asked.proposal is None:
        return f"It gave no usable adapter ({asked.why}) This is offline inference."
    if taken.origin == "offline":
        return f"The checks found errors in its adapter ({asked.why}) Offline inference did better and is taken."
    return ""
