"""How good an auditor is: its rows, what needs no auditor, the table of both, and what a gate before it saves."""

from prefixguard.evaluation.audit.audit_table import AuditRow, AuditTable, audit_table
from prefixguard.evaluation.audit.audited_system import AuditedSystem, StepIndex, audit_runs, audited, step_number
from prefixguard.evaluation.audit.baselines import trivial_baselines
from prefixguard.evaluation.audit.cascade import Cascade, PrefixVerdict, cascade, escalated_above, walk
from prefixguard.evaluation.audit.cascade_curve import CascadeCurve, cascade_curve
from prefixguard.evaluation.audit.fault_table import FaultTable, agents_of, fault_row, fault_table
from prefixguard.evaluation.audit.from_lines import audited_lines, confidence_pairs, fault_lines
from prefixguard.evaluation.audit.published import PublishedRow, published_rows

__all__ = [
    "AuditRow",
    "AuditTable",
    "AuditedSystem",
    "Cascade",
    "CascadeCurve",
    "FaultTable",
    "PrefixVerdict",
    "PublishedRow",
    "StepIndex",
    "agents_of",
    "audit_runs",
    "audit_table",
    "audited",
    "audited_lines",
    "cascade",
    "cascade_curve",
    "confidence_pairs",
    "escalated_above",
    "fault_lines",
    "fault_row",
    "fault_table",
    "published_rows",
    "step_number",
    "trivial_baselines",
    "walk",
]
