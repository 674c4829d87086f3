"""A language model that `evaluate` asks about a sample of prefixes: said before, shown while it goes on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prefixguard.cli.console import clock, people, say
from prefixguard.cli.further_looks import evaluation_folder
from prefixguard.errors import ConfigError
from prefixguard.escalate import masked_in_words, total_masked
from prefixguard.store import Store

if TYPE_CHECKING:
    from prefixguard.escalate import Endpoint
    from prefixguard.evaluation import EvaluationTable, Said
    from prefixguard.evaluation.judge import JudgeEstimate
    from prefixguard.runtime import Monitor
    from prefixguard.stepview import StepRecord
    from prefixguard.trace import Run

#: Wall-clock seconds for one request, and for one question with all its retries.
TIMEOUT, PATIENCE = 120.0, 300.0
#: Where the key is looked for unless another variable is named; a server named by URL may need none.
KEY_FROM = "OPENAI_API_KEY"


@dataclass(frozen=True, slots=True)
class Judging:
    """Which model is asked, and how much.

    sample: prefixes. tokens: of a transcript. mask: mask likely secrets in it. at_once: questions under way. estimate:
    say what it would take, and ask nothing. seed: of the draw and of the bootstrap. keep: folder for replies.
    """

    endpoint: Endpoint
    sample: int
    tokens: int
    mask: bool
    at_once: int
    estimate: bool
    resamples: int
    seed: int
    keep: Path | None

    def check(self) -> None:
        """Before anything is read: MissingExtraError without the packages, ConfigError without a key."""
        from prefixguard.escalate import Chat

        if (self.endpoint.price_in is None) != (self.endpoint.price_out is None):
            raise ConfigError("a price alone gives no cost: give both --judge-price-in and --judge-price-out.")
        if not self.estimate:
            Chat(self.endpoint)
            named = self.endpoint.key_from
            if named != KEY_FROM and not os.environ.get(named, "").strip():
                raise ConfigError(f"--judge-key-from {named}: it is not set. Set it, or leave the option out.")

    def take(self, monitor: Monitor, table: EvaluationTable, runs: Iterable[Run[StepRecord]]) -> dict[str, Said]:
        """The judge's section by its name; nothing where only an estimate was asked for. Raises what asking raises."""
        from prefixguard.evaluation.judge import ask_all, estimate, judge_result, plan_judging

        plan = plan_judging(
            monitor, table, runs, sample=self.sample, seed=self.seed, budget_tokens=self.tokens, mask=self.mask
        )
        kept = Store(evaluation_folder(monitor, self.keep))
        expected = estimate(plan.questions, self.endpoint, kept)
        say(self._before(expected, total_masked(one.masked for one in plan.questions)))
        if self.estimate:
            say("Judge: nothing was sent, since --judge-estimate asks for the estimate alone.")
            return {}
        say(f"Judge: replies are kept in {kept.folder}; what was answered is not asked again.")
        with clock(people()) as progress:
            task = progress.add_task("Judge")

            def show(done: int, of: int) -> None:
                progress.update(task, description=f"Judge: {done} of {of} questions")
                if not people().is_terminal and done % max(1, of // 10) == 0:
                    say(f"Judge: {done} of {of} questions")

            asked = ask_all(plan.questions, self.endpoint, kept=kept, at_once=self.at_once, on_answer=show)
        return {"judge": judge_result(plan, asked, self.endpoint, resamples=self.resamples, seed=self.seed)}

    def _before(self, expected: JudgeEstimate, masked: Mapping[str, int]) -> str:
        said = f"Judge: {expected.questions:,} prefixes are drawn, {expected.calls:,} questions go to "
        said += self.endpoint.shown
        if expected.kept:
            said += f" ({expected.kept:,} were answered before)"
        if not expected.calls:
            return f"{said}."
        said += f": about {expected.tokens_in:,} tokens in, {expected.tokens_out:,} out"
        said += " (more where the model thinks before it answers)"
        if expected.cost is not None:
            said += f", about {expected.cost:.3g} at the given prices"
        if not self.mask:
            return f"{said}. Steps of runs are sent as they stand in the records."
        return f"{said}. {masked_in_words(masked)}"
