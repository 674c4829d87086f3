"""Rows to train on: a prompt as `audit` sends it, and what the right answer to it is."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from prefixguard.auditor import HypothesisAnswer, HypothesisLabel
from prefixguard.auditor.hypothesis_answers import read_one
from prefixguard.errors import DataError
from prefixguard.escalate import Reply, Verdict, agent_of, read_verdict
from prefixguard.factory.prompt_steps import PromptSteps, steps_of
from prefixguard.factory.rewards import REWARDS, RewardConstants, hypothesis
from prefixguard.factory.skips import Skips
from prefixguard.trace import read_named

_LARGEST = 4 << 30
_THOUGHT = "I went through the steps in order."
_REASONS = {
    "alarm": "The mistake that decides the run is made at this step.",
    "safe": "No step shown contains a decisive mistake.",
}


@dataclass(frozen=True)
class TrainingRow:
    """A prompt and its answer.

    prompt: messages. gold_step, gold_agent: of the decisive mistake; None in a safe prefix. n_steps: steps shown.
    kind: its class, by which rows are balanced. family: what stands on one side of a split. label, agents: of a
    hypothesis: what is right, and who is to be blamed; label is None for rows that ask for a verdict. split: train or
    test.
    """

    prompt: tuple[Mapping[str, str], ...]
    gold_step: int | None
    gold_agent: str | None
    n_steps: int
    kind: str
    family: str
    run_id: str
    label: HypothesisLabel | None = None
    agents: tuple[str, ...] = ()
    split: str = "train"

    @cached_property
    def shown(self) -> PromptSteps:
        """What the prompt shows."""
        return steps_of(self.prompt)

    @cached_property
    def own_agent(self) -> str | None:
        """The agent at fault, spelled as the prompt spells it; None where it does not list it."""
        return None if self.gold_agent is None else self.shown.names.resolve(self.gold_agent)

    def verdict(self, reply: str) -> Verdict:
        """What `audit` reads in a reply."""
        return read_verdict(_reply(reply), self.shown.records, elided=self.shown.elided)

    def answer(self, reply: str) -> HypothesisAnswer:
        """What `audit --protocol hypotheses` reads in a reply."""
        return read_one(reply, self.shown.names)

    def reward(self, reply: str, name: str = "three_axis", constants: RewardConstants | None = None) -> float:
        """What a reply is worth. name: of `REWARDS`; rows of hypotheses have one of their own."""
        constants = constants or RewardConstants()
        if self.label is not None:
            return hypothesis(self.answer(reply), self.label, self.agents, constants)
        return REWARDS[name](self.verdict(reply), self.gold_step, self.own_agent, constants)

    @cached_property
    def target(self) -> str:
        """The right reply, in the form that the prompt asks for."""
        if self.label is not None:
            return json.dumps({"label": self.label.value, "agents": list(self.agents)}, ensure_ascii=False)
        return verdict_reply(self.gold_step, self.own_agent)

    @property
    def opposite(self) -> str:
        """A wrong verdict: SAFE of an unsafe prefix; of a safe one an alarm at the newest step of an agent."""
        if self.gold_step is not None:
            return verdict_reply(None, None)
        newest = next((step for step in reversed(self.shown.records) if step.actor == "agent"), self.shown.records[-1])
        return verdict_reply(newest.index, agent_of(newest))


def verdict_reply(step: int | None, agent: str | None) -> str:
    """A reply in the form that `audit` asks for. step: None for SAFE.

    >>> print(verdict_reply(None, None).splitlines()[-2])
    {"answer": "SAFE", "agent": null, "reason": "No step shown contains a decisive mistake.", "quote": null}
    """
    which = "safe" if step is None else "alarm"
    answer = {
        "answer": "SAFE" if step is None else step,
        "agent": None if step is None else agent,
        "reason": _REASONS[which],
        "quote": None,
    }
    said = json.dumps(answer, ensure_ascii=False)
    return f"<think>\n{_THOUGHT}\n</think>\n<answer>\n{said}\n</answer>"


def read_rows(path: str | os.PathLike[str], skips: Skips) -> list[TrainingRow]:
    """The rows of a file that `factory build` wrote; what cannot be used is counted in `skips`.

    TraceError for a file that is not there, DataError where no row is left.
    """
    path, rows = Path(path), []
    for number, line in enumerate(read_named(path, _LARGEST).splitlines(), 1):
        where = f"{path}:{number}"
        if not line.strip():
            continue
        try:
            row = row_of(json.loads(line))
            mistake = row.gold_step
            there = {record.index for record in row.shown.records}
        except (ValueError, RecursionError, KeyError, TypeError):  # errors of ours among them
            skips.add("not a row of factory build", where)
            continue
        if mistake is not None and mistake not in there:
            skips.add("the decisive step is not among those that the prompt shows", where)
        elif mistake is not None and row.gold_agent is not None and row.own_agent is None:
            skips.add("the agent at fault is not among those that the prompt lists", where)
        else:
            rows.append(row)
    if not rows and not skips.total:
        raise DataError(
            f"{path}: the file is empty: no row of it to train on. `factory build` says why, and what fills it."
        )
    if not rows:
        raise DataError(f"{path}: no row to train on. {' '.join(skips.notes())} Make some: prefixguard factory build")
    return rows


def row_of(value: Any) -> TrainingRow:
    """A row from its JSON object. KeyError, TypeError or ValueError where it is none."""
    prompt = tuple({"role": str(one["role"]), "content": str(one["content"])} for one in value["prompt"])
    label = value.get("label")
    step, agent = value.get("gold_step"), value.get("gold_agent")
    if not (step is None or (type(step) is int and step > 0)) or not (agent is None or isinstance(agent, str)):
        raise ValueError("gold_step or gold_agent")
    return TrainingRow(
        prompt=prompt,
        gold_step=step,
        gold_agent=agent,
        n_steps=int(value["n_steps"]),
        kind=str(value["class"]),
        family=str(value["family"]),
        run_id=str(value["run_id"]),
        label=None if label is None else HypothesisLabel(label),
        agents=tuple(map(str, value.get("agents", ()))),
        split=str(value.get("split", "train")),
    )


def classes(rows: Iterable[TrainingRow]) -> dict[str, int]:
    """How many rows of each class."""
    return dict(sorted(Counter(row.kind for row in rows).items()))


def _reply(text: str) -> Reply:
    return Reply(text, "stop", "", 0, 0, estimated=True, seconds=0.0, attempts=1)
