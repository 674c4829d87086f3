"""`prefixguard factory import | annotate | build`: corpora of labelled runs, from others and by models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefixguard.cli.command import command
from prefixguard.cli.console import say_proxy
from prefixguard.cli.progress import Activity
from prefixguard.errors import UsageError
from prefixguard.escalate import Endpoint
from prefixguard.factory import annotate as annotate_runs
from prefixguard.factory import build as build_rows
from prefixguard.factory import import_set as import_published


@command("factory.import_set", json="Counts, and what was left out, as JSON.")
def import_set(name: str, runs: str, out: Path) -> Any:
    """Make a corpus of a published set of labelled runs: aftraj, aegis, mast, whoandwhen or tracertraj.

    Licences are heeded: a set that may not be trained on is marked so, and `factory build` leaves it out of training.

    Examples:

        prefixguard factory import whoandwhen Who_and_When/ whoandwhen.jsonl
        prefixguard factory import aftraj AFTraj/ aftraj.jsonl
        prefixguard audit whoandwhen.jsonl --model qwen --base-url http://localhost:8000/v1
    """
    return import_published(name, runs, out)


@command("factory.build", json="Counts, and what was left out, as JSON.")
def build(corpora: list[Path], **given: Any) -> Any:
    """Make the rows that an auditor is trained and tested on, of corpora of labelled runs.

    A failed run is cut before its decisive step and at it; a successful one at the same length stands beside it. Every
    prompt is the one that `audit --protocol online` sends. Families of runs stand on one side; what may not be trained
    on, or stands in a test set, is not trained on; and what is left out is counted.

    Examples:

        prefixguard factory build injected.jsonl safe.jsonl --out rows
        prefixguard factory build mine.jsonl aftraj.jsonl --against whoandwhen.jsonl --out rows
        prefixguard factory build runs.jsonl --kind wrong_value=FM-2.6 --kind gave_up=FM-3.1 --out rows
    """
    with Activity("Building") as work:
        return build_rows(corpora, on_progress=work.on_progress, **given)


_SERVER = "base_url key_from timeout"


@command(
    {"factory.annotate": "", "Endpoint": _SERVER},
    words={"timeout": "Seconds for one request.", "corpus": "Corpus with failed runs."},
    json="Counts, and what was left out, as JSON.",
)
def annotate(
    base_url: str | None,
    key_from: str,
    timeout: float,
    proposer: list[str] | None = None,
    verifier: list[str] | None = None,
    temperature: float = 0.2,
    reply_tokens: int = 1024,
    **given: Any,
) -> Any:
    """Label failed runs by language models: some propose decisive steps, others verify them, and they vote.

    Text of the runs is sent to the models that are named. Every reply is kept beside OUT, so that nothing is paid for
    twice. Where nobody can tell, a run is left out; how far the models agree is said at the end.

    Examples:

        prefixguard factory annotate runs.jsonl proposed.jsonl --proposer gpt-4.1 --budget-tokens 5000000
        prefixguard factory annotate runs.jsonl proposed.jsonl --proposer qwen --base-url http://localhost:8000/v1
        prefixguard factory annotate runs.jsonl proposed.jsonl --proposer gpt-4.1 --proposer
        qwen@http://localhost:8000/v1 --verifier gpt-4.1-mini --references answers.jsonl

    proposer : A model that proposes, at --base-url, or MODEL@URL. May be repeated; they take turns.
    verifier : A model that verifies, likewise. Default: the proposers.
    temperature : Of all of them.
    reply_tokens : Tokens that a reply may have.
    """

    def endpoint(named: str) -> Endpoint:
        model, at, url = named.rpartition("@http")
        where = f"http{url}" if at else base_url
        server: dict[str, Any] = {"key_from": key_from, "timeout": timeout, "temperature": temperature}
        found = Endpoint(model if at else named, where, max_reply_tokens=reply_tokens, **server)
        say_proxy(found.proxy)
        return found

    if not proposer:
        raise UsageError("nobody to ask: name a model with --proposer.")
    named = {name: endpoint(name) for name in dict.fromkeys([*proposer, *(verifier or ())])}
    given |= {"proposers": [named[name] for name in proposer]}
    given |= {"verifiers": [named[name] for name in verifier] if verifier else None}
    with Activity("Annotating") as work:
        return annotate_runs(on_progress=work.on_progress, **given)
