"""Auditors of finished runs: the protocols that lead one through a run, whole audits, and how good an auditor is."""

from prefixguard.auditor.attribution import AttributionMethod, BlamedStep, attribute
from prefixguard.auditor.audit_line import AuditLine
from prefixguard.auditor.audit_plan import PROTOCOLS, AuditPlan
from prefixguard.auditor.audit_report import AuditReport, audit_report, fit_confidence, gate_losses
from prefixguard.auditor.audit_table import AuditRow, AuditTable, audit_table
from prefixguard.auditor.audited_system import (
    AuditedSystem,
    StepIndex,
    audit_runs,
    audited,
    audited_lines,
    confidence_pairs,
    step_number,
)
from prefixguard.auditor.auditing import audit, audit_async, unlabelled
from prefixguard.auditor.baselines import trivial_baselines
from prefixguard.auditor.cascade import (
    Cascade,
    CascadeCurve,
    PrefixVerdict,
    cascade,
    cascade_curve,
    escalated_above,
    replayed,
)
from prefixguard.auditor.failure_modes import MODES, CueFound, FailureMode, counter_evidence, modes_of
from prefixguard.auditor.fault_table import FaultTable, agents_of, fault_lines, fault_row, fault_table
from prefixguard.auditor.hypotheses import PROMPT_VERSION as HYPOTHESES_VERSION
from prefixguard.auditor.hypotheses import HypothesisResult, hypothesis_prompts, verify
from prefixguard.auditor.hypothesis_answers import HypothesisAnswer, HypothesisLabel
from prefixguard.auditor.protocols import (
    AuditProtocol,
    HypothesisProtocol,
    Inspection,
    MonitorProtocol,
    WalkProtocol,
)
from prefixguard.auditor.published import PublishedRow, published_rows
from prefixguard.auditor.trigger import EscalationThreshold, EscalationTrigger, escalation_mark
from prefixguard.auditor.walks import Call, Walk, query_steps, walk

__all__ = [
    "HYPOTHESES_VERSION",
    "MODES",
    "PROTOCOLS",
    "AttributionMethod",
    "AuditLine",
    "AuditPlan",
    "AuditProtocol",
    "AuditReport",
    "AuditRow",
    "AuditTable",
    "AuditedSystem",
    "BlamedStep",
    "Call",
    "Cascade",
    "CascadeCurve",
    "CueFound",
    "EscalationThreshold",
    "EscalationTrigger",
    "FailureMode",
    "FaultTable",
    "HypothesisAnswer",
    "HypothesisLabel",
    "HypothesisProtocol",
    "HypothesisResult",
    "Inspection",
    "MonitorProtocol",
    "PrefixVerdict",
    "PublishedRow",
    "StepIndex",
    "Walk",
    "WalkProtocol",
    "agents_of",
    "attribute",
    "audit",
    "audit_async",
    "audit_report",
    "audit_runs",
    "audit_table",
    "audited",
    "audited_lines",
    "cascade",
    "cascade_curve",
    "confidence_pairs",
    "counter_evidence",
    "escalated_above",
    "escalation_mark",
    "fault_lines",
    "fault_row",
    "fault_table",
    "fit_confidence",
    "gate_losses",
    "hypothesis_prompts",
    "modes_of",
    "published_rows",
    "query_steps",
    "replayed",
    "step_number",
    "trivial_baselines",
    "unlabelled",
    "verify",
    "walk",
]
