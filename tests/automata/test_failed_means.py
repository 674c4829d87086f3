"""What failed means is said from the adapter's own rule, whatever form it has."""

from __future__ import annotations

import pytest

from prefixguard.automata.summary.failed_means import failed_means
from prefixguard.stepview import load_adapter

SAID = {
    "tau_bench": "succeeded if $.reward is at least 1.0, and failed if it is below 1.0;",
    "react_log": 'succeeded if $.section.verdict is "CORRECT", and failed if it is "INCORRECT" or "HALTED";',
    "sweagent": "succeeded if the stem of the file is {",
    "openhands": "succeeded if $.test_result.report.resolved is true, and failed if it is false;",
    "tracertraj": "succeeded if $.mistake_step is such that ^- matches, and failed if it is such that ^[0-9] matches;",
    "openai_chat": 'succeeded if $.outcome, else $.success, else $.reward is "success" or true or 1, and failed',
    "mini_swe_agent": "succeeded if $.resolved of ../logs/{task}/report.json is true",
    "webshop_react": 'finds in $.text is "1.0", and failed if it is anything else; runs of which neither can be said',
    "mcp": "Which runs failed is not in them: it was told beside them.",
}


@pytest.mark.parametrize("name", SAID)
def test_the_rule_of_an_adapter_is_said_in_words(name: str) -> None:
    assert SAID[name] in failed_means(load_adapter(name))
    assert len(failed_means(load_adapter(name))) < 500
