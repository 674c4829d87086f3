"""What a public function says of its parameters, read from its source and nothing run: help never waits for torch, and
works where torch is not installed."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

#: The default of a parameter that must be given.
REQUIRED = ...
_PACKAGE = Path(__file__).parents[1]
#: A field of a docstring's list: names, a colon between blanks, and what they mean, on lines that are indented further.
_FIELD = re.compile(r"^(\w+(?:, \w+)*) : (.+(?:\n +.+)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FunctionParameter:
    """A parameter of a function, or a field of a dataclass.

    kind : its annotation, as it is written.
    default : its value, `REQUIRED` without one, None for what is no plain value.
    text : what the docstring's field list says of it; "" where that says nothing.
    by_place : whether it may be given without its name.
    """

    name: str
    kind: str
    default: Any
    text: str = ""
    by_place: bool = False


@cache
def parameters_of(name: str) -> dict[str, FunctionParameter]:
    """The parameters of a public function or dataclass, in their order. name : as in `prefixguard`, such as "train",
    or with its room, such as "factory.build"."""
    room, _, function = name.rpartition(".")
    module, node = _definition(f"prefixguard.{room}" if room else "prefixguard", function)
    if isinstance(node, ast.Assign):
        raise LookupError(f"{name} is a constant")
    texts = _fields(ast.get_docstring(node) or "")
    rows: list[tuple[str, ast.expr | None, ast.expr | None, bool]]
    if isinstance(node, ast.ClassDef):
        rows = [
            (line.target.id, line.annotation, line.value, False)
            for line in node.body
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        ]
    else:
        names = [*node.args.args, *node.args.kwonlyargs]
        first = len(node.args.args) - len(node.args.defaults)
        values = [*[None] * first, *node.args.defaults, *node.args.kw_defaults]
        by_place = len(node.args.args)
        rows = [(a.arg, a.annotation, values[i], i < by_place) for i, a in enumerate(names)]
    return {
        field: FunctionParameter(
            field, "" if kind is None else ast.unparse(kind), _value(module, value), texts.get(field, ""), place
        )
        for field, kind, value, place in rows
    }


def own_parameters(run: Callable[..., Any]) -> tuple[dict[str, FunctionParameter], str]:
    """Those of a function's parameters that have a default, by name, and its docstring without the field list."""
    docstring = inspect.getdoc(run) or ""
    texts, first = _fields(docstring), _FIELD.search(docstring)
    own = {
        p.name: FunctionParameter(p.name, str(p.annotation), p.default, texts.get(p.name, ""))
        for p in inspect.signature(run).parameters.values()
        if p.default is not p.empty
    }
    return own, docstring[: first.start() if first else None].rstrip()


def _definition(module: str, name: str) -> tuple[str, ast.FunctionDef | ast.ClassDef | ast.Assign]:
    """The module that defines it, behind as many as pass it on, and where it does."""
    place = _PACKAGE.parent.joinpath(*module.split("."))
    stub = "__init__.pyi" if place == _PACKAGE else "__init__.py"
    file = place / stub if place.is_dir() else place.with_suffix(".py")
    for node in ast.parse(file.read_text("utf-8")).body:
        match node:
            case ast.FunctionDef(name=found) | ast.ClassDef(name=found) if found == name:
                return module, node
            case ast.Assign(targets=[ast.Name(id=found)]) if found == name:
                return module, node
            case ast.ImportFrom(module=str(origin), names=aliases):
                for alias in aliases:
                    if name == (alias.asname or alias.name):
                        return _definition(origin, alias.name)
    raise LookupError(f"{file} has no {name}")


def _value(module: str, node: ast.expr | None) -> Any:
    match node:
        case None:
            return REQUIRED
        case ast.Name(id=constant):
            found = _definition(module, constant)[1]
            return _value(module, found.value) if isinstance(found, ast.Assign) else None
        case ast.Call(args=[first, *_]) | ast.Call(args=[], keywords=[ast.keyword(arg="default", value=first)]):
            return _value(module, first)  # a field that is checked begins with its default
    try:
        return ast.literal_eval(node) or None if isinstance(node, ast.Dict) else ast.literal_eval(node)
    except ValueError:
        return None


def _fields(docstring: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for names, text in _FIELD.findall(docstring):
        sentence = " ".join(text.split())
        if re.match("as (at|for) `|see `", sentence):  # said elsewhere
            continue
        if re.match(r"[a-z-]+,? [\w-]", sentence):  # and no value to be typed, such as "dfa: ..."
            sentence = sentence[0].upper() + sentence[1:]
        found |= dict.fromkeys(names.split(", "), sentence)
    return found
