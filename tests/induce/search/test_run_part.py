"""The run section of a spec from small runs of many shapes, written to a folder and read back through the spec."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from prefixguard.induce.induction import SURE
from prefixguard.induce.proposal import Choice, take_first
from prefixguard.induce.samples import open_samples
from prefixguard.induce.search.evidence import Candidate, Evidence
from prefixguard.induce.search.run_part import run_part
from prefixguard.induce.search.run_rest import RunPart
from prefixguard.stepview import Adapter, read_runs

RULES = [
    {"when": {"@.role": "user"}, "emit": "observe", "observation": {"text": "@.content"}},
    {"when": {"@.role": "assistant"}, "emit": "say", "action": {"text": "@.content"}},
]


def turns(n: int, user: str = "") -> list[dict[str, Any]]:
    said = [{"role": "user", "content": user}] if user else []
    return [*said, *({"role": "assistant", "content": f"step {i} of this run"} for i in range(n))]


class Folder:
    """A folder of samples, the run part that is inferred from it, and what a spec with that part reads."""

    def __init__(
        self,
        path: Path,
        files: Mapping[str, Any],
        *,
        container: Any = None,
        events: Any = "$.messages[*]",
        rules: Any = RULES,
        hints: Mapping[str, str] | None = None,
        names: bool = True,
        ask: Callable[[Choice], int] = take_first,
    ) -> None:
        self.path, self.asked = path, list[Choice]()
        for name, value in files.items():
            file = path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        self.spec = {
            "schema": "prefixguard/adapter/v1", "name": "probe", "version": "1.0.0",
            "container": container or {"format": "json", "runs": "$[*]"}, "events": events, "rules": rules,
        }  # fmt: skip

        def asking(choice: Choice) -> int:
            self.asked.append(choice)
            return ask(choice)

        evidence = Evidence(open_samples(path), names=names)
        try:
            self.part: RunPart = run_part(Candidate(self.spec, "test"), evidence, hints=hints or {}, ask=asking)
        finally:
            evidence.close()

    def read(self) -> list[Any]:
        part = self.part
        spec = {
            **self.spec,
            **part.extra,
            "run": dict(part.run),
            "hidden": list(part.hidden),
            "waived": list(part.waived),
        }
        return list(read_runs(self.path, Adapter({**spec, "rules": [*part.rules_before, *spec["rules"]]})))

    def outcomes(self) -> str:
        """One letter a run: s, f or u."""
        return "".join(run.outcome.value[0] for run in self.read())

    def tasks(self) -> list[str | None]:
        return [run.task_id for run in self.read()]


def many(n: int, **fields: Any) -> list[dict[str, Any]]:
    """Runs with their turns; a callable field is asked with the number of the run."""
    return [
        {**{k: v(i) if callable(v) else v for k, v in fields.items()}, "messages": turns(3 + i % 4)} for i in range(n)
    ]


def test_fields_of_the_run(tmp_path: Path) -> None:
    runs = many(12, task_id=lambda i: f"t{i % 4}", reward=lambda i: float(i % 3 == 0), model="m")
    folder = Folder(tmp_path, {"a.json": runs})
    assert folder.part.run["task"] == "$.task_id" and folder.part.run["outcome"]["of"] == "$.reward"
    assert folder.outcomes() == "sff" * 4
    assert "$.reward" in folder.part.hidden and not folder.asked


@pytest.mark.parametrize("odd", ["false", None, 0.5, "missing"])
def test_what_is_no_side_stays_unknown(tmp_path: Path, odd: Any) -> None:
    runs = many(10, success=lambda i: i % 2 == 0)
    runs[3]["success"] = odd
    if odd == "missing":
        del runs[3]["success"]
    assert Folder(tmp_path, {"a.json": runs}).outcomes() == "sfsusfsfsf"


def test_what_broke_off_is_unknown_beside_verdicts_and_a_limit_is_a_failure(tmp_path: Path) -> None:
    words = ("passed", "failed", "crashed", "max_steps")
    runs = many(12, result=lambda i: words[i % 4])
    assert Folder(tmp_path, {"a.json": runs}).outcomes() == "sfuf" * 3


@pytest.mark.parametrize("beside", ["csv", "rows", "map", "lists", "jsonl"])
def test_a_table_beside_the_runs_tells_outcomes_by_their_ids(tmp_path: Path, beside: str) -> None:
    won = {f"r{i}": i % 3 == 0 for i in range(9)}
    files: dict[str, Any] = {"runs/a.json": many(9, run_id=lambda i: f"r{i}")}
    rows = [{"run": name, "verdict": "solved" if good else "failed"} for name, good in won.items()]
    match beside:
        case "csv":
            files["results.csv"] = "run,verdict\n" + "".join(f"{row['run']},{row['verdict']}\n" for row in rows[::-1])
        case "jsonl":
            files["results.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows[::-1])
        case "rows":
            files["summary.json"] = {"suite": "x", "results": rows[::-1]}
        case "map":
            files["summary.json"] = {row["run"]: {"verdict": row["verdict"]} for row in rows}
        case "lists":
            files["summary.json"] = {"n": 9, "resolved": [name for name, good in won.items() if good]}
    folder = Folder(tmp_path, files, container={"format": "json", "runs": "$[*]", "files": "runs/*.json"})
    assert folder.outcomes() == "sff" * 3


def test_a_report_for_each_run_is_found_by_the_name_of_its_file(tmp_path: Path) -> None:
    files: dict[str, Any] = {f"runs/t{i}.json": {"messages": turns(3 + i % 2)} for i in range(8)}
    files |= {f"reports/t{i}.report.json": {"resolved": i % 2 == 0} for i in range(7)}
    folder = Folder(tmp_path, files, container={"format": "json", "files": "runs/*.json"})
    assert folder.outcomes() == "sfsfsfsu"


def test_the_mark_from_which_a_score_is_a_success(tmp_path: Path) -> None:
    scores = (12, 61, 59, 88, 75, 70, 30, 60)
    runs = many(8, judge=lambda i: {"points": scores[i]})
    config = {"required_points": 60, "seed": 7}
    folder = Folder(tmp_path, {"runs/a.json": runs, "runs/config.json": config},
                    container={"format": "json", "runs": "$[*]", "files": "runs/a.json"})  # fmt: skip
    assert folder.outcomes() == "fsfsssfs"
    own = many(8, judge=lambda i: {"points": scores[i]}, required=lambda i: 60 if i % 2 else 80)
    assert Folder(tmp_path / "own", {"a.json": own}).outcomes() == "fsfsfsfs"


def test_tags_and_named_elements(tmp_path: Path) -> None:
    tags = many(8, tags=lambda i: ["team:a", f"verdict:{'pass' if i % 2 else 'fail'}", f"n:{i}"])
    assert Folder(tmp_path / "tags", {"a.json": tags}).outcomes() == "fs" * 4
    marks = many(8, feedback=lambda i: [{"key": "latency", "score": i}, {"key": "correctness", "score": i % 2}])
    folder = Folder(tmp_path / "named", {"a.json": marks})
    assert folder.outcomes() == "fs" * 4 and "[key=correctness]" in json.dumps(folder.part.run["outcome"]["of"])


def test_the_last_event_tells_and_no_record_shows_it(tmp_path: Path) -> None:
    runs = [
        {"messages": [*turns(3 + i % 3), {"role": "grader", "verdict": "pass" if i % 2 else "fail", "content": "done"}]}
        for i in range(8)
    ]
    rules = [*RULES, {"when": "else", "emit": "say", "action": {"text": "@.content"}}]
    folder = Folder(tmp_path, {"a.json": runs}, rules=rules)
    assert folder.outcomes() == "fs" * 4
    assert all(record.action != "done" for run in folder.read() for record in run.records)


def test_the_end_of_a_name_and_the_folder(tmp_path: Path) -> None:
    ends = ("ok", "ko", "err")
    files = {f"2026-03-{i:02}_{ends[i % 3]}.json": {"messages": turns(3)} for i in range(9)}
    assert Folder(tmp_path / "name", files, container="json").outcomes() == "sfu" * 3
    files = {f"{'solved' if i % 2 else 'failed'}/r{i}.json": {"messages": turns(3)} for i in range(8)}
    assert sorted(Folder(tmp_path / "folder", files, container="json").outcomes()) == list("ffffssss")


def test_a_line_of_the_text_tells_and_is_cut_from_the_events(tmp_path: Path) -> None:
    files = {
        f"r{i}.log": f"USER: fix the bug number {i} in the parser\nAGENT: I look\nAGENT: done\n"
        f"12:0{i} eval: state={'resolved' if i % 2 else 'failed'} after {i} s\n"
        for i in range(8)
    }
    folder = Folder(
        tmp_path, files, container={"format": "text", "files": "*.log"},
        events={"split": {"of": "$.text", "head": "(?P<kind>USER|AGENT):"}},
        rules=[{"when": {"@.kind": "USER"}, "emit": "observe", "observation": "@.body"},
               {"when": "else", "emit": "say", "action": "@.body"}],
    )  # fmt: skip
    assert folder.outcomes() == "fs" * 4
    assert all("state=" not in record.action for run in folder.read() for record in run.records)


# --- questions


def test_two_rewards_are_a_question_and_its_answer_is_taken(tmp_path: Path) -> None:
    runs = many(12, reward=lambda i: float(i % 2), scores=lambda i: {"reward": float(i % 3 == 0)})
    folder = Folder(tmp_path, {"a.json": runs})
    (choice,) = folder.asked
    places = [option.value["of"] for option in choice.options if option.value]
    assert choice.field == "outcome" and places == ["$.reward", "$.scores.reward"] and choice.options[-1].value is None
    other = Folder(tmp_path, {"a.json": runs}, ask=lambda choice: 1)
    assert other.part.run["outcome"]["of"] == "$.scores.reward" and other.part.choices[0].taken == 1
    none = Folder(tmp_path, {"a.json": runs}, ask=lambda choice: 2)
    assert "outcome" not in none.part.run and any("No outcome was found" in note for note in none.part.notes)


def test_two_words_that_nobody_knows_are_asked_both_ways_round(tmp_path: Path) -> None:
    runs = many(12, verdict=lambda i: ("alpha", "beta")[i % 2])
    folder = Folder(tmp_path, {"a.json": runs})
    (choice,) = folder.asked
    assert [option.value["success"] for option in choice.options if option.value] == ["alpha", "beta"]
    said = Folder(tmp_path, {"a.json": runs}, hints={"outcome": "$.verdict", "success": "beta"})
    assert said.outcomes() == "fs" * 6 and not said.asked


def test_without_any_outcome_nothing_is_guessed(tmp_path: Path) -> None:
    runs = many(12, started=lambda i: f"2026-03-03T10:{i:02}:00Z", temperature=0.2, stream=lambda i: i % 2 == 0)
    folder = Folder(tmp_path, {"a.json": runs})
    assert "outcome" not in folder.part.run and any("No outcome was found" in note for note in folder.part.notes)


def test_one_outcome_only_is_said(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"a.json": many(8, success=True)})
    assert folder.outcomes() == "s" * 8 and any("ended alike" in note for note in folder.part.notes)


def test_two_samples_are_enough_for_what_is_named(tmp_path: Path) -> None:
    assert Folder(tmp_path, {"a.json": many(2, success=lambda i: i == 0)}).outcomes() == "sf"


def test_without_names_the_values_decide(tmp_path: Path) -> None:
    runs = many(12, k1=lambda i: f"q{i % 4}", k2=lambda i: "failed" if i % 3 else "passed", k3=lambda i: i)
    assert Folder(tmp_path, {"a.json": runs}, names=False).outcomes() == "sff" * 4


@pytest.mark.parametrize(
    ("told", "is_open"),
    [([True, False], True), ([1, 0], True), (["correct", "incorrect"], False), ([1.0, 0.0], False)],
    ids=["a flag", "a bit", "words", "a score"],
)
def test_a_flag_without_a_name_that_says_anything_stays_a_question(
    tmp_path: Path, told: list[Any], is_open: bool
) -> None:
    runs = many(12, k1=lambda i: f"a{i}", k7=lambda i: told[i % 3 == 0])
    (outcome,) = (one for one in Folder(tmp_path, {"a.json": runs}).part.mapped if one.field == "outcome")
    assert (outcome.confidence < SURE) == is_open


def test_a_file_of_another_format_is_named_and_counted(tmp_path: Path) -> None:
    files = {f"r{i}.json": {"success": i % 2 == 0, "messages": turns(3)} for i in range(6)}
    folder = Folder(tmp_path, {**files, "other.json": {"colour": "red"}}, container="json")
    assert folder.outcomes() == "sfsfsf"
    assert any(
        note.startswith("1 of 7 files hold no run of this format") and "other.json" in note
        for note in folder.part.notes
    )


# --- tasks


def test_a_run_id_is_no_task_and_equal_first_words_are(tmp_path: Path) -> None:
    runs = [
        {"session_id": f"8f{i:04x}", "messages": turns(3, f"Please book a table for {i % 4} people in Porto tonight")}
        for i in range(12)
    ]
    folder = Folder(tmp_path, {"a.json": runs})
    tasks = folder.tasks()
    assert len(set(tasks)) == 4 and tasks[0] == tasks[4] != tasks[1]
    assert folder.part.run["id"] == "$.session_id"


def test_ids_that_every_domain_counts_for_itself_are_joined_with_it(tmp_path: Path) -> None:
    def asks(i: int) -> str:
        return f"Please do the {('retail', 'airline')[i % 2]} thing number {i % 6 // 2} for me"

    runs = [
        {"task_id": i % 6 // 2, "domain": ("retail", "airline")[i % 2], "messages": turns(3, asks(i))}
        for i in range(18)
    ]
    assert len(set(Folder(tmp_path, {"a.json": runs}).tasks())) == 6


def test_files_of_the_same_name_in_several_folders_are_of_one_task(tmp_path: Path) -> None:
    files = {
        f"{agent}/{task}.json": {"messages": turns(3)} for agent in ("a", "b", "c") for task in ("sort", "plot", "sum")
    }
    assert Folder(tmp_path, files, container="json").part.run["task"] == {"file": "stem"}


def test_paths_and_times_are_no_text_of_a_task(tmp_path: Path) -> None:
    runs = many(12, output_dir=lambda i: f"/home/runs/a b/c d/e f/{i % 3}", task_id=lambda i: f"t{i % 4}")
    assert Folder(tmp_path, {"a.json": runs}).part.run["task"] == "$.task_id"


def test_what_a_person_says_of_the_run_is_not_overruled(tmp_path: Path) -> None:
    runs = many(12, task_id=lambda i: f"t{i % 4}", other=lambda i: f"o{i % 3}", reward=lambda i: float(i % 2))
    whole = {"of": "$.reward", "type": "number", "success": {"lt": 1}, "failure": {"ge": 1}}
    folder = Folder(tmp_path, {"a.json": runs}, hints={"task": "$.other", "run.outcome": json.dumps(whole)})
    assert folder.part.run["task"] == "$.other" and folder.part.run["outcome"] == whole and not folder.asked
    folder = Folder(tmp_path, {"a.json": runs}, hints={"outcome": "$.nowhere"})
    assert any("was not followed: no run has a value there" in note for note in folder.part.notes)


def test_the_text_of_the_task_is_a_preamble_only_where_no_event_says_it(tmp_path: Path) -> None:
    quiet = many(6, question=lambda i: f"How many ways lead to the town number {i} of the isle?")
    assert Folder(tmp_path / "quiet", {"a.json": quiet}).part.run["preamble"] == "$.question"
    said = [{**run, "messages": turns(3, run["question"])} for run in quiet]
    folder = Folder(tmp_path / "said", {"a.json": said})
    assert "preamble" not in folder.part.run and "$.question" not in folder.part.hidden


def test_labels_of_the_mistake(tmp_path: Path) -> None:
    runs = many(8, mistake_step=lambda i: str(i % 3), mistake_agent="assistant", is_correct=lambda i: i % 2 == 0)
    labels = Folder(tmp_path, {"a.json": runs}).part.run["labels"]
    assert labels == {"mistake_step": "$.mistake_step", "step_base": 0, "mistake_agent": "$.mistake_agent"}


def test_what_a_later_attempt_adds_to_the_task_is_not_of_its_text(tmp_path: Path) -> None:
    def asks(i: int) -> str:
        more = " You have attempted this before and failed: I looked in the wrong town." if i >= 8 else ""
        return f"Which of the {i % 8} bridges of the old town is the longest one?{more}"

    folder = Folder(tmp_path, {"a.json": many(16, question=asks)})
    tasks = folder.tasks()
    assert len(set(tasks)) == 8 and tasks[:8] == tasks[8:]


def _odd(i: int) -> Any:
    """Values that no field should have, another one for every run."""
    deep: Any = "end"
    for _ in range(60):
        deep = {"a": [deep]}
    odd = (
        10**400, float("1e308"), [], [[1], {"b": 2}, "c"], {"": 1, "a'\"b": 2}, deep, "\ud800", "x" * 100_000, None,
        True, [{"key": "a]b", "score": 1}, {"key": "a]b", "score": 2}], ["a:b", "a:c", ":"],
        {str(k): k for k in range(500)},
    )  # fmt: skip
    return odd[i % len(odd)]


@pytest.mark.parametrize("name", ["reward", "task_id", "run_id", "messages_info", "mistake_step", "k"])
def test_odd_values_are_no_outcome_and_no_error(tmp_path: Path, name: str) -> None:
    runs = many(26, **{name: _odd})
    folder = Folder(
        tmp_path, {"a.json": runs, "b.json": runs, "c.csv": 'a,b\n\0,"\n', "d.json": [[[]]], "e.jsonl": "{}\n1\n"}
    )
    assert len(folder.read()) == 52 and set(folder.outcomes()) <= {"u", "s"}


@pytest.mark.parametrize(
    "told",
    [
        lambda i: {"meta": json.dumps({"grading": {"reward": float(i % 2)}})},
        lambda i: {"rewards": [0.0] * (i % 3) + [float(i % 2)]},
        lambda i: {"review": "✅" if i % 2 else "❌"},
        lambda i: {"labels": {"human": "yes" if i % 2 else "no"}},
        lambda i: {"evaluation": {"is_failure": i % 2 == 0}},
        lambda i: {"grade": {"score": 100 if i % 2 else 20 + 2 * i, "passing": 60}},
    ],
    ids=["json in a text", "last of a list", "signs", "yes and no", "named after failure", "mark inside"],
)
def test_ways_to_tell_an_outcome(tmp_path: Path, told: Callable[[int], dict[str, Any]]) -> None:
    runs = [{**told(i), "messages": turns(3 + i % 2)} for i in range(12)]
    folder = Folder(tmp_path, {"a.json": runs})
    assert folder.outcomes() == "fs" * 6
    assert [path for path in folder.part.hidden if next(iter(told(0))) in path]
