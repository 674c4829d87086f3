"""Asks a judge many questions, several at a time; what was answered before is not asked again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from prefixguard.errors import ConfigError, EndpointError, UsageError
from prefixguard.escalate import AsyncClient, Endpoint, Reply, masked, masked_in_words, total_masked
from prefixguard.evaluation.judge.question import (
    ANSWER_SCHEMA,
    NO_REPLY,
    TOKENS_OUT,
    JudgeAnswer,
    JudgeQuestion,
    prompt_version,
    read_answer,
)
from prefixguard.store import Kept, OnProgress, Store

NOWHERE = Store(None)
#: What is kept of a reply; what the server may repeat of the key is masked in it.
_KEPT = ("text", "finish", "refusal", "tokens_in", "tokens_out", "estimated", "seconds", "attempts", "model")
#: Questions one after another without a reply, after which the endpoint is taken to be down.
GIVEN_UP_AFTER = 5


@dataclass(frozen=True, slots=True)
class JudgeEstimate:
    """What asking will take, before anything is sent.

    questions: of the sample. different: of these; prefixes that say the same are asked about once. kept: of these,
    answered by an earlier run; they cost nothing now. tokens_in, tokens_out: of the others, about (four characters a
    token; models that think before they answer send more). cost: of these, in the currency of the prices; None where
    they are not known. model: and where it is. masked: secrets in all questions, by kind; None where none are masked.
    """

    questions: int
    different: int
    kept: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    model: str
    masked: Mapping[str, int] | None

    @property
    def calls(self) -> int:
        """Questions that will be sent."""
        return self.different - self.kept

    def to_text(self) -> str:
        """A sentence or two for people."""
        said = f"{self.questions:,} prefixes are drawn, {self.calls:,} questions go to {self.model}"
        if self.kept:
            said += f" ({self.kept:,} were answered before)"
        if not self.calls:
            return f"{said}."
        said += f": about {self.tokens_in:,} tokens in, {self.tokens_out:,} out"
        said += " (more where the model thinks before it answers)"
        if self.cost is not None:
            said += f", about {self.cost:.3g} at the given prices"
        if self.masked is None:
            return f"{said}. Steps of runs are sent as they stand in the records."
        return f"{said}. {masked_in_words(self.masked)}"


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """One question and what became of it.

    reply: None where there was none; `failure` then says why. kept: the reply is an earlier run's.
    """

    question: JudgeQuestion
    answer: JudgeAnswer
    reply: Reply | None
    kept: bool
    failure: str = ""


def estimate(
    questions: Sequence[JudgeQuestion], endpoint: Endpoint, kept: Store = NOWHERE, *, mask: bool = True
) -> JudgeEstimate:
    """What asking these will take. kept: replies of earlier runs. mask: whether secrets are masked in the questions."""
    each = {one.key(endpoint): one for one in questions}
    new = [one for key, one in each.items() if _kept_reply(kept, key) is None]
    sent = sum(one.tokens for one in new)
    back = TOKENS_OUT * len(new)
    return JudgeEstimate(
        questions=len(questions),
        different=len(each),
        kept=len(each) - len(new),
        tokens_in=sent,
        tokens_out=back,
        cost=endpoint.cost(sent, back),
        model=endpoint.shown,
        masked=total_masked(one.masked for one in questions) if mask else None,
    )


def ask_all(
    questions: Sequence[JudgeQuestion],
    endpoint: Endpoint,
    *,
    kept: Store = NOWHERE,
    at_once: int = 4,
    on_answer: OnProgress | None = None,
) -> list[AskedQuestion]:
    """Every question with its answer, in their order. Questions that are the same are asked once.

    kept: where replies are taken from, and written as they come, so that an interrupted run goes on where it stopped.
    A question without a reply is asked anew by the next run. at_once: questions under way at a time.
    on_answer: called with how many are done, of how many.
    The rest is not asked once GIVEN_UP_AFTER questions, one after another, had no reply. Raises ConfigError for
    at_once below 1 and without a key where one is needed, MissingExtraError without the packages, OutputError where a
    reply cannot be kept, UsageError inside a running event loop.
    """
    if at_once < 1:
        raise ConfigError(f"{at_once} questions at a time: ask 1 or more.")
    if _on_a_loop():
        raise UsageError(
            "asking runs an event loop of its own. Inside another one: await asyncio.to_thread(ask_all, ...)."
        )
    keys = [question.key(endpoint) for question in questions]
    found: dict[str, AskedQuestion] = {}
    waiting: dict[str, JudgeQuestion] = {}
    for key, question in dict(zip(keys, questions, strict=True)).items():
        earlier = _kept_reply(kept, key)
        if earlier is None:
            waiting[key] = question
        else:
            found[key] = AskedQuestion(question, read_answer(earlier), earlier, kept=True)
    last = asyncio.run(_ask_waiting(waiting, endpoint, kept, at_once, found, on_answer)) if waiting else ""
    why = f"given up after {GIVEN_UP_AFTER} questions in a row without one; the last: {last}"
    return [
        replace(found[key], question=question) if key in found else AskedQuestion(question, NO_REPLY, None, False, why)
        for key, question in zip(keys, questions, strict=True)
    ]


async def _ask_waiting(
    waiting: dict[str, JudgeQuestion],
    endpoint: Endpoint,
    kept: Store,
    at_once: int,
    found: dict[str, AskedQuestion],
    on_answer: OnProgress | None,
) -> str:
    """Asks what is waiting, by key, and puts it into `found`; nothing more once the endpoint is down. Returns why the
    last question without a reply had none."""
    client = AsyncClient(endpoint, ANSWER_SCHEMA, breaker=False, concurrency=at_once)  # `failed` ends it
    of, failed, last = len(found) + len(waiting), 0, ""  # failed: questions without a reply, one after another
    queue = iter(waiting.items())

    async def work() -> None:
        nonlocal failed, last
        for key, question in queue:  # shared: each question goes to one of the workers
            if failed >= GIVEN_UP_AFTER:
                return
            found[key] = asked = await _ask(key, question, client, kept)
            failed = 0 if asked.reply is not None else failed + 1
            last = asked.failure or last
            if on_answer is not None:
                on_answer(len(found), of)

    try:
        await asyncio.gather(*(work() for _ in range(min(at_once, len(waiting)))))
    finally:
        await client.aclose()
    return last


def _kept_reply(kept: Store, key: str) -> Reply | None:
    """The reply to a question: what was said and what it cost, and no word of a run but what the model repeats. The
    answer is read from it anew each time."""
    found = kept.get("reply", question=key)
    return None if found is None else Reply(**found.facts["reply"])


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _ask(key: str, question: JudgeQuestion, client: AsyncClient, kept: Store) -> AskedQuestion:
    try:
        reply = await client.ask(question.messages)
    except EndpointError as exc:
        return AskedQuestion(question, NO_REPLY, None, kept=False, failure=str(exc))
    said: dict[str, Any] = {name: getattr(reply, name) for name in _KEPT}
    said |= {name: masked(text, client.secrets) for name, text in said.items() if isinstance(text, str)}
    kept.put(Kept({"prompt": prompt_version(), "reply": said}), "reply", question=key)
    return AskedQuestion(question, read_answer(reply), reply, kept=False)
