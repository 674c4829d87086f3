"""What older options of `evaluate` ask for, whose work has commands of its own now."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from prefixguard.cli.command import numbers_of
from prefixguard.cli.commands.judging import ask_judge, judge_endpoint
from prefixguard.cli.commands.retraining import fitted
from prefixguard.cli.training_plan import evaluation_folder
from prefixguard.errors import ConfigError

if TYPE_CHECKING:
    from prefixguard.evaluation import EvaluationTable
    from prefixguard.results import Result
    from prefixguard.runtime import Monitor
    from prefixguard.stepview import SpooledRuns


@dataclasses.dataclass(frozen=True, slots=True)
class OlderLooks:
    """What older options ask for beside the evaluation."""

    given: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Raises ConfigError for options that would do nothing, and a judge that cannot be asked."""
        given = self.given
        if given["folds"] == 0 and (given["seeds"] is not None or given["repeats"] != 1):
            option = "--seeds" if given["seeds"] is not None else "--repeats"
            raise ConfigError(
                f"{option} says how folds are fitted, and without --folds none are: add --folds 5, or leave {option} "
                "out."
            )
        numbers_of(given["seeds"] or "13")
        judge = ("judge_base_url", "judge_price_in", "judge_price_out")
        if given["judge_model"] is not None:
            self._endpoint()
        elif given["judge_estimate"] or any(given[name] is not None for name in judge):
            raise ConfigError(
                "the judge has no name, so none is asked: add --judge-model NAME, or leave --judge-... out."
            )

    @property
    def any(self) -> bool:
        """Whether there is anything to look at, all of which takes long."""
        return self.trains or self.given["judge_model"] is not None

    @property
    def trains(self) -> bool:
        """Whether monitors are trained."""
        return bool(self.given["folds"] or self.given["ablate"] or self.given["leave_agents_out"])

    def shown(self, words: Sequence[str]) -> list[str]:
        """The command line as a report may show it, which is passed on: without a password in a URL."""
        from prefixguard.escalate import shown_url

        url = self.given["judge_base_url"]
        return [word if url is None else word.replace(url, shown_url(url)) for word in words]

    def _endpoint(self) -> Any:
        g = self.given
        return judge_endpoint(
            g["judge_model"], g["judge_base_url"], g["judge_key_from"], g["judge_price_in"], g["judge_price_out"],
            estimate=g["judge_estimate"],
        )  # fmt: skip

    def take(
        self, monitor: Monitor, table: EvaluationTable, runs: SpooledRuns, *, group_by: str | None, resamples: int,
        seed: int,
    ) -> dict[str, Result]:  # fmt: skip
        """The looks, by the name of their section. Raises what they raise."""
        given, sections = self.given, dict[str, Any]()
        if given["judge_model"] is not None:
            found = ask_judge(
                monitor, runs, self._endpoint(), table=table, estimate=given["judge_estimate"], out=given["keep"],
                sample=given["judge_sample"], budget_tokens=given["judge_tokens"], mask=given["mask"],
                at_once=given["judge_at_once"], resamples=resamples, seed=seed,
            )  # fmt: skip
            sections |= {} if found is None else {"judge": found}
        if not self.trains:
            return sections
        from prefixguard.evaluation.retraining import ablate, cross_validate, leave_one_agent_out, training_of

        config, folder = training_of(monitor), evaluation_folder(monitor.bundle.path, given["keep"])
        quick = dataclasses.replace(config, backend=given["backend"])
        options = {"group_by": group_by, "resamples": resamples}
        if given["folds"]:
            more = {"repeats": given["repeats"], "seeds": numbers_of(given["seeds"] or "13"), **options}
            sections["folds"] = fitted("Folds", cross_validate, runs, config, folder, folds=given["folds"], **more)
        if given["ablate"]:
            sections["ablation"] = fitted("Ablation", ablate, runs, quick, folder, **options)
        if given["leave_agents_out"]:
            sections["agents"] = fitted("Agents", leave_one_agent_out, runs, quick, folder, **options)
        return sections
