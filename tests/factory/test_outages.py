"""A world or a model that is down costs nothing that was finished, and the cause is said."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from prefixguard.errors import ConfigError, EndpointError, ReplayError
from prefixguard.escalate import Endpoint
from prefixguard.factory import LabelledRun, annotate, collect, inject, read_corpus, replay, write_corpus
from prefixguard.factory.outages import IN_A_ROW

OLD = b"what was finished before\n"


class ToyWorld:
    """A world over HTTP: to be gone: 0, then 1. down: tasks in which it answers 500."""

    def __init__(self) -> None:
        self.down: set[str] = set()
        self.asked = 0
        self.sessions: dict[int, tuple[str, str, list[str]]] = {}
        self.address = ""

    def answer(self, verb: str, asked: dict) -> dict | None:
        self.asked += 1
        at = asked["session"]
        if verb == "reset":
            self.sessions[at] = asked["task"], asked["agent"], []
        task, agent, done = self.sessions.get(at, ("", "", []))
        if task in self.down:
            return None
        if verb == "tasks":
            return {"tasks": [f"t{number}" for number in range(20)]}
        if verb == "reset":
            return {"observation": "go"}
        if verb == "step":
            done.append(asked["action"].get("arguments", {}).get("to"))
            return {"answer": f"at {done[-1]}"}
        if verb == "act":
            to = "9" if done and agent == "careless" and asked["salt"] is None else str(len(done))
            return {"action": None if len(done) > 1 else {"tool": "go", "arguments": {"to": to}}}
        return {"outcome": "success" if done == ["0", "1"] else "failure"} if verb == "verify" else {}


@pytest.fixture
def world() -> Iterator[ToyWorld]:
    found = ToyWorld()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            said = found.answer(self.path[1:], asked)
            body = b"out of fuel: " + b"x" * 200 if said is None else json.dumps(said).encode()
            self.send_response(500 if said is None else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found.address = f"http://127.0.0.1:{server.server_port}"
    yield found
    server.shutdown()
    server.server_close()


def again(command: str, world: ToyWorld, folder: Path, count: int) -> object:
    """A command over `count` runs."""
    out = folder / "out.jsonl"
    if command == "collect":
        return collect(world.address, out, count=count, tasks=count)
    if command == "inject":
        return inject(folder / "source.jsonl", out, kinds=["left_out"], tries=1)
    return replay(folder / "source.jsonl", out, rolls=1)


def made(command: str, world: ToyWorld, folder: Path, count: int) -> None:
    agent = "careless" if command == "replay" else ""
    collect(world.address, folder / "source.jsonl", count=count, tasks=count, agent=agent)


@pytest.mark.parametrize("command", ["collect", "inject", "replay"])
@pytest.mark.parametrize("count", [3, 12])
def test_a_world_that_is_down_leaves_what_was_finished(
    command: str, count: int, world: ToyWorld, tmp_path: Path
) -> None:
    made(command, world, tmp_path, count)
    (tmp_path / "out.jsonl").write_bytes(OLD)
    world.down, world.asked = {f"t{number}" for number in range(20)}, 0
    with pytest.raises(ReplayError, match=r"answered 500: 'out of fuel: x+'\. .*is as it was") as caught:
        again(command, world, tmp_path, count)
    assert ("5 failures in a row" in str(caught.value)) == (count > 5) and "x" * 80 not in str(caught.value)
    assert (tmp_path / "out.jsonl").read_bytes() == OLD and world.asked <= 2 * 5 + 1


@pytest.mark.parametrize("command", ["collect", "inject", "replay"])
def test_where_some_runs_are_left_the_next_command_asks_only_them(
    command: str, world: ToyWorld, tmp_path: Path
) -> None:
    made(command, world, tmp_path, 6)
    world.down = {"t1", "t4"}
    report = again(command, world, tmp_path, 6)
    assert len(list(read_corpus(tmp_path / "out.jsonl"))) == 4
    assert report.skips.counts == {"the environment failed": 2} and "The first: http" in report.to_text()
    assert any("2 runs were left without an answer" in note for note in report.notes)
    world.down, world.asked = set(), 0
    report = again(command, world, tmp_path, 6)
    asked, world.asked = world.asked, 0
    assert len(list(read_corpus(tmp_path / "out.jsonl"))) == 6 and "were left" not in "".join(report.notes)
    assert not (tmp_path / "out.jsonl.kept").exists()
    world.down = {"t1", "t4"}
    with pytest.raises(ReplayError, match=r"2 runs were left, and .* has 6 runs, more than 4"):
        again(command, world, tmp_path, 6)
    assert len(list(read_corpus(tmp_path / "out.jsonl"))) == 6
    assert asked < world.asked, "only what was left is asked again"


def test_the_cause_names_no_secret(world: ToyWorld, tmp_path: Path) -> None:
    world.down = {f"t{number}" for number in range(20)}
    with pytest.raises(ReplayError) as caught:
        collect(world.address.replace("//", "//me:hidden@") + "/", tmp_path / "o.jsonl", count=2, tasks=2)
    assert "hidden" not in str(caught.value)


def failed(name: str) -> LabelledRun:
    said = [{"role": "user", "content": name}, *({"role": "assistant", "content": f"part {i}"} for i in range(3))]
    return LabelledRun({"run_id": name, "outcome": "failure", "messages": said}, "natural")


@pytest.mark.parametrize("count", [1, 3, 9])
def test_a_model_that_is_down_leaves_what_was_finished(count: int, tmp_path: Path) -> None:
    write_corpus(tmp_path / "c.jsonl", [failed(f"run {number}") for number in range(count)])
    (tmp_path / "out.jsonl").write_bytes(OLD)
    nobody = Endpoint("m", "http://127.0.0.1:9/v1", max_retries=0)
    said = rf"(nothing was answered|{IN_A_ROW} failures in a row): .*connection failed"
    with pytest.raises(EndpointError, match=said):
        annotate(tmp_path / "c.jsonl", tmp_path / "out.jsonl", [nobody], workers=1)
    assert (tmp_path / "out.jsonl").read_bytes() == OLD


def test_a_run_that_cannot_be_played_is_settled(world: ToyWorld, tmp_path: Path) -> None:
    """What was not made in an environment is no failure of it."""
    made("inject", world, tmp_path, 7)
    runs = [replace(run, provenance={}) for run in read_corpus(tmp_path / "source.jsonl")]
    write_corpus(tmp_path / "source.jsonl", runs)
    report = again("inject", world, tmp_path, 7)
    assert report.skips.total == 7 and not report.notes


def test_a_kind_that_no_environment_of_the_corpus_has_is_refused(world: ToyWorld, tmp_path: Path) -> None:
    made("inject", world, tmp_path, 2)
    with pytest.raises(ConfigError, match=r"--kind lost_write: .* There are gave_up, left_out, mistyped_value"):
        inject(tmp_path / "source.jsonl", tmp_path / "out.jsonl", kinds=["lost_write"])
    collect("simulation:3", tmp_path / "source.jsonl", count=20, tasks=10)
    with pytest.raises(ConfigError, match=r"--kind left_out: .* There are bad_argument, .*, lost_write"):
        inject(tmp_path / "source.jsonl", tmp_path / "out.jsonl", kinds=["gave_up", "left_out"])
    assert not list(tmp_path.glob("out*"))
