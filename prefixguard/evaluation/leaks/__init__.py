"""Leak audit: does a labelled corpus tell its outcomes in ways that no live run would?"""

from prefixguard.evaluation.leaks.audit import LeakAudit, audit_leaks, find_leaks
from prefixguard.evaluation.leaks.chance import LEVEL, rank_area, ranked_by_chance
from prefixguard.evaluation.leaks.confirmation import own_results
from prefixguard.evaluation.leaks.finding import LeakFinding, Severity, waivers_of
from prefixguard.evaluation.leaks.material import GIVEN

__all__ = [
    "GIVEN",
    "LEVEL",
    "LeakAudit",
    "LeakFinding",
    "Severity",
    "audit_leaks",
    "find_leaks",
    "own_results",
    "rank_area",
    "ranked_by_chance",
    "waivers_of",
]
