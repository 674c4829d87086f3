"""Checks of an adapter: does it read everything, the same way every time, and nothing that a live run cannot know."""

from prefixguard.induce.checks.check_report import WEIGHTS, CheckReport, check_adapter
from prefixguard.induce.checks.finding import Finding, Severity, unused, waiving

__all__ = ["WEIGHTS", "CheckReport", "Finding", "Severity", "check_adapter", "unused", "waiving"]
