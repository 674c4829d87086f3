"""A model proposes, the checks judge, and what is wrong goes back: up to so many rounds; the best proposal wins."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from prefixguard.errors import ConfigError, EndpointError
from prefixguard.escalate import Chat, Endpoint, Masker, Reply
from prefixguard.induce.model.pack import sample_pack
from prefixguard.induce.model.prompt import PROMPT_VERSION, first_messages, next_messages
from prefixguard.induce.model.reply import ANSWER_SCHEMA, Answer, read_answer
from prefixguard.induce.model.screening import Screened, screen
from prefixguard.induce.model.trial import Trial, failed, feedback, try_apart
from prefixguard.induce.proposal import LeftOut, Proposal, Usage
from prefixguard.induce.samples import Samples
from prefixguard.results import fields_of
from prefixguard.stepview import canonical
from prefixguard.trace import is_read_once

MOST_ROUNDS = 20
#: Characters of an answer without a spec that the model is shown again.
_SHOWN_AGAIN = 8_000
_NOT_WAIVED = (
    "`waived` was taken out: only the user may waive a refusal. Read a narrower path, cut out what gives the outcome "
    "away, or leave the field out."
)

#: Compiles a spec and runs it on the samples: (spec, source, labels, seconds).
Try = Callable[[Mapping[str, Any], str, str | None, float], Trial]
Messages = list[dict[str, str]]


class Transcript:
    """What was asked and answered, in order: messages, faults, scores, times, tokens. Every text is masked before it is
    kept, and the key of the endpoint is never among them."""

    def __init__(self, masker: Masker) -> None:
        """masker: what masks; it knows the key of the endpoint."""
        self.masker = masker
        self.entries: list[dict[str, Any]] = []
        self.begin = time.monotonic()

    def add(self, kind: str, **what: Any) -> None:
        """One entry. kind: start, message, reply, trial, failure or end."""
        seconds = round(time.monotonic() - self.begin, 3)
        self.entries.append({"kind": kind, "seconds": seconds, **self.masker.mask_all(what)})

    def to_jsonl(self) -> str:
        """One JSON object a line."""
        return "".join(json.dumps(entry, ensure_ascii=False, default=str) + "\n" for entry in self.entries)


@dataclass(frozen=True, slots=True)
class ModelResult:
    """What came of asking a model.

    proposal: the best spec that compiles; None where there was none. ok: the checks found no error in it; otherwise it
    must not be frozen as it is. why: a sentence: which proposal won and by what, or why there is none. trial: what the
    checks said of the winner. waivers: what it asked to have waived, a sentence each, for the person to decide.
    """

    proposal: Proposal | None
    ok: bool
    why: str
    transcript: Transcript
    trial: Trial | None
    usage: Usage
    waivers: tuple[str, ...]


@dataclass(slots=True)
class _Round:
    number: int
    answer: Answer
    screened: Screened
    trial: Trial
    shown: str  # the answer as it is shown to the model again

    @property
    def ok(self) -> bool:
        return self.trial.report.ok and not self.screened.faults

    @property
    def rank(self) -> tuple[bool, bool, int, float, float]:
        """Better ones are greater: compiled, without errors, with fewer, by score, by text that reaches records."""
        report = self.trial.report
        score = report.score() if self.ok else 0.0
        return self.trial.compiled, self.ok, -self.trial.errors, score, float(report.figures.get("coverage", 0.0))


def propose_with_model(
    samples: Samples,
    endpoint: Endpoint,
    *,
    name: str,
    rounds: int = 4,
    pack_tokens: int = 12_000,
    hints: Mapping[str, str] = MappingProxyType({}),
    draft: Mapping[str, Any] | None = None,
    labels: str | None = None,
    waive: Mapping[str, str] = MappingProxyType({}),
    mask: bool = True,
    deadline: float = 1800.0,
    trial_seconds: float = 120.0,
    listen: Callable[[str], None] | None = None,
    try_spec: Try = try_apart,
) -> ModelResult:
    """Asks the model for a spec, up to `rounds` times, and gives the best one back. Nothing is written.

    name: of the adapter; what the model calls it does not count. hints: paths that the user has fixed, by field.
    draft: a spec to start from. labels: a file of outcomes. waive: what the user waives, by place. mask: mask likely
    secrets in what the model is shown. deadline: seconds for everything; trial_seconds: for running one spec on the
    samples. listen: told what goes on, a line at a time.

    Whatever the server does becomes a result, never an exception. ConfigError for options out of range and for a
    missing key; MissingExtraError without the packages.
    """
    if not 1 <= rounds <= MOST_ROUNDS:
        raise ConfigError(f"rounds {rounds}: from 1 to {MOST_ROUNDS}.")
    if is_read_once(samples.source):
        raise ConfigError("samples from a stream cannot be read again; save them to a file.")
    chat = Chat(endpoint, ANSWER_SCHEMA)
    masker = Masker(chat.secrets, mask=mask)
    pack = sample_pack(samples, pack_tokens, masker)
    transcript = Transcript(masker if masker.is_on else Masker(chat.secrets))
    transcript.add(
        "start",
        prompt=PROMPT_VERSION,
        endpoint=endpoint.shown,
        samples=samples.source,
        files=len(samples.files),
        pack={"tokens": pack.tokens, "files": list(pack.files), "cut": list(pack.cut), "masked": dict(pack.masked)},
        hints=dict(hints),
        rounds=rounds,
    )

    def judge(spec: Mapping[str, Any], left: float) -> tuple[Screened, Trial]:
        screened = screen(spec, samples, name=name, hints=hints, waive=waive)
        if screened.spec is None:
            return Screened(None, (), screened.waivers), failed("limits", screened.faults[0])
        talk.tell(f"running the proposal on {len(samples.files)} file(s)")
        seconds = min(trial_seconds, max(left, 1.0))
        return screened, try_spec(screened.spec, samples.source, labels, seconds)

    talk = _Talk(chat, masker, transcript, judge, listen if listen is not None else lambda _: None)
    return talk.run(first_messages(pack, hints, draft), rounds, deadline)


@dataclass(slots=True)
class _Talk:
    """One conversation. judge: screens and tries a spec in the seconds that are left."""

    chat: Chat
    masker: Masker
    transcript: Transcript
    judge: Callable[[Mapping[str, Any], float], tuple[Screened, Trial]]
    tell: Callable[[str], None]
    replies: list[Reply] = field(default_factory=list)
    waivers: dict[str, None] = field(default_factory=dict)

    def run(self, first: Messages, rounds: int, deadline: float) -> ModelResult:
        for message in first:
            self.transcript.add("message", **message)
        best: _Round | None = None
        messages = first
        seen: list[dict[str, Any]] = []
        for number in range(1, rounds + 1):
            left = deadline - (time.monotonic() - self.transcript.begin)
            if left <= 0:
                return self._result(best, f"the time of {deadline:g} s was up")
            try:
                reply = self._ask(messages, number, left)
            except EndpointError as exc:
                self.transcript.add("failure", what=str(exc))
                self.tell(self._clean(str(exc)))
                return self._result(best, str(exc))
            now, before = self._judged(number, reply, left), best
            spec = now.screened.spec
            is_better = best is None or now.rank > best.rank
            # of two as good the later one, written by who had seen what the one before became
            if best is None or is_better or (now.rank == best.rank and spec not in (None, *seen)):
                best = now
            self._note(now, is_best=best is now)
            if now.answer.is_refusal:
                return self._result(best, now.answer.fault)
            if now.trial.is_clean and not now.screened.faults:
                return self._result(best, "the checks found nothing more that another spec would mend")
            if before is not None and before.ok and not is_better:
                return self._result(best, "the score did not improve and there was no error")
            if spec in seen:
                return self._result(best, "the model gave the same spec again")
            seen += [spec] if spec is not None else []
            messages = self._next(first, now, best)
        return self._result(best, f"{rounds} round(s) were asked for")

    def _clean(self, text: str) -> str:
        return self.transcript.masker.mask(text)

    def _ask(self, messages: Messages, number: int, left: float) -> Reply:
        if number > 1:
            self.transcript.add("message", **messages[-1])
        self.tell(f"round {number}: asking {self.chat.endpoint.shown}")
        reply = self.chat.ask(messages, self.tell, left)
        self.replies.append(reply)
        said = fields_of(replace(reply, logprobs=()))
        said |= {"content": said.pop("text"), "took": round(said.pop("seconds"), 3)}
        self.transcript.add("reply", round=number, **said)
        return reply

    def _judged(self, number: int, reply: Reply, left: float) -> _Round:
        answer = read_answer(reply)
        shown = self.masker.mask(reply.text[:_SHOWN_AGAIN])
        if answer.spec is None:
            return _Round(number, answer, Screened(None), failed("answer", answer.fault), shown)
        screened, trial = self.judge(answer.spec, left)
        for waiver in screened.waivers:
            path, reason = (self._clean(str(waiver.get(key)))[:150] for key in ("path", "reason"))
            asks = f"{self.chat.endpoint.model} asks to waive {path}: {reason}"
            self.waivers[f"{asks}. Not done; if it is harmless: --waive '{path}=REASON'"] = None
        if screened.spec is not None:
            shown = canonical({"notes": list(answer.notes), "spec": screened.spec})
        return _Round(number, answer, screened, trial, shown)

    def _note(self, now: _Round, is_best: bool) -> None:
        report = now.trial.report
        if now.trial.compiled:
            warnings = sum(one.severity == "warning" for one in report.findings)
            said = f"score {now.rank[3]:.3f}, {now.trial.errors} error(s), {warnings} warning(s)"
        else:
            said = f"no adapter: {report.findings[0].what[:200]}"
        self.tell(self._clean(f"round {now.number}: {said}"))
        self.transcript.add(
            "trial",
            round=now.number,
            compiled=now.trial.compiled,
            ok=now.ok,
            score=round(now.rank[3], 6),
            best=is_best,
            screened=list(now.screened.faults),
            waivers=[dict(one) for one in now.screened.waivers],
            faults=[one.to_dict() for one in now.trial.faults],
            figures=dict(report.figures),
            notes=list(now.answer.notes),
        )

    def _next(self, first: Messages, now: _Round, best: _Round) -> Messages:
        """Goes on from the best proposal; where the last one was worse, says so and why."""
        remark, base = "", now
        if best is not now and best.trial.compiled:
            base = best
            worse = self._faults_of(now).split("\n")[0][:300]
            remark = f"Your last change made it worse and was dropped ({worse}). Go on from the spec above."
        return next_messages(first, base.shown, self._faults_of(base), remark)

    def _faults_of(self, one: _Round) -> str:
        not_waived = (_NOT_WAIVED,) if one.screened.waivers else ()
        return feedback(one.trial, (*one.screened.faults, *not_waived), self.masker)

    def _result(self, best: _Round | None, stop: str) -> ModelResult:
        won = best if best is not None and best.trial.compiled else None
        if won is not None:
            errors = max(won.trial.errors, 1)
            state = "without errors" if won.ok else f"with {errors} error(s), so it must not be frozen as it is"
            why = f"the proposal of round {won.number} won, {state}, score {won.rank[3]:.3f}; stopped: {stop}"
        elif best is not None:
            why = f"no proposal was an adapter ({best.trial.report.findings[0].what[:300]}); stopped: {stop}"
        else:
            why = f"no proposal: {stop}"
        why = self._clean(why)
        tokens_in = sum(reply.tokens_in for reply in self.replies)
        tokens_out = sum(reply.tokens_out for reply in self.replies)
        endpoint = self.chat.endpoint
        usage = Usage(
            endpoint.model,
            len(self.replies),
            tokens_in,
            tokens_out,
            endpoint.cost(tokens_in, tokens_out),
            estimated=any(reply.estimated for reply in self.replies),
        )
        sha256 = won.trial.report.sha256 if won is not None else None
        self.transcript.add("end", ok=won is not None and won.ok, sha256=sha256, **{**fields_of(usage), "why": why})
        self.tell(str(usage))
        return ModelResult(
            self._proposal(won) if won is not None else None,
            won is not None and won.ok,
            why,
            self.transcript,
            won.trial if won is not None else None,
            usage,
            tuple(self.waivers),
        )

    def _proposal(self, won: _Round) -> Proposal:
        spec, model = won.screened.spec or {}, self.chat.endpoint.model
        hidden = [one if isinstance(one, str) else canonical(one) for one in spec.get("hidden", [])]
        said = f"hidden: {model} says it is not there while a run is live"
        notes = tuple(f"{model} says: {self._clean(note)}" for note in won.answer.notes)
        return Proposal(spec, left_out=tuple(LeftOut(path, said) for path in hidden), notes=notes, origin=model)
