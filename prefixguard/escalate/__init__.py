"""Ask a large auditor, only when it matters: client, verdicts, policy. Its client loads when an endpoint is named."""

from prefixguard.escalate.agent_names import AgentNames, agent_of, same_agent
from prefixguard.escalate.attribution import Attribution, AttributionMethod, attribute
from prefixguard.escalate.audit_line import AuditLine
from prefixguard.escalate.auditing import audit, audit_async, unlabelled
from prefixguard.escalate.chat import Chat, Message
from prefixguard.escalate.circuit import CircuitBreaker, CircuitState
from prefixguard.escalate.client import AsyncClient
from prefixguard.escalate.confidence import ConfidenceMap
from prefixguard.escalate.endpoint import Endpoint, Reply, shown_url
from prefixguard.escalate.escalated import EscalatedReading, EscalatedSession, Escalator
from prefixguard.escalate.gate import Gate
from prefixguard.escalate.hypotheses import (
    MODES,
    FailureMode,
    HypothesisAnswer,
    HypothesisLabel,
    HypothesisResult,
    verify,
)
from prefixguard.escalate.hypotheses import PROMPT_VERSION as HYPOTHESES_VERSION
from prefixguard.escalate.inspectors import HypothesisInspector, Inspected, Inspector, MonitorInspector, WalkInspector
from prefixguard.escalate.json_objects import FoundJson, json_objects, without_thoughts
from prefixguard.escalate.judged import Auditor, Judged
from prefixguard.escalate.key_masking import masked
from prefixguard.escalate.llm_auditor import RAW_CONFIDENCE, LlmAuditor
from prefixguard.escalate.mark import Mark, escalation_mark
from prefixguard.escalate.masked_records import MaskedRecords
from prefixguard.escalate.masking import Masker, masked_in_words, total_masked
from prefixguard.escalate.no_reply import CircuitOpenError, NoReplyError, NoReplyFault
from prefixguard.escalate.policy import EscalationPolicy, Rung
from prefixguard.escalate.prompting import VERDICT_SCHEMA, Asked, PromptKind, ask_for_verdict
from prefixguard.escalate.transcript_text import Excerpt, estimated_tokens, fit
from prefixguard.escalate.verdict import Verdict, VerdictOutcome
from prefixguard.escalate.verdict_cache import VerdictCache
from prefixguard.escalate.verdict_parsing import read_verdict
from prefixguard.escalate.walks import Call, Walk, query_steps, walk
from prefixguard.escalate.watching import escalate_records, watch_escalated

__all__ = [
    "HYPOTHESES_VERSION",
    "MODES",
    "RAW_CONFIDENCE",
    "VERDICT_SCHEMA",
    "AgentNames",
    "Asked",
    "AsyncClient",
    "Attribution",
    "AttributionMethod",
    "AuditLine",
    "Auditor",
    "Call",
    "Chat",
    "CircuitBreaker",
    "CircuitOpenError",
    "CircuitState",
    "ConfidenceMap",
    "Endpoint",
    "EscalatedReading",
    "EscalatedSession",
    "EscalationPolicy",
    "Escalator",
    "Excerpt",
    "FailureMode",
    "FoundJson",
    "Gate",
    "HypothesisAnswer",
    "HypothesisInspector",
    "HypothesisLabel",
    "HypothesisResult",
    "Inspected",
    "Inspector",
    "Judged",
    "LlmAuditor",
    "Mark",
    "MaskedRecords",
    "Masker",
    "Message",
    "MonitorInspector",
    "NoReplyError",
    "NoReplyFault",
    "PromptKind",
    "Reply",
    "Rung",
    "Verdict",
    "VerdictCache",
    "VerdictOutcome",
    "Walk",
    "WalkInspector",
    "agent_of",
    "ask_for_verdict",
    "attribute",
    "audit",
    "audit_async",
    "escalate_records",
    "escalation_mark",
    "estimated_tokens",
    "fit",
    "json_objects",
    "masked",
    "masked_in_words",
    "query_steps",
    "read_verdict",
    "same_agent",
    "shown_url",
    "total_masked",
    "unlabelled",
    "verify",
    "walk",
    "watch_escalated",
    "without_thoughts",
]
