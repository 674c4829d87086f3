"""A command made of public functions: their parameters are its options, with their defaults and their words."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from prefixguard.cli.console import say, write_json
from prefixguard.cli.signatures import REQUIRED, FunctionParameter, parameters_of
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
Trusted = Annotated[list[Path] | None, typer.Option("--trust", help=WORDS["trust"], show_default=False)]
READ_ADAPTER = "How runs are read: a shipped adapter's name, or the path of a .json."
#: Parameters that are paths and patterns, kept as they are typed; other paths are paths.
_AS_TYPED = {"runs", "samples", "adapter", "thing", "base_url"}
_FLAGS = (bool, bool | None)
_OPTION = type(typer.Option())
_PLAIN = frozenset(
    {"str", "os", "PathLike", "Path", "int", "float", "bool", "None", "Iterable", "Sequence", "Mapping"}
    | {"Adapter", "Monitor", "Run", "StepRecord", "Source", "Trust", "Key"}
)
#: Least and most of numbers, of which a wrong one is refused with how the command is used.
_RANGES = {"folds": (2, None), "at_once": (1, 64), "rounds": (1, 20)}
_RANGES |= dict.fromkeys(("repeats", "most", "sample", "workers", "confirm"), (1, None))
#: Options that are not named as their parameters: typed once for every value.
_SPELLED = {"hints": "--hint"}
#: What a value KEY=VALUE may look like.
_EXAMPLES = {"--hint": "outcome=$.result.ok", "--waive": "result=the tool says so live, too"}


@dataclass(frozen=True, slots=True)
class Older:
    """An option of the release before, which works in this one and warns.

    instead : what is typed now: an option of the same command, or "prefixguard COMMAND --OPTION".
    warns : whether it warns itself, or goes with another older option that does.
    """

    instead: str
    kind: Any = str | None
    default: Any = None
    warns: bool = True


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
    older: Mapping[str, Older] | None = None,
) -> Callable[[Callable[..., Any]], Twin]:
    """Make a command of the function that does it, which takes what was typed by name; its docstring is the help.

    functions : a public function; or names of functions and config dataclasses, each with the parameters taken of it.
    json : the help of --json; where it is "", there is no such option. What the function gives back is shown.
    arguments : parameters that are typed by place; None for those that the function takes by place.
    words : help instead of the docstring's.
    panels : headings in the help. optional : parameters that are None where they are not typed, whatever their default.
    older : options of the release before.
    """
    wanted = {functions: ""} if isinstance(functions, str) else functions
    taken = {name: tuple(fields.split()) for name, fields in wanted.items()}

    def make(run: Callable[..., Any]) -> Twin:
        own = {
            p.name: p.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for p in inspect.signature(run, eval_str=True).parameters.values()
            if hasattr(p.annotation, "__metadata__")
        }
        found: dict[str, inspect.Parameter] = {}
        converters: dict[str, Callable[[Any], Any]] = {}
        for name, fields in taken.items():
            for field, parameter in parameters_of(name).items():
                kind = _kind_of(parameter)
                if kind is None or field in found or (fields and field not in fields):
                    continue
                by_place = parameter.by_place if arguments is None else field in arguments.split()
                spelling = _SPELLED.get(field, f"--{field.replace('_', '-')}")
                text = (words or {}).get(field) or parameter.text or WORDS.get(field, "")
                if field in optional:
                    parameter, kind = replace(parameter, default=None), kind | None
                found[field] = own.get(field) or _option(
                    parameter, kind, text, by_place, spelling, (panels or {}).get(field)
                )
                if field not in own and (converter := _converter(parameter, spelling)):
                    converters[field] = converter
        if any("Monitor" in parameters_of(name)[field].kind for name in taken for field in parameters_of(name)):
            found.setdefault("trust", _keyword("trust", Trusted, None))
        found |= {name: parameter for name, parameter in own.items() if name not in found}
        if json:
            found["as_json"] = _keyword("as_json", Annotated[bool, typer.Option("--json", help=json)], False)
        found |= {name: _older_option(name, one) for name, one in (older or {}).items()}

        def callback(**given: Any) -> None:
            _take_older(given, older or {})
            values = {n: converters[n](v) if n in converters else v or None if v == [] else v for n, v in given.items()}
            as_json = bool(values.get("as_json"))
            if "as_json" not in inspect.signature(run).parameters:
                values.pop("as_json", None)
            show(run(**values), as_json=as_json)

        callback.__doc__ = run.__doc__
        in_order = sorted(found.values(), key=lambda p: isinstance(p.annotation.__metadata__[0], _OPTION))
        callback.__signature__ = inspect.Signature(in_order)  # type: ignore[attr-defined]
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
    many = words & {"Mapping", "Trust"} or re.search(r"(Sequence|Iterable)\[(str|Monitor)", kind)
    if many:
        found: Any = list[Path] if words & {"Trust", "Monitor"} else list[str]
        return found if parameter.default is REQUIRED else found | None
    plain: Any = next((one for one in (bool, int, float) if one.__name__ in words), str)
    if "Sequence" in words and plain is int:
        plain = str  # numbers by comma
    elif words & {"Path", "PathLike", "Key"} and parameter.name not in _AS_TYPED:
        plain = Path
    return plain | None if "None" in words else plain


def _converter(parameter: FunctionParameter, spelling: str) -> Callable[[Any], Any] | None:
    """From what was typed to what the function takes."""
    if "Mapping" in parameter.kind:
        return partial(pairs_of, option=spelling)
    return partial(numbers_of, option=spelling) if "Sequence[int]" in parameter.kind else None


def _option(
    parameter: FunctionParameter, kind: Any, text: str, by_place: bool, spelling: str, panel: str | None
) -> inspect.Parameter:
    default = parameter.default
    if by_place:
        info: Any = typer.Argument(help=text)
    else:
        spellings = [f"{spelling}/--no-{spelling[2:]}" if default is not False else spelling] if kind in _FLAGS else []
        least, most = _RANGES.get(parameter.name, (None, None))
        info = typer.Option(*(spellings or [spelling]), help=text, rich_help_panel=panel, min=least, max=most)
    if "Sequence[int]" in parameter.kind:
        default = ",".join(map(str, default))
    elif kind in (Path, Path | None) and isinstance(default, str):
        default = Path(default)
    empty = inspect.Parameter.empty if default is REQUIRED else default
    return _keyword(parameter.name, Annotated[kind, info], empty)


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _older_option(name: str, older: Older) -> inspect.Parameter:
    word = f"--{name.replace('_', '-')}"
    spelled = f"{word}/--no-{word[2:]}" if older.default is True else word
    text = f"Older, for this release only; now: {older.instead}."
    option = typer.Option(spelled, help=text, hidden=older.instead.startswith("--"), rich_help_panel="Older options")
    return _keyword(name, Annotated[older.kind, option], older.default)


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
