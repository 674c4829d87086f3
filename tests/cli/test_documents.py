"""What the documents say can be typed: commands parse, the snippet runs, the reference is the commands' own."""

from __future__ import annotations

import json
import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

import prefixguard
from prefixguard.cli.app import app
from prefixguard.cli.reference import reference

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def commands_of(text: str) -> list[str]:
    blocks = re.findall(r"```(?:bash)?\n(.*?)```", text, re.DOTALL)
    return [line.strip() for block in blocks for line in block.splitlines() if line.strip()]


def examples() -> list[str]:
    group: Any = typer.main.get_command(app)
    helps = [group.help, *(command.help for command in group.commands.values())]
    return [line.strip() for text in helps for line in text.splitlines() if line.startswith("    ")]


def parsed(line: str) -> None:
    """Parse the prefixguard part of a shell line as the command line would, without running it."""
    words = shlex.split(line, comments=True)
    while "prefixguard" in words:
        rest = words[words.index("prefixguard") + 1 :]
        end = next((i for i, word in enumerate(rest) if word in ("|", ">")), len(rest))
        name, *arguments = rest[:end]
        group: Any = typer.main.get_command(app)
        group.commands[name].make_context(name, arguments).close()
        words = rest


@pytest.mark.parametrize("line", [line for line in commands_of(README) + examples() if "prefixguard " in line])
def test_commands_in_readme_and_help_parse(line: str) -> None:
    parsed(line)


def test_this_test_can_fail() -> None:
    with pytest.raises(Exception, match="--adaptor"):
        parsed("cat x | prefixguard parse x --adaptor openai_chat")
    assert len([line for line in commands_of(README) if line.startswith("prefixguard ")]) >= 8


def test_the_first_screen_is_make_demo_and_make_test() -> None:
    assert commands_of(README)[0].startswith("make demo") and commands_of(README)[1].startswith("make test")
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^demo:", targets, re.MULTILINE) and re.search(r"^test:", targets, re.MULTILINE)
    assert README.index("make demo") < README.index("prefixguard parse")


def test_the_snippet_runs(lab_bundle: Path, lab_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (snippet,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert '"monitors/mine"' in snippet
    snippet = snippet.replace('"monitors/mine"', repr(str(lab_bundle)))
    alarmed = next(
        scored.run.run_id
        for scored in prefixguard.score(lab_bundle, lab_file)
        if any(reading.level == "ALARM" for reading in scored.readings)
    )
    run = next(run for run in map(json.loads, lab_file.read_text().splitlines()) if run["run_id"] == alarmed)
    program = tmp_path / "embed.py"
    program.write_text(snippet, encoding="utf-8")
    runpy.run_path(str(program), init_globals={"events": run["messages"]})
    assert re.search(r"^step \d+: \d+%", capsys.readouterr().out)


def test_fields_of_a_reading_are_explained() -> None:
    from dataclasses import fields

    section = README.partition("## What a reading means")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", section))
    assert {field.name for field in fields(prefixguard.Reading)} - named == set()


@pytest.mark.parametrize("document", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_accuracy_has_its_place() -> None:
    assert README.count("<!-- accuracy:begin -->") == README.count("<!-- accuracy:end -->") == 1
    assert "says nothing about real agents" in README


def test_the_changelog_knows_this_version() -> None:
    assert f"## [{prefixguard.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_shipped_adapters_are_named() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert all(name in changelog for name in prefixguard.list_adapters())
    assert "Thirty-one" in README and len(prefixguard.list_adapters()) == 31


def test_the_reference_is_true() -> None:
    written = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert written == reference(), "run: python -m prefixguard.cli.reference > docs/cli.md"
