"""How good an auditor is: its rows, what needs no auditor, the table of both, and what a gate before it saves."""

from prefixguard.evaluate.audit.audit_table import AuditRow, AuditTable, audit_table
from prefixguard.evaluate.audit.audited_system import AuditedSystem, StepIndex, audit_runs, audited, step_number
from prefixguard.evaluate.audit.baselines import trivial_baselines
from prefixguard.evaluate.audit.published import PublishedRow, published_rows

__all__ = [
    "AuditRow",
    "AuditTable",
    "AuditedSystem",
    "PublishedRow",
    "StepIndex",
    "audit_runs",
    "audit_table",
    "audited",
    "published_rows",
    "step_number",
    "trivial_baselines",
]
