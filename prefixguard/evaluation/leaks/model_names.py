"""Names of language models in the text of records, where the groups of the runs do not say them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from prefixguard.evaluation.leaks.features import cut
from prefixguard.evaluation.leaks.finding import LeakFinding, Severity, shown
from prefixguard.stepview import StepRecord
from prefixguard.trace import Outcome, Run

_MODEL = re.compile(
    r"\b(?:gpt|claude|gemini|gemma|llama|qwen|deepseek|mistral|mixtral|grok|kimi|glm|phi|command-r|nova)"
    r"[-_ ]?[a-z0-9](?:[a-z0-9.:-]{0,38}[a-z0-9])?\b"
)
_FIELDS = ("observation", "action", "result", "arguments")
#: Share of runs that must name one model, and from which it is an error; runs of each of two models there must be.
_SHARE = 0.10
_SHARE_ERROR = 0.50
_EACH = 3


def find_model_names(runs: Sequence[Run[StepRecord]]) -> Iterator[LeakFinding]:
    """A finding a field in which runs name a model: one each, and not all the same.

    Runs that talk about several models (an agent that researches them) do not count.
    """
    for field in _FIELDS:
        owner: dict[int, str] = {}
        for number, run in enumerate(runs):
            names = {
                name
                for record in run.records
                for name in _MODEL.findall(cut(getattr(record, field)).lower())
                if any(c.isdigit() for c in name)
            }
            if len(names) == 1:
                owner[number] = names.pop()
        count = Counter(owner.values())
        share = len(owner) / len(runs) if runs else 0.0
        if share < _SHARE or sum(n >= _EACH for n in count.values()) < 2:
            continue
        failed: dict[str, list[bool]] = defaultdict(list)
        for number, name in owner.items():
            if runs[number].outcome is not Outcome.UNKNOWN:
                failed[name].append(runs[number].outcome is Outcome.FAILURE)
        rates = {name: sum(ends) / len(ends) for name, ends in failed.items() if len(ends) >= _EACH}
        severity: Severity = "error" if share >= _SHARE_ERROR else "warning"
        top = min(count, key=lambda name: (-count[name], name))
        text = (
            f"The {field} of {len(owner)} of {len(runs)} runs names one language model ({len(count)} names, such as "
            f"{shown(top)})."
        )
        figures = {"runs": float(len(owner)), "share": share, "names": float(len(count))}
        if rates:
            low, high = min(rates.values()), max(rates.values())
            figures |= {"failed_least": low, "failed_most": high}
            text += f" From {low:.0%} to {high:.0%} of a name's runs failed."
        text += " Which model acts is a shortcut, and not how the run goes: cut it."
        yield LeakFinding("identifier", field, f"model: {top}", severity, figures, text)
