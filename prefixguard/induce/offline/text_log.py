"""A spec for logs that are text: where runs are, what begins their events, who acts, and how runs ended.

No list of formats decides. Heads of lines are found by what repeats and takes turns (`text_heads`), runs by what
recurs between them (`text_runs`), roles by order and by the form of calls, with names as a help (`text_roles`), ends
by what only last lines say (`text_ends`). Of several ways to read the samples, each is compiled and run on them, and
the best by a stated score is proposed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from prefixguard.induce.offline.text_draft import Draft
from prefixguard.induce.offline.text_fields import fields_draft
from prefixguard.induce.offline.text_heads import Lines, head_sets
from prefixguard.induce.offline.text_source import TextSource, find_sources
from prefixguard.induce.offline.text_spec import draft_spec
from prefixguard.induce.offline.text_trial import Trial, try_spec
from prefixguard.induce.proposal import Asker, Choice, Mapped, Option, Proposal
from prefixguard.induce.samples import Samples

#: A text inside a JSON record is a log only if it reads as well as this: any document may hold long texts.
LEAST_IN_JSON = 0.6


def propose_text(samples: Samples, *, name: str, hints: Mapping[str, str], ask: Asker) -> Proposal | None:
    """A spec for samples that are text, notebooks, folders of a run each with a text log in it, or JSON records that
    hold the whole log of a run as one text.

    name: of the adapter. hints: parts the user states, by key (`outcome`, `task`, `id`, `status`, ...), as paths.
    ask: decides what the samples leave open. None where the samples hold no log that can be read.
    """
    best: tuple[float, Draft, Trial, TextSource] | None = None
    tried: list[tuple[float, str]] = []
    for source in find_sources(samples):
        for why, weight, draft in _drafts(source, name, hints):
            trial = try_spec(draft, source)
            if trial is None:
                continue
            score = 0.9 * trial.score(draft.sure) + 0.1 * weight
            if source.root == "$" and score < LEAST_IN_JSON:
                continue
            tried.append((score, f"{why} ({draft.plan.why}): {trial.why}"))
            if best is None or score > best[0] + 1e-9:
                best = (score, draft, trial, source)
        if best is not None and best[0] > 0.5:
            break
    if best is None or best[0] < 0.2:
        return None
    score, draft, trial, source = best
    return _proposal(draft, trial, source, score, tried, ask)


def _drafts(source: TextSource, name: str, hints: Mapping[str, str]) -> Iterator[tuple[str, float, Draft]]:
    """Ways to read the texts: what each rests on, how often its heads stand there (1: the most), the draft."""
    pairs = fields_draft(source, name, hints)
    if pairs is not None:
        yield "lines of key=value", 1.0, pairs
        return
    lines = Lines(source.texts)
    found = head_sets(lines)
    for heads in found:
        if heads.score < 0.05 * found[0].score:
            continue
        draft = draft_spec(source, lines, heads, name, hints)
        if draft is not None:
            yield heads.why, heads.score / found[0].score, draft


def _proposal(
    draft: Draft, trial: Trial, source: TextSource, score: float, tried: list[tuple[float, str]], ask: Asker
) -> Proposal:
    spec: dict[str, Any] = dict(draft.spec)
    choices: list[Choice] = []
    for choice in draft.choices:
        taken = ask(choice)
        taken = taken if 0 <= taken < len(choice.options) else choice.taken
        choices.append(Choice(choice.field, choice.options, taken, choice.rule))
        if taken != choice.taken:
            draft.apply(spec, choice.field, choice.options[taken].value)
    mapped = [
        Mapped("the text", "records", trial.coverage, draft.sure, f"{trial.why}"),
        *draft.mapped,
    ]
    notes = [draft.plan.why, *draft.notes]
    for other, why in sorted(tried, reverse=True)[1:3]:
        notes.append(f"Another way to read it was tried and scored {other:.2f} (this one {score:.2f}): {why}")
    spec["description"] = _description(draft, source)
    return Proposal(
        spec,
        tuple(mapped),
        tuple(draft.left_out),
        tuple(choices),
        tuple(notes),
        "offline",
        extra={"score": score, "runs": trial.runs, "records": trial.records, "tools": dict(trial.tools)},
    )


def _description(draft: Draft, source: TextSource) -> str:
    kinds = Counter(draft.roles.of.values())
    parts = ", ".join(f"{role} {n}" for role, n in sorted(kinds.items()))
    return (
        f"Induced from text: {draft.plan.why}; events by {len(draft.roles.of)} kinds of lines ({parts}). "
        "Live event: the text as it comes, cut anywhere."
    )


__all__ = ["Option", "propose_text"]
