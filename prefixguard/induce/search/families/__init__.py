"""Families of formats: small grammars of candidate specs. `FAMILIES` are functions from the evidence to candidates, the
likeliest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prefixguard.induce.search.evidence import Candidate, Evidence
from prefixguard.induce.search.families import events, rows, text

#: A family: `propose(evidence) -> Iterator[Candidate]`.
Family = Callable[[Evidence], Iterator[Candidate]]
FAMILIES: tuple[Family, ...] = (events.propose, rows.propose, text.propose)
