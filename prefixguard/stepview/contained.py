"""One run or document that cannot be interpreted, kept from ending all others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prefixguard.errors import PrefixGuardError, TraceError

#: Characters of a foreign error that a message shows.
_LONGEST = 200


@contextmanager
def contained(where: str) -> Iterator[None]:
    """Whatever interpreting one run or document raises becomes a TraceError that says where. Errors of ours, and an
    interruption, leave as they are."""
    try:
        yield
    except PrefixGuardError:
        raise
    except RecursionError as exc:
        raise TraceError(f"{where}: nested too deeply to be read. Remove it.") from exc
    except MemoryError as exc:
        raise TraceError(f"{where}: does not fit into memory. Remove it, or split it.") from exc
    except OSError as exc:
        raise TraceError(f"{where}: cannot be read ({exc.strerror or exc}). Check it, or copy it again.") from exc
    except Exception as exc:  # an adapter calls many libraries on what strangers wrote
        raise TraceError(
            f"{where}: cannot be interpreted ({type(exc).__name__}: {str(exc)[:_LONGEST]}). Mend or remove it; "
            "if it is well-formed, this is a fault of PrefixGuard that is worth reporting."
        ) from exc
