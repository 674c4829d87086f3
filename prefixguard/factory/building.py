"""Rows to train and test an auditor on, made of corpora: what is held out stays out, and a manifest says all of it."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from prefixguard.auditor import HYPOTHESES_VERSION, MODES
from prefixguard.errors import ConfigError, DataError, OutputError
from prefixguard.escalate import PromptKind, prompt_version
from prefixguard.factory.corpus_report import CorpusReport
from prefixguard.factory.decontamination import COPY, GRAM, HeldOutTexts
from prefixguard.factory.environments import KNOWN_FAULTS
from prefixguard.factory.hypothesis_rows import has_modes, hypothesis_rows
from prefixguard.factory.labelled import LabelledRun, read_corpus
from prefixguard.factory.out_place import folder_for
from prefixguard.factory.prefix_rows import Cut, audited_records, cut_of, prefix_row
from prefixguard.factory.sides import SplitEntry, sides_of
from prefixguard.factory.skips import Skips
from prefixguard.stepview import StepRecord
from prefixguard.store import OnProgress
from prefixguard.trace import run_digest

SCHEMA = "prefixguard/factory-rows/v1"
MANIFEST = "manifest.json"
_SIDES, _SORTS = ("train", "test"), ("verdicts", "hypotheses")


@dataclass(frozen=True, slots=True)
class _Known:
    """What the first reading leaves of a run. cut: None where it is not cut. origin: the set or environment that it is
    of."""

    run_id: str
    family: str
    length: int
    is_safe: bool
    cut: Cut | None
    origin: str
    has_modes: bool


@dataclass(slots=True)
class _Plan:
    """Which rows are made. lengths: of safe prefixes, by run."""

    side: dict[str, str] = field(default_factory=dict)  # run to side; runs that are left out have none
    cuts: dict[str, Cut] = field(default_factory=dict)
    lengths: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    asked: set[str] = field(default_factory=set)  # runs that hypotheses are put to


def build(
    corpora: Sequence[str | os.PathLike[str]],
    *,
    out: str | os.PathLike[str],
    against: Sequence[str | os.PathLike[str]] | None = None,
    kinds: Mapping[str, str] | None = None,
    test_share: float = 0.2,
    budget_tokens: int = 24_000,
    mask: bool = True,
    seed: int = 13,
    on_progress: OnProgress | None = None,
) -> CorpusReport:
    """Make the rows that an auditor is trained and tested on: train and test side, and a manifest.

    corpora : files of labelled runs, as the commands of the factory write them.
    out : folder for train-verdicts.jsonl, test-verdicts.jsonl, train-hypotheses.jsonl, test-hypotheses.jsonl and
        manifest.json.
    against : corpora that are tested on elsewhere: runs of their tasks, and runs that share words with them, are not
        trained on.
    kinds : KIND=FM-1.1: the failure mode that a kind of fault is, for hypotheses. Labels that are codes need none.
    test_share : share of the families for the test side, of those that no set has placed; from 0 to below 1.
    budget_tokens : tokens of a prompt, as `audit` is given.
    mask : mask likely secrets, as `audit` does.
    seed : of split and choice.

    A failed run with a decisive step k gives two prefixes: before it (class BS, the answer is SAFE) and up to it (BE,
    step k and its agent); for each of the latter a prefix of the same length of a run that succeeded (SAFE), of the
    same family where there is one. Each is the very prompt that `audit --protocol online` sends of that prefix. Rows of
    hypotheses: see `prefixguard.factory.hypothesis_rows`. Runs that may not be trained on are on the test side.
    Of runs with the same id and steps the labelled one is taken. Same corpora in any order and same options, same
    bytes. Raises DataError where no row comes of it.
    """
    if not 0 <= test_share < 1:
        raise ConfigError(f"test_share {test_share}: from 0 to below 1.")
    paths, skips = sorted(map(Path, corpora), key=lambda one: (one.name, str(one))), Skips()
    out = folder_for(out, [*corpora, *(against or ())], [MANIFEST, *(f"{a}-{b}.jsonl" for a in _SIDES for b in _SORTS)])
    held_out = [Path(one) for one in against or ()]
    stale = HeldOutTexts()
    for path in held_out:
        before = stale.runs
        for run in read_corpus(path, skips):
            stale.add(run, run.records())
        if stale.runs == before:  # what is kept apart from nothing is kept apart from no test
            raise DataError(
                f"{path}: no labelled run in it, so nothing can be kept apart from it. Make a corpus of it."
            )
    read = _Reading(paths, budget_tokens, skips, on_progress)
    kinds = dict(kinds or {})
    _check_kinds(kinds, read.kinds)
    plan = _plan(read, stale, kinds, test_share, seed)
    counts: dict[str, Counter[str]] = {f"{side}-{sort}": Counter() for side in _SIDES for sort in _SORTS}
    shares: dict[str, Counter[str]] = {
        f"{name} of {side}": Counter() for side in _SIDES for name in ("licence", "source")
    }
    parts = {name: out / f".{name}.{os.getpid()}.part" for name in counts}
    told = out / f".{MANIFEST}.{os.getpid()}.part"
    answers: dict[bytes, tuple[Any, ...]] = {}
    options: dict[str, Any] = {"budget_tokens": budget_tokens, "mask": mask, "skips": skips}
    try:
        out.mkdir(parents=True, exist_ok=True)
        with ExitStack() as opened:
            files: dict[str, TextIO] = {
                name: opened.enter_context(part.open("w", encoding="utf-8")) for name, part in parts.items()
            }
            for run, records in read.again(plan.side):
                side, before = plan.side[run.run_id], sum(map(Counter.total, counts.values()))
                asked: Iterable[dict[str, Any]] = ()
                if run.run_id in plan.asked:
                    asked = hypothesis_rows(run, records, kinds=kinds, seed=seed, **options)
                for sort, rows in (("verdicts", _verdicts(run, records, plan, options)), ("hypotheses", asked)):
                    for row in rows:
                        if not _is_new(row, answers, skips):
                            continue
                        files[f"{side}-{sort}"].write(json.dumps({**row, "split": side}) + "\n")
                        counts[f"{side}-{sort}"][row["class"]] += 1
                if sum(map(Counter.total, counts.values())) > before:
                    shares[f"licence of {side}"][run.licence or "own"] += 1
                    shares[f"source of {side}"][run.source] += 1
        if not any(map(Counter.total, counts.values())):
            raise DataError(f"no row comes of these corpora. {' '.join(skips.notes())}")
        hashes = {f"{name}.jsonl": _sha256(part) for name, part in parts.items()}
        constants = {
            "test_share": test_share, "budget_tokens": budget_tokens, "mask": mask, "seed": seed,
            "kinds": kinds, "words_in_a_row": GRAM, "copy_from": COPY,
            "online": prompt_version(PromptKind.ONLINE), "hypotheses": HYPOTHESES_VERSION,
        }  # fmt: skip
        manifest = {
            "schema": SCHEMA,
            "corpora": [{"name": path.name, "sha256": _sha256(path)} for path in paths],
            "against": [{"name": path.name, "sha256": _sha256(path)} for path in held_out],
            "constants": constants,
            "rows": {name: dict(sorted(classes.items())) for name, classes in counts.items()},
            "runs": {name: dict(sorted(found.items())) for name, found in shares.items()},
            "skipped": skips.as_json(),
            "files": hashes,
        }
        told.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        (out / MANIFEST).unlink(missing_ok=True)  # until all files are of one build, no manifest speaks for them
        for name, part in parts.items():
            part.replace(out / f"{name}.jsonl")
        told.replace(out / MANIFEST)
    except OSError as exc:
        raise OutputError(f"{out}: {exc.strerror or exc}. Name a folder with room.") from exc
    finally:
        for part in (*parts.values(), told):
            part.unlink(missing_ok=True)
    notes = tuple(_missing(counts, read.kinds))
    return CorpusReport(out, {name: dict(sorted(classes.items())) for name, classes in counts.items()}, skips, notes)


def _check_kinds(kinds: Mapping[str, str], there: Collection[str]) -> None:
    """ConfigError for a kind that no label has and no environment makes, or a code that is none of a failure mode."""
    codes = [mode.code for mode in MODES]
    for kind, code in kinds.items():
        if code not in codes:
            raise ConfigError(f"--kind {kind}={code}: no failure mode {code!r}. There are {', '.join(codes)}.")
        if kind not in there and kind not in KNOWN_FAULTS:
            named = ", ".join(sorted(there)) or "none"
            raise ConfigError(f"--kind {kind}={code}: no label of these corpora is of kind {kind!r}. Theirs: {named}.")


def _missing(counts: Mapping[str, Counter[str]], there: Collection[str]) -> Iterator[str]:
    """Sentences about rows that a person may look for in vain."""
    if not any(counts[f"{side}-verdicts"]["SAFE"] for side in _SIDES):
        why = "no successful run stands beside a failed one"
        yield f"Rows of class SAFE are missing: {why}. Add safe runs: `factory collect` writes both."
    if not any(counts[f"{side}-hypotheses"] for side in _SIDES):
        kinds = f" Kinds of these corpora: {', '.join(sorted(there))}." if there else ""
        yield (
            "The files of hypotheses are empty: no label names a failure mode. Say which mode a kind of fault is "
            f"with --kind KIND=FM-3.2.{kinds}"
        )


class _Reading:
    """The runs of all corpora, read three times; what cannot be read is counted once. Of several runs of one id one is
    used: a labelled run before its unlabelled copy.

    kinds: of the labels' mistakes.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        budget_tokens: int,
        skips: Skips,
        on_progress: OnProgress | None,
    ) -> None:
        self._paths, self._budget, self._on_progress = paths, budget_tokens, on_progress
        self.skips, self._n_runs, self.kinds = skips, 0, set[str]()
        self._chosen = dict[str, tuple[int, bytes, int]]()  # by run: rank of its labels, digest, place of the corpus
        for place, path in enumerate(paths):
            for run in read_corpus(path, Skips()):
                self.kinds.update(mistake.kind for mistake in run.mistakes if mistake.kind)
                rank, digest = _rank(run), _digest(run)
                best = self._chosen.setdefault(run.run_id, (rank, digest, place))
                if digest == best[1] and rank < best[0]:
                    self._chosen[run.run_id] = rank, digest, place

    def first(self) -> Iterator[tuple[LabelledRun, tuple[StepRecord, ...]]]:
        for place, path in enumerate(self._paths):
            for run in read_corpus(path, self.skips):
                rank, digest, chosen = self._chosen[run.run_id]
                if chosen != place:
                    why = "another run of another corpus has its run_id"
                    if digest == _digest(run):
                        why = "a copy of a run of another corpus"
                        if not run.mistakes and rank < _rank(run):
                            why = "an unlabelled copy of a labelled run"
                    self.skips.add(why, f"{path}: {run.run_id}")
                    continue
                self._n_runs += 1
                yield run, audited_records(run.run, self._budget)

    def again(self, wanted: Mapping[str, str]) -> Iterator[tuple[LabelledRun, tuple[StepRecord, ...]]]:
        done = 0
        for place, path in enumerate(self._paths):
            for run in read_corpus(path, Skips()):
                if self._chosen[run.run_id][2] == place:
                    done += 1
                    if run.run_id in wanted:
                        yield run, audited_records(run.run, self._budget)
                    if self._on_progress is not None:
                        self._on_progress(done, self._n_runs)


def _plan(read: _Reading, stale: HeldOutTexts, kinds: Mapping[str, str], test_share: float, seed: int) -> _Plan:
    """The first reading: sides, cuts, and which safe prefix stands beside which cut."""
    skips, known, entries, met = read.skips, list[_Known](), list[SplitEntry](), dict[str, str]()
    for run, records in read.first():
        if not records:
            skips.add("no step in it", run.run_id)
            continue
        if run.run["outcome"] == "unknown" and not run.mistakes:
            skips.add("neither a success nor a mistake", run.run_id)
            continue
        cut = None if run.is_safe else cut_of(run, records, skips)
        family = run.family or str(run.run.get("task_id") or run.run_id)
        origin = str(run.provenance.get("set") or run.provenance.get("environment") or "")
        known.append(_Known(run.run_id, family, len(records), run.is_safe, cut, origin, has_modes(run, kinds)))
        task = str(run.run.get("task_id") or "")
        entries.append(SplitEntry(family, task, run_digest(records), run.split, run.may_train))
        if why := stale.meets(run, records):
            met[run.run_id] = why
    sides, plan = sides_of(entries, test_share, seed) if entries else {}, _Plan()
    for one in known:
        side = sides[one.family]
        if side == "train" and one.run_id in met:
            skips.add(f"not trained on: {met[one.run_id]}", one.run_id)
            continue
        plan.side[one.run_id] = side
        if one.cut is not None:
            plan.cuts[one.run_id] = one.cut
    for side in _SIDES:
        _match([one for one in known if plan.side.get(one.run_id) == side], plan, seed, skips)
    return plan


def _match(known: Sequence[_Known], plan: _Plan, seed: int, skips: Skips) -> None:
    """Beside every prefix up to a mistake, one as long of a run of the same origin that succeeded: of its family, else
    of the one used least so far. Hypotheses are put to runs that have modes, and to as many that succeeded."""
    safe = sorted((one for one in known if one.is_safe), key=lambda one: _draw(seed, one.run_id))
    with_modes = [one.run_id for one in known if one.has_modes]
    plan.asked.update(with_modes, [one.run_id for one in safe][: len(with_modes)])
    used = dict.fromkeys((one.run_id for one in safe), 0)
    for one in known:
        if one.cut is None:
            continue
        long_enough = [other for other in safe if other.length >= one.cut.at and other.origin == one.origin]
        if not long_enough:
            skips.add("no successful run of its set is as long as the prefix up to the mistake", one.run_id)
            continue
        length, family = one.cut.at, one.family
        fresh = [other for other in long_enough if length not in plan.lengths.get(other.run_id, ())]
        if not fresh:
            skips.add("every prefix as long of a successful run is there already", one.run_id)
            continue
        chosen = min(fresh, key=lambda other: (other.family != family, used[other.run_id]))
        used[chosen.run_id] += 1
        plan.lengths[chosen.run_id].append(length)


def _verdicts(
    run: LabelledRun, records: tuple[StepRecord, ...], plan: _Plan, options: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """The rows of one run that ask for a verdict."""
    rows = [prefix_row(run, records, length, "SAFE", **options) for length in sorted(plan.lengths.get(run.run_id, ()))]
    cut = plan.cuts.get(run.run_id)
    if cut is not None:
        if cut.before:
            rows.append(prefix_row(run, records, cut.before, "BS", **options))
        else:
            options["skips"].add("no agent acted before the mistake, so there is no prefix before it", run.run_id)
        rows.append(prefix_row(run, records, cut.at, "BE", **options))
    yield from filter(None, rows)


def _is_new(row: Mapping[str, Any], answers: dict[bytes, tuple[Any, ...]], skips: Skips) -> bool:
    """Whether nobody asked this before, with any answer. answers: by the hash of what was asked."""
    answer = (row["gold_step"], row["gold_agent"], row.get("label"), tuple(row.get("agents", ())))
    there = answers.setdefault(hashlib.sha256(json.dumps(row["prompt"]).encode()).digest(), answer)
    if there is answer:
        return True
    skips.add(
        "the same prompt is there, with " + ("the same" if there == answer else "another") + " answer", row["run_id"]
    )
    return False


def _rank(run: LabelledRun) -> int:
    """0 where the decisive step is known, 1 where only mistakes are, 2 without any."""
    return 0 if run.decisive is not None else 2 - bool(run.mistakes)


def _digest(run: LabelledRun) -> bytes:
    """Equal for runs that say and do the same, whatever their labels."""
    return hashlib.sha256(json.dumps(run.run["messages"], sort_keys=True).encode()).digest()


def _draw(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed}:{name}".encode("utf-8", "surrogatepass")).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
