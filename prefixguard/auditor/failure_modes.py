"""The fourteen failure modes as data: what each supposes of a run, what speaks against it, what it is taken for.

The codes are those in use since MAST; the sentences are our own. Source of the modes and of which are near each other:
VerifyMAS, tables 4 and 8. Two groups of texts speak against a mode: a sentence for a verifier, and phrases that can be
searched for. Such a phrase is a hint only: who verified wrongly says "checked" too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.errors import ConfigError
from prefixguard.stepview import StepRecord

SCHEMA = "prefixguard/failure-modes/v1"
_CODE = re.compile(r"FM-[1-9]\.[1-9]\Z")
_LINES, _LISTS = ("code", "group", "name", "hypothesis", "against"), ("near", "cues")
#: Characters of one step's text in which cues are searched.
_SCANNED = 20_000


@dataclass(frozen=True, slots=True)
class FailureMode:
    """One way in which agents fail.

    code: "FM-1.1" to "FM-3.3". group: key of the group it belongs to. name: a few words, such as "skips verification".
    hypothesis: one statement about a run, "Some agent ...". against: what would refute it, a clause.
    near: codes of modes that it is easily taken for, nearest first. cues: lower-case phrases that speak against it.
    """

    code: str
    group: str
    name: str
    hypothesis: str
    against: str
    near: tuple[str, ...]
    cues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CueFound:
    """A phrase that speaks against a mode. step: index of the record in which an agent says it."""

    step: int
    cue: str


def read_modes(text: str | bytes, where: str = "modes") -> tuple[FailureMode, ...]:
    """The modes of a JSON document, in its order. ConfigError, naming the place, where it is not what it should be."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ConfigError(f"{where}: not JSON ({exc}).") from exc
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ConfigError(f'{where}: a document with "schema": "{SCHEMA}" is needed.')
    groups, entries = document.get("groups"), document.get("modes")
    if not isinstance(groups, dict) or not isinstance(entries, list) or not entries:
        raise ConfigError(f"{where}: groups (an object) and modes (a list with at least one) are needed.")
    modes = tuple(_mode(entry, f"{where}: modes[{i}]", groups) for i, entry in enumerate(entries))
    codes = [mode.code for mode in modes]
    for mode in modes:
        if codes.count(mode.code) > 1:
            raise ConfigError(f"{where}: {mode.code} stands there twice.")
        for code in mode.near:
            if code not in codes or code == mode.code:
                raise ConfigError(f"{where}: {mode.code} is near {code}, which is no other mode of this file.")
    return modes


def _mode(entry: Any, where: str, groups: Mapping[str, Any]) -> FailureMode:
    if not isinstance(entry, dict) or set(entry) != {*_LINES, *_LISTS}:
        raise ConfigError(f"{where}: an object with exactly {', '.join((*_LINES, *_LISTS))} is needed.")
    for key in _LINES:
        if not isinstance(entry[key], str) or not entry[key].strip() or "\n" in entry[key]:
            raise ConfigError(f"{where}: {key} is one line of text.")
    for key in _LISTS:
        texts = entry[key]
        if not isinstance(texts, list) or not texts or not all(isinstance(t, str) and t.strip() for t in texts):
            raise ConfigError(f"{where}: {key} is a list of texts, at least one.")
        if len(set(texts)) < len(texts):
            raise ConfigError(f"{where}: {key} names something twice.")
    if not _CODE.match(entry["code"]):
        raise ConfigError(f"{where}: code {entry['code']!r} is not of the form FM-1.1.")
    if entry["group"] not in groups:
        raise ConfigError(f"{where}: group {entry['group']!r} is none of {', '.join(groups)}.")
    if not entry["hypothesis"].startswith("Some agent ") or not entry["hypothesis"].endswith("."):
        raise ConfigError(f'{where}: a hypothesis is a sentence that begins with "Some agent".')
    if any(cue != cue.lower() for cue in entry["cues"]):
        raise ConfigError(f"{where}: cues are written in lower case.")
    return FailureMode(**entry | {key: tuple(entry[key]) for key in _LISTS})


#: All fourteen, in the order of their codes.
MODES: tuple[FailureMode, ...] = read_modes((Path(__file__).parent / "modes.json").read_bytes(), "modes.json")


def modes_of(codes: Iterable[str], among: Sequence[FailureMode] = MODES) -> tuple[FailureMode, ...]:
    """The modes with these codes, in the order of `among`. ConfigError for a code that is none of them.

    >>> [mode.name for mode in modes_of(["FM-3.2"])]
    ['skips verification']
    """
    wanted = set(codes)
    unknown = sorted(wanted - {mode.code for mode in among})
    if unknown:
        raise ConfigError(f"no failure mode {', '.join(unknown)}: there are {', '.join(m.code for m in among)}.")
    return tuple(mode for mode in among if mode.code in wanted)


def counter_evidence(records: Sequence[StepRecord], mode: FailureMode) -> tuple[CueFound, ...]:
    """Where agents say what speaks against a mode: whole phrases, case aside, each once a step, in order."""
    found = []
    patterns = [(cue, re.compile(rf"(?<!\w){re.escape(cue)}(?!\w)")) for cue in mode.cues]
    for record in records:
        if record.actor == "agent":
            text = " ".join(record.action[:_SCANNED].lower().split())
            found += [CueFound(record.index, cue) for cue, pattern in patterns if pattern.search(text)]
    return tuple(found)
