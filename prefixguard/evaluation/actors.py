"""Which group of the runs says who acted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prefixguard.errors import DataError

#: Groups that say who acted, in the order in which they are looked for.
ACTORS = ("agent", "model", "file")


def choose_groups(groups: Sequence[Mapping[str, str]], wanted: str | None) -> tuple[str | None, list[str] | None]:
    """The group within which runs are compared, and its value for each run, "" where a run has none.

    groups: those of each run. wanted: the group that is asked for; None: the first of agent, model and file that has
    two values. (None, None) where there is none. Raises DataError where no run has the wanted one.

    >>> choose_groups([{"file": "a.json", "agent": "x"}, {"file": "b.json", "agent": "x"}], None)
    ('file', ['a.json', 'b.json'])
    """
    if wanted is not None and not any(wanted in group for group in groups):
        known = ", ".join(sorted({name for group in groups for name in group})) or "none"
        raise DataError(f"no run has a group {wanted!r}. Groups of these runs: {known}.")
    for name in ACTORS if wanted is None else (wanted,):
        values = [group.get(name, "") for group in groups]
        if wanted is not None or len(set(values)) > 1:
            return name, values
    return None, None
