"""Writes adapters: offline inference, proposals of a language model, checks, freezing."""

from prefixguard.induce.checks import CheckReport, Finding
from prefixguard.induce.fragments import HINTS, answers
from prefixguard.induce.freezing import Frozen, freeze
from prefixguard.induce.golden import Golden, golden_samples
from prefixguard.induce.induction import Induced, check_adapter, freeze_mended, induce_adapter, question
from prefixguard.induce.model import Endpoint, sample_pack
from prefixguard.induce.preview import first_steps
from prefixguard.induce.proposal import Choice, LeftOut, Mapped, Option, Proposal, Usage, take_first
from prefixguard.induce.report import Report, can_train, outcome_remedy, verdict
from prefixguard.induce.samples import Samples, open_samples

__all__ = [
    "HINTS",
    "CheckReport",
    "Choice",
    "Endpoint",
    "Finding",
    "Frozen",
    "Golden",
    "Induced",
    "LeftOut",
    "Mapped",
    "Option",
    "Proposal",
    "Report",
    "Samples",
    "Usage",
    "answers",
    "can_train",
    "check_adapter",
    "first_steps",
    "freeze",
    "freeze_mended",
    "golden_samples",
    "induce_adapter",
    "open_samples",
    "outcome_remedy",
    "question",
    "sample_pack",
    "take_first",
    "verdict",
]
