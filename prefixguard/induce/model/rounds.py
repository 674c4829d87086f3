"""A model proposes, the checks judge, and what is wrong goes back: up to so many rounds; the best proposal wins."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from prefixguard.errors import ConfigError, EndpointError
from prefixguard.escalate import Chat, Endpoint, Masker, Reply
from prefixguard.induce.model.feedback import feedback
from prefixguard.induce.model.model_result import ModelResult
from prefixguard.induce.model.pack import Pack, sample_pack
from prefixguard.induce.model.prompt import PROMPT_VERSION, first_messages, next_messages
from prefixguard.induce.model.reply import ANSWER_SCHEMA, Answer, is_refusal, read_answer
from prefixguard.induce.model.screening import Screened, screen
from prefixguard.induce.model.transcript import Transcript
from prefixguard.induce.model.trial import Trial, failed, try_apart
from prefixguard.induce.proposal import LeftOut, Proposal
from prefixguard.induce.samples import Samples
from prefixguard.stepview import canonical
from prefixguard.trace import is_read_once

MOST_ROUNDS = 20

#: Compiles a spec and runs it on the samples: (spec, source, labels, seconds).
Try = Callable[[Mapping[str, Any], str, str | None, float], Trial]


@dataclass(slots=True)
class _Round:
    number: int
    answer: Answer
    screened: Screened
    trial: Trial
    shown: str  # the answer as it is shown to the model again


def propose_with_model(
    samples: Samples,
    endpoint: Endpoint,
    *,
    name: str,
    rounds: int = 4,
    pack_tokens: int = 12_000,
    hints: Mapping[str, str] | None = None,
    seed_spec: Mapping[str, Any] | None = None,
    labels: str | None = None,
    allow_waivers: bool = False,
    mask: bool = True,
    deadline: float = 1800.0,
    trial_seconds: float = 120.0,
    listen: Callable[[str], None] | None = None,
    try_spec: Try = try_apart,
) -> ModelResult:
    """Asks the model for a spec, up to `rounds` times, and gives the best one back. Nothing is written.

    name: of the adapter; what the model calls it does not count. hints: paths that the user has fixed, by field.
    seed_spec: an offline proposal to show as a draft. labels: a file of outcomes. allow_waivers: let the model waive
    refusals (the user has said so). mask: mask likely secrets in what the model is shown. deadline: seconds for
    everything; trial_seconds: for running one spec on the samples. listen: told what goes on, a line at a time.

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
    talk = _Talk(
        samples, chat, masker, pack, name, dict(hints or {}), labels, allow_waivers, trial_seconds, try_spec, listen
    )
    return talk.run(rounds, deadline, seed_spec)


class _Talk:
    """One conversation."""

    def __init__(
        self,
        samples: Samples,
        chat: Chat,
        masker: Masker,
        pack: Pack,
        name: str,
        hints: dict[str, str],
        labels: str | None,
        allow_waivers: bool,
        trial_seconds: float,
        try_spec: Try,
        listen: Callable[[str], None] | None,
    ) -> None:
        self.samples, self.chat, self.pack, self.name, self.hints = samples, chat, pack, name, hints
        self.labels, self.allow_waivers = labels, allow_waivers
        self.trial_seconds, self.try_spec = trial_seconds, try_spec
        self.listen = listen if listen is not None else lambda _: None
        self.masker = masker
        self.transcript = Transcript(masker if masker.is_on else Masker(chat.secrets))
        self.begin = time.monotonic()
        self.tokens_in = self.tokens_out = self.read = 0
        self.estimated = False

    def run(self, rounds: int, deadline: float, seed_spec: Mapping[str, Any] | None) -> ModelResult:
        endpoint = self.chat.endpoint
        first = first_messages(self.pack, self.hints, seed_spec)
        self.transcript.add(
            "start",
            prompt=PROMPT_VERSION,
            endpoint=endpoint.shown,
            samples=self.samples.source,
            files=len(self.samples.files),
            pack={
                "tokens": self.pack.tokens,
                "files": list(self.pack.files),
                "cut": list(self.pack.cut),
                "masked": dict(self.pack.masked),
            },
            hints=self.hints,
            rounds=rounds,
        )
        for message in first:
            self.transcript.add("message", **message)
        best: _Round | None = None
        messages = first
        stop = f"{rounds} round(s) were asked for"
        seen: set[str] = set()
        for number in range(1, rounds + 1):
            left = deadline - (time.monotonic() - self.begin)
            if left <= 0:
                stop = f"the time of {deadline:g} s was up"
                break
            try:
                reply = self._ask(messages, number, left)
            except EndpointError as exc:
                stop = self.transcript.clean(str(exc))
                self.transcript.add("failure", what=stop)
                self.listen(stop)
                break
            now = self._judge(number, reply, left)
            is_better = best is None or now.trial.rank > best.trial.rank
            before = best
            if best is None or is_better or _is_as_good(now, best):
                best = now
            self._report(now, best is now)
            if is_refusal(now.answer.fault):
                stop = str(now.answer.fault)
                break
            done = _finished(now, before, is_better)
            again = canonical(now.screened.spec) if now.screened.spec is not None else ""
            if again and again in seen:
                done = done or "the model gave the same spec again"
            seen.add(again)
            if done is not None:
                stop = done
                break
            messages = self._next(first, now, best)
        return self._result(best, stop)

    def _ask(self, messages: list[dict[str, str]], number: int, left: float) -> Reply:
        if number > 1:
            self.transcript.add("message", **messages[-1])
        self.listen(f"round {number}: asking {self.chat.endpoint.shown}")
        reply = self.chat.ask(messages, self.listen, left)
        self.read += 1
        self.tokens_in += reply.tokens_in
        self.tokens_out += reply.tokens_out
        self.estimated |= reply.estimated
        self.transcript.add(
            "reply",
            round=number,
            content=reply.text,
            finish=reply.finish,
            refusal=reply.refusal,
            model=reply.model,
            tokens=[reply.tokens_in, reply.tokens_out],
            estimated=reply.estimated,
            took=round(reply.seconds, 3),
            attempts=reply.attempts,
            remarks=list(reply.notes),
        )
        return reply

    def _judge(self, number: int, reply: Reply, left: float) -> _Round:
        answer = read_answer(reply.text, reply.finish, reply.refusal)
        if answer.spec is None:
            return _Round(
                number,
                answer,
                Screened(None),
                failed("answer", answer.fault or "no spec"),
                self.masker.mask(reply.text[:2000]),
            )
        screened = screen(answer.spec, self.samples, name=self.name, hints=self.hints, allow_waivers=self.allow_waivers)
        if screened.spec is None:
            short = "(a spec that was refused as a whole)"
            return _Round(number, answer, replace(screened, faults=()), failed("limits", screened.faults[0]), short)
        blocking = [fault for fault in screened.faults if not fault.startswith("`waived`")]
        if any("too costly" in fault or "regular expression of" in fault for fault in blocking):
            trial = failed("limits", blocking[0])
        else:
            self.listen(f"round {number}: running the proposal on {len(self.samples.files)} file(s)")
            trial = self.try_spec(
                screened.spec, self.samples.source, self.labels, min(self.trial_seconds, max(left, 1.0))
            )
        if blocking:  # what the screen found is an error too, whatever the checks say
            trial = replace(trial, ok=False, score=0.0)
        return _Round(number, answer, screened, trial, canonical({"notes": list(answer.notes), "spec": screened.spec}))

    def _report(self, now: _Round, is_better: bool) -> None:
        trial = now.trial
        said = (
            f"round {now.number}: score {trial.score:.3f}, {trial.errors} error(s), {trial.warnings} warning(s)"
            if trial.compiled
            else f"round {now.number}: no adapter: {trial.faults[0].what[:200] if trial.faults else ''}"
        )
        self.listen(self.transcript.clean(said))
        self.transcript.add(
            "trial",
            round=now.number,
            compiled=trial.compiled,
            ok=trial.ok,
            score=round(trial.score, 6),
            best=is_better,
            screened=list(now.screened.faults),
            waivers=list(now.screened.waivers),
            faults=[{"check": f.check, "severity": f.severity, "where": f.where, "what": f.what} for f in trial.faults],
            figures=dict(trial.figures),
            notes=list(now.answer.notes),
        )

    def _next(self, first: list[dict[str, str]], now: _Round, best: _Round) -> list[dict[str, str]]:
        """Goes on from the best proposal; where the last one was worse, says so and why."""
        remark = ""
        if best is not now and best.trial.compiled:
            worse = feedback(replace(now.trial, preview=""), now.screened.faults, self.masker).split("\n")[0]
            remark = f"Your last change made it worse and was dropped ({worse[:300]}). Go on from the spec above."
        base = best if best.trial.compiled else now
        return next_messages(first, base.shown, feedback(base.trial, base.screened.faults, self.masker), remark)

    def _result(self, best: _Round | None, stop: str) -> ModelResult:
        proposal, trial = None, None
        ok = False
        if best is not None and best.trial.compiled and best.screened.spec is not None:
            trial, ok = best.trial, best.trial.ok
            proposal = self._proposal(best)
            state = (
                "without errors" if ok else f"with {max(trial.errors, 1)} error(s), so it must not be frozen as it is"
            )
            why = f"the proposal of round {best.number} won, {state}, score {trial.score:.3f}; stopped: {stop}"
        elif best is not None:
            fault = best.trial.faults[0].what if best.trial.faults else "no spec"
            why = f"no proposal was an adapter ({fault[:300]}); stopped: {stop}"
        else:
            why = f"no proposal: {stop}"
        why = self.transcript.clean(why)
        seconds = time.monotonic() - self.begin
        cost = self.chat.endpoint.cost(self.tokens_in, self.tokens_out)
        self.transcript.add(
            "end",
            why=why,
            ok=ok,
            sha256=trial.sha256 if trial is not None else None,
            rounds=self.read,
            tokens=[self.tokens_in, self.tokens_out],
            estimated=self.estimated,
            cost=cost,
        )
        result = ModelResult(
            proposal,
            ok,
            why,
            self.transcript,
            trial,
            self.pack,
            self.read,
            self.tokens_in,
            self.tokens_out,
            cost,
            self.estimated,
            seconds,
        )
        self.listen(result.bill)
        return result

    def _proposal(self, best: _Round) -> Proposal:
        spec = best.screened.spec or {}
        model = self.chat.endpoint.model
        hidden = [one if isinstance(one, str) else canonical(one) for one in spec.get("hidden", [])]
        notes = [f"{model} says: {self.transcript.clean(note)}" for note in best.answer.notes]
        for waiver in best.screened.waivers:
            said = self.transcript.clean(f"{waiver.get('path')}: {waiver.get('reason')}")[:300]
            notes.append(f"{model} asked to waive {said}" + ("" if self.allow_waivers else " (not done)"))
        return Proposal(
            spec=spec,
            left_out=tuple(
                LeftOut(path, f"hidden: {model} says it is not there while a run is live") for path in hidden
            ),
            notes=tuple(notes),
            origin=model,
            score=best.trial.score,
            extra={
                "prompt": PROMPT_VERSION,
                "round": best.number,
                "waivers_asked": [dict(one) for one in best.screened.waivers],
            },
        )


def _is_as_good(now: _Round, best: _Round) -> bool:
    """Another spec of the same rank: written by who had seen what the one before became."""
    return now.trial.rank == best.trial.rank and now.trial.compiled and now.screened.spec != best.screened.spec


def _finished(now: _Round, before: _Round | None, is_better: bool) -> str | None:
    """Why no further round is needed; None where one is."""
    if now.trial.is_clean and not now.screened.faults:
        return "the checks found nothing more"
    if before is not None and before.trial.ok and not is_better:
        return "the score did not improve and there was no error"
    return None


__all__ = ["ModelResult", "Try", "propose_with_model"]
