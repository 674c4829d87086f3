"""What a live parser keeps between two calls is bounded, whatever arrives, for every shipped adapter."""

from __future__ import annotations

import gc
import itertools
import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from prefixguard.errors import TraceError
from prefixguard.stepview import Parser, list_adapters, load_adapter

GOLDEN = Path(__file__).parents[2] / "stepview_adapters" / "golden"
NAMES = list_adapters()
MOST_BYTES = 9_216
LiveRuns = dict[str, Callable[[Path], Iterator[tuple[dict[str, Any], list[Any]]]]]

Change = Callable[[Any], Any]


def _every_text(value: Any, change: Change, at: str = "") -> Any:
    """The value with every text in it changed, but for those that say what kind of event it is."""
    if isinstance(value, dict):
        return {name: _every_text(inner, change, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_every_text(inner, change, at) for inner in value]
    is_kind = (
        at in ("role", "type", "kind", "method", "object", "status", "name", "source", "event") or "operation" in at
    )
    return change(value) if isinstance(value, str) and not is_kind else value


def _longer(text: str) -> Change:
    return lambda value: value + text


def _wide(value: Any, times: int = 40) -> Any:
    """The value with every outermost list in it longer."""
    if isinstance(value, dict):
        return {name: _wide(inner, times) for name, inner in value.items()}
    return [_wide(inner, 1) for inner in value] * times if isinstance(value, list) else value


def _numbered(events: list[Any]) -> list[Any]:
    """The events many times, with other texts and ids each time."""
    return [_every_text(event, _longer(f" {n}")) for n in range(25) for event in events]


def _deep(n: int) -> Any:
    value: Any = "x"
    for _ in range(n):
        value = [{"content": value, "text": [value]}] if n < 12 else [value]
    return value


def _streams(events: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Names and hostile variants of a run."""
    if all(isinstance(event, str) for event in events):
        text = "".join(events)[:4_000]
        lines = text.split("\n")
        yield "lines of four bytes", ["\n".join(line + "😀" * 4_000 for line in lines[:30])]
        yield "a line without end", [text, "x" * 30_000]
        yield "a line of four bytes without end", [text, "😀" * 9_000]
        yield "tiny lines", [text, "a\n" * 9_000]
        yield "a title without end", [text, "\x1b]0;" + "t" * 5_000]
        yield "carriage returns", [text, "abc\r\x1b[9999C" * 200]
        yield "half a character", [text, b"\xf0\x9f\x98"]
        for n in range(1, min(len(lines), 24), 2):
            yield f"{n} long lines", ["\n".join(line + " y" * 1_000 for line in lines[:n]) + "\n" + "z" * 250]
        return
    events = events[:12]
    for name, text in (("ASCII", "x y " * 5_000), ("two bytes", "é " * 3_000), ("four bytes", "😀" * 3_000)):
        yield f"long {name} texts", [_every_text(event, _longer(text)) for event in events]
    yield "full fields", [_every_text(event, _longer("x" * 2_000)) for event in events]
    yield "mixed texts", [_every_text(event, _longer("word " * 390 + "😀")) for event in events]
    yield "wide lists of texts", [_wide(_every_text(event, _longer("x" * 300))) for event in events[:6]]
    yield "many of four bytes", [_every_text(event, _longer("😀" * 70)) for event in _numbered(events)]
    yield "kinds", [*events, *({"type": f"😀{n}" * 30, "role": "é" * n, "name": f"n{n}"} for n in range(60))]
    yield "deep", [*events, _deep(6), _deep(300), {"content": _deep(6), "role": "user"}]
    yield "large numbers", [*events, {"id": 1 << 4000, "role": "assistant", "startTimeUnixNano": 1 << 4000}]
    yield "run ids", [_every_text(event, _longer("i" * 100_000)) for event in events[:2]] * 2


HEADER = {name: ["h" * 40_000, {"content": "😀" * 9_000}] * 3 for name in ("history", "messages", "question")}
HEADER |= {"task": "t" * 500_000, "instruction": "i" * 500_000, "query": "q" * 90_000}  # type: ignore[dict-item]


def _feed(parser: Parser, event: Any) -> None:
    """An event that the parser takes; of scores, one whose step has come before, or that holds no score, is refused."""
    try:
        parser.observe(event)
    except TraceError as error:
        assert "step " in str(error) or "the score " in str(error)


def _anew(written: str | bytes) -> Any:
    """An event as it was written; made anew, because a text keeps its UTF-8 once that was asked for."""
    return written if isinstance(written, bytes) else json.loads(written)


def most_kept(make: Callable[[], Parser], events: list[Any]) -> tuple[int, int]:
    """Most bytes that a parser kept between two of these events, and after which."""
    most, where = 0, -1
    written = [event if isinstance(event, bytes) else json.dumps(event) for event in events]
    warm = make()
    for data in written:
        _feed(warm, _anew(data))
    del warm
    gc.freeze()  # what is there already: later collections pass over it
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    parser = make()
    for number, data in enumerate(written):
        _feed(parser, _anew(data))
        kept = tracemalloc.get_traced_memory()[0] - before
        if kept > MOST_BYTES:
            gc.collect()
            kept = tracemalloc.get_traced_memory()[0] - before
        if kept > most:
            most, where = kept, number
    tracemalloc.stop()
    gc.unfreeze()
    return most, where


@pytest.mark.parametrize("name", NAMES)
def test_nothing_makes_a_parser_keep_more(name: str, live_runs: LiveRuns) -> None:
    adapter = load_adapter(name)
    for _, events in itertools.islice(live_runs[name](GOLDEN / name / "runs"), 1):
        for stream, hostile in _streams(events):
            most, where = most_kept(lambda: adapter.parser(HEADER), hostile)
            assert most <= MOST_BYTES, f"{stream}: {most:,} bytes after event {where}"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_a_state_is_bounded(name: str, live_runs: LiveRuns) -> None:
    adapter = load_adapter(name)
    _, events = next(iter(live_runs[name](GOLDEN / name / "runs")))
    for _, hostile in _streams(events):
        parser = adapter.parser(HEADER)
        for event in hostile[:60]:
            _feed(parser, event)
        assert len(json.dumps(parser.state())) <= 4 * MOST_BYTES
