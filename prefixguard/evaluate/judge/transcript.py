"""The steps of a prefix as text for a judge, within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prefixguard.stepview import StepRecord

#: Characters a token, about; what servers that do not count are taken to mean.
LETTERS_A_TOKEN = 4
#: Share of the budget that one field of one step may take before its middle is left out.
_OF_ONE_FIELD = 0.15


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of a prefix. text: the steps. left_out: steps that are not there. shortened: fields cut short."""

    text: str
    left_out: int
    shortened: int


def shown(records: Sequence[StepRecord], budget_tokens: int) -> Shown:
    """The steps as text of about `budget_tokens` tokens: the first step and the latest ones, long fields without their
    middle. What is not shown is marked where it would stand. Names of agents are not shown: a monitor does not see
    them either.
    """
    room = budget_tokens * LETTERS_A_TOKEN
    longest = max(200, int(room * _OF_ONE_FIELD))
    said = [_step(record, longest) for record in records]
    kept_from = len(said)
    used = len(said[0][0]) if said else 0
    while kept_from > 1 and used + len(said[kept_from - 1][0]) <= room:
        kept_from -= 1
        used += len(said[kept_from][0])
    kept_from = min(kept_from, max(1, len(said) - 1))  # the latest step is always shown
    left_out = kept_from - 1 if said else 0
    parts = [text for text, _ in said[:1]]
    if left_out:
        parts.append(f"[... {left_out} steps are not shown ...]")
    parts += [text for text, _ in said[kept_from:]]
    return Shown("\n\n".join(parts), left_out, sum(cut for _, cut in (*said[:1], *said[kept_from:])))


def _step(record: StepRecord, longest: int) -> tuple[str, int]:
    head = f"Step {record.index} ({record.actor or 'unknown actor'})"
    if record.status == "error":
        head += ", marked as an error"
    lines, cuts = [head], 0
    tool = "" if record.tool == "respond" else record.tool
    for name, text in (
        ("saw", record.observation),
        ("said", record.action),
        ("called", f"{tool} {record.arguments}".strip()),
        ("got", record.result),
    ):
        if text:
            kept = _cut(text, longest)
            cuts += kept is not text
            lines.append(f"{name}: {kept}")
    return "\n".join(lines), cuts


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} [... {len(text) - 2 * half:,} characters are not shown ...] {text[-half:]}"
