"""Offline inference: the search and the older rules each propose, and what reads the samples better is taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from prefixguard.errors import PrefixGuardError, TraceError
from prefixguard.induce.offline.inference import propose_offline
from prefixguard.induce.proposal import Asker, Proposal, take_first
from prefixguard.induce.samples import Samples
from prefixguard.induce.search.door import propose_by_search
from prefixguard.induce.search.evidence import Evidence
from prefixguard.induce.search.objective import judge
from prefixguard.induce.search.run_part import surer_run

#: A reading that the search found has to be better than that of the older rules by this much.
MARGIN = 0.03


def infer(samples: Samples, *, name: str, hints: Mapping[str, str] | None = None, ask: Asker = take_first) -> Proposal:
    """The better of two proposals by the one objective. TraceError where neither finds runs of an agent.

    hints: what a person knows, see `induce_adapter`. ask: is asked what the samples do not decide, for the proposal
    that is taken.
    """
    searched, failed = _searched(samples, name, hints)
    try:
        ruled = _by_rules(samples, name=name, hints=hints, ask=take_first)
    except TraceError:
        if searched is None:
            raise
        return _asked(propose_by_search, searched, samples, name, hints, ask)
    if searched is None:
        ruled = _asked(_by_rules, ruled, samples, name, hints, ask)
        return replace(ruled, notes=(*ruled.notes, failed))
    evidence = Evidence(samples, dict(hints or {}))
    try:
        found, other = judge(searched.spec, evidence).worth, judge(ruled.spec, evidence).worth
    finally:
        evidence.close()
    note = f"Two ways to read the samples: by search {found:.3f}, by rules {other:.3f}, of 1.1."
    if found >= other + MARGIN:
        taken = _asked(propose_by_search, searched, samples, name, hints, ask)
    else:
        taken = _asked(_by_rules, ruled, samples, name, hints, ask)
    return replace(taken, notes=(*taken.notes, note))


def _by_rules(samples: Samples, *, name: str, hints: Mapping[str, str] | None, ask: Asker) -> Proposal:
    """What the older rules propose, with outcome and task where the search is sure of them."""
    ruled = propose_offline(samples, name=name, hints=hints, ask=ask)
    evidence = Evidence(samples, dict(hints or {}))
    try:
        return surer_run(ruled, evidence, hints or {})
    finally:
        evidence.close()


def _searched(samples: Samples, name: str, hints: Mapping[str, str] | None) -> tuple[Proposal | None, str]:
    """What the search proposes; None, and why, where it finds nothing."""
    try:
        return propose_by_search(samples, name=name, hints=hints, ask=take_first), ""
    except PrefixGuardError as exc:
        return None, f"The search found no reading: {exc}"
    except Exception as exc:  # samples are what strangers wrote, and there is another way to read them
        return None, f"The search was given up ({type(exc).__name__}: {str(exc)[:200]})."


def _asked(
    propose: Callable[..., Proposal], made: Proposal, samples: Samples, name: str, hints: Mapping[str, str] | None,
    ask: Asker,
) -> Proposal:  # fmt: skip
    """The proposal; made once more with the answers of a person where one is asked and something is open."""
    if ask is take_first or not made.choices:
        return made
    return propose(samples, name=name, hints=hints, ask=ask)
