"""The synchronous client: the same answers, deadlines and faults, without an event loop of the caller's."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from model_server import at_most, fails, model_server, pinging, says, silent, tells, trickling, whole

from prefixguard.errors import EndpointError
from prefixguard.escalate.circuit import CircuitBreaker, CircuitOpenError, NoReplyError
from prefixguard.escalate.client import Chat
from prefixguard.escalate.endpoint import Endpoint

ASKED = [{"role": "user", "content": "Which step?"}]


def chat(url: str, schema: Any = None, breaker: CircuitBreaker | None = None, **options: Any) -> Chat:
    options = {"timeout": 5.0, "patience": 8.0, "max_retries": 0, "first_wait": 0.01, **options}
    return Chat(Endpoint("played", url, **options), schema, breaker=breaker)


def test_replies_one_after_another() -> None:
    with model_server(says("a"), whole("b"), tells({"content": "c", "reasoning": "since"})) as server:
        partner = chat(server.url)
        replies = [partner.ask(ASKED) for _ in range(3)]
    assert [reply.text for reply in replies] == ["a", "b", "c"] and replies[2].reasoning == "since"
    assert (replies[0].tokens_in, replies[0].tokens_out, replies[0].estimated) == (1000, 100, False)


def test_what_goes_on_is_told_on_the_callers_thread() -> None:
    told: list[tuple[str, threading.Thread]] = []
    with model_server(fails(400), fails(500), says("x")) as server:
        partner = chat(server.url, schema={"type": "object"}, max_retries=1)
        reply = partner.ask(ASKED, lambda text: told.append((text, threading.current_thread())))
    assert tuple(text for text, _ in told) == reply.notes and len(told) == 2
    assert {thread for _, thread in told} == {threading.current_thread()}
    assert "asking plainer" in told[0][0] and "trying again" in told[1][0]
    assert partner.secrets == ("none",)


@pytest.mark.parametrize("play", [silent, trickling, pinging])
def test_a_question_ends_at_its_deadline(play: Any) -> None:
    with model_server(play) as server, at_most(4):
        with pytest.raises(NoReplyError, match=r"within 0\.\d+ s"):
            chat(server.url).ask(ASKED, seconds=0.3)
        with pytest.raises(EndpointError, match=r"within 0\.2 s"):
            chat(server.url, timeout=0.2).ask(ASKED)


def test_it_may_be_asked_where_a_loop_is_running() -> None:
    async def main(partner: Chat) -> str:
        return partner.ask(ASKED).text

    with model_server(says("x")) as server:
        assert asyncio.run(main(chat(server.url))) == "x"


def test_who_stops_listening_ends_the_question() -> None:
    def listen(text: str) -> None:
        raise KeyboardInterrupt

    before = set(threading.enumerate())
    with model_server(fails(500), silent) as server, at_most(4):
        with pytest.raises(KeyboardInterrupt):
            chat(server.url, max_retries=3, first_wait=0.5).ask(ASKED, listen)
        for thread in set(threading.enumerate()) - before:
            if thread.name == "prefixguard-endpoint":
                thread.join(4)
                assert not thread.is_alive()
    assert len(server.requests) == 1


def test_a_breaker_is_shared() -> None:
    breaker = CircuitBreaker(2)
    with model_server(fails(500)) as server:
        for _ in range(2):
            with pytest.raises(NoReplyError, match="500"):
                chat(server.url, breaker=breaker).ask(ASKED)
        with pytest.raises(CircuitOpenError):
            chat(server.url, breaker=breaker).ask(ASKED)
    assert len(server.requests) == 2


def test_a_fault_holds_no_other_fault() -> None:
    with model_server(fails(401)) as server, pytest.raises(NoReplyError) as caught:
        chat(server.url).ask(ASKED)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
