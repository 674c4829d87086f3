"""Are runs fit to train on? Enough of them, without repeats and shortcuts, and something in them to learn."""

from prefixguard.evaluate.data_check.budgets import BudgetCheck, SideCount
from prefixguard.evaluate.data_check.checking import Audit, check_corpus, check_data
from prefixguard.evaluate.data_check.curve import CurvePoint, LearningCurve
from prefixguard.evaluate.data_check.finding import DataFinding, SaidFinding
from prefixguard.evaluate.data_check.groups import GroupCheck, GroupValue
from prefixguard.evaluate.data_check.lengths import LengthCheck
from prefixguard.evaluate.data_check.repeats import RepeatCheck
from prefixguard.evaluate.data_check.result import DataCheck

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
