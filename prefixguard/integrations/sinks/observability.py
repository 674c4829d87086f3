"""Readings as scores on the spans of Langfuse and of Phoenix, which both know a span by its OpenTelemetry ids."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Unpack
from uuid import NAMESPACE_URL, uuid4, uuid5

from prefixguard.alarm import Level
from prefixguard.errors import ConfigError, OutputError
from prefixguard.integrations.sinks.outgoing import HttpOptions, JsonPoster, basic, explanation, outgoing
from prefixguard.integrations.sinks.queue import SpanIds, UndeliveredError, WatchedReading
from prefixguard.runtime import plain


class SpanScores(ABC):
    """What scores of spans have in common: a batch in one request; a reading without a span has nothing to stand on."""

    def __init__(self, poster: JsonPoster, name: str) -> None:
        self._poster, self._name = poster, name

    def emit(self, watched: WatchedReading) -> None:
        """Raises OutputError where the receiver does not take it, or the reading has no span."""
        self.emit_all([watched])

    def emit_all(self, batch: Sequence[WatchedReading]) -> None:
        """Send readings in one request. Raises UndeliveredError, which says how many did not arrive."""
        bodies = [self._score(found, found.span) for one in batch if (found := outgoing(one)).span is not None]
        lost, why = len(batch) - len(bodies), "no span of OpenTelemetry was current when the reading was made"
        if bodies:
            try:
                refused, said = self._send(bodies)
            except OutputError as exc:
                raise UndeliveredError(str(exc), len(batch)) from exc
            lost, why = lost + refused, said or why
        if lost:
            raise UndeliveredError(f"{self._poster.shown}: {why}", lost)

    @abstractmethod
    def _score(self, watched: WatchedReading, span: SpanIds) -> dict[str, Any]:
        """The reading in the receiver's form."""

    @abstractmethod
    def _send(self, bodies: list[dict[str, Any]]) -> tuple[int, str]:
        """Post them: how many were refused, and why."""


class LangfuseSink(SpanScores):
    """Readings as Langfuse scores: the risk as a number on the observation of the span that was current.

        Guard("monitors/mine", sinks=[LangfuseSink("https://cloud.langfuse.com")])

    A reading of level UNKNOWN has no number: it becomes a true-or-false score, NAME_unknown, that says why. A verdict
    is a score auditor_verdict, in words, where the latest reading of its agent stood. A reading that is sent again
    replaces the first. Sent as `score-create` to `POST /api/public/ingestion`, which takes batches and stays for scores
    (https://api.reference.langfuse.com, "ingestion"; fields: "ScoreBody"; ids of OpenTelemetry are Langfuse's:
    https://langfuse.com/docs/evaluation/evaluation-methods/scores-via-sdk).
    """

    def __init__(
        self,
        url: str,
        *,
        public_key: str | None = None,
        secret_key: str | None = None,
        name: str = "failure_risk",
        environment: str | None = None,
        **http: Unpack[HttpOptions],
    ) -> None:
        """url : where Langfuse is. public_key, secret_key : by default LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY of
        the environment. name : of the score. environment : of Langfuse. http : `HttpOptions`. Raises ConfigError."""
        public = public_key or os.environ.get("LANGFUSE_PUBLIC_KEY")
        secret = secret_key or os.environ.get("LANGFUSE_SECRET_KEY")
        if not public or not secret:
            raise ConfigError("Langfuse needs two keys: set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY, or give them.")
        target = f"{url.rstrip('/')}/api/public/ingestion"
        super().__init__(JsonPoster(target, "application/json", basic(public, secret), **http), name)
        self._environment = {} if environment is None else {"environment": environment}

    def _score(self, watched: WatchedReading, span: SpanIds) -> dict[str, Any]:
        risk = watched.reading.outcome_risk
        value: float | str | None
        kind, name, value = "NUMERIC", self._name, risk
        if watched.verdict is not None:
            kind, name, value = "CATEGORICAL", "auditor_verdict", watched.verdict.outcome.value
        elif watched.reading.level is Level.UNKNOWN:
            kind, name, value = "BOOLEAN", f"{self._name}_unknown", 1
        elif risk is None:  # of rules, which have a level alone
            kind, value = "CATEGORICAL", watched.reading.level.value
        score: dict[str, Any] = {
            "id": str(uuid5(NAMESPACE_URL, f"{span.trace_id}/{name}/{identifier(watched)}")),
            "traceId": span.trace_id, "observationId": span.span_id, "name": name, "value": value, "dataType": kind,
            "comment": explanation(watched), "metadata": watched.to_json(), **self._environment,
        }  # fmt: skip
        at = datetime.fromtimestamp(watched.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {"id": str(uuid4()), "timestamp": at, "type": "score-create", "body": score}

    def _send(self, bodies: list[dict[str, Any]]) -> tuple[int, str]:
        answer = self._poster.post({"batch": bodies})
        errors = answer.get("errors") if isinstance(answer, dict) else None
        if not isinstance(errors, list):
            return len(bodies), "the answer is not that of Langfuse's ingestion: check the URL"
        return min(len(errors), len(bodies)), plain(f"refused: {errors[0]}", 300) if errors else ""


class PhoenixSink(SpanScores):
    """Readings as Phoenix annotations of the span that was current: score, level as label, explanation.

        Guard("monitors/mine", sinks=[PhoenixSink("http://localhost:6006")])

    `annotator_kind` is CODE, and `identifier` names the run, the agent and the step: a reading that is sent again
    replaces the first. A verdict is an annotation auditor_verdict. Phoenix takes annotations before their span has
    arrived (https://arize.com/docs/phoenix/sdk-api-reference/rest-api/api-reference/spans/create-span-annotations).
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        name: str = "failure_risk",
        **http: Unpack[HttpOptions],
    ) -> None:
        """url : where Phoenix is. api_key : by default PHOENIX_API_KEY of the environment; none where it is not set.
        name : of the annotation; `note` is Phoenix's own. http : see `HttpOptions`. Raises ConfigError."""
        if name == "note":
            raise ConfigError("name is 'note', which Phoenix keeps for notes of people: give another one.")
        key = api_key or os.environ.get("PHOENIX_API_KEY")
        headers, target = {"Authorization": f"Bearer {key}"} if key else {}, f"{url.rstrip('/')}/v1/span_annotations"
        super().__init__(JsonPoster(target, "application/json", headers, **http), name)

    def _score(self, watched: WatchedReading, span: SpanIds) -> dict[str, Any]:
        reading, verdict = watched.reading, watched.verdict
        name, label, score = self._name, reading.level.value, reading.outcome_risk
        if verdict is not None:
            name, label, score = "auditor_verdict", verdict.outcome.value, verdict.confidence
        result = {"label": label, "score": score, "explanation": explanation(watched) or None}
        return {
            "span_id": span.span_id, "name": name, "annotator_kind": "CODE", "identifier": identifier(watched),
            "result": result, "metadata": watched.to_json(),
        }  # fmt: skip

    def _send(self, bodies: list[dict[str, Any]]) -> tuple[int, str]:
        self._poster.post({"data": bodies})
        return 0, ""


def identifier(watched: WatchedReading) -> str:
    """Which reading of which run: the same when it is sent again. One that could not be judged replaces none."""
    where = f"prefixguard/{watched.run}/{watched.agent_path}"
    if watched.verdict is not None:
        return f"{where}/{watched.about}/verdict"
    unknown = "/unknown" if watched.reading.level is Level.UNKNOWN else ""
    return f"{where}/{watched.reading.step}{unknown}"
