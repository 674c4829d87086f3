"""`prefixguard sign`, and `--trust` on every command that opens a monitor."""

from __future__ import annotations

import inspect
import json
import stat
from pathlib import Path

import pytest
import tiny_automaton
import tiny_monitor

from prefixguard.bundle import new_key, sign, write_bundle
from prefixguard.cli.app import COMMANDS, twin_of

#: Commands that open a monitor, with what they need besides one; RUNS stands for a file of runs.
OPENING: dict[str, tuple[str, ...]] = {
    "watch": ("RUNS",),
    "score": ("RUNS",),
    "evaluate": ("RUNS",),
    "compare": ("MONITOR", "--runs", "RUNS"),
    "calibrate": ("RUNS",),
    "export": ("--to", "json-table", "--out", "OUT"),
    "info": (),
    "audit": ("RUNS", "--monitor", "MONITOR"),
    "judge": ("RUNS", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--estimate"),
    "factory evaluate": ("MODEL", "--corpus", "RUNS", "--monitor", "MONITOR"),
    **dict.fromkeys(("cross-validate", "ablate", "leave-agents-out"), ("RUNS", "--monitor", "MONITOR")),
}
#: Those of them that need outcomes or labels, too, or a monitor that says how it was trained.
ASKING_MORE = (
    "compare", "evaluate", "calibrate", "judge", "factory evaluate", "cross-validate", "ablate", "leave-agents-out",
)  # fmt: skip


@pytest.fixture
def monitor(tmp_path: Path) -> Path:
    write_bundle(tmp_path / "monitor", tiny_automaton.parts())
    return tmp_path / "monitor"


def arguments(command: str, monitor: Path, tmp_path: Path) -> list[str]:
    runs = tmp_path / "runs.json"
    runs.write_text(json.dumps([{"run_id": "r", "messages": tiny_monitor.failing_run()}]))
    names = {"RUNS": str(runs), "MONITOR": str(monitor), "OUT": str(tmp_path / "out"), "MODEL": str(tmp_path)}
    rest = [names.get(one, one) for one in OPENING[command]]
    return [*command.split(), *([] if "--monitor" in OPENING[command] else [str(monitor)]), *rest]


def test_every_command_with_a_monitor_takes_trust() -> None:
    having = {name for name in COMMANDS if "trust" in inspect.signature(twin_of(name).callback).parameters}
    assert having == set(OPENING)


@pytest.mark.parametrize("command", OPENING)
def test_trust_refuses_an_unsigned_monitor_and_opens_a_signed_one(command: str, cli, monitor, tmp_path: Path) -> None:
    pair = new_key(tmp_path / "key")
    given = [*arguments(command, monitor, tmp_path), "--trust", pair.public]
    said = cli(*given)
    assert said.code == 2 and "is not signed; only bundles signed with" in said.told
    sign(monitor, pair.private)
    said = cli(*given)
    assert "are trusted here" not in said.told
    assert said.code != 2 or command in ASKING_MORE


def test_a_key_is_made_and_a_monitor_signed(cli, monitor: Path, tmp_path: Path) -> None:
    made = cli("sign", "--new-key", tmp_path / "release", "--json")
    assert made.code == 0 and stat.S_IMODE((tmp_path / "release.pem").stat().st_mode) == 0o600
    assert "Keep it secret" in made.told and "PRIVATE KEY" not in made.told + made.out
    public = made.lines[0]["public_key"]
    signed = cli("sign", monitor, "--key", tmp_path / "release.pem")
    assert signed.code == 0 and f"signed with key {public[:16]}" in signed.told
    told = cli("info", monitor).told
    assert f"key {public[:16]}, not checked" in told
    assert f"key {public[:16]}, trusted" in cli("info", monitor, "--trust", tmp_path / "release.pub.pem").told


def test_making_a_key_and_signing_is_one_command_too(cli, monitor: Path, tmp_path: Path) -> None:
    assert cli("sign", monitor, "--new-key", tmp_path / "k").code == 0
    assert cli("watch", monitor, "-", "--trust", tmp_path / "k.pub.pem", stdin="").code == 0
    again = cli("sign", monitor, "--new-key", tmp_path / "k")
    assert again.code == 2 and "never overwritten" in again.told


@pytest.mark.parametrize("given", [[], ["MONITOR"], ["MONITOR", "--key", "a", "--new-key", "b"]])
def test_too_little_or_too_much_is_said(given: list[str], cli, monitor: Path) -> None:
    said = cli("sign", *(str(monitor) if one == "MONITOR" else one for one in given))
    assert said.code == 2 and ("give one of them" in said.told or "name a bundle and your key" in said.told)


def test_trust_without_a_monitor_is_refused(cli, tmp_path: Path) -> None:
    pair = new_key(tmp_path / "key")
    (tmp_path / "runs.json").write_text("[]")
    assert (
        "name one with --monitor" in cli("audit", tmp_path / "runs.json", "--trust", pair.public, "--model", "m").told
    )
    assert "only of bundles a signature can be asked for" in cli("info", "openai_chat", "--trust", pair.public).told


def test_info_says_what_is_known_of_an_unsigned_monitor(cli, monitor: Path) -> None:
    assert "none: unchanged since it was written, by whoever that was" in cli("info", monitor).told
