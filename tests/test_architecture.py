"""Who may import whom. The rooms stand in one order; a room imports only rooms before it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "prefixguard"
PRODUCTION = (
    "distribution", "errors", "store", "trace", "stepview", "encoder", "context", "behaviours", "alarm", "bundle",
    "runtime", "escalate", "integrations", "hook",
)  # fmt: skip
WORKSHOP = (
    "results", "lexicon", "metrics", "learn", "automata", "evaluation", "auditor", "induce", "simulation", "factory",
    "lab", "cli",
)  # fmt: skip
ORDER = {room: place for place, room in enumerate(PRODUCTION + WORKSHOP)}
RUN_TIME_PACKAGES = {"numpy", "onnxruntime", "re2", "orjson"}
ON_DEMAND = {  # optional: signatures, an endpoint, parquet, zstd, frameworks that are watched, receivers of readings
    "bundle": {"cryptography"}, "escalate": {"openai"}, "stepview": {"backports", "pyarrow"},
    "integrations": {
        "agents", "autogen_core", "claude_agent_sdk", "crewai", "google", "inspect_ai", "langchain", "langchain_core",
        "langgraph", "llama_index", "pydantic_ai", "smolagents", "opentelemetry", "prometheus_client",
    },
}  # fmt: skip
VENDORED_FOR = {"learn": "torch", "automata": "AALpy", "cli": "typer and rich"}


def imports_of(tree: ast.Module) -> Iterator[tuple[str, bool, int]]:
    """Every import of a file: dotted name of what is imported, whether inside a function, line."""
    inside = {
        child
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node in inside, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names if module == "prefixguard" else node.names[:1]:
                name = f"{module}.{alias.name}" if module == "prefixguard" else module
                yield name, node in inside, node.lineno


def complaints(room: str, where: str, source: str) -> list[str]:
    """What is wrong with the imports of one file of `room`, a sentence each."""
    found = []
    for name, inside, line in imports_of(ast.parse(source)):
        place, (top, *rest) = f"{where}:{line}", name.split(".")
        on_demand = ON_DEMAND.get(room, set()) if inside else set()
        if not top:
            found.append(f"{place} imports {name} relatively. Write the full name, prefixguard.{room}...")
        elif top == "prefixguard":
            target = rest[0] if rest else ""
            if target not in ORDER:
                found.append(f"{place} imports {name}, which is no room. Import from the room that has it.")
            elif ORDER[target] > ORDER[room]:
                why = f": every agent would need {VENDORED_FOR[target]}" if target in VENDORED_FOR else ""
                if room in WORKSHOP or target not in WORKSHOP:
                    why = f", which comes after {room}"
                found.append(f"{where} imports {target}{why}. Move what it needs into {room} or a room before it.")
            elif target == room and inside and room != "cli":
                found.append(f"{place} imports {name} inside a function. Break the circle between the two files.")
        elif room in PRODUCTION and top not in RUN_TIME_PACKAGES | sys.stdlib_module_names | on_demand:
            found.append(f"{place} imports {top}: every agent would need it. Move what needs it out of {room}.")
    return found


@pytest.mark.parametrize("room", ORDER)
def test_a_room_imports_only_rooms_before_it(room: str) -> None:
    files = sorted((ROOT / room).rglob("*.py")) or [ROOT / f"{room}.py"]
    wrong = []
    for file in files:
        if file.exists():  # rooms that are not built yet
            wrong += complaints(room, file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8"))
    assert not wrong, "\n".join(wrong)


def test_every_folder_is_a_room() -> None:
    there = {path.stem for path in ROOT.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert there - {"__init__", "__main__", "__pycache__"} <= set(ORDER), (
        "a new room needs its place in the order above"
    )


@pytest.mark.parametrize(
    ("room", "source", "sentence"),
    [
        (
            "runtime",
            "from prefixguard.learn import train",
            "runtime/x.py imports learn: every agent would need torch. Move what it needs into runtime or a room"
            " before it.",
        ),
        (
            "runtime",
            "def f():\n    import prefixguard.automata",
            "runtime/x.py imports automata: every agent would need AALpy. Move what it needs into runtime or a room"
            " before it.",
        ),
        (
            "trace",
            "import prefixguard.stepview",
            "trace/x.py imports stepview, which comes after trace. Move what it needs into trace or a room before it.",
        ),
        (
            "learn",
            "from prefixguard.evaluation import evaluate",
            "learn/x.py imports evaluation, which comes after learn. Move what it needs into learn or a room before"
            " it.",
        ),
        (
            "bundle",
            "import scipy.special",
            "bundle/x.py:1 imports scipy: every agent would need it. Move what needs it out of bundle.",
        ),
        (
            "stepview",
            "def f():\n    from prefixguard.stepview.paths import Path",
            "stepview/x.py:2 imports prefixguard.stepview.paths inside a function. Break the circle between the two"
            " files.",
        ),
        (
            "stepview",
            "from . import paths",
            "stepview/x.py:1 imports . relatively. Write the full name, prefixguard.stepview...",
        ),
        ("runtime", "import prefixguard", "runtime/x.py:1 imports prefixguard, which is no room. Import from the room"),
        (
            "alarm",
            "from prefixguard import trace, cli",
            "alarm/x.py imports cli: every agent would need typer and rich.",
        ),
    ],
)
def test_a_wrong_import_is_told_in_a_sentence(room: str, source: str, sentence: str) -> None:
    (said,) = complaints(room, f"{room}/x.py", source)
    assert said.startswith(sentence)


def test_right_imports_pass() -> None:
    source = "import json\nimport numpy as np\nfrom prefixguard.trace import Run\nfrom prefixguard.bundle import layout"
    assert complaints("runtime", "runtime/x.py", source + "\nfrom prefixguard import context, alarm") == []
    assert complaints("escalate", "escalate/x.py", "def ask():\n    import openai") == []
    assert len(complaints("escalate", "escalate/x.py", "import openai")) == 1


def test_no_module_stands_at_the_top() -> None:
    assert sorted(path.name for path in ROOT.parent.glob("*.py")) == []


def test_a_name_of_a_class_stands_for_one_class() -> None:
    """So that a search finds it. Left out: names for one file, and the offline engine's own."""
    found: dict[str, list[str]] = {}
    for file in sorted(ROOT.rglob("*.py")):
        where = file.relative_to(ROOT).as_posix()
        classes = [node.name for node in ast.parse(file.read_text("utf-8")).body if isinstance(node, ast.ClassDef)]
        for name in classes if not where.startswith("induce/") else ():
            if not name.startswith("_"):
                found.setdefault(name, []).append(where)
    assert not {name: files for name, files in found.items() if len(files) > 1}, "rename all but one"
