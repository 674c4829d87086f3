"""Behaviours that somebody declares for an agent of another kind, in a small JSON file: `prefixguard/behaviours/v1`.

The file holds data only, is bounded in every part, and is checked as a whole when it is opened. `docs/behaviours.md`
describes it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from prefixguard.behaviours.behaviour import Behaviour, BehaviourKind
from prefixguard.behaviours.catalogue import BY_NAME, CONSEQUENCES
from prefixguard.behaviours.conditions import StepCondition, compile_condition, keys_of
from prefixguard.errors import ConfigError
from prefixguard.stepview import canonical
from prefixguard.trace import read_named

SCHEMA: Final = "prefixguard/behaviours/v1"
#: Of the file in bytes; behaviours; tools; regular expressions; characters of a text.
MOST_BYTES, MOST_BEHAVIOURS, MOST_NAMED, MOST_PATTERNS, MOST_TEXT = 1 << 16, 32, 500, 64, 200
#: Steps that `within` may look back.
MOST_WITHIN: Final = 64
_COUNTED: Final = 1000
_KEYS: Final = ("schema", "name", "description", "tools", "behaviours")
_OF_ONE: Final = (
    "name", "kind", "sentence", "nudge", "advice", "watch", "alarm",
    "when", "unless_before", "reset", "at_least", "in_a_row", "within",
)  # fmt: skip
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,59}")
_AGAIN: Final = "Mend the file; docs/behaviours.md describes it."


@dataclass(frozen=True, slots=True)
class DeclaredBehaviour:
    """A behaviour with its predicate.

    when : the condition that is counted. unless_before : once it has held at an earlier step, the behaviour holds no
    more. reset : where it holds, counting starts over. at_least : times from which the behaviour holds. in_a_row :
    steps in a row are counted. within : of the last so many steps, this one included, 1 to 64; 0: of all.
    """

    behaviour: Behaviour
    when: StepCondition
    unless_before: StepCondition | None
    reset: StepCondition | None
    at_least: int
    in_a_row: bool
    within: int


class DeclaredBehaviours:
    """An opened file of behaviours. Immutable; its hash is that of its canonical JSON, so blanks do not count.

    tools: tool to its kind, one of `CONSEQUENCES`. behaviours: in the order of the file.
    """

    __slots__ = ("_bytes", "behaviours", "name", "sha256", "tools")

    def __init__(self, spec: Any, where: str) -> None:
        """Raises ConfigError, which names the part that is wrong."""
        spec = keys_of(spec, _KEYS, where)
        if spec.get("schema") != SCHEMA:
            raise ConfigError(
                f"{where}: schema {str(spec.get('schema'))[:80]!r}; this release reads {SCHEMA!r}. A newer schema "
                "needs a newer release of prefixguard; anything else is no file of behaviours."
            )
        n = _patterns(spec)
        if n > MOST_PATTERNS:
            raise ConfigError(f"{where}: {n} regular expressions; at most {MOST_PATTERNS} are read. {_AGAIN}")
        self.name = _name(spec.get("name"), f"{where}: name")
        _text(spec.get("description", ""), f"{where}: description", most=2000)
        self.tools: Mapping[str, str] = MappingProxyType(_tools(spec.get("tools", {}), f"{where}: tools"))
        listed = spec.get("behaviours", [])
        if not isinstance(listed, list) or len(listed) > MOST_BEHAVIOURS:
            raise ConfigError(f"{where}: behaviours: a list of at most {MOST_BEHAVIOURS} behaviours is needed.")
        self.behaviours = tuple(_declared(one, f"{where}: behaviours[{i}]") for i, one in enumerate(listed))
        names = [one.behaviour.name for one in self.behaviours]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(f"{where}: two behaviours are called {twice!r}. Give each a name of its own.")
        if not self.behaviours and not self.tools:
            raise ConfigError(f"{where}: declares neither behaviours nor tools, so it changes nothing. {_AGAIN}")
        self._bytes = canonical(spec).encode("utf-8", "surrogatepass")
        self.sha256 = hashlib.sha256(self._bytes).hexdigest()

    def to_bytes(self) -> bytes:
        """The file as canonical JSON."""
        return self._bytes

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> DeclaredBehaviours:
        """What these bytes declare. where: the file that they are from, for messages."""
        if len(data) > MOST_BYTES:
            raise ConfigError(f"{where}: {len(data):,} bytes; at most {MOST_BYTES:,} are read. {_AGAIN}")
        try:
            spec = json.loads(data.decode("utf-8"), object_pairs_hook=_once)
        except (ValueError, RecursionError) as exc:
            if isinstance(exc, ConfigError):
                raise ConfigError(f"{where}: {exc}") from None
            raise ConfigError(f"{where}: a file of behaviours is JSON, and this is not ({exc}). {_AGAIN}") from exc
        return cls(spec, where)


def load_behaviours(path: str | Path) -> DeclaredBehaviours:
    """The behaviours that a file declares. Raises ConfigError when it cannot be read or is wrong."""
    data = read_named(path, MOST_BYTES, remedy="Name a .json file of behaviours.", error=ConfigError)
    return DeclaredBehaviours.from_bytes(data, str(path))


def _patterns(spec: Any) -> int:
    """Regular expressions anywhere in it."""
    waiting, n = [spec], 0
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            n += "re" in value
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return n


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ConfigError(f"the key {twice[:60]!r} stands twice in one object. {_AGAIN}")
    return found


def _name(value: Any, where: str) -> str:
    if not isinstance(value, str) or _NAME.fullmatch(value) is None:
        raise ConfigError(
            f"{where}: a name is needed: small letters, digits and underscores, at most 60, a letter first."
        )
    return value


def _text(value: Any, where: str, most: int = MOST_TEXT) -> str:
    if not isinstance(value, str) or len(value) > most or not value.isprintable():
        raise ConfigError(f"{where}: a text on one line of at most {most:,} characters is needed.")
    return value


def _number(value: Any, where: str, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ConfigError(f"{where}: a whole number from {least} to {most:,} is needed.")
    return value


def _tools(spec: Any, where: str) -> dict[str, str]:
    found: dict[str, str] = {}
    if spec == {}:
        return found
    for kind, names in keys_of(spec, CONSEQUENCES, where).items():
        if not isinstance(names, list) or not all(isinstance(name, str) and 0 < len(name) <= 200 for name in names):
            raise ConfigError(f"{where}.{kind}: a list of names of tools is needed, each of at most 200 characters.")
        for name in names:
            if found.setdefault(name, kind) != kind:
                raise ConfigError(f"{where}: {name[:60]!r} stands under {found[name]} and under {kind}. Choose one.")
    if len(found) > MOST_NAMED:
        raise ConfigError(f"{where}: {len(found)} tools; at most {MOST_NAMED} are read. {_AGAIN}")
    return found


def _declared(spec: Any, where: str) -> DeclaredBehaviour:
    spec = keys_of(spec, _OF_ONE, where)
    name = _name(spec.get("name"), f"{where}.name")
    if name in BY_NAME:
        raise ConfigError(f"{where}.name: {name!r} is a behaviour of the catalogue. Choose another name.")
    behaviour = _behaviour(spec, name, where)
    if "when" not in spec:
        raise ConfigError(f"{where}: a condition `when` is needed. {_AGAIN}")
    conditions = {
        key: compile_condition(spec[key], f"{where}.{key}") for key in ("when", "unless_before", "reset") if key in spec
    }
    at_least = _number(spec.get("at_least", 1), f"{where}.at_least", 1, _COUNTED)
    within = _number(spec["within"], f"{where}.within", 1, MOST_WITHIN) if "within" in spec else 0
    in_a_row = spec.get("in_a_row", False)
    if not isinstance(in_a_row, bool):
        raise ConfigError(f"{where}.in_a_row: true or false is needed.")
    if in_a_row and within:
        raise ConfigError(f"{where}: in_a_row and within contradict each other. Choose one.")
    if within and at_least > within:
        raise ConfigError(f"{where}: at_least {at_least} within {within} steps can never hold.")
    if at_least == 1 and (in_a_row or within):
        raise ConfigError(f"{where}: in_a_row and within say nothing with at_least 1. Leave them out.")
    for key in ("unless_before", "reset"):
        if at_least > 1 and spec.get(key) == spec["when"]:
            raise ConfigError(f"{where}: {key} is its own condition, so it can never hold {at_least} times.")
    return DeclaredBehaviour(
        behaviour,
        conditions["when"],
        conditions.get("unless_before"),
        conditions.get("reset"),
        at_least,
        in_a_row,
        within,
    )


def _behaviour(spec: dict[str, Any], name: str, where: str) -> Behaviour:
    kinds: dict[Any, BehaviourKind] = {"fault": "fault", "artefact": "artefact", "neutral": "neutral"}
    kind = kinds.get(spec.get("kind", "neutral") if isinstance(spec.get("kind", ""), str) else None)
    if kind is None:
        raise ConfigError(f"{where}.kind: one of {', '.join(kinds)} is needed.")
    texts = {key: _text(spec.get(key, ""), f"{where}.{key}") for key in ("sentence", "nudge", "advice")}
    if not texts["sentence"]:
        raise ConfigError(f"{where}.sentence: a sentence for people is needed.")
    if kind == "fault" and not (texts["nudge"] and texts["advice"]):
        raise ConfigError(f"{where}: a fault needs what to do about it: nudge, for the agent, and advice, for people.")
    watch, alarm = (_number(spec.get(key, 0), f"{where}.{key}", 0, _COUNTED) for key in ("watch", "alarm"))
    if kind != "fault" and (watch or alarm):
        raise ConfigError(f"{where}: only a fault can have watch and alarm, and this is {kind}.")
    if watch and alarm and alarm < watch:
        raise ConfigError(f"{where}: alarm {alarm} comes before watch {watch}. Let it be the same or more.")
    return Behaviour(name, kind, texts["sentence"], texts["nudge"], texts["advice"], watch, alarm)
