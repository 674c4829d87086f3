"""The asynchronous client over real HTTP: good servers and bad ones, deadlines, slots, breaker, and no key anywhere."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from model_server import (
    Crowd,
    Exchange,
    ModelServer,
    Play,
    at_most,
    chunk,
    endless,
    endless_error,
    fails,
    hangs_up,
    huge_document,
    huge_line,
    later,
    model_server,
    page,
    pinging,
    redirects,
    says,
    silent,
    streams,
    tells,
    trickling,
    whole,
)

from prefixguard.errors import ConfigError, EndpointError, UsageError
from prefixguard.escalate.circuit import CircuitBreaker, CircuitOpenError, CircuitState, NoReplyError, NoReplyFault
from prefixguard.escalate.client import AsyncClient
from prefixguard.escalate.endpoint import Endpoint, Reply

T = TypeVar("T")
ASKED = [{"role": "user", "content": "Which step?"}]
KEY = "sk-test-abcdefghijklmnopqrstuvwxyz"
DEAD = "http://127.0.0.1:9/v1"  # nothing listens there


def endpoint(url: str, **options: Any) -> Endpoint:
    return Endpoint("played", url, **{"timeout": 5.0, "patience": 8.0, "max_retries": 0, "first_wait": 0.01, **options})


def run(act: Callable[[AsyncClient], Awaitable[T]], where: Endpoint, **options: Any) -> T:
    """What `act` gives with a client, on an event loop of its own; the client is closed after it."""

    async def main() -> T:
        client = AsyncClient(where, **options)
        try:
            return await act(client)
        finally:
            await client.aclose()

    return asyncio.run(main())


def ask(server: ModelServer, *, schema: Any = None, asking: dict[str, Any] | None = None, **options: Any) -> Reply:
    return run(lambda client: client.ask(ASKED, **(asking or {})), endpoint(server.url, **options), schema=schema)


def ask_in_vain(play: Play | None, *, seconds: float | None = None, **options: Any) -> NoReplyError:
    with model_server(play or silent) as server, pytest.raises(NoReplyError) as caught:
        ask(server, asking={"seconds": seconds}, **options)
    return caught.value


async def arrived(server: ModelServer, requests: int) -> None:
    """Waits until so many requests are at the server."""
    while len(server.requests) < requests:
        await asyncio.sleep(0.01)


# -- good servers


@pytest.mark.parametrize("play", [says("step 3"), whole("step 3"), streams({"delta": {"content": "step 3"}})])
def test_a_reply(play: Play) -> None:
    with model_server(play) as server:
        reply = ask(server)
    assert (reply.text, reply.attempts, reply.notes, reply.logprobs) == ("step 3", 1, (), ())
    assert server.headers[0]["accept-encoding"] == "identity"
    assert server.headers[0]["authorization"] == "Bearer none"


def test_tokens_are_counted_by_the_server_or_estimated() -> None:
    with model_server(says("step 3")) as server:
        counted = ask(server)
    with model_server(says("step 3", usage=False)) as server:
        guessed = ask(server)
    assert (counted.tokens_in, counted.tokens_out, counted.estimated) == (1000, 100, False)
    assert (guessed.tokens_in, guessed.tokens_out, guessed.estimated) == (len("Which step?") // 4, 1, True)


def test_what_is_set_is_sent() -> None:
    with model_server(whole("x")) as server:
        ask(server, temperature=0.0, seed=7, max_reply_tokens=50, asking={"logprobs": True})
        ask(server)
    first, second = server.requests
    assert (first["model"], first["messages"]) == ("played", ASKED)
    assert (first["temperature"], first["seed"], first["max_tokens"], first["logprobs"]) == (0.0, 7, 50, True)
    assert not {"temperature", "seed", "max_tokens", "logprobs", "response_format"} & set(second)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_in_a_field_of_its_own(name: str) -> None:
    with model_server(
        tells({"content": "3", name: "since it failed"}),
        streams({"delta": {name: "since it "}}, {"delta": {name: "failed"}}, {"delta": {"content": "3"}}),
    ) as server:
        for _ in range(2):
            reply = ask(server)
            assert (reply.text, reply.reasoning) == ("3", "since it failed")


def test_log_probabilities() -> None:
    tokens = [{"token": "st", "logprob": -0.25}, {"token": "ep", "logprob": -0.5}]
    pieces = [{"delta": {"content": t["token"]}, "logprobs": {"content": [t]}} for t in tokens]
    with model_server(tells({"content": "step"}, logprobs={"content": tokens}), streams(*pieces)) as server:
        for _ in range(2):
            assert ask(server, asking={"logprobs": True}).logprobs == (("st", -0.25), ("ep", -0.5))


def test_a_reply_is_there_when_the_stream_says_so() -> None:
    with model_server(streams({"delta": {"content": "x"}}, ends_after=60)) as server, at_most(4.5):
        assert ask(server).text == "x"


@pytest.mark.parametrize(
    "play",
    [whole("x"), streams({"delta": {"content": "x"}}), streams({"delta": {"content": "x"}}, ends_after=0.02)],
)
def test_one_connection_serves_many_questions(play: Play) -> None:
    async def act(client: AsyncClient) -> None:
        for _ in range(5):
            await client.ask(ASKED)

    with model_server(play) as server:
        run(act, endpoint(server.url))
    assert len(server.requests) == 5 and len(server.ports) == 1


# -- plainer forms


SCHEMA = {"type": "object"}


def test_the_form_is_found_once() -> None:
    def play(exchange: Any) -> None:
        plain = "response_format" not in exchange.body
        (whole("x") if plain else fails(400, "response_format is not supported"))(exchange)

    async def act(client: AsyncClient) -> list[Reply]:
        return [await client.ask(ASKED), await client.ask(ASKED)]

    with model_server(play) as server:
        first, second = run(act, endpoint(server.url), schema=SCHEMA)
    assert (first.attempts, len(first.notes), second.attempts, second.notes) == (3, 2, 1, ())


def test_questions_side_by_side_take_one_step_together() -> None:
    def play(exchange: Any) -> None:
        asked = exchange.body.get("response_format", {}).get("type")
        (fails(400, "no schemas here") if asked == "json_schema" else whole("x"))(exchange)

    async def act(client: AsyncClient) -> None:
        await asyncio.gather(*(client.ask(ASKED) for _ in range(8)))
        await client.ask(ASKED)

    with model_server(later(0.05, play)) as server:
        run(act, endpoint(server.url), schema=SCHEMA)
    assert (server.requests[-1]["response_format"]["type"], server.requests[-1]["stream"]) == ("json_object", True)


@pytest.mark.parametrize("said", ["logprobs are not supported", "unknown field"])
def test_a_server_without_log_probabilities_is_asked_without(said: str) -> None:
    def play(exchange: Any) -> None:
        (fails(400, said) if "logprobs" in exchange.body else whole("x"))(exchange)

    with model_server(play) as server:
        reply = ask(server, asking={"logprobs": True})
    assert reply.text == "x" and reply.logprobs == () and "logprobs" not in server.requests[-1]
    assert ("stream" in server.requests[-1]) is ("logprobs" in said)


def takes_defaults_only(*names: str) -> Play:
    """Refuses settings by name, one after another, as OpenAI's reasoning models do."""

    def play(exchange: Exchange) -> None:
        for name in names:
            if name in exchange.body:
                said = f"Unsupported value: '{name}' does not support {exchange.body[name]} with this model."
                fails(400, f"{said} Only the default (1) value is supported.")(exchange)
                return
        whole("x")(exchange)

    return play


@pytest.mark.parametrize("schema", [None, {"type": "object"}])
def test_a_model_that_takes_its_own_settings_only(schema: Any) -> None:
    async def act(client: AsyncClient) -> tuple[Reply, Reply]:
        return await client.ask(ASKED), await client.ask(ASKED)

    with model_server(takes_defaults_only("max_tokens", "temperature", "seed")) as server:
        where = endpoint(server.url, temperature=0.0, seed=7)
        first, second = run(act, where, schema=schema)
    assert (first.text, first.attempts, second.attempts) == ("x", 3, 1), "what was found out is remembered"
    assert all("does not support" in note for note in first.notes) and not second.notes
    assert [set(sent) & {"temperature", "seed"} for sent in server.requests] == [
        {"temperature", "seed"}, {"seed"}, set(), set(),
    ]  # fmt: skip
    assert {"stream", "response_format"} & set(server.requests[-1]) == {"stream"} | (
        {"response_format"} if schema else set()
    ), "the form is not what was refused"


def test_a_setting_that_was_not_refused_goes_on() -> None:
    with model_server(takes_defaults_only("temperature")) as server:
        assert ask(server, temperature=0.7, seed=7).attempts == 2
    assert (server.requests[-1]["seed"], "temperature" in server.requests[-1]) == (7, False)


@pytest.mark.parametrize(
    ("said", "too_long"),
    [
        ("This model's maximum context length is 8192 tokens", True), ("the prompt is too long", True),
        ("unknown field 'tools'", False), ("'temperature' does not support 0.0", False),
    ],
)  # fmt: skip
def test_a_refusal_speaks_of_length_only_where_the_server_does(said: str, too_long: bool) -> None:
    fault = ask_in_vain(fails(400, said))
    assert said in str(fault) and ("fewer tokens" in str(fault)) is too_long


def test_a_server_that_calls_the_limit_otherwise() -> None:
    said = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    with model_server(fails(400, said), whole("x")) as server:
        assert ask(server, max_reply_tokens=9, schema=SCHEMA).text == "x"
    assert server.requests[1]["max_completion_tokens"] == 9 and "max_tokens" not in server.requests[1]
    assert server.requests[1]["response_format"]["type"] == "json_schema"


# -- faults that pass, and others


def test_an_error_that_passes() -> None:
    with model_server(fails(500), hangs_up, fails(503), says("x")) as server:
        reply = ask(server, max_retries=5)
    assert (reply.text, reply.attempts, len(reply.notes)) == ("x", 4, 3)
    assert reply.notes[0].startswith("the server answered 500: no; trying again in 0.")


def test_retry_after_is_honoured() -> None:
    with model_server(fails(429, "slow down", Retry_After="0.3"), says("x")) as server:
        reply = ask(server, max_retries=1)
    assert reply.seconds >= 0.3 and reply.attempts == 2 and "again in 0.3 s" in reply.notes[0]


def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    with at_most(6):
        fault = ask_in_vain(fails(429, "slow down", Retry_After="30"), max_retries=3)
    assert (fault.fault, fault.attempts, fault.status) == (NoReplyFault.OVERLOADED, 1, 429)
    assert "slow down" in str(fault) and "higher limit" in str(fault)


@pytest.mark.parametrize(
    ("play", "fault", "status", "said"),
    [
        (fails(401, "who are you"), "refused", 401, "Check the key"),
        (fails(403), "refused", 403, "Check the key"),
        (fails(404), "refused", 404, "usually ends in /v1"),
        (fails(400, "maximum context length is 9"), "refused", 400, "fewer tokens"),
        (redirects("http://127.0.0.1:9/v1"), "refused", 307, "Redirects are not followed"),
        (page, "unreadable", None, "text/html that is no chat completion"),
        (huge_document, "unreadable", None, "MiB"),
        (huge_line, "unreadable", None, "MiB"),
    ],
)
def test_what_asking_again_does_not_change(play: Play, fault: str, status: int | None, said: str) -> None:
    with model_server(play) as server, pytest.raises(EndpointError) as caught:
        ask(server, max_retries=3)
    found = caught.value
    assert isinstance(found, NoReplyError)
    assert (found.fault, found.status, found.attempts, len(server.requests)) == (fault, status, 1, 1)
    assert said in str(found) and str(found).startswith(f"played at {server.url}: ")


@pytest.mark.parametrize(
    ("play", "fault"), [(fails(500), "server-error"), (hangs_up, "unreached"), (endless_error, "server-error")]
)
def test_what_goes_on_is_told_after_all_tries(play: Play, fault: str) -> None:
    found = ask_in_vain(play, max_retries=2)
    assert (found.fault, found.attempts, len(found.notes)) == (fault, 3, 2)


def test_a_dead_port() -> None:
    with pytest.raises(NoReplyError, match="the connection failed") as caught:
        run(lambda client: client.ask(ASKED), endpoint(DEAD, max_retries=2))
    assert (caught.value.fault, caught.value.attempts) == (NoReplyFault.UNREACHED, 3)


def test_text_without_end_is_cut() -> None:
    with model_server(endless) as server, at_most(4):
        assert ask(server).finish == "limit"


# -- deadlines


def dripping(exchange: Any) -> None:
    """A letter of the answer now and then, for ever."""
    exchange.begin()
    while not exchange.closing.wait(0.03):
        exchange.write(chunk(delta={"content": "a"}))


@pytest.mark.parametrize("play", [silent, trickling, pinging, dripping])
def test_a_request_ends_at_its_deadline(play: Play) -> None:
    with at_most(6):
        found = ask_in_vain(play, timeout=0.3)
    assert (found.fault, found.attempts) == (NoReplyFault.TIMEOUT, 1) and found.seconds >= 0.3


@pytest.mark.parametrize("play", [silent, dripping, fails(500)])
def test_a_question_ends_at_its_deadline_with_all_its_tries(play: Play) -> None:
    with at_most(6):
        found = ask_in_vain(play, seconds=1.5, timeout=0.2, max_retries=20, first_wait=0.02)
    assert found.attempts >= 2


def test_no_time_is_no_request() -> None:
    with model_server(says("x")) as server, pytest.raises(NoReplyError) as caught:
        ask(server, asking={"seconds": 0.0})
    assert (caught.value.fault, caught.value.attempts, server.requests) == (NoReplyFault.TIMEOUT, 0, [])
    with pytest.raises(ConfigError, match="seconds"):
        ask(server, asking={"seconds": float("nan")})


# -- many at once


def test_never_more_requests_than_slots() -> None:
    crowd = Crowd(0.01, whole("x"))

    async def act(client: AsyncClient) -> list[Reply]:
        return await asyncio.gather(*(client.ask(ASKED) for _ in range(200)))

    with model_server(crowd) as server:
        replies = run(act, endpoint(server.url), concurrency=8)
    assert [reply.text for reply in replies] == ["x"] * 200 and len(server.requests) == 200
    assert 2 <= crowd.most <= 8 and len(server.ports) <= 8


def test_waiting_for_a_slot_is_part_of_the_deadline() -> None:
    async def act(client: AsyncClient) -> None:
        long = asyncio.create_task(client.ask(ASKED))
        await asyncio.sleep(0.1)
        with pytest.raises(NoReplyError, match=r"no request was free to go within 0\.2 s \(1 at a time\)") as caught:
            await client.ask(ASKED, seconds=0.2)
        assert (caught.value.fault, caught.value.attempts) == (NoReplyFault.TIMEOUT, 0)
        assert (await long).text == "x"

    with model_server(later(0.8, whole("x"))) as server:
        run(act, endpoint(server.url), concurrency=1, breaker=CircuitBreaker(1))
    assert len(server.requests) == 1


def test_a_slot_is_free_while_a_question_waits_to_try_again() -> None:
    async def act(client: AsyncClient) -> None:
        first = asyncio.create_task(client.ask(ASKED))
        await arrived(server, 1)
        assert (await client.ask(ASKED)).text == "x" and not first.done()
        assert (await first).attempts == 2

    with model_server(fails(500, Retry_After="1.2"), whole("x")) as server:
        run(act, endpoint(server.url, max_retries=1), concurrency=1)


@pytest.mark.parametrize("play", [silent, dripping, trickling])
def test_a_question_is_cancelled_in_the_middle(play: Play) -> None:
    async def act(client: AsyncClient) -> None:
        task = asyncio.create_task(client.ask(ASKED))
        await arrived(server, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await client.ask(ASKED, seconds=2)).text == "x"  # its slot is free again

    breaker = CircuitBreaker(1)
    with model_server(play, whole("x")) as server, at_most(4.5):
        run(act, endpoint(server.url), concurrency=1, breaker=breaker)
    assert breaker.state is CircuitState.CLOSED and len(server.requests) == 2


def test_questions_are_cancelled_while_they_wait() -> None:
    gate = threading.Event()

    def play(exchange: Any) -> None:
        gate.wait(5)
        whole("x")(exchange)

    async def act(client: AsyncClient) -> None:
        tasks = [asyncio.create_task(client.ask(ASKED)) for _ in range(20)]
        await arrived(server, 2)
        for task in tasks[::2]:
            task.cancel()
        gate.set()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(end, asyncio.CancelledError) for end in ends] == [True, False] * 10

    with model_server(play) as server:
        run(act, endpoint(server.url), concurrency=2)


def test_a_client_that_is_closed_ends_its_questions() -> None:
    async def act(client: AsyncClient) -> None:
        tasks = [asyncio.create_task(client.ask(ASKED)) for _ in range(3)]
        await arrived(server, 2)
        await client.aclose()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(end, NoReplyError) and end.attempts <= 1 for end in ends), ends
        assert (await client.ask(ASKED)).text == "x", "it may be used again"

    with model_server(silent, silent, whole("x")) as server, at_most(4):
        run(act, endpoint(server.url, max_retries=5, timeout=1.0), concurrency=2)


def test_one_event_loop_at_a_time() -> None:
    with model_server(whole("x")) as server:
        client = AsyncClient(endpoint(server.url))

        async def other() -> None:
            with pytest.raises(UsageError, match="another event loop"):
                await client.ask(ASKED)

        async def main() -> None:
            await client.ask(ASKED)
            await asyncio.to_thread(asyncio.run, other())
            await client.aclose()

        for _ in range(2):
            asyncio.run(main())


@pytest.mark.parametrize("concurrency", [0, 1001])
def test_slots_out_of_range_are_refused(concurrency: int) -> None:
    with pytest.raises(ConfigError, match="concurrency"):
        AsyncClient(endpoint(DEAD), concurrency=concurrency)


# -- the circuit breaker


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_circuit_opens_and_a_probe_closes_it() -> None:
    clock = Clock()
    breaker = CircuitBreaker(3, 30.0, clock)

    async def act(client: AsyncClient) -> None:
        with pytest.raises(NoReplyError) as failed:
            await client.ask(ASKED)
        assert failed.value.attempts == 3, "the circuit opened: no further try"
        with pytest.raises(CircuitOpenError, match=r"next try is in 30\.0 s") as caught:
            await client.ask(ASKED)
        assert (caught.value.fault, caught.value.attempts, len(server.requests)) == ("circuit-open", 0, 3)
        clock.now = 30.0
        ends = await asyncio.gather(*(client.ask(ASKED) for _ in range(5)), return_exceptions=True)
        assert sum(isinstance(end, CircuitOpenError) for end in ends) == 4, ends
        assert len(server.requests) == 4 and breaker.state is CircuitState.CLOSED
        for _ in range(3):
            assert (await client.ask(ASKED)).text == "x"

    with model_server(fails(503), fails(408), fails(500), later(0.1, whole("x"))) as server:
        run(act, endpoint(server.url, max_retries=9), breaker=breaker)


def test_a_probe_that_fails_is_the_only_request() -> None:
    clock = Clock()
    breaker = CircuitBreaker(1, 30.0, clock)

    async def act(client: AsyncClient) -> None:
        for number in range(1, 4):
            with pytest.raises(NoReplyError):
                await client.ask(ASKED)
            with pytest.raises(CircuitOpenError):
                await client.ask(ASKED)
            assert len(server.requests) == number
            clock.now += 30

    with model_server(fails(500)) as server:
        run(act, endpoint(server.url, max_retries=9), breaker=breaker)


@pytest.mark.parametrize(
    ("play", "counts"),
    [
        (fails(500), True), (fails(503), True), (fails(408), True), (hangs_up, True), (silent, True), (None, True),
        (fails(429), False), (fails(503, Retry_After="9"), False),
        (fails(400, "too long"), False), (fails(401), False), (fails(404), False), (page, False),
        (tells({"content": "", "refusal": "no"}), False), (redirects(DEAD), False),
    ],
)  # fmt: skip
def test_only_faults_of_the_endpoint_count(play: Play | None, counts: bool) -> None:
    breaker = CircuitBreaker(1)
    with model_server(play or silent) as server:
        patient = {"timeout": 0.4} if play is silent else {"timeout": 60.0, "patience": 60.0}
        where = endpoint(server.url if play else DEAD, **patient)
        try:
            run(lambda client: client.ask(ASKED), where, breaker=breaker)
        except EndpointError as exc:
            assert not isinstance(exc, CircuitOpenError)
    assert (breaker.state is CircuitState.OPEN) is counts


def test_a_client_has_a_breaker_of_its_own() -> None:
    async def act(client: AsyncClient) -> CircuitOpenError:
        for _ in range(5):
            with pytest.raises(NoReplyError, match="connection failed"):
                await client.ask(ASKED)
        with pytest.raises(CircuitOpenError) as caught:
            await client.ask(ASKED)
        return caught.value

    said = str(run(act, endpoint(DEAD)))
    assert "since: the connection failed (" in said and "next try is in " in said
    assert AsyncClient(endpoint(DEAD)).breaker is not AsyncClient(endpoint(DEAD)).breaker
    assert AsyncClient(endpoint(DEAD), breaker=False).breaker is None


def test_an_open_circuit_says_what_opened_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    async def act(client: AsyncClient) -> str:
        for _ in range(2):
            with pytest.raises(NoReplyError):
                await client.ask(ASKED)
        with pytest.raises(CircuitOpenError) as caught:
            await client.ask(ASKED)
        return str(caught.value)

    with model_server(repeats_the_key(500, 0), fails(502, "another")) as server:
        said = run(act, endpoint(server.url), breaker=CircuitBreaker(2))
    assert "since: the server answered 500" in said and "wrong key <masked key>" in said
    assert "another" not in said and KEY[:8] not in said


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_waited_for_and_opens_no_circuit(status: int) -> None:
    breaker = CircuitBreaker(2)
    busy = fails(status, "rate limit", Retry_After="0.05")
    with model_server(*[busy] * 5, whole("x")) as server:
        where = endpoint(server.url, max_retries=1, first_wait=0.001)
        reply = run(lambda client: client.ask(ASKED), where, breaker=breaker)
    assert (reply.text, reply.attempts, breaker.state) == ("x", 6, CircuitState.CLOSED)


def test_a_busy_server_is_waited_for_within_the_patience() -> None:
    with at_most(4.5):
        fault = ask_in_vain(fails(429, "slow down", Retry_After="0.1"), max_retries=1, patience=1.0)
    assert (fault.fault, fault.status) == (NoReplyFault.OVERLOADED, 429) and fault.attempts > 2
    assert "Wait, or ask for a higher limit" in str(fault)


def test_a_busy_server_stays_busy_where_the_last_try_has_too_little_time() -> None:
    """A try that the end of the question cuts off does not hide what the server said, however loaded the machine is."""
    with (
        model_server(fails(429, "slow down", Retry_After="0.01"), silent) as server,
        pytest.raises(NoReplyError) as got,
    ):
        ask(server, asking={"seconds": 1.5}, max_retries=5, patience=0.5, timeout=30.0)
    assert got.value.fault is NoReplyFault.OVERLOADED
    assert "slow down" in str(got.value)


def test_who_wants_no_second_try_gets_none() -> None:
    assert ask_in_vain(fails(429, "slow down", Retry_After="0.01"), max_retries=0).attempts == 1


def test_a_server_that_does_not_say_when_is_tried_so_often() -> None:
    assert ask_in_vain(fails(429, "no credit left"), max_retries=2).attempts == 3


def test_a_dead_endpoint_costs_no_time_once_the_circuit_is_open() -> None:
    async def act(client: AsyncClient) -> float:
        for _ in range(2):
            with pytest.raises(NoReplyError):
                await client.ask(ASKED)
        begin = time.monotonic()
        for _ in range(500):
            with pytest.raises(CircuitOpenError):
                await client.ask(ASKED)
        return time.monotonic() - begin

    with model_server(silent) as server:
        took = run(act, endpoint(server.url, timeout=0.3), breaker=CircuitBreaker(2))
    assert len(server.requests) == 2 and took < 0.3 * 500 / 10, "not one of them waited"


# -- the key


def repeats_the_key(status: int, cut: int) -> Play:
    """An error that repeats the key, the end of it beyond what is read of an error where `cut` says so."""

    def play(exchange: Any) -> None:
        key = exchange.handler.headers["Authorization"].removeprefix("Bearer ")
        exchange.send(status, b"x" * cut + f" wrong key {key}, {key}".encode(), "text/plain")

    return play


def streams_the_key(exchange: Any) -> None:
    exchange.begin()
    key = exchange.handler.headers["Authorization"].removeprefix("Bearer ")
    exchange.write(b'data: {"error": {"message": "%b", "code": 500}}\n\n' % key.encode())


def page_with_the_key(exchange: Any) -> None:
    key = exchange.handler.headers["Authorization"].removeprefix("Bearer ")
    exchange.send(200, f"<html>{key}".encode(), "text/html")


@pytest.mark.parametrize(
    "play",
    [
        *(repeats_the_key(status, cut) for status in (400, 401, 500) for cut in (0, 150, 175, 190)),
        streams_the_key, page_with_the_key, hangs_up, silent,
    ],
)  # fmt: skip
def test_the_key_is_nowhere(play: Play, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    with model_server(play) as server:
        where = endpoint(server.url.replace("//", "//me:hidden-password@"), max_retries=1, timeout=0.5)
        plain = endpoint(server.url, max_retries=1, timeout=0.5)
        seen = [repr(where), repr(AsyncClient(where)), repr(vars(where) if hasattr(where, "__dict__") else "")]
        told: list[str] = []
        for one in (where, plain):
            with pytest.raises(NoReplyError) as caught:
                run(lambda client: client.ask(ASKED, listen=told.append), one, schema=SCHEMA)
            error: BaseException | None = caught.value
            seen += ["".join(traceback.format_exception(caught.value)), *caught.value.notes]
            while error is not None:
                seen += [str(error), repr(error), repr(error.args)]
                error = error.__cause__ or error.__context__
    assert server.headers[-1]["authorization"] == f"Bearer {KEY}"
    assert server.headers[0]["authorization"].startswith("Basic ")
    text = "\n".join([*seen, *told, caplog.text, *(str(vars(record)) for record in caplog.records)])
    text = text.replace(repr(where.base_url), "")  # the endpoint is the user's own
    for n in range(8, len(KEY) + 1):
        assert KEY[:n] not in text
    assert "hidden-password" not in text and "bWU6aGlkZGVuL" not in text


def echoes(*, stream: bool, escaped: bool = False) -> Play:
    """Answers well, and puts the key it was sent into every field of the answer."""

    def play(exchange: Exchange) -> None:
        key = exchange.handler.headers["Authorization"].rpartition(" ")[2]
        said = json.dumps({"reason": f"called with {key}"})
        said = said.replace("/", "\\/") if escaped else said
        message = {"content": f"{key} and {said}", "reasoning_content": f"I see {key}", "refusal": f"no, {key}"}
        tokens = [{"token": part, "logprob": -0.5} for part in (key[:5], key[5:], ".")]
        choice = {"logprobs": {"content": tokens}, "finish_reason": f"{key[:30]}"}
        if not stream:
            document = {"model": f"m {key}", "choices": [{"message": message, **choice}]}
            exchange.send(200, json.dumps(document).encode())
            return
        exchange.begin()
        for place in range(0, len(key), 7):  # no event holds all of it
            exchange.write(chunk(delta={"content": key[place : place + 7]}))
        exchange.write(chunk(delta=message, **choice) + b"data: [DONE]\n\n")

    return play


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("key", [KEY, "abc/def+/ghijklmnop/qrs=="])
def test_a_reply_that_repeats_the_key(stream: bool, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    for escaped in (False, True):
        with model_server(echoes(stream=stream, escaped=escaped)) as server:
            plain = ask(server, asking={"logprobs": True})
            where = endpoint(server.url.replace("//", "//me:hidden-password@"))
            basic = run(lambda client: client.ask(ASKED), where)
        assert server.headers[0]["authorization"] == f"Bearer {key}"
        assert key[:8] not in repr(plain) and json.dumps(key).replace("/", "\\/")[1:9] not in plain.text
        assert "<masked key>" in plain.text and "<masked key>" in plain.reasoning and "<masked key>" in plain.refusal
        assert plain.logprobs == (), "its tokens fit no text any more"
        assert server.headers[1]["authorization"].startswith("Basic ") and "bWU6aGlk" not in repr(basic)


def test_tokens_that_hold_the_key_where_the_text_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    tokens = [{"token": part, "logprob": -0.5} for part in (KEY[:4], KEY[4:])]
    with model_server(tells({"content": "step 3"}, logprobs={"content": tokens})) as server:
        reply = ask(server, asking={"logprobs": True})
    assert (reply.text, reply.logprobs) == ("step 3", ())
