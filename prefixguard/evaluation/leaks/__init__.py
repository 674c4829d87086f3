"""Leak audit: does a labelled corpus tell its outcomes in ways that no live run would?"""

from prefixguard.evaluation.leaks.audit import LeakAudit, audit_leaks, find_leaks
from prefixguard.evaluation.leaks.finding import LeakFinding, Severity, waivers_of
from prefixguard.evaluation.leaks.judged import GIVEN
from prefixguard.evaluation.leaks.raw import RawRuns, find_in_raw

__all__ = [
    "GIVEN",
    "LeakAudit",
    "LeakFinding",
    "RawRuns",
    "Severity",
    "audit_leaks",
    "find_in_raw",
    "find_leaks",
    "waivers_of",
]
