"""Labels of failed runs by language models: some propose steps, others verify them, and they vote."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from prefixguard.errors import ConfigError, EndpointError, TraceError
from prefixguard.escalate import Endpoint, MaskedRecords
from prefixguard.factory.annotation_questions import (
    CANDIDATES_SCHEMA,
    CHECK_SCHEMA,
    QUESTIONS_VERSION,
    AnnotationQuestions,
)
from prefixguard.factory.candidates import (
    CandidateCheck,
    CandidateVote,
    merged,
    read_candidates,
    read_check,
    winner,
)
from prefixguard.factory.corpus_report import CorpusReport
from prefixguard.factory.kept_answers import SPENT, KeptAnswers, TokenBudget
from prefixguard.factory.labelled import LabelledRun, MistakeLabel, read_corpus
from prefixguard.factory.out_place import file_for
from prefixguard.factory.outages import Outages
from prefixguard.factory.prefix_rows import audited_records
from prefixguard.factory.skips import Skips
from prefixguard.store import OnProgress, Store
from prefixguard.trace import read_named

#: Bytes of a file of references that is read.
_LARGEST = 256 << 20
#: Tokens of the smallest prompt that holds a question and a piece of a run.
_LEAST_PROMPT = 4000
#: Proposals, verifications and workers at most.
_MOST = 64
_MUTE = "without a reply"


def annotate(
    corpus: str | os.PathLike[str],
    out: str | os.PathLike[str],
    proposers: Sequence[Endpoint],
    verifiers: Sequence[Endpoint] | None = None,
    *,
    proposals: int = 5,
    verifications: int = 3,
    needed: int = 2,
    references: str | os.PathLike[str] | None = None,
    prompt_tokens: int = 24_000,
    budget_tokens: int | None = None,
    budget_questions: int | None = None,
    workers: int = 4,
    mask: bool = True,
    on_progress: OnProgress | None = None,
) -> CorpusReport:
    """Label the failed runs of a corpus whose decisive step is not known, by models that propose and verify.

    corpus : file of labelled runs; those that failed and have no decisive step are asked about.
    out : the corpus of runs that were labelled. Replies are kept beside it, in OUT.kept.
    proposers: endpoints that name up to three steps each, in turn until there are `proposals`.
    verifiers: endpoints that judge every step that was named, in turn; None: the proposers.
    proposals : proposals a run, 1 or more.
    verifications : verifications a candidate.
    needed : verifiers that must find a candidate real, substantive, decisive and earliest.
    references : file of reference answers, JSON lines {"run_id" or "task_id", "answer"}, shown to both; recorded.
    prompt_tokens : tokens of a prompt; longer runs are cut in the middle.
    budget_tokens : tokens, sent and received, of all questions that are asked now; then nothing more is asked.
    budget_questions : questions that are asked now, at most.
    workers : runs at a time.
    mask : mask likely secrets in what is sent.

    Of the candidates that enough verifiers admit, the one with most proposers is the label; of equals the one that is
    verified with most confidence. Where there is none the run is left out and counted with the reason; so is every
    reply that is a refusal or outside the form. The same command goes on where it stopped, and asks nothing twice.
    Raises EndpointError where nobody answers (see `Outages`).
    """
    checkers = list(proposers if verifiers is None else verifiers)
    if not proposers or not checkers:
        raise ConfigError("nobody to ask: name at least one model that proposes, and one that verifies.")
    for name, value in (("proposals", proposals), ("verifications", verifications), ("workers", workers)):
        if not 1 <= value <= _MOST:
            raise ConfigError(f"{name} {value}: from 1 to {_MOST}.")
    if not 1 <= needed <= verifications:
        raise ConfigError(f"needed {needed}: from 1 to {verifications}, the verifications of a candidate.")
    if prompt_tokens < _LEAST_PROMPT:
        raise ConfigError(f"prompt_tokens {prompt_tokens}: {_LEAST_PROMPT} or more.")
    out = file_for(out, [corpus, references])
    known = {} if references is None else _references(Path(references))
    skips, budget, outages = Skips(), TokenBudget(budget_tokens, budget_questions), Outages(out, EndpointError)
    store = Store(out.with_name(f"{out.name}.kept"), {"questions": QUESTIONS_VERSION})
    panel = _Panel(
        _in_turn(proposers, proposals, store, CANDIDATES_SCHEMA, budget, workers),
        _in_turn(checkers, verifications, store, CHECK_SCHEMA, budget, workers),
        needed, known, references is not None, prompt_tokens, mask, skips, outages,
    )  # fmt: skip
    runs = []
    for run in read_corpus(corpus, skips):
        if run.run["outcome"] != "failure":
            skips.add("not a failed run", run.run_id)
        elif run.decisive is not None:
            skips.add("its decisive step is known", run.run_id)
        else:
            runs.append(run)
    labelled = asyncio.run(panel.label_all(runs, workers, on_progress))
    notes = outages.write(labelled)
    unasked = skips.counts.get(SPENT, 0)
    asked = len(runs) - unasked - outages.left
    counts = {"asked about": asked, "labelled": len(labelled), "abstained": asked - len(labelled)}
    counts |= {"not asked": unasked} if unasked else {}
    counts |= {"questions": budget.questions, "tokens": budget.spent}
    return CorpusReport(out, {**counts, **panel.agreement(labelled)}, skips, notes)


@dataclass(frozen=True, slots=True)
class _Seat:
    """One proposer or verifier. sample: which question to the same endpoint this is."""

    answers: KeptAnswers
    sample: int

    async def ask(self, what: str, messages: Sequence[Mapping[str, str]]) -> tuple[dict[str, Any] | None, str, str]:
        """See `KeptAnswers`; last, what was said where nobody answers."""
        try:
            return *await self.answers.ask_again(what, [dict(one) for one in messages], self.sample), ""
        except EndpointError as exc:
            return None, _MUTE, str(exc)


def _in_turn(
    endpoints: Sequence[Endpoint],
    count: int,
    store: Store,
    schema: Mapping[str, Any],
    budget: TokenBudget,
    workers: int,
) -> list[_Seat]:
    """`count` seats, the endpoints in turn."""
    asked = [KeptAnswers(one, store, schema, budget, concurrency=max(16, workers)) for one in endpoints]
    return [_Seat(asked[place % len(asked)], place // len(asked)) for place in range(count)]


@dataclass(slots=True)
class _Labelling:
    """What came of a run. run: with its label; None without one. problems: what is counted, each with what was said of
    it. unheard: what was said of questions without a reply."""

    run: LabelledRun | None = None
    problems: list[tuple[str, str]] = field(default_factory=list)
    unheard: list[str] = field(default_factory=list)

    def problem(self, reason: str) -> Self:
        self.problems.append((reason, ""))
        return self

    def heard(self, reply: tuple[dict[str, Any] | None, str, str], who: str) -> dict[str, Any] | None:
        """What a seat said, if anything."""
        said, why, cause = reply
        if cause:
            self.unheard.append(cause)
            self.problems.append((f"a {who} {why}", self.unheard[0]))
        elif why:
            self.problem(f"a {who}: {why}")
        return said


@dataclass(frozen=True, slots=True)
class _Panel:
    """Who labels, and by which rules."""

    proposers: Sequence[_Seat]
    verifiers: Sequence[_Seat]
    needed: int
    references: Mapping[str, str]
    has_references: bool
    prompt_tokens: int
    mask: bool
    skips: Skips
    outages: Outages

    async def label_all(
        self, runs: Sequence[LabelledRun], workers: int, on_progress: OnProgress | None
    ) -> list[LabelledRun]:
        """The runs with labels, without those of which nobody could tell, in their order."""
        made = dict[int, _Labelling]()
        turn = iter(range(len(runs)))

        async def work() -> None:
            for place in turn:
                made[place] = one = await self._label(runs[place])
                self.outages.count(one.unheard[0] if one.unheard and one.run is None else "")
                if on_progress is not None:
                    on_progress(len(made), len(runs))

        seats = {id(seat.answers): seat.answers for seat in (*self.proposers, *self.verifiers)}
        tasks = [asyncio.create_task(work()) for _ in range(min(workers, len(runs)))]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for answers in seats.values():
                with contextlib.suppress(EndpointError):
                    await answers.aclose()
        found = [made[place] for place in range(len(runs))]  # in this order, whoever was ready first
        for run, one in zip(runs, found, strict=True):
            for reason, cause in one.problems:
                self.skips.add(reason, run.run_id, cause)
        return [one.run for one in found if one.run is not None]

    async def _label(self, run: LabelledRun) -> _Labelling:
        found = _Labelling()
        known = tuple(secret for seat in self.proposers for secret in seat.answers.secrets)
        shown = MaskedRecords.of(audited_records(run.run, self.prompt_tokens), mask=self.mask, known=known)
        if not any(record.actor == "agent" for record in shown.records):
            return found.problem("no agent acted in it")
        reference = self.references.get(run.run_id) or self.references.get(str(run.run.get("task_id") or ""))
        if self.has_references and reference is None:
            return found.problem("no reference answer for it")
        questions = AnnotationQuestions(shown, self.prompt_tokens, reference)
        came = await asyncio.gather(*(seat.ask("proposal", questions.propose()) for seat in self.proposers))
        if any(why == SPENT for _, why, _ in came):
            return found.problem(SPENT)
        proposals = {}
        for place, reply in enumerate(came):
            if (said := found.heard(reply, "proposer")) is not None:
                proposals[place], odd = read_candidates(said, shown.records)
                for reason in odd:
                    found.problem(reason)
        votes: list[CandidateVote] = []
        for candidate in merged(proposals, shown.records):
            if any(begin <= candidate.step <= end for begin, end in questions.elided):
                found.problem("a proposed step that was not shown")
                continue
            asked = questions.verify(candidate)
            said_of_it = await asyncio.gather(*(seat.ask("verification", asked) for seat in self.verifiers))
            if any(why == SPENT for _, why, _ in said_of_it):
                return found.problem(SPENT)
            checks: list[CandidateCheck] = []
            for reply in said_of_it:
                said = found.heard(reply, "verifier")
                check = None if said is None else read_check(said)
                if check is not None:
                    checks.append(check)
                elif said is not None:
                    found.problem("a verification outside the form")
            votes.append(CandidateVote(candidate, tuple(checks)))
        best, why_not = winner(votes, self.needed)
        if best is None:
            return found.problem(why_not)
        agent = shown.agents.get(best.candidate.agent, best.candidate.agent)
        found.run = self._labelled(run, best, votes, agent)
        return found

    def _labelled(self, run: LabelledRun, best: CandidateVote, votes: list[CandidateVote], agent: str) -> LabelledRun:
        """The run with the label that was voted for, and how it came about."""
        how = {
            "operator": "propose and verify",
            "questions": QUESTIONS_VERSION,
            "proposers": [seat.answers.endpoint.model for seat in self.proposers],
            "verifiers": [seat.answers.endpoint.model for seat in self.verifiers],
            "needed": self.needed,
            "reference_shown": self.has_references,
            "votes": [vote.as_json() for vote in votes],
        }
        label = MistakeLabel(best.candidate.step, agent, "", "proposed")
        provenance = {**run.provenance, "annotation": how}
        return replace(run, source="proposed", mistakes=(label, *run.mistakes), provenance=provenance)

    def agreement(self, labelled: Sequence[LabelledRun]) -> dict[str, float]:
        """How far those who were asked agree, over the runs that were labelled; empty without any.

        proposers: mean share of them that named the step. verifiers: share of candidates on which all who answered said
        the same.
        """
        if not labelled:
            return {}
        named, same = [], []
        for run in labelled:
            mistake, votes = run.decisive, run.provenance["annotation"]["votes"]
            won = next(vote for vote in votes if mistake is not None and vote["step"] == mistake.step)
            named.append(won["proposers"] / len(self.proposers))
            same += [vote["passes"] in (0, vote["answered"]) for vote in votes]
        return {"proposers agree": sum(named) / len(named), "verifiers agree": sum(same) / len(same)}


def _references(path: Path) -> dict[str, str]:
    """Reference answers by run id or task id. TraceError with the line that is none."""
    found: dict[str, str] = {}
    for number, line in enumerate(read_named(path, _LARGEST).splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            key, answer = row.get("run_id") or row.get("task_id"), row["answer"]
        except (ValueError, KeyError, AttributeError, RecursionError) as exc:
            raise TraceError(f'{path}:{number}: write {{"run_id": ..., "answer": ...}}, one object a line.') from exc
        if not isinstance(key, str) or not isinstance(answer, str):
            raise TraceError(f"{path}:{number}: run_id (or task_id) and answer are texts.")
        found[key] = answer
    return found
