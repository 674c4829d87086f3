"""Ask a large auditor, only when it matters: client, verdicts, policy. Its client loads when an endpoint is named."""

from prefixguard.escalate.chat import Chat, Message
from prefixguard.escalate.endpoint import Endpoint, Reply, shown_url
from prefixguard.escalate.judged import Auditor, Judged
from prefixguard.escalate.verdict import Verdict, VerdictOutcome

__all__ = [
    "Auditor",
    "Chat",
    "Endpoint",
    "Judged",
    "Message",
    "Reply",
    "Verdict",
    "VerdictOutcome",
    "shown_url",
]
