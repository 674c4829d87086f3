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
from model_server import model_server, says

import prefixguard
from prefixguard.cli.app import app
from prefixguard.cli.reference import reference

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {page.name: page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md"))}
DOCUMENTS = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
    *(f"docs/{name}" for name in PAGES),
]


def commands_of(text: str) -> list[str]:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    shell = [block for language, block in blocks if language in ("", "bash")]
    return [line.strip() for block in shell for line in block.splitlines() if line.strip()]


def examples() -> list[str]:
    group: Any = typer.main.get_command(app)
    helps = [group.help, *(group.get_command(None, name).help for name in group.list_commands(None))]
    return [line.strip() for text in helps for line in text.splitlines() if line.startswith("    ")]


def parsed(line: str) -> None:
    """Parse the prefixguard part of a shell line as the command line would, without running it."""
    words = shlex.split(line, comments=True)
    while "prefixguard" in words:
        rest = words[words.index("prefixguard") + 1 :]
        end = next((i for i, word in enumerate(rest) if word in ("|", ">")), len(rest))
        name, *arguments = rest[:end]
        group: Any = typer.main.get_command(app)
        group.get_command(None, name).make_context(name, arguments).close()
        words = rest


@pytest.mark.parametrize("line", [line for text in [README, *PAGES.values()] for line in commands_of(text)])
def test_commands_in_documents_parse(line: str) -> None:
    if "prefixguard " in line:
        parsed(line)


@pytest.mark.parametrize("line", [line for line in examples() if "prefixguard " in line])
def test_commands_in_help_parse(line: str) -> None:
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


def snippet_of(name: str, bundle: Path) -> str:
    """The program in the documents that has this name in it, with this bundle."""
    programs = re.findall(r"```python\n(.*?)```", "\n".join([README, PAGES["auditor.md"]]), re.DOTALL)
    (found,) = (text for text in programs if name in text)
    said, n = re.subn(r'"monitors/\w+"', repr(str(bundle)), found)
    assert n == 1
    return str(said)


@pytest.fixture
def alarming(lab_bundle: Path, lab_file: Path) -> list[Any]:
    """Events of a run that raises an alarm."""
    alarmed = next(
        scored.run.run_id
        for scored in prefixguard.score(lab_bundle, lab_file)
        if any(reading.level == "ALARM" for reading in scored.readings)
    )
    run = next(run for run in map(json.loads, lab_file.read_text().splitlines()) if run["run_id"] == alarmed)
    return list(run["messages"])


def test_the_snippet_runs(
    lab_bundle: Path, alarming: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "embed.py"
    program.write_text(snippet_of("prefixguard.load", lab_bundle), encoding="utf-8")
    runpy.run_path(str(program), init_globals={"events": alarming})
    assert re.search(r"^step \d+: \d+%", capsys.readouterr().out)


def test_the_snippet_of_the_escalation_tier_runs(lab_bundle: Path, alarming: list[Any], tmp_path: Path) -> None:
    told: list[str] = []
    with model_server(says('<think>x</think><answer>{"answer": "SAFE"}</answer>')) as server:
        text = snippet_of("Escalator", lab_bundle)
        assert "http://localhost:8000/v1" in text
        program = tmp_path / "escalate.py"
        program.write_text(text.replace("http://localhost:8000/v1", server.url), encoding="utf-8")
        made = runpy.run_path(str(program), init_globals={"events": alarming, "tell_the_agent": told.append})
        assert server.requests
    counts = made["escalator"].counts
    assert counts.pending == 0 and counts.offered == counts.answered + counts.n_dropped > 0
    assert told and told[0].startswith("Automatic check after step ")


def test_the_snippet_of_an_audit_runs(
    lab_bundle: Path, lab_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = snippet_of("audit_report", lab_bundle).replace('"labelled.jsonl"', repr(str(lab_file)))
    program = tmp_path / "audit.py"
    program.write_text(text.replace('"audit"', repr(str(tmp_path / "audit"))), encoding="utf-8")
    runpy.run_path(str(program))
    assert "audited runs of" in capsys.readouterr().out
    assert (tmp_path / "audit" / "verdicts.jsonl").is_file()


def test_fields_of_a_reading_are_explained() -> None:
    from dataclasses import fields

    section = README.partition("## What a reading means")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", section))
    assert {field.name for field in fields(prefixguard.Reading)} - named == set()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    for target, _, place in re.findall(r"\]\(([^)#]*)(#([^)]+))?\)", text):
        file = (ROOT / document).parent / target if target else ROOT / document
        assert target.startswith("https://") or file.exists(), target
        if place and not target.startswith("https://"):
            heads = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert place in {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}, (
                f"{target}#{place}"
            )


def test_accuracy_has_its_place() -> None:
    assert README.count("<!-- accuracy:begin -->") == README.count("<!-- accuracy:end -->") == 1
    assert "says nothing" in README and len(README.splitlines()) <= 250


def test_figures_of_the_readme_are_those_of_the_benchmarks() -> None:
    """Each backend's row holds the means over folds that the benchmark gives, set by set."""
    table = README.partition("<!-- accuracy:begin -->")[2].partition("<!-- accuracy:end -->")[0]
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")
    ]
    rows = {name: figures for name, *figures in lines}
    named = {
        "always the same risk": ("constant", "auprc"),
        "a clock: the step number": ("step index", "auprc"),
        "outcome of `gru`, AUROC at equal steps passed": ("gru", "idx_outcome"),
        "its skill over a fitted clock": ("gru", "skill_outcome"),
        **{name: (name.strip("`"), "auprc") for name in rows if name.startswith("`")},
    }
    assert named.keys() <= rows.keys() and len(named) == 9
    for place, name_of_set in enumerate(rows[""]):
        found = json.loads((ROOT / "benchmarks" / "results" / f"accuracy-{name_of_set}.json").read_text("utf-8"))[
            "rows"
        ]
        for name, (row, figure) in named.items():
            assert rows[name][place] == f"{found[row][figure]['value']:.3f}", f"{name} on {name_of_set}"


def test_the_figures_of_automata_over_behaviours_are_those_of_the_benchmark() -> None:
    measured = (ROOT / "benchmarks" / "results" / "automata_behaviours.md").read_text(encoding="utf-8")
    summary = measured.partition("\n\n")[2].partition("\n\nMeans over task folds")[0]
    said = (ROOT / "docs" / "automata.md").read_text(encoding="utf-8")
    assert said.partition("<!-- measured:begin -->\n")[2].partition("\n<!-- measured:end -->")[0] == summary
    assert summary.count("\n| ") == 6 and "Missed: " in summary
    shares = [int(share) for share in re.findall(r"\| (\d+) % /", summary)]
    assert f"between {min(shares)} % and {max(shares)} % of its teacher's AUPRC" in README
    held = [row.rsplit("|", 2)[1].split(" / ")[0].strip() for row in summary.splitlines() if " % / " in row]
    assert f"hold in {float(min(held)):.0%} to {float(max(held)):.0%}".replace("%", " %") in said


def test_the_figures_of_recorded_runs_are_those_of_the_benchmark() -> None:
    results = ROOT / "benchmarks" / "results"
    found = json.loads((results / "factory_worlds.json").read_text(encoding="utf-8"))
    runs, read = found["tau2"], found["reader"]
    said = (ROOT / "docs" / "factory.md").read_text(encoding="utf-8")
    said = " ".join(said.partition("<!-- worlds:begin -->")[2].partition("<!-- worlds:end -->")[0].split())
    won, lost = (runs[f"recorded {one}, environment says {one}"] for one in ("success", "failure"))
    losing, same, near = runs["losing write"], read["the same step"], read["at most one step away"]
    assert said == (
        f"Of {runs['runs']} real retail runs {runs['drift']} drift, {runs['agree with their record']} agree with their "
        f"record ({won} won, {lost} lost), and {losing} of the {lost} get a losing write. A reader of "
        f"{read['runs read']} of these {losing} named the losing write in {same} and a step at most one away in "
        f"{near}, never a later one; the farthest was {read['most steps away']} steps before it. The first write of a "
        f"run is the losing one in {runs['of those the first write of the run']} of the {losing}, since most runs have "
        "few."
    )
    assert read["later"] == 0 and losing + runs["no write loses (an omission)"] == lost
    page = (results / "factory_worlds.md").read_text(encoding="utf-8")
    assert all(f"| {name} | {count} |" in page for part in found.values() for name, count in part.items())


def test_the_figures_of_tiny_auditors_are_those_of_the_benchmark() -> None:
    measured = (ROOT / "benchmarks" / "results" / "factory_training.md").read_text(encoding="utf-8")
    summary = measured.partition("\n\n")[2].partition("\n\n## Ablations")[0]
    said = (ROOT / "docs" / "factory.md").read_text(encoding="utf-8")
    assert said.partition("<!-- measured:begin -->\n")[2].partition("\n<!-- measured:end -->")[0] == summary
    assert summary.count("\n| ") == 7 and "Missed: " in summary


def test_the_changelog_knows_this_version() -> None:
    assert f"## [{prefixguard.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_shipped_adapters_are_named() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert all(name in changelog for name in prefixguard.list_adapters())
    assert "Thirty-seven" in README and len(prefixguard.list_adapters()) == 37


def test_the_reference_is_true() -> None:
    written = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert written == reference(), "run: python -m prefixguard.cli.reference > docs/cli.md"
