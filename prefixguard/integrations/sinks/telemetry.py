"""Readings as log events and metrics of OpenTelemetry, and as metrics of Prometheus, by what the host has set up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from prefixguard.alarm import Level
from prefixguard.errors import ConfigError, missing_extra
from prefixguard.integrations.sinks.outgoing import explanation, outgoing
from prefixguard.integrations.sinks.queue import SpanIds, WatchedReading

#: What gives the counters of one guard.
GuardCounters = Callable[[], Mapping[str, int]]

_SCOPE: Final = "prefixguard"
EVENT: Final = "gen_ai.evaluation.result"
#: Upper bounds of the histograms: of risks, and of seconds that a reading takes.
RISKS: Final = tuple(n / 20 for n in range(1, 21))
SECONDS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0)


class OpenTelemetrySink:
    """Every reading as the event `gen_ai.evaluation.result`, parented to the span that was current in the host; and
    metrics.

        Guard("monitors/mine", sinks=[OpenTelemetrySink()])

    The event has `gen_ai.evaluation.name`, `.score.value` (the risk that the run fails, 0 to 1; none at UNKNOWN),
    `.score.label` (the level) and `.explanation` (the reasons, likely secrets masked), and of the run
    `prefixguard.run`, `prefixguard.agent_path`, `prefixguard.step`, `prefixguard.acted` and `gen_ai.agent.name`. Its
    severity is WARN where an alarm sounds, else INFO. A verdict is an evaluation `auditor_verdict`, with alarm, safe or
    abstain as label, the step and the agent that it blames, and its confidence as value.
    Metrics, which name no run: `prefixguard.readings` and `prefixguard.alarms` (counters), `prefixguard.risk` and
    `prefixguard.reading.duration` (histograms, 1 and seconds), `prefixguard.guard` (the guard's counters).
    What the host's exporters cannot send, OpenTelemetry says; here it counts as taken.
    Source: GenAI semantic conventions, https://github.com/open-telemetry/semantic-conventions-genai (gen-ai-events.md).
    """

    def __init__(
        self,
        *,
        logger_provider: Any = None,
        meter_provider: Any = None,
        name: str = "failure_risk",
    ) -> None:
        """logger_provider, meter_provider : the host's global ones by default, also where they are set later. name : of
        the evaluation. Raises MissingExtraError."""
        try:
            from opentelemetry import _logs, context, metrics, trace
        except ImportError as exc:
            raise missing_extra("telling OpenTelemetry", "otel", exc) from exc
        self._trace, self._nowhere, self._name = trace, context.Context(), name
        self._severity = (_logs.SeverityNumber.INFO, _logs.SeverityNumber.WARN)
        self._logger = _logs.get_logger(_SCOPE, logger_provider=logger_provider)
        meter = metrics.get_meter(_SCOPE, meter_provider=meter_provider)
        self._observation = metrics.Observation
        self._guards: list[GuardCounters] = []
        self._readings = meter.create_counter("prefixguard.readings", "{reading}", "Readings, by level.")
        self._alarms = meter.create_counter("prefixguard.alarms", "{alarm}", "Alarms, by what they led to.")
        risks, seconds = ({"explicit_bucket_boundaries_advisory": bounds} for bounds in (RISKS, SECONDS))
        self._risk = meter.create_histogram("prefixguard.risk", "1", "Risk that a run fails, at each reading.", **risks)
        self._duration = meter.create_histogram("prefixguard.reading.duration", "s", "Time a reading took.", **seconds)
        meter.create_observable_counter("prefixguard.guard", [self._counted], "1", "What guards counted, by counter.")

    def attach(self, counters: GuardCounters) -> None:
        """Report the counters of one more guard."""
        self._guards.append(counters)

    def emit(self, watched: WatchedReading) -> None:
        watched, reading = outgoing(watched), watched.reading
        context = self._context(watched.span)
        self._logger.emit(
            timestamp=round(watched.at * 1e6) * 1000,
            context=context,
            severity_number=self._severity[watched.is_alarm],
            severity_text="WARN" if watched.is_alarm else "INFO",
            attributes={key: value for key, value in self._attributes(watched).items() if value not in (None, "")},
            event_name=EVENT,
        )
        if watched.is_alarm:
            self._alarms.add(1, {"prefixguard.acted": watched.acted or "none"}, context)
        if watched.verdict is not None:
            return
        self._readings.add(1, {"prefixguard.level": reading.level.value}, context)
        if reading.outcome_risk is not None:
            self._risk.record(reading.outcome_risk, {}, context)
        self._duration.record(reading.latency_us / 1e6, {}, context)

    def _attributes(self, watched: WatchedReading) -> dict[str, Any]:
        reading, verdict = watched.reading, watched.verdict
        blamed: dict[str, Any] = {}
        name, value, label = self._name, reading.outcome_risk, reading.level.value
        if verdict is not None:
            name, value, label = "auditor_verdict", verdict.confidence, verdict.outcome.value
            blamed = {"prefixguard.blamed.step": verdict.step, "prefixguard.blamed.agent": verdict.agent}
        return {
            **blamed,
            "gen_ai.evaluation.name": name,
            "gen_ai.evaluation.score.value": value,
            "gen_ai.evaluation.score.label": label,
            "gen_ai.evaluation.explanation": explanation(watched),
            "gen_ai.agent.name": watched.agent,
            "prefixguard.run": watched.run,
            "prefixguard.agent_path": watched.agent_path,
            "prefixguard.step": reading.step if verdict is None else watched.about,
            "prefixguard.acted": watched.acted,
        }

    def _context(self, span: SpanIds | None) -> Any:
        """A context whose current span is the host's; an empty one where there was none."""
        if span is None:
            return self._nowhere
        of = self._trace.SpanContext(
            int(span.trace_id, 16), int(span.span_id, 16), is_remote=False,
            trace_flags=self._trace.TraceFlags(span.flags),
        )  # fmt: skip
        return self._trace.set_span_in_context(self._trace.NonRecordingSpan(of), self._nowhere)

    def _counted(self, options: Any) -> Iterable[Any]:
        for name, n in total(self._guards).items():
            yield self._observation(n, {"prefixguard.counter": name})


class PrometheusSink:
    """Counters and histograms of all readings, in a registry of prometheus_client, which the host serves.

        Guard("monitors/mine", sinks=[PrometheusSink()])

    `prefixguard_readings_total{level}`, `prefixguard_alarms_total{acted}` (warn, nudge, stop, or none),
    `prefixguard_risk` (0 to 1, without UNKNOWN), `prefixguard_reading_duration_seconds`, and
    `prefixguard_guard_total{counter}`: the guard's counters, among them `late_events`, `evicted_runs`,
    `sinks.dropped.NAME` and `sinks.failed.NAME`. No run and no agent is a label. One such sink may serve many guards.
    """

    def __init__(self, registry: Any = None) -> None:
        """registry : of prometheus_client; its global one by default. Raises MissingExtraError, ConfigError."""
        try:
            import prometheus_client
            from prometheus_client.core import CounterMetricFamily
        except ImportError as exc:
            raise missing_extra("telling Prometheus", "prometheus", exc) from exc
        to = prometheus_client.REGISTRY if registry is None else registry
        self._family = CounterMetricFamily
        self._guards: list[GuardCounters] = []
        try:
            self._readings = prometheus_client.Counter("prefixguard_readings", "Readings.", ["level"], registry=to)
        except ValueError as exc:
            raise ConfigError(
                "this registry has the metrics of a PrometheusSink: give that sink to every guard, or this one a "
                "registry of its own (registry=CollectorRegistry())."
            ) from exc
        self._alarms = prometheus_client.Counter(
            "prefixguard_alarms", "Alarms, by what they led to.", ["acted"], registry=to
        )
        self._risk = prometheus_client.Histogram(
            "prefixguard_risk", "Risk that a run fails, at each reading.", buckets=RISKS, registry=to
        )
        self._duration = prometheus_client.Histogram(
            "prefixguard_reading_duration_seconds", "Time that a reading took.", buckets=SECONDS, registry=to
        )
        for level in Level:  # a rate can be had of a counter that has been there
            self._readings.labels(level.value)
        to.register(self)

    def attach(self, counters: GuardCounters) -> None:
        """Report the counters of one more guard."""
        self._guards.append(counters)

    def emit(self, watched: WatchedReading) -> None:
        reading = watched.reading
        if watched.is_alarm:
            self._alarms.labels(watched.acted or "none").inc()
        if watched.verdict is not None:
            return  # a reading that was told before; verdicts are among the guard's counters
        self._readings.labels(reading.level.value).inc()
        if reading.outcome_risk is not None:
            self._risk.observe(reading.outcome_risk)
        self._duration.observe(reading.latency_us / 1e6)

    def collect(self) -> Iterable[Any]:
        """What prometheus_client asks for at each scrape."""
        family = self._family("prefixguard_guard", "What guards counted, by counter.", labels=["counter"])
        for name, n in total(self._guards).items():
            family.add_metric([name], n)
        yield family


def total(guards: Iterable[GuardCounters]) -> dict[str, int]:
    """The counters of some guards, added up."""
    found: Counter[str] = Counter()
    for counters in guards:
        found.update(counters())
    return dict(found)
