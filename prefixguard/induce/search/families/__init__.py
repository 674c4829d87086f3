"""Families of formats: small grammars of candidate specs. `FAMILIES` are functions from the evidence to places where
runs may be, the likeliest first, each a source of candidates, the likeliest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prefixguard.induce.search.evidence import Candidate, Evidence
from prefixguard.induce.search.families import events, rows, text

#: A family: `propose(evidence)`; what it yields makes the candidates of one place as they are asked for.
Family = Callable[[Evidence], Iterator[Iterator[Candidate]]]
FAMILIES: tuple[Family, ...] = (events.propose, rows.propose, text.propose)
