"""The application: its commands, and what becomes of errors.

Exit codes: 0 done; 1 the answer is no (an alarm under --fail-on-alarm, a check that failed); 2 bad input or usage;
3 interrupted; 4 a question was left open (`induce-adapter`).
"""

from __future__ import annotations

import errno
import importlib
import sys
import traceback
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from prefixguard.cli.command import Twin
from prefixguard.cli.console import abandon_output, say, visible
from prefixguard.distribution import VERSION
from prefixguard.errors import PrefixGuardError

BAD_INPUT, INTERRUPTED = 2, 3
#: Command to the file that has it, which is imported when the command is asked for, and to its name there. Of two
#: words the first names a group.
COMMANDS = {
    "demo": "demo.show_demo",
    "check-data": "training.check_data",
    "train": "training.train",
    "evaluate": "evaluating.evaluate",
    "compare": "evaluating.compare",
    "cross-validate": "retraining.cross_validate",
    "ablate": "retraining.ablate",
    "leave-agents-out": "retraining.leave_agents_out",
    "judge": "judging.judge",
    "calibrate": "monitors.calibrate",
    "score": "monitors.score",
    "parse": "adapters.parse",
    "convert": "adapters.convert",
    "watch": "watching.watch_runs",
    "hook": "hooks.hook",
    "audit": "auditing.audit_runs",
    "export": "export.export",
    "sign": "monitors.sign",
    "induce-adapter": "induction.induce",
    "check-adapter": "adapters.check_adapter",
    "check-behaviours": "adapters.check_behaviours",
    "info": "info.show_info",
    "adapters": "adapters.adapters",
    "factory collect": "factory_runs.collect_runs",
    "factory inject": "factory_runs.inject_faults",
    "factory replay": "factory_runs.replay_failures",
    "factory import": "factory_corpus.import_set",
    "factory annotate": "factory_corpus.annotate",
    "factory build": "factory_corpus.build",
    "factory train": "factory_training.train_auditor",
    "factory evaluate": "factory_training.evaluate_auditors",
    "factory demo": "factory_training.demo_factory",
}
#: What a group of commands is for.
_GROUPS = {"factory": "Make labelled runs, and train an auditor of your own on them."}
#: What the same command does after an interruption, where something is left to go on from.
_RESUMES = {
    "train": "The same command resumes from the last epoch that was finished.",
    "demo": "The same command resumes from the last epoch that was finished.",
    **dict.fromkeys(
        ("evaluate", "cross-validate", "ablate", "leave-agents-out", "judge"),
        "Folds and replies that are there are kept; the same command goes on from there.",
    ),
    "audit": "With --out the same command goes on where it stopped.",
    "factory": "What is finished is kept, of a training its last checkpoint, if it has one; the same command goes on "
    "from there.",
}
_TRACEBACK = "PREFIXGUARD_TRACEBACK"


@cache
def twin_of(name: str) -> Twin:
    """How a command is made."""
    file, _, there = COMMANDS[name].partition(".")
    found: Twin = getattr(importlib.import_module(f"prefixguard.cli.commands.{file}"), there)
    return found


class Commands(TyperGroup):
    """The group of commands, with the one place where an error becomes a message and an exit code."""

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order of work; a group once."""
        return list(dict.fromkeys(name.partition(" ")[0] for name in COMMANDS))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command or group of that name; None where there is none, as click has it."""
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown")
        if cmd_name in _GROUPS:
            alone.callback(help=_GROUPS[cmd_name], no_args_is_help=True)(lambda: None)
        elif cmd_name not in COMMANDS:
            return None
        for name in COMMANDS:
            if name == cmd_name or name.startswith(f"{cmd_name} "):
                alone.command(name.rpartition(" ")[2], context_settings=_SETTINGS)(twin_of(name).callback)
        found = typer.main.get_command(alone)
        found.name = cmd_name.rpartition(" ")[2]
        return found

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Read the options; help and version are printed here, before any command runs."""
        try:
            return super().make_context(*args, **options)
        except Exception as exc:
            _refuse_full_disk(exc)
            _make_visible(exc)
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Errors of ours are their message; others a short one that says how to see more."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            name = ctx.invoked_subcommand
            rest = _RESUMES.get(name, "Nothing is left behind; give the same command again.")
            say(f"Interrupted. {rest}")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # whoever read our output has enough
            abandon_output()
            raise typer.Exit(INTERRUPTED) from None
        except PrefixGuardError as exc:
            _say_error(str(exc), exc, ctx)
            raise typer.Exit(BAD_INPUT) from None
        except Exception as exc:
            _refuse_full_disk(exc)
            _make_visible(exc)
            if hasattr(exc, "exit_code") or isinstance(exc, typer.Abort):
                raise  # usage errors and exits of the command line library
            _say_error(f"unexpected {type(exc).__name__}: {exc}".strip(), exc, ctx, unexpected=True)
            raise typer.Exit(BAD_INPUT) from None


def _refuse_full_disk(exc: Exception) -> None:
    """Where help or a table met a full disk behind standard output: say so and leave; otherwise nothing."""
    if isinstance(exc, OSError) and exc.errno == errno.ENOSPC:
        abandon_output()
        say(f"standard output: cannot be written ({exc.strerror}). Free space, or send it elsewhere.", error=True)
        raise typer.Exit(BAD_INPUT) from None


def _make_visible(exc: Exception) -> None:
    """The message of a usage error, which the command line library prints itself; it names what was given."""
    message = getattr(exc, "message", None)
    if isinstance(message, str):
        exc.message = visible(message)  # type: ignore[attr-defined]
    for name in ("option_name", "param_hint"):
        if isinstance(given := getattr(exc, name, None), str):
            setattr(exc, name, visible(given))


def _say_error(message: str, exc: BaseException, ctx: Any, *, unexpected: bool = False) -> None:
    if isinstance(exc, OSError):
        abandon_output()
    if ctx.params.get("show_traceback"):
        sys.stderr.write(visible("".join(traceback.format_exception(exc))))
    elif unexpected:
        command = ctx.invoked_subcommand or ""
        message += (
            f"\nThis should not happen. To see where it did: prefixguard --traceback {command} ... "
            f"(or set {_TRACEBACK}=1); please report it with that."
        )
    say(message, error=True)


_SETTINGS = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    name="prefixguard",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings=_SETTINGS,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"prefixguard {VERSION}")
        raise typer.Exit


@app.callback()
def _global(
    show_traceback: Annotated[
        bool, typer.Option("--traceback", envvar=_TRACEBACK, help="With an error, show where in the program it arose.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Compile raw runs of an LLM agent into a small monitor that says, after every step, how likely a run is to fail.

    Start with `prefixguard demo`, or, with runs of your own:

        prefixguard induce-adapter samples/
        prefixguard parse runs.jsonl --adapter openai_chat
        prefixguard check-data runs.jsonl --adapter openai_chat
        prefixguard train runs.jsonl --adapter openai_chat --out monitors/mine
        prefixguard evaluate monitors/mine runs.jsonl --report mine.html
        my-agent | prefixguard watch monitors/mine -
        prefixguard export monitors/mine runs.jsonl --to dfa
        prefixguard audit runs.jsonl --monitor monitors/mine --model gpt-4.1

    Data goes to standard output; tables, progress and messages to standard error.
    Exit codes: 0 done, 1 the answer is no, 2 bad input or usage, 3 interrupted, 4 a question is open (induce-adapter).
    """
