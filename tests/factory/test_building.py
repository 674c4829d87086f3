"""Rows to train on: the prompts of an audit, cut at the decisive step, and nothing of what is held out."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from prefixguard.auditor import MODES, WalkProtocol, audit, verify
from prefixguard.errors import ConfigError, DataError
from prefixguard.escalate import Endpoint, LlmAuditor, Reply
from prefixguard.factory import LabelledRun, MistakeLabel, bare_run, build, write_corpus
from prefixguard.simulation import generate
from prefixguard.stepview import load_adapter, read_runs, wide_view

KINDS = {"unverified": "FM-3.2", "wrong_order": "FM-3.1", "wrong_value": "FM-2.6"}
CANARY = "canary-91c2"


def labelled(run: dict) -> LabelledRun:
    """A run of the simulation, with the label that the simulation knows."""
    faults = {one["step"]: one["kind"] for one in run["metadata"]["faults"]}
    step = run["metadata"]["mistake_step"]
    mistakes = () if step is None else (MistakeLabel(step, None, faults[step], "first_cause"),)
    source = "safe" if run["outcome"] == "success" else "replayed"
    return LabelledRun(bare_run(run), source, mistakes, run["task_id"], {"environment": "support"}, "own")


CORPUS = [labelled(run) for run in generate(80, seed=11)]
FAILED = [run for run in CORPUS if run.decisive is not None]


def rows_of(folder: Path, name: str) -> list[dict]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def built(tmp_path: Path, runs: list[LabelledRun], **options: object) -> tuple[Path, object]:
    write_corpus(tmp_path / "corpus.jsonl", runs)
    report = build([tmp_path / "corpus.jsonl"], out=tmp_path / "rows", **options)
    return tmp_path / "rows", report


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("built"), CORPUS, kinds=KINDS)[0]


class Recorder:
    """A client that keeps what it is asked and always says the same."""

    def __init__(self, said: str) -> None:
        self.endpoint, self.said, self.asked = Endpoint("recorder", "http://127.0.0.1:9/v1"), said, []

    async def ask(self, messages: object, **_: object) -> Reply:
        self.asked.append([dict(one) for one in messages])
        return Reply(
            self.said, finish="stop", refusal="", tokens_in=1, tokens_out=1, estimated=False, seconds=0.0, attempts=1
        )


def test_every_prompt_is_the_one_that_an_audit_sends(rows: Path, tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus.jsonl", CORPUS)
    client = Recorder('{"answer": "SAFE", "agent": null, "reason": "All of it is sound.", "quote": null}')
    runs = list(read_runs(tmp_path / "corpus.jsonl", wide_view(load_adapter("openai_chat"), 72_000)))
    audit(runs, WalkProtocol(LlmAuditor(client)))
    sent = {json.dumps(one) for one in client.asked}
    found = rows_of(rows, "train-verdicts") + rows_of(rows, "test-verdicts")
    assert len(found) > 60 and all(json.dumps(row["prompt"]) in sent for row in found)


def test_every_hypothesis_is_asked_as_an_audit_asks_it(rows: Path) -> None:
    found = rows_of(rows, "train-hypotheses") + rows_of(rows, "test-hypotheses")
    by_id = {run.run_id: run for run in CORPUS}
    client = Recorder('{"label": "neutral", "agents": []}')
    for name in sorted({row["run_id"] for row in found})[:10]:
        asyncio.run(verify(by_id[name].records(), client))
    sent = {json.dumps(one) for one in client.asked}
    asked = [row for row in found if row["run_id"] in sorted({row["run_id"] for row in found})[:10]]
    assert asked and all(json.dumps(row["prompt"]) in sent for row in asked)


def test_hypotheses_are_present_nearby_and_absent(rows: Path) -> None:
    by_id, near = {run.run_id: run for run in CORPUS}, {mode.code: mode.near for mode in MODES}
    found = rows_of(rows, "train-hypotheses") + rows_of(rows, "test-hypotheses")
    classes = Counter(row["class"] for row in found)
    assert classes["present"] == sum(KINDS.get(run.mistakes[0].kind) is not None for run in FAILED) > 3
    assert classes["present"] == classes["nearby"] <= classes["absent"] <= 2 * classes["present"]
    for row in found:
        modes = {KINDS.get(one.kind) for one in by_id[row["run_id"]].mistakes}
        assert (row["class"] == "present") == (row["mode"] in modes) == (row["label"] == "entail")
        assert row["class"] != "nearby" or any(row["mode"] in near[mode] for mode in modes)


def test_a_failed_run_is_cut_before_and_at_its_mistake(rows: Path) -> None:
    by_id = {run.run_id: run for run in CORPUS}
    found = rows_of(rows, "train-verdicts") + rows_of(rows, "test-verdicts")
    cuts: dict[str, dict[str, dict]] = {}
    for row in found:
        if row["class"] != "SAFE":
            cuts.setdefault(row["run_id"], {})[row["class"]] = row
    assert len(cuts) > 15
    for name, pair in cuts.items():
        step = by_id[name].decisive.step
        assert pair["BE"]["gold_step"] == pair["BE"]["n_steps"] == step and pair["BE"]["gold_agent"] == "agent"
        assert "BS" not in pair or (pair["BS"]["n_steps"], pair["BS"]["gold_step"]) == (step - 1, None)
    classes = Counter(row["class"] for row in found)
    assert abs(classes["BE"] / (classes["BE"] + classes["BS"]) - 0.5) <= 0.02
    assert Counter(r["n_steps"] for r in found if r["class"] == "SAFE") == Counter(
        r["n_steps"] for r in found if r["class"] == "BE"
    ), "a safe prefix as long beside every one with a mistake"
    assert all(by_id[row["run_id"]].is_safe for row in found if row["class"] == "SAFE")


def test_nothing_after_the_cut_reaches_a_row(tmp_path: Path) -> None:
    """What happens later, and what labels say, changes no byte of a row."""
    failed = FAILED[0]
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    options = {"test_share": 0.0}
    whole = rows_of(built(tmp_path / "a", [failed], **options)[0], "train-verdicts")
    changed = [*failed.run["messages"], {"role": "assistant", "content": CANARY}, {"role": "user", "content": CANARY}]
    loud = replace(
        failed,
        run={**failed.run, "messages": changed},
        mistakes=tuple(replace(one, kind=CANARY) for one in failed.mistakes),
        provenance={"reason": CANARY},
        licence=CANARY,
    )
    folder = built(tmp_path / "b", [loud], **options)[0]
    assert rows_of(folder, "train-verdicts") == whole and len(whole) == 2
    assert CANARY not in (folder / "train-verdicts.jsonl").read_text()


def test_families_stand_on_one_side_and_bytes_are_the_same(rows: Path, tmp_path: Path) -> None:
    sides = [{row["family"] for name in ("verdicts", "hypotheses") for row in rows_of(rows, f"{side}-{name}")}
             for side in ("train", "test")]  # fmt: skip
    assert all(sides) and not sides[0] & sides[1]
    again = built(tmp_path, CORPUS, kinds=KINDS)[0]
    files = sorted(one.name for one in again.iterdir())
    assert files == [
        "manifest.json",
        *sorted(f"{s}-{n}.jsonl" for s in ("test", "train") for n in ("hypotheses", "verdicts")),
    ]
    assert all((again / name).read_bytes() == (rows / name).read_bytes() for name in files)
    manifest = json.loads((again / "manifest.json").read_text())
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((again / name).read_bytes()).hexdigest() == digest
    assert manifest["corpora"][0]["sha256"] == hashlib.sha256((tmp_path / "corpus.jsonl").read_bytes()).hexdigest()
    assert manifest["rows"]["train-verdicts"] == dict(Counter(r["class"] for r in rows_of(rows, "train-verdicts")))
    assert sum(manifest["runs"]["licence of train"].values()) == sum(manifest["runs"]["source of train"].values())


def test_what_may_not_be_trained_on_is_on_the_test_side_with_its_family(tmp_path: Path) -> None:
    one = FAILED[0]
    runs = [replace(run, may_train=False) if run.run_id == one.run_id else run for run in CORPUS]
    folder = built(tmp_path, runs, test_share=0.0)[0]
    train = rows_of(folder, "train-verdicts")
    assert train and one.family not in {row["family"] for row in train}
    assert {row["family"] for row in rows_of(folder, "test-verdicts")} == {one.family}


def test_the_split_of_a_set_is_kept(tmp_path: Path) -> None:
    families = sorted({run.family for run in CORPUS})
    given = {name: "test" if i % 2 else "train" for i, name in enumerate(families)}
    folder = built(tmp_path, [replace(run, split=given[run.family]) for run in CORPUS])[0]
    for side in ("train", "test"):
        assert {given[row["family"]] for row in rows_of(folder, f"{side}-verdicts")} == {side}


def renamed(run: LabelledRun, name: str, task: str = "other") -> LabelledRun:
    return replace(run, run={**run.run, "run_id": name, "task_id": task}, family=name)


WORDS = " ".join(f"w{i}" for i in range(30))


def talk(name: str, request: str, *answers: str, failed: bool = True) -> LabelledRun:
    messages = [{"role": "user", "content": request}, *({"role": "assistant", "content": text} for text in answers)]
    plain = {"run_id": name, "task_id": name, "outcome": "failure" if failed else "success", "messages": messages}
    mistakes = (MistakeLabel(2, None, "", "imported"),) if failed else ()
    return LabelledRun(plain, "imported", mistakes, family=name, may_train=True)


def test_what_stands_in_a_test_set_is_not_trained_on(tmp_path: Path) -> None:
    boiler = " ".join(f"rule{i}" for i in range(20))
    tests = [talk("t1", WORDS, "x", "y"), talk("t2", "short request", " ".join(f"v{i}" for i in range(40)), "y"),
             *(talk(f"b{i}", f"{boiler} task {i}", f"alpha{i}", "y") for i in range(3))]  # fmt: skip
    write_corpus(tmp_path / "tests.jsonl", tests)
    mine = [
        talk("same request", f"please: {WORDS[:60]} and more", "x1", "y1"),
        talk("a copy", "asked otherwise", " ".join(f"v{i}" for i in range(40)), "y2"),
        replace(
            talk("same task", "new words", "x3", "y3"), run={**talk("same task", "n", "x3", "y3").run, "task_id": "t1"}
        ),
        talk("boilerplate alone", f"{boiler} task nine", "x4", "y4"),
        talk("of its own", "quite another thing", "x5", "y5"),
    ]
    folder, report = built(tmp_path, mine, against=[tmp_path / "tests.jsonl"], test_share=0.0)
    assert {row["run_id"] for row in rows_of(folder, "train-verdicts")} == {"boilerplate alone", "of its own"}
    reasons = {why: found["first"] for why, found in report.skips.as_json().items() if why.startswith("not trained")}
    assert reasons == {
        "not trained on: its request shares 13 words in a row with the test side": ["same request"],
        "not trained on: half of its sequences of 13 words stand in the test side": ["a copy"],
        "not trained on: its task is one of the test side": ["same task"],
    }


def test_a_labelled_run_wins_over_its_unlabelled_copy_in_any_order(tmp_path: Path) -> None:
    """The order of the corpora changes no byte, and a real collision of ids is told from a copy."""
    bare = [replace(run, mistakes=(), source="natural") for run in FAILED[:6]]
    stranger = replace(FAILED[7], run={**FAILED[7].run, "run_id": FAILED[6].run_id})
    write_corpus(tmp_path / "all.jsonl", [*bare, *(run for run in CORPUS if run.is_safe), FAILED[6]])
    write_corpus(tmp_path / "labelled.jsonl", [*FAILED[:6], stranger])
    paths = [tmp_path / "all.jsonl", tmp_path / "labelled.jsonl"]
    one, two = (build(order, out=tmp_path / str(n)) for n, order in enumerate((paths, paths[::-1])))
    for file in sorted((tmp_path / "0").iterdir()):
        assert file.read_bytes() == (tmp_path / "1" / file.name).read_bytes()
    found = {row["run_id"] for side in ("train", "test") for row in rows_of(tmp_path / "0", f"{side}-verdicts")}
    assert {run.run_id for run in FAILED[:6]} <= found and one.skips.as_json() == two.skips.as_json()
    assert one.skips.counts["an unlabelled copy of a labelled run"] == 6
    assert one.skips.counts["another run of another corpus has its run_id"] == 1


@pytest.mark.parametrize(
    ("kinds", "sentence"),
    [
        ({"wrong_order": "FM-9.9"}, r"no failure mode 'FM-9\.9'\. There are FM-1\.1, "),
        ({"gave_upp": "FM-3.1"}, r"no label of these corpora is of kind 'gave_upp'\. Theirs: .*wrong_order"),
    ],
)
def test_unknown_kinds_and_modes_are_refused(kinds: dict[str, str], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=sentence):
        built(tmp_path, CORPUS, kinds=kinds)
    assert not (tmp_path / "rows").exists()


def test_rows_that_are_missing_are_said(tmp_path: Path) -> None:
    notes = built(tmp_path, FAILED)[1].notes
    assert any(note.startswith("Rows of class SAFE are missing") and "collect" in note for note in notes)
    assert any("The files of hypotheses are empty" in note and "--kind" in note for note in notes)
    assert built(tmp_path, CORPUS, kinds=KINDS)[1].notes == ()


def test_equal_prompts_are_there_once(tmp_path: Path) -> None:
    runs = [talk("a", "go", "x", "y"), talk("b", "go", "x", "y"), talk("c", "go", "x", "y", failed=False)]
    folder, report = built(tmp_path, runs, test_share=0.0)
    rows = rows_of(folder, "train-verdicts")
    assert [(row["run_id"], row["class"]) for row in rows] == [("a", "BS"), ("a", "BE")]
    assert report.skips.counts["the same prompt is there, with the same answer"] == 2
    assert report.skips.counts["the same prompt is there, with another answer"] == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"mistakes": (MistakeLabel(99, None, "", "imported"),)}, "no agent acts at the decisive step"),
        ({"mistakes": (MistakeLabel(2, "Somebody", "", "imported"),)}, "the agent of the label did not act"),
        ({"mistakes": (MistakeLabel(None, "agent", "", "imported"),)}, "no decisive step is known, for verdicts"),
        ({"mistakes": ()}, "no decisive step is known, for verdicts"),
        ({"mistakes": (MistakeLabel(1, None, "", "imported"),)}, "no agent acted before the mistake"),
    ],
)
def test_what_cannot_be_cut_is_counted(change: dict, reason: str, tmp_path: Path) -> None:
    runs = [replace(talk("a", "go", "x", "y"), **change), talk("b", "gone", "x", "z")]
    folder, report = built(tmp_path, runs, test_share=0.0)
    assert [row["class"] for row in rows_of(folder, "train-verdicts") if row["run_id"] == "b"] == ["BS", "BE"]
    assert any(why.startswith(reason) for why in report.skips.counts)


def test_an_interruption_leaves_no_half_files_and_an_old_build_as_it_was(tmp_path: Path) -> None:
    def stop(done: int, of: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    folder = built(tmp_path, CORPUS[:20])[0]
    before = {one.name: one.read_bytes() for one in folder.iterdir()}
    with pytest.raises(KeyboardInterrupt):
        built(tmp_path, CORPUS, on_progress=stop)
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == before


def test_a_build_that_stops_between_two_files_has_no_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file is whole, the old one or the new one; a manifest never speaks for files of two builds."""
    folder = built(tmp_path, CORPUS[:20])[0]
    old = {one.name: one.read_bytes() for one in folder.iterdir()}
    move, moves = Path.replace, 0

    def stop(self: Path, target: Path) -> Path:
        nonlocal moves
        if target.parent == folder:
            moves += 1
            if moves == 3:
                raise KeyboardInterrupt
        return move(self, target)

    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        built(tmp_path, CORPUS)
    monkeypatch.undo()
    left = {one.name: one.read_bytes() for one in folder.iterdir()}
    assert set(left) == set(old) - {"manifest.json"}
    again = built(tmp_path, CORPUS)[0]
    new = {one.name: one.read_bytes() for one in again.iterdir()}
    assert all(left[name] in (old[name], new[name]) for name in left) and set(new) == set(old)


HOSTILE = [
    {"role": "assistant", "content": ["a", {"text": "b"}], "tool_calls": "none"},
    {"role": 7, "content": None},
    {"content": {"deep": [[[[1]]]]}},
    {"role": "tool", "tool_call_id": None, "content": "\ud800 lone"},
    {"role": "assistant", "tool_calls": [{"function": {"name": None, "arguments": "{"}}, 3]},
    {},
]


def test_hostile_messages_are_no_crash(tmp_path: Path) -> None:
    loud = [replace(run, run={**run.run, "messages": [*HOSTILE, *run.run["messages"]]}) for run in CORPUS[:12]]
    folder, report = built(tmp_path, loud + CORPUS[12:40], test_share=0.0)
    assert rows_of(folder, "train-verdicts") and report.to_text()


def test_nothing_to_build_and_odd_options_are_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no row comes of these corpora"):
        built(tmp_path, [talk("c", "go", "x", failed=False)])
    assert sorted(one.name for one in (tmp_path / "rows").iterdir()) == []
    (tmp_path / "raw.jsonl").write_text('{"messages": []}\n')
    with pytest.raises(DataError, match="nothing can be kept apart from it"):
        built(tmp_path, CORPUS, against=[tmp_path / "raw.jsonl"])
    with pytest.raises(ConfigError, match=r"test_share 1\.0: from 0 to below 1"):
        built(tmp_path, CORPUS, test_share=1.0)
