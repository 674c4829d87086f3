"""Are runs fit to train on? Enough of them, without repeats and shortcuts, and something in them to learn."""

from prefixguard.evaluation.data_check.budgets import BudgetCheck, SideCount
from prefixguard.evaluation.data_check.checking import Audit, check_corpus, check_data
from prefixguard.evaluation.data_check.curve import CurvePoint, LearningCurve
from prefixguard.evaluation.data_check.result import DataCheck, SaidFinding
from prefixguard.evaluation.data_check.traits import DataFinding, GroupCheck, GroupValue, LengthCheck, RepeatCheck

__all__ = [
    "Audit",
    "BudgetCheck",
    "CurvePoint",
    "DataCheck",
    "DataFinding",
    "GroupCheck",
    "GroupValue",
    "LearningCurve",
    "LengthCheck",
    "RepeatCheck",
    "SaidFinding",
    "SideCount",
    "check_corpus",
    "check_data",
]
