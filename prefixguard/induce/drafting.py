"""A spec as an adapter: compiled and checked. What cannot be is a finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from prefixguard.errors import AdapterError, DataError, PrefixGuardError
from prefixguard.induce.checks import CheckReport, Finding, check_adapter
from prefixguard.stepview import Adapter

_BY_HAND = "Give a --hint, or mend the spec by hand."
#: What compiling a spec of any shape may raise.
_ODD = (RecursionError, TypeError, ValueError, KeyError, AttributeError)


def checked(
    spec: Mapping[str, Any],
    samples: str | Path,
    labels: str | Path | None = None,
    *,
    processes: bool = True,
    listen: Callable[[str], None] | None = None,
) -> tuple[Adapter | None, CheckReport]:
    """The adapter, None where the spec does not compile, and what the checks say of it. DataError for labels that are
    of other runs: nothing is wrong with the spec then."""
    try:
        adapter = Adapter(spec, str(spec.get("name", "spec")))
    except AdapterError as exc:
        return None, refused("spec", str(exc), "spec", _BY_HAND)
    except _ODD as exc:
        what = f"the spec could not be compiled ({type(exc).__name__}: {str(exc)[:200]})"
        return None, refused("spec", what, "spec", _BY_HAND)
    try:
        return adapter, check_adapter(adapter, samples, labels=labels, processes=processes, listen=listen)
    except DataError:
        raise
    except PrefixGuardError as exc:
        return adapter, refused("reads", str(exc), str(samples), _BY_HAND, adapter)


def refused(
    check: str, what: str, where: str = "", remedy: str = "", adapter: Adapter | None = None
) -> CheckReport:
    """The report of a spec that could not be checked."""
    name, sha256 = (adapter.name, adapter.sha256) if adapter is not None else ("", "")
    finding = Finding(check, "error", what, where, remedy=remedy)
    return CheckReport(name, sha256, (finding,), MappingProxyType({}), MappingProxyType({}))
