"""`prefixguard judge`: a language model beside a monitor, on a sample of prefixes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefixguard.bundle import Trust
from prefixguard.cli.command import command
from prefixguard.cli.console import say, say_proxy
from prefixguard.cli.progress import Activity
from prefixguard.cli.training_plan import evaluation_folder
from prefixguard.errors import ConfigError
from prefixguard.runtime import Monitor, load

if TYPE_CHECKING:
    from prefixguard.escalate import Endpoint
    from prefixguard.evaluation.judge import JudgeEstimate, JudgeResult

#: Where the key is looked for unless another variable is named; a server named by URL may need none.
KEY_FROM = "OPENAI_API_KEY"
#: Wall-clock seconds for one request, and for one question with all its retries.
TIMEOUT, PATIENCE = 120.0, 300.0


@command(
    {"judge": "", "Endpoint": "model base_url key_from price_in price_out"},
    arguments="monitor runs",
    words={
        "model": "The language model that is asked. Text of the runs is sent to it.",
        "all": "Count runs of tasks that the monitor was made from too; it flatters it.",
        "out": "Folder for replies, so that none is paid for twice. Default: beside MONITOR.",
    },
    json="The result as JSON on standard output.",
)
def judge(
    monitor: Path,
    runs: str,
    trust: Trust | None,
    model: str,
    base_url: str | None,
    key_from: str,
    price_in: float | None,
    price_out: float | None,
    estimate: bool = False,
    **given: Any,
) -> Any:
    """Ask a language model how likely a sample of prefixes is to fail, beside the monitor on the very same prefixes.

    Runs of tasks that the monitor was made from are left out, as `evaluate` does. What is sent are step records up to
    the one asked about: no run id, task, agent or end. Interrupted, the same command goes on; what was answered is not
    asked again.

    Examples:

        prefixguard judge monitors/tau .traces/tau_bench --model gpt-4.1 --estimate
        prefixguard judge monitors/tau .traces/tau_bench --model qwen --base-url http://localhost:8000/v1
        prefixguard judge monitors/mine new_runs/ --model gpt-4.1 --price-in 2 --price-out 8 --json > judge.json

    estimate : say what asking would take, and send nothing; no key is needed.
    """
    endpoint = judge_endpoint(model, base_url, key_from, price_in, price_out, estimate=estimate)
    return ask_judge(load(monitor, trust=trust), runs, endpoint, estimate=estimate, **given)


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
    with Activity("Judge", "questions") as work:
        return judge(monitor, runs, endpoint, out=folder, on_estimate=before, on_progress=work.on_progress, **options)
