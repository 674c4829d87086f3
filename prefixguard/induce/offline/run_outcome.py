"""Where the outcome of runs is: candidates from all places, weighed by name, shape and how they vary over the runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from prefixguard.induce.offline.outcome import OutcomeForm, judge_values
from prefixguard.induce.offline.run_places import Column, Places, RunView, sides_by
from prefixguard.lexicon import Meaning, affinity, is_foreign, path_names, polarity, words
from prefixguard.stepview import MISSING

#: Below this, a candidate is named in a note and not taken.
LEAST_CONFIDENCE = 0.25
#: Candidates this near to the best are a choice for a person.
NEAR = 0.15


@dataclass(frozen=True)
class OutcomeCandidate:
    """One way to read outcomes. outcome: the spec's section. sides: of each run, 1, -1 or 0 (unknown).

    label: where it is read, for a person. reads: the places it looks at. skip: conditions of events that carry it.
    cut: what must be cut from texts of records. needs: parts of the run section that a template of it asks for.
    order: where it stands, for ties. shows_both: the file it is read from shows both sides, if not of these runs.
    """

    outcome: dict[str, Any]
    sides: tuple[int, ...]
    confidence: float
    why: str
    label: str
    example: str = ""
    order: int = 0
    skip: tuple[dict[str, Any], ...] = ()
    cut: tuple[str, ...] = ()
    needs: tuple[tuple[str, Any], ...] = ()
    shows_both: bool = False
    assumed: bool = False  # see OutcomeForm

    @property
    def is_two_sided(self) -> bool:
        return self.shows_both or (1 in self.sides and -1 in self.sides)


def column_candidates(places: Places, success: str | None = None, keys: Sequence[str] = ()) -> list[OutcomeCandidate]:
    """From the fields of the runs, and from folders named after outcomes.

    success: see `judge_values`. keys: names in the events: where most names are of another language than the
    vocabulary, a name that it does not have speaks against no place.
    """
    found: list[tuple[Column, OutcomeForm]] = []
    names = [path_names(column.name)[-1] for column in places.columns if path_names(column.name)]
    foreign = is_foreign([*names, *keys])
    for column in places.columns:
        if column.near == "document":
            continue
        if column.near == "file" and (column.spec == {"file": "stem"} or "name" in column.spec.values()):
            continue
        two = column.near == "file" and column.distinct == 2
        called = "" if foreign and _says_nothing(column.name) else column.name
        forms = judge_values(column.values, called, success=success)
        if two and not (forms and forms[0].won and forms[0].lost):
            pairs = judge_values(column.values, column.name, named=True)
            forms = [form for form in pairs if any(polarity(text or "") for text in column.texts)] or forms
        found.extend((column, form) for form in forms)
    candidates = [_candidate(column, form) for column, form in found]
    return candidates + _complementary(found)


def _says_nothing(name: str) -> bool:
    """Is it a name that the vocabulary does not have, under any meaning?"""
    return not any(affinity(name, meaning) >= 0.3 for meaning in Meaning)


def folder_question(places: Places, taken: Sequence[Any] = ()) -> tuple[Column, tuple[OutcomeForm, ...]] | None:
    """Folders of two names that all runs lie in, several in each: perhaps how they ended, and no word says which.

    taken: specs that are read for something else, such as the task. The ways round: each name once as the success.
    """
    for column in places.columns:
        if column.near != "file" or column.distinct != 2 or column.coverage < 1 or column.spec in taken:
            continue
        if column.spec != {"file": "parent"} or min(map(column.texts.count, set(column.texts))) < 2:
            continue
        forms = tuple(judge_values(column.values, named=True))
        if len(forms) == 2:
            return column, forms
    return None


def from_folder(column: Column, form: OutcomeForm) -> OutcomeCandidate:
    """The folder read that way round."""
    return _candidate(column, form)


def _candidate(column: Column, form: OutcomeForm) -> OutcomeCandidate:
    told = sum(1 for value in column.values if form.side(value))
    share = told / max(1, len(column.values))
    confidence = form.confidence * (0.4 + 0.6 * share**0.5) if share >= 0.05 else 0.1 * form.confidence
    confidence -= 0.02 * min(5, max(0, len(column.place) - 2))
    label = column.spec if isinstance(column.spec, str) else "the name of the folder"
    sides = tuple(form.side(value) for value in column.values)
    return OutcomeCandidate(
        form.spec(column.spec),
        sides,
        confidence,
        form.why,
        label,
        column.example() or _shown(column),
        column.order,
        assumed=form.assumed,
    )


def _shown(column: Column) -> str:
    return next((repr(value) for value in column.values if value is not MISSING and value is not None), "")


def _complementary(found: Sequence[tuple[Column, OutcomeForm]]) -> list[OutcomeCandidate]:
    """Two places of which every run has one: the same field, spelled differently in two sources."""
    thin = [(c, f) for c, f in found if 0.1 <= c.coverage <= 0.95 and c.near == "run"]
    candidates = []
    for i, (a, form) in enumerate(thin):
        for b, other in thin[i + 1 :]:
            if (form.type, form.success, form.failure) != (other.type, other.success, other.failure):
                continue
            if any(
                x is not MISSING and y is not MISSING and x is not None and y is not None
                for x, y in zip(a.values, b.values, strict=True)
            ):
                continue
            kin = set(_stems(a.name)) & set(_stems(b.name))
            values = tuple(y if x is MISSING or x is None else x for x, y in zip(a.values, b.values, strict=True))
            merged = Column({"first": [a.spec, b.spec]}, a.name, values, a.order, "run", a.place)
            if merged.coverage < 0.9:
                continue
            one = _candidate(merged, form)
            best = max(form.confidence, other.confidence)
            why = f"{form.why}; runs have either {a.spec} or {b.spec}"
            label = f"{a.spec}, else {b.spec}"
            lift = best + 0.03 if kin or min(form.confidence, other.confidence) > 0.2 else best - 0.1
            candidates.append(replace(one, confidence=min(0.98, lift), why=why, label=label))
    return candidates


def _stems(name: str) -> list[str]:
    """The first letters of the words of a name: correct and corrected are kin."""
    return [word[:6] for word in words(name) if len(word) >= 4]


def weigh(
    candidates: Sequence[OutcomeCandidate], views: Sequence[RunView], tasks: Sequence[str | None] | None
) -> list[OutcomeCandidate]:
    """Likeliest first, after a look at how each varies: what is fixed by the file or by the task is no outcome."""
    documents = [view.file for view in views]
    several = len(set(documents)) < len(documents)
    lengths = [float(len(view.events)) for view in views]
    weighed = []
    two_sided = any(one.is_two_sided and one.confidence >= 0.35 for one in candidates)
    for candidate in candidates:
        confidence = candidate.confidence
        if two_sided and len(views) >= 5 and not candidate.is_two_sided:
            confidence *= 0.6  # a state that all runs end in, beside one that tells them apart
        if several and _fixed(documents, candidate.sides):
            confidence *= 0.5
        if tasks is not None and _fixed(list(tasks), candidate.sides):
            confidence *= 0.6
        # what tells how runs went mostly goes with how long they were; a coin does not
        tied = _association(lengths, candidate.sides)
        confidence += (0.04 if candidate.confidence >= 0.5 else 0.2) * tied
        weighed.append(replace(candidate, confidence=max(0.0, min(0.99, confidence))))
    return sorted(weighed, key=lambda one: (-round(one.confidence, 6), len(one.needs), one.order, one.label))


def _fixed(groups: Sequence[str | None], sides: Sequence[int]) -> bool:
    """Do groups with several runs have one side each, while both sides occur?"""
    counts: dict[str, int] = {}
    for group, side in zip(groups, sides, strict=True):
        if group is not None and side:
            counts[group] = counts.get(group, 0) + 1
    several = {group: found for group, found in sides_by(groups, sides).items() if counts[group] >= 3}
    if len(several) < 4 or len({side for side in sides if side}) < 2:
        return False
    return all(len(found) == 1 for found in several.values())


def _association(numbers: Sequence[float], sides: Sequence[int]) -> float:
    """How far from chance the sides are ordered by the numbers: 2 |AUC - 1/2|, in [0, 1]; 0 where chance may be all."""
    won = sorted(x for x, side in zip(numbers, sides, strict=True) if side > 0)
    lost = sorted(x for x, side in zip(numbers, sides, strict=True) if side < 0)
    if len(won) < 5 or len(lost) < 5:
        return 0.0
    ranked = sorted([(x, 1) for x in won] + [(x, 0) for x in lost])
    total, i = 0.0, 0
    while i < len(ranked):
        j = i
        while j < len(ranked) and ranked[j][0] == ranked[i][0]:
            j += 1
        total += (i + j + 1) / 2 * sum(one for _, one in ranked[i:j])
        i = j
    auc = (total - len(won) * (len(won) + 1) / 2) / (len(won) * len(lost))
    noise = ((len(won) + len(lost) + 1) / (12 * len(won) * len(lost))) ** 0.5  # of the AUC, were there no tie
    return 2 * abs(auc - 0.5) if abs(auc - 0.5) > 3 * noise else 0.0


def rivals(ranked: Sequence[OutcomeCandidate]) -> list[OutcomeCandidate]:
    """The best candidate and those near it that would judge some run otherwise."""
    if not ranked:
        return []
    best = ranked[0]
    found = [best]
    for other in ranked[1:]:
        if best.confidence - other.confidence > NEAR or len(found) == 5:
            break
        if any(a and b and a != b for a, b in zip(best.sides, other.sides, strict=True)) and all(
            other.label != one.label or other.outcome != one.outcome for one in found
        ):
            found.append(other)
    return found


def is_outcome_like(column: Column) -> bool:
    """Should a record never see this place, whether or not the outcome is read there?"""
    return affinity(column.name, Meaning.OUTCOME) >= 0.6 and bool(judge_values(column.values, column.name))
