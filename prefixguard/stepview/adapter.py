"""Frozen adapters: opening one by name or path, what identifies it, and the lines of a stream as events for it."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, BinaryIO

from prefixguard.errors import AdapterError, UnknownAdapterError
from prefixguard.stepview.jsontext import canonical, decode
from prefixguard.stepview.parser import Parser, live_parser
from prefixguard.stepview.program import Program, compile_program
from prefixguard.stepview.record import SCORE_EVENT
from prefixguard.stepview.schema import MOST_BYTES, check_bytes
from prefixguard.stepview.text import DEFAULT_BUDGETS
from prefixguard.trace.named_file import read_named

_FOLDER = "stepview_adapters"


class Adapter:
    """A compiled adapter spec. Immutable; its hash is that of the spec's canonical JSON, so blanks do not count.

    A spec of an older schema is lifted in memory (`migrations`); its bytes and hash stay those it was frozen with.
    """

    __slots__ = ("_bytes", "description", "name", "program", "sha256", "version")

    def __init__(self, spec: Mapping[str, Any], where: str = "adapter") -> None:
        """Checks and compiles. AdapterError names the part of the spec that is wrong."""
        self.program: Program = compile_program(spec, where)
        try:
            self._bytes = canonical(spec).encode("utf-8")
        except UnicodeEncodeError as exc:
            raise AdapterError(
                f"{where}: half a character (a lone surrogate) stands in a name or text of the spec."
            ) from exc
        self.name = self.program.name
        self.version = self.program.version
        self.description = self.program.description
        self.sha256 = hashlib.sha256(self._bytes).hexdigest()

    def __repr__(self) -> str:
        return f"<Adapter {self.name} {self.version} {self.sha256[:12]}>"

    def to_bytes(self) -> bytes:
        """The spec as canonical JSON."""
        return self._bytes

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Adapter:
        """The adapter that these bytes describe. where: the file they are from, for messages."""
        check_bytes(len(data), where)
        try:
            spec = json.loads(data.decode("utf-8"))
        except (ValueError, RecursionError) as exc:
            at = f" line {exc.lineno}, column {exc.colno}" if isinstance(exc, json.JSONDecodeError) else ""
            raise AdapterError(f"{where}{at}: an adapter is a JSON file, and this is not JSON ({exc}).") from exc
        return cls(spec, where)

    def parser(self, header: Mapping[str, Any] | None = None) -> Parser:
        """A parser for one live run. header: what is known at its start, seen by paths that begin with $.

        AdapterError if the spec can only read whole runs.
        """
        return live_parser(self.program, header)


def _shipped() -> Traversable:
    """Folder of the shipped adapters: inside the installed package, or next to it in a clone. Never a folder or a
    package of that name elsewhere on the path."""
    inside = resources.files("prefixguard") / _FOLDER
    return inside if inside.is_dir() else Path(__file__).parents[2] / _FOLDER


def list_adapters() -> tuple[str, ...]:
    """Names of the shipped adapters, sorted."""
    names = (entry.name for entry in _shipped().iterdir())
    return tuple(sorted(name[:-5] for name in names if name.endswith(".json") and name.count(".") == 1))


#: Name of the control of an adapter; the adapter's name or path comes after it.
RAW = "raw"
#: What to do about a format that no shipped adapter reads; ends the errors for adapters that are not found.
_OWN = (
    "For a format of your own: prefixguard induce-adapter SAMPLES writes an adapter from a few raw runs "
    "(by hand: docs/adapter-spec.md)."
)


def load_adapter(name_or_path: str | Path) -> Adapter:
    """A shipped adapter by its name, or one from a .json file; `raw:NAME`, `raw:PATH` is its control (`raw_view`).

    UnknownAdapterError names the nearest shipped ones; AdapterError says what is wrong with a spec.
    """
    name = str(name_or_path)
    if isinstance(name_or_path, str) and name.partition(":")[0] == RAW:
        whose = name.partition(":")[2]
        if not whose:
            raise UnknownAdapterError(
                f"{name!r} is the control of an adapter: whose? Say raw:NAME (shipped: {_some()}) or raw:PATH of a "
                ".json file."
            )
        return raw_view(load_adapter(whose))
    if isinstance(name_or_path, Path) or name.endswith(".json") or "/" in name or "\\" in name:
        remedy = f"No adapter can be read there: give a shipped name ({_some()}) or the path of a .json file. {_OWN}"
        data = read_named(name_or_path, MOST_BYTES, remedy=remedy, error=UnknownAdapterError)
        return Adapter.from_bytes(data, str(Path(name_or_path)))
    shipped = list_adapters()
    if name in shipped:
        return Adapter.from_bytes((_shipped() / f"{name}.json").read_bytes(), f"{_FOLDER}/{name}.json")
    near = difflib.get_close_matches(name.lower().replace("-", "_"), shipped, n=3, cutoff=0.5)
    did_you_mean = f"Nearest: {', '.join(near)}." if near else f"Shipped: {', '.join(shipped) or 'none'}."
    raise UnknownAdapterError(f"no adapter called {name!r}. {did_you_mean} {_OWN}")


def raw_view(adapter: Adapter) -> Adapter:
    """The control of an adapter: the same runs, outcomes, tasks and steps, each step one text without fields.

    >>> raw_view(load_adapter("tau2"))
    <Adapter raw:tau2 1.0.0 ...>
    """
    if adapter.program.is_raw:
        return adapter
    spec = json.loads(adapter.to_bytes())
    return Adapter({**spec, "name": f"{RAW}:{adapter.name}", "view": "raw"}, f"{RAW}:{adapter.name}")


_WIDEST = 100_000


def wide_view(adapter: Adapter, characters: int) -> Adapter:
    """The same adapter, keeping longer texts: the same runs and steps, each field of up to `characters` code points.

    For readers that are no monitor (a monitor must read what it was trained on). At most 100,000 a field; of a longer
    one three quarters are kept at its head, the rest at its tail. A budget that is wider already stays.

    >>> wide_view(load_adapter("tau2"), 40_000)
    <Adapter tau2 1.0.0 ...>
    """
    spec = json.loads(adapter.to_bytes())
    characters = min(characters, _WIDEST)
    wide = (characters - characters // 4, characters // 4)
    budgets = {**DEFAULT_BUDGETS, **{name: tuple(pair) for name, pair in spec.get("budgets", {}).items()}}
    wider = {name: list(max(pair, wide, key=sum)) for name, pair in budgets.items()}
    return Adapter({**spec, "budgets": wider}, adapter.name)


def _some() -> str:
    shipped = list_adapters()
    return ", ".join(shipped[:4]) + (", ..." if len(shipped) > 4 else "") if shipped else "none"


#: Bytes of a line that is still an event. Adapters keep far less of any event.
MAX_LINE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class EventLine:
    """One line. number: from 1. event: decoded, or a piece of text. problem: why it is no event; None if it is one."""

    number: int
    event: Any
    problem: str | None


def read_events(stream: BinaryIO, adapter: Adapter, *, max_bytes: int = MAX_LINE_BYTES) -> Iterator[EventLine]:
    """Every line of the stream as soon as it is there; blank lines of JSON are passed over. Never raises for a line.

    An adapter of text gets each line with its newline, as bytes.
    """
    text = adapter.program.events.split is not None
    number = 0
    while line := stream.readline(max_bytes + 1):
        number += 1
        if len(line) > max_bytes:
            while line and not line.endswith(b"\n"):
                line = stream.readline(1 << 20)
            yield EventLine(number, None, f"line {number} is longer than the {max_bytes:,} bytes that are read")
        elif text:
            yield EventLine(number, line, None)
        elif not line.isspace():
            yield _decoded(number, line, adapter)


def _decoded(number: int, line: bytes, adapter: Adapter) -> EventLine:
    try:
        return EventLine(number, decode(line), None)
    except UnicodeDecodeError as exc:
        return EventLine(number, None, f"line {number} is not UTF-8 ({exc.reason} at byte {exc.start + 1})")
    except (ValueError, RecursionError) as exc:
        why = "nested too deeply" if isinstance(exc, RecursionError) else str(exc).partition(":")[0]
        form = (
            f"a line is one score: {SCORE_EVENT}"
            if adapter.program.reads_scores
            else "events are one JSON value a line"
        )
        return EventLine(number, None, f"line {number} is not JSON ({why}); {form}")
