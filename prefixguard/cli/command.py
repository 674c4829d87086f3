"""A command made of public functions: their parameters are its options, with their defaults and their words."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from prefixguard.cli.console import say, write_json
from prefixguard.cli.signatures import REQUIRED, FunctionParameter, own_parameters, parameters_of
from prefixguard.errors import ConfigError

#: What a parameter is on every command line whose function says nothing else of it.
WORDS = {
    "monitor": "Folder of the monitor's bundle.",
    "runs": "File, folder, glob or tar of runs, or - for standard input.",
    "labels": "Outcomes beside the runs: run_id,outcome[,task_id] as .jsonl or .csv.",
    "adapter": "The adapter that is meant; refused unless the monitor was trained through it.",
    "strict": "Stop at the first run that cannot be read.",
    "all": "Count runs of tasks that a monitor was made from too; the result is marked IN SAMPLE.",
    "group_by": "Group within which runs are compared: agent, model, file ...",
    "base_url": "Where the model is: any server that speaks chat completions.",
    "resamples": "Bootstrap resamples over tasks, for the intervals.",
    "trust": "A public key (PEM): the monitor must be signed with it, else nothing of it is opened. May be repeated.",
    "mask": "Mask likely secrets (keys, passwords, cards, e-mail) in what is sent.",
    "overwrite": "Replace what is there.",
}
READ_ADAPTER = "How runs are read: a shipped adapter's name, or the path of a .json."
#: Parameters that are paths and patterns, kept as they are typed; other paths are paths.
_AS_TYPED = {"runs", "samples", "adapter", "thing", "base_url"}
_OPTION = type(typer.Option())
_PLAIN = frozenset(
    {"str", "os", "PathLike", "Path", "int", "float", "bool", "None", "list", "Iterable", "Sequence", "Mapping"}
    | {"Adapter", "Monitor", "Run", "StepRecord", "Source", "Trust", "Key"}
)
#: Least and most of numbers, of which a wrong one is refused with how the command is used.
_RANGES = {"folds": (2, None), "at_once": (1, 64), "rounds": (1, 20)}
_RANGES |= dict.fromkeys(
    ("repeats", "most", "sample", "workers", "confirm", "limit", "steps", "reply_tokens"), (1, None)
)
#: Options that are not named as their parameters.
_SPELLED = {
    "hints": ("--hint",), "fragments": ("--fragment",), "kinds": ("--kind",), "as_json": ("--json",),
    "new_key_name": ("--new-key",), "yes": ("--yes", "-y"), "from_monitor": ("--from",),
}  # fmt: skip
#: What a value KEY=VALUE may look like.
_EXAMPLES = {
    "--hint": "outcome=$.result.ok",
    "--kind": "wrong_value=FM-2.6",
    "--waive": "result=the tool says so live, too",
}


@dataclass(frozen=True, slots=True)
class Older:
    """An option of the release before, which works in this one and warns.

    instead : what is typed now: an option of the same command, or "prefixguard COMMAND --OPTION".
    warns : whether it warns itself, or goes with another older option that does.
    """

    instead: str
    kind: str = "str | None"
    default: Any = None
    warns: bool = True

    def parameter(self, name: str) -> FunctionParameter:
        """It as a parameter of the command."""
        return FunctionParameter(name, self.kind, self.default, f"Older, for this release only; now: {self.instead}.")


@dataclass(frozen=True, slots=True)
class Twin:
    """A command, as `typer` takes it, and what it is made of.

    functions : public name to the parameters that are options; empty for all that can be typed.
    """

    functions: Mapping[str, tuple[str, ...]]
    callback: Callable[..., None]


def command(
    functions: Mapping[str, str] | str,
    *,
    json: str = "",
    arguments: str | None = None,
    words: Mapping[str, str] | None = None,
    panels: Mapping[str, str] | None = None,
    optional: Collection[str] = (),
    also: Callable[..., Any] | None = None,
    older: Mapping[str, Older] | None = None,
) -> Callable[[Callable[..., Any]], Twin]:
    """Make a command of a function that calls the public one. It takes what was typed by name; its docstring is the
    help; its parameters with a default are options of the command alone, which stand in the docstring's field list.

    functions : a public function; or names of functions and config dataclasses, each with the parameters taken of it.
    json : the help of --json; where it is "", there is no such option. What the function gives back is shown.
    arguments : parameters that are typed by place; None for those that the public function takes by place.
    words : help instead of the docstring's.
    panels : headings in the help.
    optional : parameters that are None where they are not typed, whatever their default.
    also : another function that has options of the command alone.
    older : options of the release before.
    """
    wanted = {functions: ""} if isinstance(functions, str) else functions
    taken = {name: tuple(fields.split()) for name, fields in wanted.items()}
    older = older or {}

    def make(run: Callable[..., Any]) -> Twin:
        own, help_text = own_parameters(run)
        if also is not None:
            own = own_parameters(also)[0] | own
        found: dict[str, FunctionParameter] = {}
        for name, fields in taken.items():
            for field, parameter in parameters_of(name).items():
                if "Monitor" in parameter.kind:
                    own.setdefault("trust", FunctionParameter("trust", "Trust | None", None))
                if field not in found and (not fields or field in fields):
                    found[field] = parameter
        for name, parameter in own.items():
            there = found.get(name, parameter)
            found[name] = replace(parameter, text=parameter.text or there.text, by_place=there.by_place)
        if json:
            found["as_json"] = FunctionParameter("as_json", "bool", False, json)
        found |= {name: one.parameter(name) for name, one in older.items()}
        options = []
        for name, parameter in found.items():
            by_place = parameter.by_place if arguments is None else name in arguments.split()
            text = (words or {}).get(name) or parameter.text or WORDS.get(name, "")
            chosen = replace(parameter, text=text, by_place=by_place)
            if name in optional:
                chosen = replace(chosen, default=None, kind=f"{parameter.kind} | None")
            if option := _option(chosen, (panels or {}).get(name), older.get(name)):
                options.append(option)
        listens = "as_json" in inspect.signature(run).parameters

        def callback(**given: Any) -> None:
            _take_older(given, older)
            values = {name: _read(found[name], value) for name, value in given.items() if name != "as_json"}
            as_json = given.get("as_json", False)
            show(run(**values, **({"as_json": as_json} if listens else {})), as_json=as_json)

        callback.__doc__ = help_text
        options.sort(key=lambda p: isinstance(p.annotation.__metadata__[0], _OPTION))
        callback.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
        return Twin(taken, callback)

    return make


def show(found: Any, *, as_json: bool) -> None:
    """A result on standard error for people, or as JSON on standard output; None is nothing to show."""
    if found is not None and as_json:
        write_json(found.as_json())
    elif found is not None:
        say(found.to_text())


def pairs_of(given: list[str] | None, option: str) -> dict[str, str]:
    """KEY=VALUE, as often as it was said. ConfigError for what is none."""
    pairs = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not key.strip() or not equals or not value.strip():
            raise ConfigError(f"{option} {text!r}: KEY=VALUE is needed, such as {option} '{_EXAMPLES[option]}'.")
        pairs[key.strip()] = value.strip()
    return pairs


def numbers_of(text: str, option: str = "--seeds") -> tuple[int, ...]:
    """Whole numbers by comma. ConfigError for what is none."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as exc:
        raise ConfigError(f"{option} {text!r}: give whole numbers, by comma, such as 13,14,15.") from exc


def _kind_of(parameter: FunctionParameter) -> Any:
    """What is typed for it; None for what nobody can type, such as a listener."""
    kind = parameter.kind
    if literal := re.match(r"Literal\[.*\]", kind):
        return str if literal[0] == kind else None
    words = set(re.findall(r"\w+", kind))
    if not words or not words <= _PLAIN:
        return None
    many = words & {"Mapping", "Trust"} or re.search(r"(list|Sequence|Iterable)\[(str|Path|Monitor)", kind)
    if many:
        found: Any = list[Path] if words & {"Trust", "Monitor", "Path"} else list[str]
        return found if parameter.default is REQUIRED else found | None
    plain: Any = next((one for one in (bool, int, float) if one.__name__ in words), str)
    if "Sequence" in words and plain is int:
        plain = str  # numbers by comma
    elif words & {"Path", "PathLike", "Key"} and parameter.name not in _AS_TYPED:
        plain = Path
    return plain | None if "None" in words else plain


def _read(parameter: FunctionParameter, value: Any) -> Any:
    """What was typed as the function takes it; nothing typed, of what may come several times, is None."""
    if "Mapping" in parameter.kind:
        return pairs_of(value, _SPELLED.get(parameter.name, (f"--{parameter.name}",))[0])
    if "Sequence[int]" in parameter.kind:
        return numbers_of(value, f"--{parameter.name}")
    return None if value == [] else value


def _option(parameter: FunctionParameter, panel: str | None, older: Older | None) -> inspect.Parameter | None:
    """The parameter as `typer` reads it; None where nobody can type it."""
    name, default, kind = parameter.name, parameter.default, _kind_of(parameter)
    if kind is None:
        return None
    if "Sequence[int]" in parameter.kind:
        default = ",".join(map(str, default))
    elif kind in (Path, Path | None) and isinstance(default, str):
        default = Path(default)
    if parameter.by_place:
        info: Any = typer.Argument(help=parameter.text, show_default=default is not None)
    else:
        spelled = _SPELLED.get(name, (f"--{name.replace('_', '-')}",))
        if kind in (bool, bool | None) and default is not False:
            spelled = (f"{spelled[0]}/--no-{spelled[0][2:]}",)
        info = typer.Option(*spelled, help=parameter.text, rich_help_panel=panel)
        if older is not None:
            info.rich_help_panel, info.hidden = "Older options", older.instead.startswith("--")
        else:
            info.min, info.max = _RANGES.get(name, (None, None))
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is REQUIRED else default,
        annotation=Annotated[kind, info],
    )


def _take_older(given: dict[str, Any], older: Mapping[str, Older]) -> None:
    """Warn of options of the release before; one that has a new name becomes it."""
    for name, one in older.items():
        is_given = given[name] != one.default
        if is_given and one.warns:
            say(f"warning: --{name.replace('_', '-')} works in this release only; now: {one.instead}")
        if one.instead.startswith("--"):
            value = given.pop(name)
            if is_given:
                given[one.instead.removeprefix("--").replace("-", "_")] = value
