"""Where readings go besides the agent's own process. No sink blocks the host or raises into it.

Here is what needs nothing: the log, a file, and what every sink is made of. The sinks that send readings away stand in
`otel`, `prometheus`, `webhook` and `observability`, and are loaded when they are used (`prefixguard.WebhookSink`).
"""

from prefixguard.integrations.sinks.local import FileSink, LogSink
from prefixguard.integrations.sinks.queue import Sink, SinkThreads, SpanIds, WatchedReading, current_span

__all__ = ["FileSink", "LogSink", "Sink", "SinkThreads", "SpanIds", "WatchedReading", "current_span"]
