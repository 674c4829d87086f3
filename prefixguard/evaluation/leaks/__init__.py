"""Leak audit: does a labelled corpus tell its outcomes in ways that no live run would?"""

from prefixguard.evaluation.leaks.audit import LeakAudit, audit_leaks
from prefixguard.evaluation.leaks.confirmation import own_results, says_harness
from prefixguard.evaluation.leaks.finding import LeakFinding, Severity
from prefixguard.evaluation.leaks.waiving import waivers_of

__all__ = ["LeakAudit", "LeakFinding", "Severity", "audit_leaks", "own_results", "says_harness", "waivers_of"]
