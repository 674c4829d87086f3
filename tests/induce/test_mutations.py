"""The program that changes samples: the same seed the same bytes, and nothing that a run says is lost."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from agreement import Reading, agree, read_truth, readings
from mutations import KINDS, LAYOUTS, Mutation, mutate

from prefixguard.stepview import load_adapter, read_runs

HERE = Path(__file__).parent
GOLDEN = HERE.parents[1] / "stepview_adapters" / "golden"
FORMATS = sorted(path.stem for path in (HERE / "truth").glob("*.jsonl"))
#: Layouts of shipped adapters, by adapter.
SHIPPED = {
    "tau_bench": "tau_bench", "tau2": "tau2", "sweagent": "sweagent", "mini_swe_agent": "minisweagent",
    "online_mind2web": "mind2web_abp", "intercode": "intercode", "whoandwhen": "whoandwhen",
    "sentinel": "sentinel",
}  # fmt: skip


def texts_of(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text(encoding="utf-8") for p in folder.rglob("*") if p.is_file()}


def of_golden(adapter: str, kind: str, target: Path, seed: int = 0) -> Mutation:
    source = GOLDEN / adapter / "runs"
    reference = readings(read_runs(source, load_adapter(adapter)), source)
    return mutate(source, target, kind, LAYOUTS[SHIPPED[adapter]], reference, seed=seed)


def of_format(name: str, kind: str, target: Path, seed: int = 0) -> Mutation:
    reference = read_truth(HERE / "truth" / f"{name}.jsonl")
    return mutate(HERE / "samples" / name, target, kind, LAYOUTS[name], reference, seed=seed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FORMATS)
def test_the_same_seed_gives_the_same_bytes_and_no_word_of_a_run_is_lost(name: str, kind: str, tmp_path: Path) -> None:
    one = of_format(name, kind, tmp_path / "one")
    assert texts_of(one.folder) == texts_of(of_format(name, kind, tmp_path / "two").folder)
    before = "\n".join(texts_of(HERE / "samples" / name).values())
    after = "\n".join(texts_of(one.folder).values())
    for run in one.reference:
        for record in run.records:
            for text in (record.result, record.action, record.observation):
                for line in text.splitlines():
                    for said in (json.dumps(line, ensure_ascii=False)[1:-1], json.dumps(line)[1:-1]):
                        assert (said in before) <= (said in after)


@pytest.mark.parametrize("kind", ["shuffle_fields", "noise_fields"])
@pytest.mark.parametrize("adapter", SHIPPED)
def test_what_only_adds_or_turns_is_read_as_before(adapter: str, kind: str, tmp_path: Path) -> None:
    done = of_golden(adapter, kind, tmp_path / "runs")
    assert done.changed
    again = readings(read_runs(done.folder, load_adapter(adapter)), done.folder)
    assert agree(again, done.reference).identical


def test_another_seed_gives_other_bytes(tmp_path: Path) -> None:
    for kind in ("rename_keys", "shuffle_fields", "noise_fields"):
        one, two = (
            of_format("autogen", kind, tmp_path / f"{kind}1"),
            of_format("autogen", kind, tmp_path / f"{kind}2", 1),
        )
        assert texts_of(one.folder) != texts_of(two.folder)


def test_renamed_keys_mean_nothing_and_arguments_keep_theirs(tmp_path: Path) -> None:
    text = "".join(texts_of(of_format("langgraph", "rename_keys", tmp_path / "runs").folder).values())
    for name in ("tool_calls", "content", "evaluation", "messages"):
        assert f'"{name}":' not in text
    assert '"include_pending":' in text
    heads = texts_of(_text_mutation("rename_keys", tmp_path / "log"))["questions.txt"]
    assert "\nThought 1:" not in heads
    assert heads.count(" 1: ") == texts_of(GOLDEN / "react_log" / "runs" / "invented")["questions.txt"].count(" 1: ")


def _text_mutation(kind: str, target: Path) -> Path:
    source = GOLDEN / "react_log" / "runs" / "invented"
    reference: list[Reading] = readings(read_runs(source, load_adapter("react_log")), source)
    return mutate(source, target, kind, LAYOUTS["reflexion"], reference).folder


def test_ids_that_join_are_gone(tmp_path: Path) -> None:
    for name, joined in (
        ("langgraph", r"call_[0-9a-f]{16}"), ("anthropic_messages", r"toolu_[0-9a-f]{20}"),
        ("openai_responses", r"call_[0-9a-f]{12}\b"), ("otel_genai", r"call_[0-9a-f]{12}\b"),
    ):  # fmt: skip
        before = "".join(texts_of(HERE / "samples" / name).values())
        after = "".join(texts_of(of_format(name, "drop_call_ids", tmp_path / name).folder).values())
        assert re.search(joined, before)
        assert not re.search(joined, after)


def test_moved_outcomes_are_told_beside_the_runs_only(tmp_path: Path) -> None:
    done = of_format("inspect", "move_outcome", tmp_path / "inspect")
    assert '"value": "C"' not in "".join(texts_of(done.folder).values())
    verdicts = [json.loads(p.read_text())["accomplished"] for p in sorted(done.folder.rglob("result.json"))]
    assert sorted(verdicts) == sorted(run.outcome == "success" for run in done.reference)
    done = of_format("anthropic_messages", "move_outcome", tmp_path / "anthropic")
    told = json.loads((done.folder / "outcomes.json").read_text())
    assert len(told["passed"]) == sum(run.outcome == "success" for run in done.reference)
    assert all((done.folder / f"{stem}.json").exists() for stem in told["passed"] + told["failed"])


def test_a_run_a_file(tmp_path: Path) -> None:
    for name in ("inspect", "smolagents", "openai_agents"):
        done = of_format(name, "split_files", tmp_path / name)
        assert len([p for p in texts_of(done.folder) if "grades" not in p]) == len(done.reference)
