"""What `evaluate` can look at besides the scores: leaks, and monitors trained anew on folds of the runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefixguard.cli.console import clock, people, say
from prefixguard.errors import ConfigError
from prefixguard.store import Store

if TYPE_CHECKING:
    from prefixguard.evaluation import Said
    from prefixguard.learn import TrainConfig
    from prefixguard.runtime import Monitor


@dataclass(frozen=True, slots=True)
class FurtherLooks:
    """Which looks are wanted.

    folds: of a cross-validation of the monitor's own training; 0: none. repeats, seeds: of it. ablate, agents: variants
    without one thing, and without one agent. backend: of those two. keep: folder for folds that are done. waived: of
    leaks, field to reason.
    """

    leaks: bool = False
    folds: int = 0
    repeats: int = 1
    seeds: tuple[int, ...] = (13,)
    ablate: bool = False
    agents: bool = False
    backend: str = "gbdt"
    keep: Path | None = None
    waived: Mapping[str, str] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        """Whether there is anything to look at."""
        return self.leaks or self.trains

    @property
    def trains(self) -> bool:
        """Whether monitors are trained."""
        return self.folds > 0 or self.ablate or self.agents

    def take(
        self, monitor: Monitor, runs: str, labels: Path | None, *, strict: bool, group_by: str | None, resamples: int
    ) -> dict[str, Said]:
        """The looks, by the name of their section. Runs are read anew for each.

        Raises ConfigError where an automaton would have to be trained, and what the looks raise.
        """
        config = self._config(monitor) if self.trains else None  # before anything is read
        sections: dict[str, Said] = {}
        adapter = monitor.bundle.adapter
        if self.leaks:
            from prefixguard.evaluation.leaks import audit_leaks, waivers_of
            from prefixguard.stepview import read_runs

            with clock(people()) as progress:
                task = progress.add_task("Leak audit")
                sections["leaks"] = audit_leaks(
                    read_runs(runs, adapter, labels=labels, strict=strict),
                    on_stage=lambda name: progress.update(task, description=f"Leak audit: {name}"),
                    waive=waivers_of(adapter, self.waived),
                )
        if config is None:
            return sections
        from prefixguard.evaluation.retraining import ablate, cross_validate, leave_one_agent_out

        keep = evaluation_folder(monitor, self.keep)
        if outdated := Store(keep).outdated():
            say(outdated)
        say(f"Fits that are done are kept in {keep}; after an interruption the same command goes on from there.")
        quick = dataclasses.replace(config, backend=self.backend)
        shared: dict[str, Any] = {
            "adapter": adapter, "labels": labels, "strict": strict, "group_by": group_by, "resamples": resamples,
        }  # fmt: skip
        if self.folds:
            with _fitting("Folds") as told:
                sections["folds"] = cross_validate(
                    runs, config, folds=self.folds, repeats=self.repeats, seeds=self.seeds, out=keep,
                    **shared, **told,
                )  # fmt: skip
        if self.ablate:
            with _fitting("Ablation") as told:
                sections["ablation"] = ablate(runs, quick, out=keep, **shared, **told)
        if self.agents:
            with _fitting("Agents") as told:
                sections["agents"] = leave_one_agent_out(runs, quick, out=keep, **shared, **told)
        return sections

    @staticmethod
    def _config(monitor: Monitor) -> TrainConfig:
        from prefixguard.learn import TrainConfig

        bundle = monitor.bundle
        config = bundle.manifest.get("config")
        if bundle.automaton is not None or not isinstance(config, dict):
            raise ConfigError(
                f"{bundle.path}: --folds, --ablate and --leave-agents-out train, and this bundle does not say how it "
                "was trained. Name the monitor that `train` wrote; of an automaton, the one it was learned from."
            )
        return TrainConfig.from_mapping(config, str(bundle.path / "manifest.json"))


def evaluation_folder(monitor: Monitor, keep: Path | None) -> Path:
    """Where what takes long is kept, to go on from: the folder named, or one beside the monitor."""
    return keep or monitor.bundle.path.parent / f".{monitor.bundle.path.name}.evaluation"


@contextmanager
def _fitting(what: str) -> Iterator[dict[str, Any]]:
    """Shows which fit of how many is on. Gives the callbacks, by the names that they are passed by."""
    with clock(people()) as progress:
        task = progress.add_task(what)
        done = [0, 0]

        def on_stage(name: str, detail: str = "") -> None:
            of = f"{done[0]} of {done[1]} fits done, " if done[1] else ""
            progress.update(task, description=f"{what}: {of}{name} {detail}".rstrip())

        def on_progress(fits: int, total: int) -> None:
            done[:] = [fits, total]
            on_stage("")
            if not people().is_terminal and fits % max(1, total // 10) == 0:
                say(f"{what}: {fits} of {total} fits done")

        yield {"on_stage": on_stage, "on_progress": on_progress}
