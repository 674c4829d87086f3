"""Memory of sessions, measured: the allocator's and the system's own counts, not a sum of parts."""

import gc
import json
import os
import sys
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np
import pytest
import tiny_automaton
import tiny_monitor
from tiny_monitor import call, failing_run, result, user

from prefixguard.bundle import write_bundle
from prefixguard.runtime import Level, Monitor, Session, load

LIMIT = 32 * 1024


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ten_thousand_sessions_at_once(monitor: Monitor) -> None:
    """All have taken a step, and each still judges for itself; the process grows by no more than they may take."""
    n = 10_000
    events = failing_run()[:3]
    before = resident()
    sessions = [monitor.start() for _ in range(n)]
    for session in sessions:
        for event in events:
            session.observe(event)
    mean = (resident() - before) / n
    print(f"{mean:,.0f} resident bytes a session, {n:,} open")  # noqa: T201
    assert mean <= 1.1 * LIMIT  # the allocator rounds up
    for i in (0, n // 2, n - 1):
        levels = [r.level for e in failing_run()[3:] for r in sessions[i].observe(e)]
        assert levels == [Level.WATCH, Level.ALARM, Level.ALARM, Level.ALARM]


def resident() -> int:
    """Bytes of memory that the process holds now."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def own_bytes(session: Session, shared: object) -> int:
    """Bytes of all objects that only the session leads to; what `shared` leads to is not counted."""
    seen = set(map(id, reachable(shared)))
    return sum(size(thing) for thing in reachable(session, seen))


def reachable(start: object, seen: set[int] | None = None) -> list[object]:
    """All objects that the collector finds from `start` on, classes, modules and functions left out."""
    seen = set() if seen is None else set(seen)
    found, waiting = [], [start]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type | ModuleType | FunctionType):
            continue
        seen.add(id(thing))
        found.append(thing)
        waiting += gc.get_referents(thing)
    return found


def size(thing: object) -> int:
    borrowed = isinstance(thing, np.ndarray) and thing.base is not None
    return sys.getsizeof(thing) + (thing.nbytes if borrowed else 0)  # type: ignore[attr-defined]


def test_the_measure_sees_arrays_and_texts(monitor: Monitor) -> None:
    """So that the tests below cannot pass by measuring nothing."""
    session = monitor.start()
    small = own_bytes(session, monitor)
    assert small > 14_336  # the filter of words alone
    session.observe(user("x" * 1500))
    assert own_bytes(session, monitor) >= small + 1500


BACKENDS = ("gbdt", "gru", "transformer", "fsm", "blend")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A bundle of every backend, with two networks of a kind as by default, and with every shape as by default."""
    from prefixguard.learn import TrainConfig, train, trees
    from prefixguard.simulation import write_runs

    folder = tmp_path_factory.mktemp("backends")
    write_runs(folder / "lab.jsonl", 60, 5)
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "ROUNDS", 15)  # more trees keep no more of a session
        for backend in BACKENDS:
            config = TrainConfig(backend=backend, epochs=1, symbol_epochs=1, max_features=64, teacher=0.0, budget=0.25)
            result = train(folder / "lab.jsonl", out=folder / backend, adapter="openai_chat", config=config)
            found[backend] = result.path
    return found


def most_kept(monitor: Monitor, feed: Callable[[Session], None]) -> float:
    """Bytes that a session so fed keeps, as the allocator counts them: the least of what five more add."""
    sessions: list[Session | None] = [None] * 6
    counted = []
    gc.freeze()  # what is there already: later collections pass over it
    tracemalloc.start()
    try:
        for i in range(len(sessions)):
            session = sessions[i] = monitor.start()
            feed(session)
            del session
            gc.collect()
            counted.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
        gc.unfreeze()
    # The least: what the process itself makes meanwhile, such as caches, only adds to some of them.
    return min(after - before for before, after in pairwise(counted))


def many_steps(session: Session) -> None:
    """Many calls, all different, with new words and failing tools: everything that a session remembers is full."""
    for i in range(120):
        session.observe(call(i, f"tool{i}", f'{{"id": {i}}}', f"text {i}"))
        session.observe(result(i, "Error: " + " ".join(f"word{i}x{j}" for j in range(120))))
    for i in range(120, 125):  # calls that wait, with full fields
        session.observe(call(i, f"tool{i}", "żółć" * 1000, "🛒" * 5000))


def huge_ids(session: Session) -> None:
    """Ids, names and roles of a quarter of a megabyte, many calls that wait, deep nesting; then a second run."""
    long = "x" * (1 << 18)
    for i in range(12):
        session.observe(call(i, f"{i}{long}", long, long) | {"id": long, "role": "assistant"})
        session.observe({"role": f"{i}{long}", "content": [[[[long]]]]})
    many = [call(i)["tool_calls"][0] for i in range(500)]
    session.observe({"role": "assistant", "content": long, "tool_calls": many})
    session.observe(result(7, "🛒" * (1 << 18)))


def interrupted(session: Session) -> None:
    many_steps(session)

    class HostError(Exception):
        pass

    HostError.__name__ = "żółć" * 100

    class Event(dict):  # type: ignore[type-arg]
        pass

    def stop(frame: object, event: str, arg: object) -> None:
        raise HostError

    sys.settrace(stop)
    try:
        session.observe(Event())
    except HostError:
        pass
    finally:
        sys.settrace(None)


FEEDS = {"new": lambda _: None, "many steps": many_steps, "huge": huge_ids, "interrupted": interrupted}


@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("name", ["onnx", *tiny_automaton.variants()])
def test_a_session_keeps_32_kb_whatever_arrives(name: str, feed: str, tmp_path: Path) -> None:
    write_bundle(tmp_path / "b", {"onnx": tiny_monitor.parts(), **tiny_automaton.variants()}[name])
    monitor = load(tmp_path / "b")
    assert monitor.session_bytes == LIMIT
    taken = most_kept(monitor, FEEDS[feed])
    assert taken <= 31 * 1024 + monitor.model.state_bytes, "what a larger state is added to"
    print(f"{name}, {feed}: {taken:,.0f} bytes")  # noqa: T201
    assert taken <= LIMIT


@pytest.mark.parametrize("feed", FEEDS)
def test_a_session_of_rules_keeps_32_kb(feed: str, tmp_path: Path) -> None:
    (tmp_path / "tiny.json").write_text(json.dumps(tiny_monitor.CHAT))
    monitor = load("rules", adapter=tmp_path / "tiny.json")
    assert monitor.session_bytes == LIMIT
    taken = most_kept(monitor, FEEDS[feed])
    print(f"rules, {feed}: {taken:,.0f} bytes")  # noqa: T201
    assert taken <= monitor.session_bytes


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_keeps_what_its_monitor_says(backend: str, trained: dict[str, Path]) -> None:
    monitor = load(trained[backend])
    assert monitor.session_bytes == (LIMIT if backend != "transformer" else 31 * 1024 + 15_872)
    for name in ("huge", "interrupted"):
        taken = most_kept(monitor, FEEDS[name])
        print(f"{backend}, {name}: {taken:,.0f} of {monitor.session_bytes:,} bytes")  # noqa: T201
        assert taken <= monitor.session_bytes


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_goes_on_from_a_saved_session(backend: str, trained: dict[str, Path]) -> None:
    """Saved and restored before every event: the same readings, counters and drift as without."""
    monitor = load(trained[backend])
    whole, moved = monitor.start(), monitor.start()
    for event in failing_run() * 8:
        moved = monitor.restore(moved.save())
        told = [[r.to_json() for r in session.observe(event)] for session in (whole, moved)]
        assert told[0] == told[1]
        assert (dict(whole.counters), whole.drift) == (dict(moved.counters), moved.drift)
