"""`prefixguard factory collect | inject | replay`: labelled runs, made in an environment."""

from __future__ import annotations

from typing import Any

from prefixguard.cli.command import command
from prefixguard.cli.console import say_proxy
from prefixguard.cli.progress import Activity
from prefixguard.escalate import Endpoint
from prefixguard.factory import collect, inject, replay

_ENDPOINT = "base_url key_from timeout"
_WORDS = {"timeout": "Seconds for one request."}


def _asked(model: str | None, given: dict[str, Any]) -> Endpoint | None:
    """The endpoint that is named; None where no model is. Takes its options out of what is given."""
    server = {name: given.pop(name) for name in _ENDPOINT.split()}
    if model is None:
        return None
    endpoint = Endpoint(model, temperature=0.0, max_reply_tokens=2048, **server)
    say_proxy(endpoint.proxy)
    return endpoint


@command({"factory.collect": "", "Endpoint": _ENDPOINT}, words=_WORDS, json="Counts, and what was left out, as JSON.")
def collect_runs(judge_model: str | None = None, **given: Any) -> Any:
    """Play runs in an environment, and keep those that are safe at every step, and those that failed.

    A run that succeeded is left out where anything speaks against it, and is counted with the reason. Failures are kept
    without labels: `factory replay` finds their mistakes.

    Examples:

        prefixguard factory collect simulation runs.jsonl --count 800 --tasks 200
        prefixguard factory collect tau2-retail runs.jsonl --python ~/tau2/.venv/bin/python
        prefixguard factory collect http://localhost:9000 runs.jsonl --judge-model qwen --base-url
        http://localhost:8000/v1

    judge_model : ask this model whether every step of a safe run serves its goal.
    """
    judge = _asked(judge_model, given)
    with Activity("Playing") as work:
        return collect(judge=judge, on_progress=lambda done, _: work.on_runs(done), **given)


@command("factory.inject", json="Counts, and what was left out, as JSON.", words={"corpus": "Corpus with safe runs."})
def inject_faults(**given: Any) -> Any:
    """Put one fault into each of many safe runs, and play on: runs whose decisive step is known.

    Accepted only where the run fails, a control with the same chances and without the fault succeeds, and all messages
    before the agent's action at the fault are the same, byte for byte. What is rejected is counted with its reason.

    Examples:

        prefixguard factory inject runs.jsonl injected.jsonl --per-kind 20
        prefixguard factory inject runs.jsonl injected.jsonl --kind lost_write --kind wrong_value
    """
    with Activity("Injecting") as work:
        return inject(on_progress=lambda done, _: work.on_runs(done), **given)


@command({"factory.replay": "", "Endpoint": _ENDPOINT}, words=_WORDS, json="Counts, and what was left out, as JSON.")
def replay_failures(proposer_model: str | None = None, **given: Any) -> Any:
    """Find the decisive step of failures, by playing them again with one action changed.

    What a correction is worth is measured against what the agent did, with the same chances on both sides. A failure
    of which no correction is worth the margin is left out, and counted.

    Examples:

        prefixguard factory replay runs.jsonl replayed.jsonl --rolls 16
        prefixguard factory replay runs.jsonl replayed.jsonl --proposer-model qwen --base-url http://localhost:8000/v1

    proposer_model : this model proposes corrections, in place of the environment.
    """
    proposer = _asked(proposer_model, given)
    with Activity("Replaying") as work:
        return replay(proposer=proposer, on_progress=lambda done, _: work.on_runs(done), **given)
