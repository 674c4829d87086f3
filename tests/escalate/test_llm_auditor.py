"""An auditor over real HTTP: verdicts, costs, cache, log-probabilities, and endpoints that fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from model_server import Exchange, Play, fails, model_server, says, silent, tells

from prefixguard.errors import ConfigError, EndpointError
from prefixguard.escalate.circuit import CircuitBreaker
from prefixguard.escalate.client import AsyncClient
from prefixguard.escalate.confidence import ConfidenceMap
from prefixguard.escalate.endpoint import Endpoint, Reply
from prefixguard.escalate.llm_auditor import LlmAuditor
from prefixguard.escalate.policy import EscalationPolicy
from prefixguard.escalate.prompting import VERDICT_SCHEMA, PromptKind, prompt_version
from prefixguard.escalate.request_queue import RequestQueue
from prefixguard.escalate.verdict import Auditor, AuditResult, VerdictOutcome
from prefixguard.stepview import StepRecord

RECORDS = [
    StepRecord(i, "agent", ("Planner", "Coder")[i % 2], "ls", "{}", "", f"I look {i} times.", "", "ok", i - 1)
    for i in range(1, 7)
]
ANSWER = {"answer": 3, "agent": "coder", "reason": "It looks three times.", "quote": "I look 3 times."}
ALARM = f"<think>hm</think><answer>{json.dumps(ANSWER)}</answer>"
SAFE = '<answer>{"answer": "SAFE", "agent": null, "reason": "Nothing is wrong so far."}</answer>'


def judged_over_http(
    plays: Sequence[Play],
    times: int = 1,
    *,
    breaker: CircuitBreaker | None = None,
    schema: Any = None,
    prices: bool = True,
    asked: dict[str, Any] | None = None,
    records: Sequence[StepRecord] = (),
    **options: Any,
) -> tuple[list[AuditResult], list[dict[str, Any]]]:
    """What an auditor says that asks a server so many times, and the requests that the server got."""
    with model_server(*plays) as server:
        endpoint = Endpoint("m", server.url, timeout=1.0, patience=1.0, max_retries=0, first_wait=0.0)
        if prices:
            endpoint = replace(endpoint, price_in=2.0, price_out=10.0)

        async def main() -> list[AuditResult]:
            client = AsyncClient(endpoint, schema, breaker=breaker)
            auditor = LlmAuditor(client, **options)
            try:
                return [await auditor.judge(records or RECORDS, **(asked or {})) for _ in range(times)]
            finally:
                await client.aclose()

        return asyncio.run(main()), server.requests


def test_a_desk_finds_the_breaker() -> None:
    client = AsyncClient(Endpoint("m", "http://127.0.0.1:9/v1", max_retries=0))
    auditor = LlmAuditor(client)
    assert (
        client.breaker is not None
        and auditor.breaker is client.breaker is RequestQueue(auditor, EscalationPolicy()).breaker
    )
    assert LlmAuditor(AsyncClient(client.endpoint, breaker=False)).breaker is None

    async def main() -> list[AuditResult]:
        try:
            return [await auditor.judge(RECORDS) for _ in range(6)]
        finally:
            await auditor.aclose()

    judged = asyncio.run(main())
    assert [one.verdict.fault for one in judged] == ["unreached"] * 5 + ["circuit-open"]
    assert "since: the connection failed" in (judged[-1].verdict.detail or "")
    assert RequestQueue(auditor, EscalationPolicy()).silent == "circuit open"


def test_the_key_is_in_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-abcdefghijklmnopqrstuvwxyz")

    def echo(exchange: Exchange) -> None:
        key = exchange.handler.headers["Authorization"]
        said = json.dumps(ANSWER | {"reason": f"I was called with {key}", "quote": key})
        tells({"content": f"headers: {key}\n<answer>{said}</answer>", "reasoning_content": key})(exchange)

    (judged,), _ = judged_over_http([echo])
    assert judged.verdict.step == 3 and "sk-test-" not in repr(judged) and "<masked key>" in judged.verdict.reason


class Kept(dict[str, AuditResult]):
    """A cache in memory."""

    def put(self, key: str, judged: AuditResult) -> None:
        if judged.verdict.outcome is not VerdictOutcome.ERROR:  # as `VerdictCache` does
            self[key] = judged


def test_a_verdict_and_its_cost() -> None:
    (judged,), (request,) = judged_over_http([says(ALARM)])
    verdict = judged.verdict
    assert (verdict.outcome, verdict.step, verdict.agent) == (VerdictOutcome.ALARM, 3, "Coder")
    assert verdict.quote_found is True and verdict.notes == () and verdict.confidence is None
    assert (judged.tokens_in, judged.tokens_out, judged.estimated, judged.attempts) == (1000, 100, False, 1)
    assert judged.cost == pytest.approx((1000 * 2 + 100 * 10) / 1e6)
    assert (judged.reply, judged.finish, judged.cached) == (ALARM, "stop", False)
    assert [message["role"] for message in request["messages"]] == ["system", "user"]
    assert "I look 6 times." in request["messages"][1]["content"]
    assert "logprobs" not in request


def test_without_prices_the_cost_is_unknown() -> None:
    assert judged_over_http([says(SAFE)], prices=False)[0][0].cost is None


def test_an_auditor_is_an_auditor() -> None:
    auditor: Auditor = LlmAuditor(AsyncClient(Endpoint("m", "http://127.0.0.1:1/v1")), PromptKind.POST_HOC)
    assert auditor.model == "m"
    assert auditor.prompt_version == prompt_version(PromptKind.POST_HOC)


def test_the_options_reach_the_question() -> None:
    (judged,), (request,) = judged_over_http(
        [says(ALARM.replace("3,", "4,", 1))],
        kind=PromptKind.BINARY_SEARCH,
        asked={"within": (1, 6), "answer": "forty-two"},
    )
    question = request["messages"][1]["content"]
    assert "forty-two" in question and "steps 4 to 6" in question
    assert judged.verdict.step == 4
    _, (request,) = judged_over_http([says(SAFE)], kind=PromptKind.POST_HOC, known_failed=True)
    assert "the run failed" in request["messages"][1]["content"]


def test_blame_and_aliases_reach_the_reading() -> None:
    (judged,), _ = judged_over_http([says(ALARM.replace("coder", "programmer"))], aliases={"programmer": "Coder"})
    assert judged.verdict.agent == "Coder"


def test_a_step_that_was_not_shown_is_no_verdict() -> None:
    records = [replace(RECORDS[0], index=i, action="word " * 100) for i in range(1, 200)]
    (judged,), _ = judged_over_http([says(ALARM)], records=records, budget_tokens=5000)
    assert judged.verdict.fault == "step-not-shown"


def test_a_server_that_holds_a_model_to_the_schema() -> None:
    reply = json.dumps({"thinking": "I look.", **ANSWER})
    (judged,), (request,) = judged_over_http([says(reply)], schema=VERDICT_SCHEMA)
    assert judged.verdict.step == 3
    assert request["response_format"]["json_schema"]["schema"] == VERDICT_SCHEMA


def test_what_a_model_thought_is_kept_with_its_reply() -> None:
    (judged,), _ = judged_over_http([tells({"content": SAFE, "reasoning_content": "I look at all steps."})])
    assert judged.reply == f"<think>\nI look at all steps.\n</think>\n{SAFE}"
    assert judged.verdict.outcome is VerdictOutcome.SAFE


@pytest.mark.parametrize(
    ("play", "fault", "cost"),
    [(silent, "timeout", None), (fails(500), "server-error", None), (fails(401), "refused", None)],
)
def test_an_endpoint_that_fails_is_an_error(play: Play, fault: str, cost: float | None) -> None:
    (judged,), _ = judged_over_http([play])
    assert (judged.verdict.outcome, judged.verdict.fault) == (VerdictOutcome.ERROR, fault)
    assert judged.verdict.detail and judged.reply == ""
    assert (judged.cost, judged.attempts, judged.tokens_in) == (cost, 1, 0)


def test_a_circuit_that_is_open_costs_nothing() -> None:
    (failed, refused), requests = judged_over_http([fails(500)], 2, breaker=CircuitBreaker(failures=1))
    assert (failed.verdict.fault, refused.verdict.fault) == ("server-error", "circuit-open")
    assert (refused.cost, refused.attempts, refused.estimated) == (0.0, 0, False)
    assert len(requests) == 1


def test_any_error_of_an_endpoint_is_an_error() -> None:
    class Broken:
        endpoint = Endpoint("m", "http://127.0.0.1:1/v1")

        async def ask(self, *args: object, **options: object) -> Reply:
            raise EndpointError("the endpoint speaks in tongues.")

    judged = asyncio.run(LlmAuditor(Broken()).judge(RECORDS))
    assert (judged.verdict.fault, judged.verdict.detail) == ("no-answer", "the endpoint speaks in tongues.")
    assert judged.cost is None


def test_a_reply_that_is_no_verdict_is_paid_for() -> None:
    (judged,), _ = judged_over_http([says("I'd rather not.")])
    assert (judged.verdict.fault, judged.reply) == ("no-verdict", "I'd rather not.")
    assert judged.cost


def test_the_same_question_is_asked_once() -> None:
    kept = Kept()
    (first, second), requests = judged_over_http([says(ALARM)], 2, cache=kept)
    assert len(requests) == len(kept) == 1
    assert (second.cached, second.cost, second.tokens_in, second.attempts) == (True, 0.0, 0, 0)
    assert (second.verdict, second.key, second.reply) == (first.verdict, first.key, first.reply)


def test_errors_are_not_kept() -> None:
    kept = Kept()
    (failed, read), requests = judged_over_http([says("Hm."), says(SAFE)], 2, cache=kept)
    assert failed.verdict.outcome is VerdictOutcome.ERROR and read.verdict.outcome is VerdictOutcome.SAFE
    assert len(requests) == 2


def test_keys() -> None:
    def key(records: Sequence[StepRecord] = RECORDS, model: str = "m", url: str = "http://a/v1", **more: Any) -> str:
        asked = {name: more.pop(name) for name in ("answer", "within") if name in more}
        return LlmAuditor(AsyncClient(Endpoint(model, url)), **more).key_of(records, **asked)

    assert key() == key(url="http://b/v1") == key(kind="online")
    different = [
        key(),
        key(RECORDS[:5]),
        key(model="n"),
        key(kind=PromptKind.POST_HOC),
        key(kind=PromptKind.POST_HOC, known_failed=True),
        key(answer="42"),
        key(blame="anyone"),
        key(aliases={"a": "Coder"}),
        key(kind=PromptKind.BINARY_SEARCH, within=(1, 6)),
        key(kind=PromptKind.BINARY_SEARCH, within=(1, 5)),
    ]
    assert len(set(different)) == len(different)
    assert key() == judged_over_http([says(SAFE)])[0][0].key


def logprobs(*tokens: tuple[str, float]) -> Play:
    content: list[dict[str, Any]] = [
        {"token": token, "logprob": logprob, "bytes": None, "top_logprobs": []} for token, logprob in tokens
    ]
    return tells({"content": "".join(token for token, _ in tokens)}, logprobs={"content": content})


def test_log_probabilities_become_a_confidence() -> None:
    spelled = [('{"answer": ', -0.1), ("3", -0.5), (', "agent": "Coder", "reason": "It looks three times."}', -2.0)]
    (raw,), (request,) = judged_over_http([logprobs(*spelled)], logprobs=True)
    assert request["logprobs"] is True
    assert raw.verdict.confidence == pytest.approx(0.6065, abs=1e-4)
    assert "confidence not calibrated" in raw.verdict.notes
    (calibrated,), _ = judged_over_http([logprobs(*spelled)], logprobs=True, confidence=ConfidenceMap(0.0, 0.0))
    assert calibrated.verdict.confidence == pytest.approx(0.5)
    assert "confidence not calibrated" not in calibrated.verdict.notes


def test_a_server_without_log_probabilities() -> None:
    (judged,), _ = judged_over_http([says(SAFE)], logprobs=True)
    assert judged.verdict.outcome is VerdictOutcome.SAFE and judged.verdict.confidence is None


def test_a_budget_that_holds_no_question_is_refused() -> None:
    with pytest.raises(ConfigError, match="budget_tokens"):
        LlmAuditor(AsyncClient(Endpoint("m", "http://127.0.0.1:1/v1")), budget_tokens=1000)
