"""A language model as the judge of prefixes: a sample that stands for all, a question each, figures and costs."""

from prefixguard.evaluation.judge.asking import AskedQuestion, JudgeEstimate, ask_all, estimate
from prefixguard.evaluation.judge.judging import BUDGET_TOKENS, SAMPLE, draw_prefixes, judge, plan_judging
from prefixguard.evaluation.judge.question import JudgeAnswer, JudgeOutcome, JudgeQuestion, prompt_version
from prefixguard.evaluation.judge.result import JudgeCosts, JudgePlan, JudgeResult, judge_result

__all__ = [
    "BUDGET_TOKENS",
    "SAMPLE",
    "AskedQuestion",
    "JudgeAnswer",
    "JudgeCosts",
    "JudgeEstimate",
    "JudgeOutcome",
    "JudgePlan",
    "JudgeQuestion",
    "JudgeResult",
    "ask_all",
    "draw_prefixes",
    "estimate",
    "judge",
    "judge_result",
    "plan_judging",
    "prompt_version",
]
