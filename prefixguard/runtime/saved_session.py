"""A session as bytes: what `Session.save` gives and `Monitor.restore` takes.

    magic and version (8) | SHA-256 of all that follows (32) | context | model's state | JSON of the rest

The digest finds damage; it is no seal against forgery, since whoever can write the bytes can write the digest. So every
value is checked again when it is read, and nothing in it is ever run. What a saved session holds is text of the run:
calls that wait for their results, and what was said before them. Keep it as safe as the runs themselves.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prefixguard.context import PACKED_BYTES
from prefixguard.errors import SavedSessionError

#: Bytes of a saved session at most, without the model's own state.
MOST_BYTES = 128 * 1024

_NAME, _VERSION = b"PGSESS", 1
_MAGIC = len(_NAME) + 2
_HEAD = _MAGIC + hashlib.sha256().digest_size
_MOST_COUNTED = 1 << 53
_MOST_REASON = 1000
_AGAIN = "Save it again, or start a new session."


@dataclass(frozen=True, slots=True)
class SavedSession:
    """All that a session keeps of its run.

    bundle: id of the monitor's bundle. context: packed. model: the model's state, packed. group: the one that picked
    the alarm's thresholds. tally: counters by name. alarm: its own counts.
    dropout: counts of empty fields; None where the bundle watches none. stopped,
    broken: why nothing is judged any more. parser: its own state; None for a session of records.
    """

    bundle: str
    context: bytes
    model: bytes
    group: str | None
    tally: Mapping[str, int]
    alarm: tuple[int, ...]
    dropout: tuple[int, ...] | None
    stopped: str | None
    broken: str | None
    parser: dict[str, Any] | None

    def to_bytes(self) -> bytes:
        """The same session gives the same bytes."""
        rest = {
            "bundle": self.bundle,
            "group": self.group,
            "tally": dict(self.tally),
            "alarm": list(self.alarm),
            "lapses": None if self.dropout is None else list(self.dropout),
            "stopped": self.stopped,
            "broken": self.broken,
            "parser": self.parser,
        }
        text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        body = self.context + self.model + text.encode()
        return b"".join((_NAME, _VERSION.to_bytes(2, "big"), hashlib.sha256(body).digest(), body))

    @classmethod
    def from_bytes(cls, data: bytes, bundle: str, model_bytes: int) -> SavedSession:
        """Read a saved session of this bundle, whose model's state has `model_bytes` bytes.

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
        rest = _rest(body[PACKED_BYTES + model_bytes :], bundle, len(body) >= PACKED_BYTES + model_bytes)
        try:
            found = cls(
                bundle=rest["bundle"],
                context=body[:PACKED_BYTES],
                model=body[PACKED_BYTES : PACKED_BYTES + model_bytes],
                group=_text(rest["group"]),
                tally={str(name): _count(n) for name, n in rest["tally"].items()},
                alarm=tuple(map(_count, rest["alarm"])),
                dropout=None if rest["lapses"] is None else tuple(map(_count, rest["lapses"])),
                stopped=_text(rest["stopped"], _MOST_REASON),
                broken=_text(rest["broken"], _MOST_REASON),
                parser=rest["parser"],
            )
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise SavedSessionError(f"The saved session is damaged ({type(exc).__name__}). {_AGAIN}") from exc
        if found.parser is not None and not isinstance(found.parser, dict):
            raise SavedSessionError(f"The saved session is damaged: its parser's state is no object. {_AGAIN}")
        return found


def _rest(text: bytes, bundle: str, is_long_enough: bool) -> dict[str, Any]:
    """The JSON part, once it is known to be of this bundle."""
    try:
        rest = json.loads(text) if is_long_enough else None
    except (ValueError, RecursionError):
        rest = None
    if not isinstance(rest, dict):
        # The model's state of another bundle may be longer or shorter, so the JSON is not where it is looked for.
        raise SavedSessionError(
            f"The saved session is damaged, or of another monitor than {bundle[:12]}. Restore it with the monitor "
            "that saved it, or start a new session."
        )
    if rest.get("bundle") != bundle:
        other = str(rest.get("bundle"))[:12]
        raise SavedSessionError(
            f"The session was saved by another monitor ({other!r}, and this is {bundle[:12]!r}): "
            "its state would mean nothing. Restore it with the monitor that saved it, or start a new session."
        )
    return rest


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < _MOST_COUNTED:
        raise ValueError(value)
    return value


def _text(value: Any, most: int = MOST_BYTES) -> str | None:
    if value is not None and (not isinstance(value, str) or len(value) > most):
        raise ValueError(value)
    return value
