"""`prefixguard hook claude-code`: the command that Claude Code runs at every hook.

Each hook is a process of its own, and what judges a step takes far longer to import than to use. So the command hands
the payload to a worker, one for each state folder, which it begins where there is none, and prints what that answers.
The worker keeps every run in the folder after each hook, and leaves when it was idle for a while; the next one goes on
from there. Whatever fails, the command leaves with 0 and says nothing to Claude: the reason goes to standard error and
into `problems.jsonl` of the folder.

This module imports little of the standard library, and nothing else.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any

import prefixguard.distribution  # noqa: F401, says what to do where another package of this name is around it

#: Seconds that a hook waits for a worker to begin, and for its answer; and between two tries after it has failed.
_BEGINS, _ANSWERS, _AGAIN = 15.0, 5.0, 60.0
_MOST_PAYLOAD, _MOST_PROBLEMS = 16 << 20, 1 << 20
#: -P: nothing of the project that Claude works on is imported.
_COMMAND = (sys.executable, "-P", "-m", "prefixguard", "hook")
_USAGE = """usage: prefixguard hook claude-code [--monitor DIR] [--record DIR] [--on-alarm nudge|stop|warn]
                                    [--state DIR] [--settings]"""
#: Hooks that are asked for in .claude/settings.json; `prefixguard.integrations.claude.EVENTS`, and the beginning.
_HOOKS = (
    "SessionStart", "UserPromptSubmit", "MessageDisplay", "PreToolUse", "PostToolUse", "PostToolUseFailure",
    "PostToolBatch", "SubagentStart", "SubagentStop", "Stop", "SessionEnd",
)  # fmt: skip


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit code: 0, but for `--settings` and `--worker` with wrong arguments."""
    try:
        options = _read(arguments)
    except ValueError as exc:
        sys.stderr.write(f"Error: prefixguard hook: {exc}\n{_USAGE}\n")
        return 2 if "--settings" in arguments or "--worker" in arguments else 0  # 2 would block Claude
    if options["settings"]:
        sys.stdout.write(json.dumps(_settings(options), indent=2) + "\n")
        return 0
    folder = options["folder"]
    try:
        _own_folder(folder)
        if options["worker"]:
            from prefixguard.integrations.claude_worker import work

            return work(options)
        payload = sys.stdin.buffer.read(_MOST_PAYLOAD + 1)
        found = json.loads(payload) if len(payload) <= _MOST_PAYLOAD else None
        if not isinstance(found, dict):
            raise OSError("the payload is no JSON object, or too large")
        answer = _ask(options, payload)
        if answer.strip() not in (b"", b"{}"):
            sys.stdout.write(answer.decode())
    except Exception as exc:
        _count(folder, exc)
    return 0


def hook_settings(
    agent: str = "claude-code",
    *,
    monitor: str | os.PathLike[str] | None = None,
    record: str | os.PathLike[str] | None = None,
    on_alarm: str = "nudge",
    state: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """What to put into .claude/settings.json, so that Claude Code runs `prefixguard hook claude-code` at its hooks.

    agent : whose hooks: claude-code.
    monitor : folder of a monitor that was trained on events; without it runs are only recorded.
    record : folder to which all runs are written, to train on.
    on_alarm : what an alarm does: nudge, stop or warn.
    state : folder in which runs are kept between two hooks; without it one in the user's folder of state.
    Raises ConfigError.
    """
    given = {"monitor": monitor, "record": record, "on_alarm": on_alarm, "state": state}
    try:
        return _settings(_read(_typed(agent, given)))
    except ValueError as exc:
        from prefixguard.errors import ConfigError

        raise ConfigError(f"prefixguard hook: {exc}.") from exc


def state_folder(agent: str = "claude-code", **given: Any) -> Path:
    """The folder in which the command keeps its state, asked for as `hook_settings` is. Raises ValueError."""
    folder: Path = _read(_typed(agent, given))["folder"]
    return folder


def _typed(agent: str, given: dict[str, Any]) -> list[str]:
    return [agent, *(f"--{name.replace('_', '-')}={os.fspath(value)}" for name, value in given.items() if value)]


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    from shlex import join

    hook = {"hooks": [{"type": "command", "command": join([*_COMMAND, *_given(options)]), "timeout": 20}]}
    return {"hooks": {name: [hook] for name in _HOOKS}}


def _read(arguments: list[str]) -> dict[str, Any]:
    """The options. Raises ValueError."""
    found: dict[str, Any] = {"monitor": None, "record": None, "on-alarm": "nudge", "state": None}
    flags: dict[str, Any] = {"settings": False, "worker": False}
    if arguments[:1] != ["claude-code"]:
        raise ValueError("say which agent: claude-code")
    rest = arguments[1:]
    while rest:
        name, has_value, value = rest.pop(0).partition("=")
        name = name.removeprefix("--")
        if name in flags and not has_value:
            flags[name] = True
        elif name in found and (has_value or rest):
            found[name] = value if has_value else rest.pop(0)
        else:
            raise ValueError(f"--{name}: no such option, or its value is missing")
    if found["on-alarm"] not in ("nudge", "stop", "warn"):
        raise ValueError(f"--on-alarm {found['on-alarm']}: say nudge, stop or warn")
    if not found["monitor"] and not found["record"]:
        raise ValueError("name a monitor, or a folder to record to: --monitor DIR, --record DIR")
    for name in ("monitor", "record", "state"):
        found[name] = os.fspath(Path(found[name]).expanduser().absolute()) if found[name] else None
    return found | flags | {"folder": _state_folder(found)}


def _state_folder(options: dict[str, Any]) -> Path:
    """One for each monitor and folder of records: a monitor that was trained anew has another."""
    from hashlib import blake2b

    users = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser()
    base = Path(options["state"] or users / "prefixguard" / "claude-code")
    try:
        written = Path(options["monitor"] or "", "manifest.json").stat().st_mtime_ns
    except OSError:
        written = 0
    asked = (sys.modules["prefixguard"].__version__, options["monitor"], options["record"], written)
    return base / blake2b(repr(asked).encode(), digest_size=8).hexdigest()


def _own_folder(folder: Path) -> None:
    """Make the folder, for its owner alone. Raises PermissionError where it is another's, or others may read it."""
    folder.mkdir(0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077 or found.st_mode & 0o170000 != 0o040000:
        raise PermissionError(f"{folder}: must be a folder of yours that nobody else can read (mode 0700)")


def _ask(options: dict[str, Any], payload: bytes) -> bytes:
    """What the worker answers; one is begun where there is none. Raises OSError where none answers in time."""
    folder, worker, ends = options["folder"], None, monotonic() + _BEGINS
    try:
        while (connection := _connect(folder)) is None:
            if worker is None:
                _refuse_failed(options)
                worker = _begin(options)
            if worker.poll() not in (None, 0) or monotonic() > ends:
                said = _said(folder) or "another worker holds the state folder's lock and does not answer"
                raise OSError(f"no worker: {said}")
            sleep(0.02)
    finally:
        if worker is not None:
            worker.returncode = 0  # it outlives this process: nobody waits for it
    connection.settimeout(_ANSWERS)
    connection.sendall(options["on-alarm"].encode() + b"\n" + payload)
    connection.shutdown(1)
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    if not parts:
        raise OSError("the worker did not answer")
    return b"".join(parts)


def _connect(folder: Path) -> Any:
    """A connection to the worker of this folder; None where none listens."""
    import _socket  # the module `socket` costs a quarter of the command's time

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        os.chdir(folder)  # the name of a socket may not be long
        connection.connect("socket")
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    return connection


def _begin(options: dict[str, Any]) -> Any:
    """A worker, which outlives this process and holds nothing of it."""
    import subprocess

    with (options["folder"] / "worker.log").open("wb") as log:
        return subprocess.Popen(
            [*_COMMAND, *_given(options), "--worker"], cwd=options["folder"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True,
        )  # fmt: skip


def _given(options: dict[str, Any]) -> list[str]:
    """The arguments that ask for the same again."""
    given = {name: options[name] for name in ("monitor", "record", "on-alarm", "state") if options[name]}
    return ["claude-code", *(part for name, value in given.items() for part in (f"--{name}", value))]


def _refuse_failed(options: dict[str, Any]) -> None:
    """OSError where there is no bundle, or a worker has failed a moment ago: not every hook tries again."""
    monitor = options["monitor"]
    if monitor and not Path(monitor, "manifest.json").exists():
        raise OSError(f"{monitor}: no bundle there")
    try:
        age = time() - (options["folder"] / "failed").stat().st_mtime
    except OSError:
        return
    if 0 <= age < _AGAIN:
        raise OSError(f"no worker: {_said(options['folder'])} (tried {age:.0f} s ago)")


def _said(folder: Path) -> str:
    """The last line that the worker wrote."""
    try:
        with (folder / "worker.log").open("rb") as log:
            lines = log.read(65536).decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1][:500] if lines else ""


def _count(folder: Path, exc: Exception) -> None:
    """Say on standard error what failed, and write it down in the state folder."""
    said = f"{type(exc).__name__}: {exc}"[:1000]
    sys.stderr.write(f"prefixguard hook: {said}. Claude goes on unwatched.\n")
    path = folder / "problems.jsonl"
    try:
        if not path.exists() or path.stat().st_size < _MOST_PROBLEMS:
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "ab", buffering=0) as file:
                file.write((json.dumps({"at": time(), "problem": said}) + "\n").encode())
    except OSError:
        pass
