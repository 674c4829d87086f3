"""Asks a judge many questions, several at a time; what was answered before is not asked again."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from prefixguard.errors import ConfigError, EndpointError
from prefixguard.escalate import Chat, Endpoint, Reply
from prefixguard.evaluate.judge.answer import ANSWER_SCHEMA, NO_REPLY, JudgeAnswer, read_answer
from prefixguard.evaluate.judge.kept import KeptReplies
from prefixguard.evaluate.judge.question import TOKENS_OUT, JudgeQuestion, prompt_version

#: Questions one after another without a reply, after which the endpoint is taken to be down.
GIVEN_UP_AFTER = 5


@dataclass(frozen=True, slots=True)
class JudgeEstimate:
    """What asking will take, before anything is sent.

    questions: of the sample. different: of these; prefixes that say the same are asked about once. kept: of these,
    answered by an earlier run; they cost nothing now. tokens_in, tokens_out: of the others, about (four characters a
    token; models that think before they answer send more). cost: of these, in the currency of the prices; None where
    they are not known.
    """

    questions: int
    different: int
    kept: int
    tokens_in: int
    tokens_out: int
    cost: float | None

    @property
    def calls(self) -> int:
        """Questions that will be sent."""
        return self.different - self.kept


@dataclass(frozen=True, slots=True)
class Asked:
    """One question and what became of it.

    reply: None where there was none; `failure` then says why. kept: the reply is an earlier run's.
    """

    question: JudgeQuestion
    answer: JudgeAnswer
    reply: Reply | None
    kept: bool
    failure: str = ""


def estimate(questions: Sequence[JudgeQuestion], endpoint: Endpoint, kept: KeptReplies | None = None) -> JudgeEstimate:
    """What asking these will take. kept: replies of earlier runs."""
    each = {one.key(endpoint): one for one in questions}
    new = [one for key, one in each.items() if kept is None or kept.load(key) is None]
    sent = sum(one.tokens for one in new)
    back = TOKENS_OUT * len(new)
    return JudgeEstimate(len(questions), len(each), len(each) - len(new), sent, back, endpoint.cost(sent, back))


def ask_all(
    questions: Sequence[JudgeQuestion],
    endpoint: Endpoint,
    *,
    kept: KeptReplies | None = None,
    at_once: int = 4,
    on_answer: Callable[[int, int], None] | None = None,
) -> list[Asked]:
    """Every question with its answer, in their order. Questions that are the same are asked once.

    kept: where replies are taken from, and written as they come, so that an interrupted run goes on where it stopped;
    None: nothing is kept. A question without a reply is asked anew by the next run. at_once: questions under way at a
    time. on_answer: called with how many are done, of how many.
    The rest is not asked once GIVEN_UP_AFTER questions, one after another, had no reply. Raises ConfigError for
    at_once below 1 and without a key where one is needed, MissingExtraError without the packages, OutputError where a
    reply cannot be kept.
    """
    if at_once < 1:
        raise ConfigError(f"{at_once} questions at a time: ask 1 or more.")
    found: dict[str, Asked] = {}
    keys = [question.key(endpoint) for question in questions]
    different = dict(zip(keys, questions, strict=True))
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for key, question in different.items():
        earlier = None if kept is None else kept.load(key)
        if earlier is None:
            waiting.put(key)
        else:
            found[key] = Asked(question, read_answer(earlier), earlier, kept=True)
    chats = [Chat(endpoint, ANSWER_SCHEMA) for _ in range(min(at_once, waiting.qsize()))]
    done: queue.SimpleQueue[tuple[str, Asked | BaseException]] = queue.SimpleQueue()
    stop = threading.Event()

    def work(chat: Chat) -> None:
        while not stop.is_set():
            try:
                key = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                done.put((key, _ask(key, different[key], chat, kept)))
            except BaseException as exc:  # raised again where the caller waits
                done.put((key, exc))
                return

    threads = [threading.Thread(target=work, args=(chat,), name="prefixguard-judge", daemon=True) for chat in chats]
    for thread in threads:
        thread.start()
    in_a_row, last_failure = 0, ""
    try:
        while len(found) < len(different):
            alive = any(thread.is_alive() for thread in threads)
            try:
                key, got = done.get(timeout=0.5)
            except queue.Empty:
                if alive:
                    continue
                break
            if isinstance(got, BaseException):
                raise got
            found[key] = got
            in_a_row = 0 if got.reply is not None else in_a_row + 1
            last_failure = got.failure or last_failure
            if in_a_row >= GIVEN_UP_AFTER:
                stop.set()  # what is under way still comes
            if on_answer is not None:
                on_answer(len(found), len(different))
    finally:
        stop.set()  # after an interrupt, too, nothing more is sent
    why = f"given up after {GIVEN_UP_AFTER} questions in a row without one; the last: {last_failure}"
    unasked = (Asked(question, NO_REPLY, None, False, why) for question in questions)
    return [
        replace(found[key], question=question) if key in found else nothing
        for key, question, nothing in zip(keys, questions, unasked, strict=True)
    ]


def _ask(key: str, question: JudgeQuestion, chat: Chat, kept: KeptReplies | None) -> Asked:
    try:
        reply = chat.ask(question.messages)
    except EndpointError as exc:
        return Asked(question, NO_REPLY, None, kept=False, failure=str(exc))
    if kept is not None:
        kept.save(key, reply, prompt_version(), chat.secrets)
    return Asked(question, read_answer(reply), reply, kept=False)
