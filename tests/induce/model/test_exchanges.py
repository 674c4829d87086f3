"""Answers written by hand from the prompt alone, played again: each conversation ends with the same adapter.

Kept for invented formats, in `exchanges/`: what was answered in each round, and of each request its size, its hash and
(from the second on) what was wrong with the answer before. Requests are told apart by their order, since the wording of
the prompt changes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from agreement import agree, read_truth, readings
from model_server import model_server, says

from prefixguard.induce.model import Endpoint, propose_with_model
from prefixguard.induce.model.trial import Trial, try_here
from prefixguard.induce.samples import open_samples
from prefixguard.stepview import Adapter, read_runs

HERE = Path(__file__).parent
INDUCE = HERE.parent
KEPT = sorted(path.stem for path in (HERE / "exchanges").glob("*.json"))


def tried_here(spec: Mapping[str, Any], source: str, labels: str | None, seconds: float) -> Trial:
    """A trial without a process of its own."""
    return try_here(spec, source, labels)


@pytest.mark.parametrize("name", KEPT)
def test_kept_answers_end_with_the_same_adapter(name: str) -> None:
    kept = json.loads((HERE / "exchanges" / f"{name}.json").read_text(encoding="utf-8"))
    folder = INDUCE / "samples" / kept["samples"]
    answers = [json.dumps(one["answer"], ensure_ascii=False) for one in kept["rounds"]]
    with model_server(*map(says, answers)) as server:
        endpoint = Endpoint("played", server.url, timeout=30.0, max_retries=0)
        result = propose_with_model(open_samples(folder), endpoint, name=kept["samples"], try_spec=tried_here)
    assert result.ok and result.proposal is not None and result.trial is not None, result.why
    assert result.usage.rounds == len(server.requests) == len(kept["rounds"])
    assert f"round {kept['won']} won" in result.why and result.trial.report.sha256 == kept["adapter"]
    first, *later = server.requests
    assert [message["role"] for message in first["messages"]] == kept["rounds"][0]["request"]["roles"]
    assert all("# The spec was run on all samples" in request["messages"][-1]["content"] for request in later)
    trials = [entry for entry in result.transcript.entries if entry["kind"] == "trial"]
    assert trials[0]["ok"], "the first proposal was valid"

    found = readings(read_runs(folder, Adapter(result.proposal.spec)), folder)
    agreed = agree(found, read_truth(INDUCE / "truth" / f"{kept['samples']}.jsonl"))
    assert (agreed.runs, agreed.records, agreed.tools, agreed.arguments, agreed.results) == (1.0,) * 5
    assert (agreed.outcomes, agreed.tasks) == (1.0, 1.0)


def test_there_are_exchanges() -> None:
    assert len(KEPT) >= 4
