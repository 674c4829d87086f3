"""Alarms, or all readings, as CloudEvents to a URL of one's own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Unpack

from prefixguard.integrations.sinks.outgoing import HttpOptions, JsonPoster, outgoing
from prefixguard.integrations.sinks.queue import WatchedReading, blames


class WebhookSink:
    """Posts CloudEvents 1.0 in structured JSON mode: one event for every alarm and every verdict that blames a step, or
    for every reading and verdict.

        Guard("monitors/mine", sinks=[WebhookSink("https://example.org/hook", headers={"Authorization": "Bearer ..."})])

    type : `prefixguard.alarm` where an alarm sounds, `prefixguard.verdict` for what an auditor said without one, else
    `prefixguard.reading`. subject : the id of the run. data : as
    of `WatchedReading.to_json`, with likely secrets in reasons masked. id : the same in every retry, so that a receiver
    can leave out what it has. traceparent : of the span that was current, where there was one.
    Sources: CloudEvents 1.0.2, "JSON Event Format", "HTTP Protocol Binding" 3.2, "Distributed Tracing" extension.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        all_readings: bool = False,
        source: str = "/prefixguard",
        **http: Unpack[HttpOptions],
    ) -> None:
        """url : https, or http to this machine. headers : sent with every event; their values are secrets, which no
        message shows. all_readings : not only alarms. source : a URI reference that names this guard. http : `timeout`,
        `retries`, `allow_http`, see `HttpOptions`. Redirects are not followed. Raises ConfigError."""
        self._poster = JsonPoster(url, "application/cloudevents+json", headers or {}, **http)
        self._all, self._source = all_readings, source

    def wants(self, watched: WatchedReading) -> bool:
        """Is it one to send? All others are left out, and not counted."""
        return watched.is_alarm or blames(watched) or self._all

    def emit(self, watched: WatchedReading) -> None:
        """Raises OutputError where the receiver does not take it."""
        if self.wants(watched):
            self._poster.post(cloud_event(watched, self._source))


def cloud_event(watched: WatchedReading, source: str) -> dict[str, Any]:
    """The reading as a CloudEvent. Its id is a digest of what it says and when."""
    said = () if watched.verdict is None else (watched.verdict.outcome.value, watched.about)
    ids = (watched.run, watched.agent_path, watched.reading.step, watched.reading.level.value, watched.at, *said)
    kind = "alarm" if watched.is_alarm else "reading" if watched.verdict is None else "verdict"
    event = {
        "specversion": "1.0",
        "id": hashlib.blake2b(repr(ids).encode("utf-8", "replace"), digest_size=16).hexdigest(),
        "source": source,
        "type": f"prefixguard.{kind}",
        "time": datetime.fromtimestamp(watched.at, UTC).isoformat(),
        "datacontenttype": "application/json",
        "data": (found := outgoing(watched)).to_json(),
    }
    if found.run:
        event["subject"] = found.run
    if found.span is not None:
        event["traceparent"] = f"00-{found.span.trace_id}-{found.span.span_id}-{found.span.flags & 0xFF:02x}"
    return event
