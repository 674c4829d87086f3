"""Leak audit: does a labelled corpus tell its outcomes in ways that no live run would?"""

from prefixguard.evaluate.leaks.audit import LeakAudit, audit_leaks
from prefixguard.evaluate.leaks.confirmation import own_results, says_harness
from prefixguard.evaluate.leaks.finding import LeakFinding, Severity
from prefixguard.evaluate.leaks.waiving import waivers_of

__all__ = ["LeakAudit", "LeakFinding", "Severity", "audit_leaks", "own_results", "says_harness", "waivers_of"]
