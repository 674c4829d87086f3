"""Failure modes of labelled runs, as questions of `audit --protocol hypotheses` with the answers that are right.

Source: VerifyMAS 3.2. Modes that a run has are present; of those that it has not, one that is near a present one, and
one that agents say something against, are asked about too, so that saying yes to all is wrong.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prefixguard.auditor import MODES, FailureMode, HypothesisLabel, counter_evidence, hypothesis_prompts
from prefixguard.escalate import AgentNames, MaskedRecords
from prefixguard.factory.labelled import LabelledRun
from prefixguard.factory.skips import Skips
from prefixguard.stepview import StepRecord

_OF_CODE = {mode.code: mode for mode in MODES}


def has_modes(run: LabelledRun, kinds: Mapping[str, str]) -> bool:
    """Whether a label names a failure mode. kinds: see `hypothesis_rows`."""
    return any(kinds.get(mistake.kind, mistake.kind) in _OF_CODE for mistake in run.mistakes)


def hypothesis_rows(
    run: LabelledRun,
    records: Sequence[StepRecord],
    *,
    kinds: Mapping[str, str],
    budget_tokens: int,
    mask: bool,
    seed: int,
    skips: Skips,
) -> Iterator[dict[str, Any]]:
    """The rows of a run that has failure modes, or succeeded.

    kinds: of faults, as labels call them, and the code of the failure mode that each is. A failed run: a row for every
    mode that it has (class present, label entail, the agents that are to blame), and for each of these one near it
    (class nearby) and one other (class absent). A successful run: one row of class absent. The label of an absent mode
    is contradict where an agent says what speaks against it, else neutral; such phrases are a hint, and no more.
    """
    shown = MaskedRecords.of(records, mask=mask)
    names = AgentNames.of(shown.records)
    present: dict[str, list[str]] = {}
    for mistake in run.mistakes:
        code = kinds.get(mistake.kind, mistake.kind)
        if code not in _OF_CODE:
            continue
        agents = present.setdefault(code, [])
        agent = names.resolve(mistake.agent) if mistake.agent else None
        if mistake.agent and agent is None:
            skips.add("an agent that never acts, for hypotheses; its mode is kept", run.run_id)
        elif agent is not None and agent not in agents:
            agents.append(agent)
    chosen: dict[str, tuple[str, HypothesisLabel]] = dict.fromkeys(present, ("present", HypothesisLabel.ENTAIL))
    for code in present:
        near = next((one for one in _OF_CODE[code].near if one not in chosen), None)
        if near is not None:
            chosen[near] = "nearby", _label_of_absent(shown.records, _OF_CODE[near])
    for _ in present or (None,):
        if others := [mode for mode in MODES if mode.code not in chosen]:
            mode = min(others, key=lambda one: (not counter_evidence(shown.records, one), _draw(seed, run, one)))
            chosen[mode.code] = "absent", _label_of_absent(shown.records, mode)
    modes = [_OF_CODE[code] for code in chosen]
    for mode, prompt in zip(modes, hypothesis_prompts(shown.records, modes, budget_tokens), strict=True):
        kind, label = chosen[mode.code]
        yield {
            "prompt": list(prompt),
            "gold_step": None,
            "gold_agent": None,
            "n_steps": len(records),
            "class": kind,
            "label": label.value,
            "agents": present.get(mode.code, []),
            "mode": mode.code,
            "family": run.family,
            "run_id": run.run_id,
        }


def _label_of_absent(records: Sequence[StepRecord], mode: FailureMode) -> HypothesisLabel:
    return HypothesisLabel.CONTRADICT if counter_evidence(records, mode) else HypothesisLabel.NEUTRAL


def _draw(seed: int, run: LabelledRun, mode: FailureMode) -> str:
    return hashlib.sha256(f"{seed}:{run.run_id}:{mode.code}".encode("utf-8", "surrogatepass")).hexdigest()
