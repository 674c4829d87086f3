"""A session as bytes: what `Session.save` gives and `Monitor.restore` takes.

    magic and version (8) | SHA-256 of all that follows (32) | context | behaviours | model's state | JSON of the rest

Version 1, of releases up to 0.3, has no behaviours: those of such a run are found from where it goes on.

The digest finds damage; it is no seal against forgery, since whoever can write the bytes can write the digest. So every
value is checked again when it is read, and nothing in it is ever run. What a saved session holds is text of the run:
calls that wait for their results, and what was said before them. Keep it as safe as the runs themselves.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from prefixguard.context import PACKED_BYTES
from prefixguard.errors import SavedSessionError
from prefixguard.runtime.run_behaviours import MOST_FAULTS, SavedFault, fault_of

#: Bytes of a saved session at most, without the model's own state.
MOST_BYTES = 128 * 1024

_NAME, _VERSION = b"PGSESS", 2
_MAGIC = len(_NAME) + 2
_HEAD = _MAGIC + hashlib.sha256().digest_size
_MOST_COUNTED = 1 << 53
_MOST_REASON = 1000
_AGAIN = "Save it again, or start a new session."


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < _MOST_COUNTED:
        raise ValueError(value)
    return value


def _counts(value: Any) -> tuple[int, ...]:
    return tuple(map(_count, value))


def _faults(value: Any) -> tuple[SavedFault, ...]:
    if len(value) > MOST_FAULTS:
        raise ValueError(value)
    return tuple(map(fault_of, value))


def _text(most: int) -> Callable[[Any], str]:
    def text(value: Any) -> str:
        if not isinstance(value, str) or len(value) > most:
            raise ValueError(value)
        return value

    return text


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(value)
    return value


#: What stands in the JSON part: the field of `SavedSession`, its key, what reads it, and whether it may be null.
_FIELDS: tuple[tuple[str, str, Callable[[Any], Any], bool], ...] = (
    ("bundle", "bundle", str, False),
    ("group", "group", _text(MOST_BYTES), True),
    ("tally", "tally", lambda value: {str(name): _count(n) for name, n in value.items()}, False),
    ("alarm", "alarm", _counts, False),
    ("dropout", "lapses", _counts, True),
    ("stopped", "stopped", _text(_MOST_REASON), True),
    ("broken", "broken", _text(_MOST_REASON), True),
    ("parser", "parser", _object, True),
    ("faults", "faults", _faults, False),
)


@dataclass(frozen=True, slots=True)
class SavedSession:
    """All that a session keeps of its run.

    bundle: id of the monitor's bundle. context: packed. behaviours: their tracker, packed; b"" where none was saved.
    model: the model's state, packed. group: the one that picked the alarm's thresholds. tally: counters by name. alarm:
    its own counts. dropout: counts of empty fields; None where the bundle watches none. stopped, broken: why nothing is
    judged any more. parser: its own state; None for a session of records. faults: the recent ones
    (`RunBehaviours.faults`).
    """

    bundle: str
    context: bytes
    behaviours: bytes
    model: bytes
    group: str | None
    tally: Mapping[str, int]
    alarm: tuple[int, ...]
    dropout: tuple[int, ...] | None
    stopped: str | None
    broken: str | None
    parser: dict[str, Any] | None
    faults: tuple[SavedFault, ...]

    def to_bytes(self) -> bytes:
        """The same session gives the same bytes."""
        rest = {key: getattr(self, name) for name, key, _, _ in _FIELDS}
        text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        body = self.context + self.behaviours + self.model + text.encode()
        return b"".join((_NAME, _VERSION.to_bytes(2, "big"), hashlib.sha256(body).digest(), body))

    @classmethod
    def from_bytes(
        cls, data: bytes, bundle: str, model_bytes: int, tracker_bytes: int, context_bytes: int = PACKED_BYTES
    ) -> SavedSession:
        """Read a saved session of this bundle, whose model's state has `model_bytes` bytes and its behaviours'
        `tracker_bytes`. context_bytes: of the packed context.

        Raises SavedSessionError for what is too long, damaged, of a newer release or of another bundle. The context,
        the model's state and the parser's are checked by those who unpack them.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise SavedSessionError(f"A saved session is bytes, not {type(data).__name__}. Give what `save` returned.")
        most, given = MOST_BYTES + model_bytes, memoryview(data).nbytes
        if given > most:
            raise SavedSessionError(f"A saved session has at most {most:,} bytes, and this has {given:,}. {_AGAIN}")
        data = bytes(data)
        if len(data) < _HEAD or not data.startswith(_NAME):
            raise SavedSessionError(f"These {len(data):,} bytes are no saved session. {_AGAIN}")
        version = int.from_bytes(data[len(_NAME) : _MAGIC], "big")
        if version > _VERSION:
            raise SavedSessionError(
                f"The saved session has version {version}, and this release reads up to {_VERSION}. Upgrade "
                "prefixguard, or start a new session."
            )
        body = data[_HEAD:]
        if version < 1 or hashlib.sha256(body).digest() != data[_MAGIC:_HEAD]:
            raise SavedSessionError(f"The saved session is damaged: its checksum does not match. {_AGAIN}")
        at = context_bytes + (tracker_bytes if version > 1 else 0)
        model, text = body[at : at + model_bytes], body[at + model_bytes :]
        try:
            rest = json.loads(text)
        except (ValueError, RecursionError):
            rest = None
        if not isinstance(rest, dict):
            # The model's state of another bundle may be longer or shorter, so the JSON is not where it is looked for.
            raise SavedSessionError(
                f"The saved session is damaged, or of another monitor than {bundle[:12]}. Restore it with the monitor "
                "that saved it, or start a new session."
            )
        if rest.get("bundle") != bundle:
            raise SavedSessionError(
                f"The session was saved by another monitor ({str(rest.get('bundle'))[:12]!r}, and this is "
                f"{bundle[:12]!r}): its state would mean nothing. Restore it with the monitor that saved it, or start "
                "a new session."
            )
        if version == 1:
            rest["faults"] = []
        try:
            found: dict[str, Any] = {
                name: None if may_be_null and rest[key] is None else read(rest[key])
                for name, key, read, may_be_null in _FIELDS
            }
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise SavedSessionError(f"The saved session is damaged ({type(exc).__name__}). {_AGAIN}") from exc
        return cls(context=body[:context_bytes], behaviours=body[context_bytes:at], model=model, **found)
