"""Ask a large auditor, only when it matters: client, verdicts, policy. Its client loads when an endpoint is named."""

from prefixguard.escalate.agent_names import AgentNames, agent_of, same_agent, shown_name
from prefixguard.escalate.circuit import CircuitBreaker, CircuitOpenError, CircuitState, NoReplyError, NoReplyFault
from prefixguard.escalate.client import AsyncClient, Chat, Message
from prefixguard.escalate.confidence import ConfidenceMap
from prefixguard.escalate.endpoint import Client, Endpoint, Reply, masked, shown_url
from prefixguard.escalate.escalated_runs import escalate_records, watch_escalated
from prefixguard.escalate.interventions import nudge
from prefixguard.escalate.llm_auditor import RAW_CONFIDENCE, LlmAuditor
from prefixguard.escalate.masking import MaskedRecords, Masker, masked_in_words, total_masked
from prefixguard.escalate.model_escalator import model_escalator
from prefixguard.escalate.policy import Asking, EscalationPolicy, Intervention
from prefixguard.escalate.prompting import (
    VERDICT_SCHEMA,
    PromptKind,
    VerdictPrompt,
    ask_for_verdict,
    halves,
    prompt_version,
)
from prefixguard.escalate.reply_json import FoundJson, json_objects, without_thoughts
from prefixguard.escalate.session import EscalatedReading, EscalatedSession, Escalator
from prefixguard.escalate.transcript_text import RunExcerpt, estimated_tokens, fit
from prefixguard.escalate.verdict import Auditor, AuditResult, Verdict, VerdictCache, VerdictOutcome
from prefixguard.escalate.verdict_parsing import FAULTS, read_verdict

__all__ = [
    "FAULTS",
    "RAW_CONFIDENCE",
    "VERDICT_SCHEMA",
    "AgentNames",
    "Asking",
    "AsyncClient",
    "AuditResult",
    "Auditor",
    "Chat",
    "CircuitBreaker",
    "CircuitOpenError",
    "CircuitState",
    "Client",
    "ConfidenceMap",
    "Endpoint",
    "EscalatedReading",
    "EscalatedSession",
    "EscalationPolicy",
    "Escalator",
    "FoundJson",
    "Intervention",
    "LlmAuditor",
    "MaskedRecords",
    "Masker",
    "Message",
    "NoReplyError",
    "NoReplyFault",
    "PromptKind",
    "Reply",
    "RunExcerpt",
    "Verdict",
    "VerdictCache",
    "VerdictOutcome",
    "VerdictPrompt",
    "agent_of",
    "ask_for_verdict",
    "escalate_records",
    "estimated_tokens",
    "fit",
    "halves",
    "json_objects",
    "masked",
    "masked_in_words",
    "model_escalator",
    "nudge",
    "prompt_version",
    "read_verdict",
    "same_agent",
    "shown_name",
    "shown_url",
    "total_masked",
    "watch_escalated",
    "without_thoughts",
]
