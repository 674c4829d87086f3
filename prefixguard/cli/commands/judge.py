"""`prefixguard judge`: a language model beside a monitor, on a sample of prefixes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prefixguard.cli.console import say, say_proxy, working, write_json
from prefixguard.cli.options import (
    BaseUrl,
    Labels,
    Mask,
    MeantAdapter,
    MonitorFolder,
    PriceIn,
    PriceOut,
    Resamples,
    Runs,
    Strict,
    Trusted,
)
from prefixguard.cli.training_plan import evaluation_folder
from prefixguard.errors import ConfigError

if TYPE_CHECKING:
    from prefixguard.escalate import Endpoint
    from prefixguard.evaluation.judge import JudgeEstimate, JudgeResult
    from prefixguard.runtime import Monitor

#: Where the key is looked for unless another variable is named; a server named by URL may need none.
KEY_FROM = "OPENAI_API_KEY"
#: Wall-clock seconds for one request, and for one question with all its retries.
TIMEOUT, PATIENCE = 120.0, 300.0


def judge_command(
    monitor: MonitorFolder,
    runs: Runs,
    model: Annotated[str, typer.Option(help="The language model that is asked. Text of the runs is sent to it.")],
    base_url: BaseUrl = None,
    key_from: Annotated[str, typer.Option(help="The environment variable that holds the key.")] = KEY_FROM,
    adapter: MeantAdapter = None,
    labels: Labels = None,
    all: Annotated[
        bool, typer.Option("--all", help="Count runs of tasks that the monitor was made from too; it flatters it.")
    ] = False,
    strict: Strict = False,
    sample: Annotated[int, typer.Option(min=1, help="Prefixes that it is asked about.")] = 200,
    budget_tokens: Annotated[int, typer.Option(min=800, help="Tokens of a transcript that it is shown.")] = 8000,
    mask: Mask = True,
    at_once: Annotated[int, typer.Option(min=1, max=64, help="Questions under way at a time.")] = 4,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what asking would take, and send nothing; no key is needed.")
    ] = False,
    resamples: Resamples = 500,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap and of the sample.")] = 13,
    out: Annotated[
        Path | None, typer.Option(help="Folder for replies, so that none is paid for twice. Default: beside MONITOR.")
    ] = None,
    trust: Trusted = None,
    as_json: Annotated[bool, typer.Option("--json", help="The result as JSON on standard output.")] = False,
) -> None:
    """Ask a language model how likely a sample of prefixes is to fail, beside the monitor on the very same prefixes.

    Runs of tasks that the monitor was made from are left out, as `evaluate` does. What is sent are step records up to
    the one asked about: no run id, task, agent or end. Interrupted, the same command goes on; what was answered is not
    asked again.

    Examples:

        prefixguard judge monitors/tau .traces/tau_bench --model gpt-4.1 --estimate
        prefixguard judge monitors/tau .traces/tau_bench --model qwen --base-url http://localhost:8000/v1
        prefixguard judge monitors/mine new_runs/ --model gpt-4.1 --price-in 2 --price-out 8 --json > judge.json
    """
    from prefixguard.runtime import load

    endpoint = judge_endpoint(model, base_url, key_from, price_in, price_out, estimate=estimate)
    found = ask_judge(
        load(monitor, trust=trust or None), runs, endpoint, estimate=estimate, out=out, adapter=adapter, labels=labels,
        all=all, strict=strict, sample=sample, budget_tokens=budget_tokens, mask=mask, at_once=at_once,
        resamples=resamples, seed=seed,
    )  # fmt: skip
    if found is not None and as_json:
        write_json(found.as_json())
    elif found is not None:
        say(found.to_text())


def judge_endpoint(
    model: str, base_url: str | None, key_from: str, price_in: float | None, price_out: float | None, *, estimate: bool
) -> Endpoint:
    """Where the judge is. Raises ConfigError without a key, unless only an estimate is asked for."""
    from prefixguard.escalate import Chat, Endpoint

    endpoint = Endpoint(
        model, base_url, key_from, timeout=TIMEOUT, patience=PATIENCE, price_in=price_in, price_out=price_out
    )
    if (price_in is None) != (price_out is None):
        raise ConfigError(
            "a price alone gives no cost: give both, of tokens that are sent (price-in) and of those that come back "
            "(price-out)."
        )
    if not estimate:
        Chat(endpoint)  # packages and key
        if key_from != KEY_FROM and not os.environ.get(key_from, "").strip():
            raise ConfigError(f"no key: {key_from} is not set. Set it, or name the variable that holds the key.")
    return endpoint


def ask_judge(
    monitor: Monitor, runs: Any, endpoint: Endpoint, *, estimate: bool, out: Path | None, **options: Any
) -> JudgeResult | None:
    """`judge`, said before and shown while it goes on. options: of `judge`. None after an estimate."""
    from prefixguard.evaluation.judge import judge

    folder = evaluation_folder(monitor.bundle.path, out)

    def before(expected: JudgeEstimate) -> bool:
        say(f"Judge: {expected.to_text()}")
        if estimate:
            say("Judge: nothing was sent, since the estimate alone was asked for.")
        else:
            say(f"Judge: replies are kept in {folder}; what was answered is not asked again.")
        return not estimate

    say_proxy(endpoint.proxy)
    with working("Judge", "questions") as work:
        return judge(monitor, runs, endpoint, out=folder, on_estimate=before, on_progress=work.on_progress, **options)
