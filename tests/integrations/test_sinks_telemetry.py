"""OpenTelemetry by its exporters to a receiver that reads the protobuf; Prometheus by a scrape and its own parser."""

from __future__ import annotations

import subprocess
import sys
from typing import Any
from urllib.request import urlopen

import pytest
from http_receiver import HttpReceiver, answer
from watched import BLAMED, SECRET, fail, watched

import prefixguard
from prefixguard.errors import ConfigError, MissingExtraError
from prefixguard.integrations import Guard
from prefixguard.runtime import Monitor


def values(of: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in of.attributes}


def test_opentelemetry(events_monitor: Monitor) -> None:
    """Each reading is an event of the span that was current in the host, and no metric names a run."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace import TracerProvider

    with HttpReceiver(answer(200, b"")) as receiver:
        logs = LoggerProvider()
        logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{receiver.url}/v1/logs")))
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{receiver.url}/v1/metrics"), 1e9)
        metrics, tracer = MeterProvider([reader]), TracerProvider().get_tracer("host")
        sink = prefixguard.OpenTelemetrySink(logger_provider=logs, meter_provider=metrics)
        spans: list[tuple[bytes, bytes, int]] = []
        risks: list[float] = []
        with Guard(events_monitor, on_alarm="nudge", sinks=[sink]) as guard:
            with guard.run("x", run_id="run\ud800", agent="boss") as run:
                for n in range(4):
                    with tracer.start_as_current_span(f"tool {n}") as span:
                        ids = span.get_span_context()
                        call = run.called("find", {"id": "A1"}, call_id=f"{n}")
                        (reading,) = run.returned(call, "error: not found", is_error=True)
                    spans.append((ids.trace_id.to_bytes(16), ids.span_id.to_bytes(8), int(ids.trace_flags)))
                    risks.append(reading.outcome_risk or 0.0)
            (late,) = guard.feed({"run": "run\ud800", "kind": "said"})
            assert late.unknown_reason is not None
        sink.emit(watched(risk=None))
        sink.emit(watched(acted="stop"))
        sink.emit(watched(acted="nudge", is_alarm=False, **BLAMED))
        logs.shutdown()
        metrics.shutdown()

    records, points = [], {}
    for one in receiver.received:
        if one.path == "/v1/logs":
            for resource in ExportLogsServiceRequest.FromString(one.body).resource_logs:
                records += [record for scope in resource.scope_logs for record in scope.log_records]
        else:
            for group in ExportMetricsServiceRequest.FromString(one.body).resource_metrics:
                points |= {metric.name: metric for scope in group.scope_metrics for metric in scope.metrics}

    assert {record.event_name for record in records} == {"gen_ai.evaluation.result"}
    assert [(record.trace_id, record.span_id, record.flags) for record in records[:4]] == spans
    assert [(record.trace_id, record.span_id) for record in records[4:]] == [(b"", b"")] * 3
    first = {
        "gen_ai.evaluation.name": "failure_risk", "gen_ai.evaluation.score.label": "WATCH", "gen_ai.agent.name": "boss",
        "prefixguard.run": r"run\ud800", "prefixguard.agent_path": "main", "prefixguard.step": 1,
    }  # fmt: skip
    said = values(records[0])
    assert said.items() >= first.items()
    assert [values(one)["gen_ai.evaluation.score.value"] for one in records[:4]] == risks
    assert [values(one).get("prefixguard.acted") for one in records] == [
        None,
        "nudge",
        None,
        None,
        None,
        "stop",
        "nudge",
    ]
    assert [one.severity_text for one in records] == ["INFO", "WARN", "INFO", "INFO", "INFO", "WARN", "INFO"]
    blamed = values(records[6])
    assert blamed.items() >= {
        "gen_ai.evaluation.name": "auditor_verdict", "gen_ai.evaluation.score.label": "alarm", "prefixguard.step": 3,
        "prefixguard.blamed.step": 2, "prefixguard.blamed.agent": "clerk",
        "gen_ai.evaluation.explanation": "the auditor blames step 2 by clerk: It shows <masked key 1>.",
    }.items()  # fmt: skip
    assert said["gen_ai.evaluation.explanation"]
    unknown = values(records[4])
    assert unknown["gen_ai.evaluation.score.label"] == "UNKNOWN" and "gen_ai.evaluation.score.value" not in unknown
    assert not any(SECRET in str(values(one)) for one in records) and "<masked key 1>" in str(unknown)
    assert records[5].time_unix_nano == 1_700_000_000_250_000_000

    counted = {name: {str(values(p)): p.as_int for p in points[name].sum.data_points} for name in points if "." in name}
    assert counted["prefixguard.readings"] == {
        "{'prefixguard.level': 'WATCH'}": 1, "{'prefixguard.level': 'ALARM'}": 4, "{'prefixguard.level': 'UNKNOWN'}": 1,
    }  # fmt: skip
    assert counted["prefixguard.alarms"] == {"{'prefixguard.acted': 'nudge'}": 1, "{'prefixguard.acted': 'stop'}": 1}
    assert counted["prefixguard.guard"]["{'prefixguard.counter': 'late_events'}"] == 1
    (risk,) = points["prefixguard.risk"].histogram.data_points
    assert (risk.count, risk.sum) == (5, pytest.approx(sum(risks) + 0.75))
    (duration,) = points["prefixguard.reading.duration"].histogram.data_points
    assert duration.count == 6 and points["prefixguard.reading.duration"].unit == "s" and duration.sum < 60
    assert "boss" not in str(points) and "run" not in {key for p in counted for key in p.split(".")}


def test_no_span_and_no_import_without_opentelemetry() -> None:
    """A host without OpenTelemetry does not get it; in one with it, readings outside of spans have none."""
    program = (
        "import sys; from prefixguard.integrations.sinks import current_span; assert current_span() is None;"
        "assert not [m for m in sys.modules if m.startswith(('opentelemetry', 'prometheus', 'openai'))]"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    pytest.importorskip("opentelemetry.trace")
    assert prefixguard.integrations.sinks.current_span() is None


def test_prometheus(events_monitor: Monitor) -> None:
    """What a scrape over HTTP finds, two guards on one sink; no run and no agent is a label."""
    client = pytest.importorskip("prometheus_client")
    from prometheus_client.parser import text_string_to_metric_families

    registry = client.CollectorRegistry()
    sink = prefixguard.PrometheusSink(registry)
    with pytest.raises(ConfigError, match="give that sink to every guard, or this one a registry of its own"):
        prefixguard.PrometheusSink(registry)
    server, thread = client.start_http_server(0, addr="127.0.0.1", registry=registry)
    try:
        for action in ("nudge", "warn"):
            with Guard(events_monitor, on_alarm=action, sinks=[sink]) as guard, guard.run("x", agent="boss") as run:
                fail(run)
        sink.emit(watched(risk=None))
        sink.emit(watched(is_alarm=False, **BLAMED))  # no reading is counted twice
        with urlopen(f"http://127.0.0.1:{server.server_port}/metrics") as page:
            text = page.read().decode()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    samples = {(s.name, *s.labels.values()): s.value for f in families.values() for s in f.samples}
    assert [samples["prefixguard_readings_total", level] for level in ("OK", "WATCH", "ALARM", "UNKNOWN")] == [
        0,
        2,
        6,
        1,
    ]
    assert [samples["prefixguard_alarms_total", acted] for acted in ("nudge", "warn")] == [1, 1]
    assert samples["prefixguard_risk_count",] == 8 and samples["prefixguard_risk_bucket", "+Inf"] == 8
    assert samples["prefixguard_reading_duration_seconds_count",] == 9
    assert samples["prefixguard_guard_total", "sinks.emitted.PrometheusSink"] == 8
    assert {label for f in families.values() for s in f.samples for label in s.labels} <= {
        "level",
        "acted",
        "le",
        "counter",
    }
    assert families["prefixguard_risk"].type == "histogram" and families["prefixguard_readings"].type == "counter"


@pytest.mark.parametrize(
    ("package", "sink", "extra"),
    [("opentelemetry", "OpenTelemetrySink", "otel"), ("prometheus_client", "PrometheusSink", "prometheus")],
)
def test_a_package_that_is_missing_is_named(
    package: str, sink: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"needs {package}. Install it with: pip install .*\[{extra}\]"):
        getattr(prefixguard, sink)()
