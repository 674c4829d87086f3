"""What runs lost on their way to records: fields that the adapter reads and that are empty nearly everywhere.

A tracer that leaves texts out, a framework that renamed a key, an adapter of another version: the runs are read, a
monitor is trained on what is left of them, and nothing fails. So whoever reads runs compares how the fields are filled
with what the adapter's rules write.

Thresholds. `NEARLY`: a field counts as lost where at least four in five places that could have it are empty; honest
formats leave out less (of eleven public sets the emptiest results are those of the one whose calls mostly have none).
`NEVER`: what an agent may well leave out, words next to a call and arguments, counts as lost only where 19 in 20 calls
lack it. `FEWEST`: places and runs below which a share says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from prefixguard.stepview.adapter import Adapter
from prefixguard.stepview.fills import FillCounts

NEARLY = 0.8
NEVER = 0.95
FEWEST = 20
_FEWEST_RUNS = 5

_WRITES = re.compile(r"^rules\[\d+\]\.(tool|arguments|observation|action|result)\b|^run\.(preamble)\b")
#: By shipped adapter: the setting of its framework that puts texts into its traces.
_SWITCHES = {
    "openinference": "OPENINFERENCE_HIDE_INPUTS and OPENINFERENCE_HIDE_OUTPUTS must not be set",
    "otel_genai": (
        "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental and "
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY (or SPAN_AND_EVENT) must be set"
    ),
    "otel_genai_old": "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT must be set",
    "openai_agents": "RunConfig(trace_include_sensitive_data=True); spans of Responses export no text, so let the "
    "exporter add their input and response (docs/integrations.md)",
}


@dataclass(frozen=True, slots=True)
class Loss:
    """One thing that is missing from records.

    severity: an error leaves nothing to learn from; a warning is what the adapter reads and hardly ever finds; a note
        is what may well be as it is. field: of the record, or "runs". text: sentences with numbers and the remedy.
    """

    severity: Literal["error", "warning", "note"]
    field: str
    text: str


def losses(fills: FillCounts, adapter: Adapter, runs: str = "RUNS") -> tuple[Loss, ...]:
    """What is missing from the records that these counts are of, errors first.

    runs: how the runs are called in the remedy. Empty where no run was counted.
    """
    if not fills.runs:
        return ()
    look = f"Look how they are read: prefixguard parse {runs} --adapter {adapter.name}"
    found = [*_nothing_to_learn(fills, adapter, look)]
    if not found and not adapter.program.is_raw:
        found = [*_fields(fills, adapter, look), *_alike(fills, look)]
    if not any(one.severity == "error" for one in found):
        found += _short(fills, look)
    return tuple(found)


def written(adapter: Adapter) -> frozenset[str]:
    """Fields that the adapter's rules write; a preamble is an observation."""
    found = (_WRITES.match(reading.where) for reading in adapter.program.readings.record)
    return frozenset(("observation" if one[2] else one[1]) for one in found if one is not None)


def switch_of(adapter: Adapter) -> str:
    """The sentence, with a blank before it, that says which setting of the framework puts texts into its traces; empty
    where the adapter's framework has none."""
    return f" In the framework: {_SWITCHES[adapter.name]}." if adapter.name in _SWITCHES else ""


def _nothing_to_learn(fills: FillCounts, adapter: Adapter, look: str) -> Iterator[Loss]:
    tool, step = fills.same["tool"], fills.same["step"]
    what = ""
    if not fills.with_text and (tool.texts == 0 or not tool.differs):
        what = f"None of the {fills.steps:,} steps has a text: no observation, words of the agent, arguments or "
        what += f"result. Nothing can be learned from them.{switch_of(adapter)}"
    elif fills.steps >= FEWEST and step.texts == fills.steps and not step.differs:
        what = f"All {fills.steps:,} steps say the same, word for word, so nothing can be learned from them: the "
        what += "adapter may read a constant."
    if what:
        yield Loss("error", "action", f"{what} {look}")


def _fields(fills: FillCounts, adapter: Adapter, look: str) -> Iterator[Loss]:
    reads = written(adapter)
    switch = switch_of(adapter)

    def lost(field: str, what: str, otherwise: str = "") -> Loss:
        remedy = f"{otherwise}{switch} In the adapter: what its rules read as `{field}`. {look}".strip()
        return Loss("warning", field, f"{what} {remedy}")

    calls, answered = fills.series("the results of calls")
    if calls >= FEWEST and calls - answered >= NEARLY * calls:
        what = f"{_of(calls - answered, calls, 'calls')} have no result:"
        if "result" in reads:
            yield lost("result", f"{what} what came back is not in the runs, or does not reach its call.")
        else:
            why = "the adapter reads none, so a monitor sees what the agent does and not what comes of it."
            yield Loss("note", "result", f"{what} {why}")
    if fills.runs >= _FEWEST_RUNS and fills.unseen >= NEARLY * fills.runs and "observation" in reads:
        what = f"{_of(fills.unseen, fills.runs, 'runs')} have no observation: neither the task nor anything a user or "
        yield lost("observation", f"{what}the environment said is in a step.")
    steps, worded = fills.series("the agent's text")
    bare = calls - fills.calls_with_words
    spoken, said = fills.series("the agent's text where it speaks")
    if spoken >= FEWEST and spoken - said >= NEARLY * spoken:
        yield lost("action", f"{spoken - said:,} of {spoken:,} steps in which the agent speaks have no text.")
    elif "action" in reads and steps >= FEWEST and steps - worded >= NEARLY * steps and bare >= NEVER * calls:
        what = f"The agent's text is empty in {_of(steps - worded, steps, 'steps')}, in {bare:,} of {calls:,} calls."
        otherwise = "That is right where the agent calls tools without a word; otherwise its words are lost."
        yield lost("action", what, otherwise)
    called, given = fills.series("the arguments of calls")
    if "arguments" in reads and called >= FEWEST and called - given >= NEVER * called:
        yield lost("arguments", f"{_of(called - given, called, 'calls')} have no arguments.")


def _alike(fills: FillCounts, look: str) -> Iterator[Loss]:
    for field, name in (("observation", "observations"), ("action", "texts of the agent"), ("result", "results")):
        same = fills.same[field]
        if same.texts >= FEWEST and not same.differs:
            shown = "".join(c if c.isprintable() else " " for c in same.shown)
            what = f"All {same.texts:,} {name} are the same ({shown!r}), so they tell nothing:"
            yield Loss("warning", field, f"{what} the adapter may read a constant as `{field}`. {look}")
    tool = fills.same["tool"]
    if tool.texts >= FEWEST and not tool.differs:
        said = "the agent speaks and calls no tool" if tool.shown == "respond" else f"the tool is {tool.shown!r}"
        yield Loss("note", "tool", f"In all {tool.texts:,} steps {said}. If there are others, they are lost. {look}")


def _short(fills: FillCounts, look: str) -> Iterator[Loss]:
    if fills.runs >= _FEWEST_RUNS and fills.one_step >= NEARLY * fills.runs:
        what = f"{_of(fills.one_step, fills.runs, 'runs')} have one step, so a monitor can say nothing before they end:"
        why = "a whole run may be one event, or each step may have been taken for a run (`container`, `events` of the "
        yield Loss("warning", "runs", f"{what} {why}adapter). {look}")


def _of(part: int, whole: int, what: str) -> str:
    return f"{part:,} of {whole:,} {what} ({100 * part / whole:.0f} %)"
