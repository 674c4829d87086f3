"""From samples to a frozen adapter: who proposes, what is refused, what is said, and that nothing unchecked is
written. What proposes is played by a small stand-in, so that a test says what it needs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import prefixguard
from prefixguard.errors import AdapterError, ConfigError, DataError, EndpointError, OutputError, TraceError
from prefixguard.escalate import Masker
from prefixguard.induce import Proposal, check_adapter, freeze_mended, induce_adapter
from prefixguard.induce.model import Transcript
from prefixguard.induce.proposal import Choice, LeftOut, Mapped, Option, Usage
from prefixguard.stepview import load_adapter, read_runs

pytestmark = pytest.mark.usefixtures("one_process")

SPEC: dict[str, Any] = {
    "schema": "prefixguard/adapter/v1",
    "name": "whatever the proposer says",
    "version": "1.0.0",
    "container": {"format": "json", "runs": "$[*]"},
    "run": {
        "id": "$.trip",
        "task": "$.goal",
        "outcome": {"of": "$.won", "type": "boolean", "success": {"eq": True}, "failure": {"eq": False}},
    },
    "events": "$.legs[*]",
    "rules": [
        {
            "emit": "step",
            "tool": "@.did",
            "arguments": {"object": {"to": "@.to"}},
            "action": {"text": "@.because"},
            "result": {"text": "@.saw"},
        }
    ],
    "status": [{"is": "ok"}],
    "hidden": ["$.won"],
}
CHOICE = Choice(
    "task", (Option("goal", "$.goal", 0.6, "repeats"), Option("trip", "$.trip", 0.4, "unique")), 0, "likeliest"
)


def proposal(origin: str = "offline", **changes: Any) -> Proposal:
    return Proposal(
        {**SPEC, **changes},
        (Mapped("@.did", "tool", 1.0, 0.9, "few values"),),
        (LeftOut("$.won", "says how the run ended", 0.01),),
        (CHOICE,),
        ("one note",),
        origin,
    )


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """Runs of a format of nobody's."""
    runs = [
        {
            "trip": f"t{i}",
            "goal": f"goal {i % 5}",
            "won": i % 3 > 0,
            "legs": [
                {
                    "did": ("go", "look")[k % 2],
                    "to": f"place {i}.{k}",
                    "because": f"I try {k}, {i}",
                    "saw": f"thing {k} {i}",
                }
                for k in range(3 + i % 4)
            ],
        }
        for i in range(24)
    ]
    folder = tmp_path / "samples"
    folder.mkdir()
    (folder / "trips.json").write_text(json.dumps(runs))
    return folder


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """Sets what the search proposes; gives what it was asked."""
    asked: list[Any] = []

    def play(made: Proposal | Exception = proposal()) -> list[Any]:  # noqa: B008
        def propose(samples: Any, **options: Any) -> Proposal:
            asked.append(options)
            if isinstance(made, Exception):
                raise made
            return made

        monkeypatch.setattr("prefixguard.induce.induction.propose_by_search", propose)
        return asked

    play()
    return play


def model(monkeypatch: pytest.MonkeyPatch, made: Proposal | Exception | None, why: str = "because.") -> list[Any]:
    asked: list[Any] = []

    def propose(samples: Any, endpoint: Any, **options: Any) -> Any:
        asked.append((endpoint, options))
        if isinstance(made, Exception):
            raise made
        transcript = Transcript(Masker())
        transcript.add("message", text="hello")
        return SimpleNamespace(
            proposal=made,
            ok=made is not None,
            why=why,
            transcript=transcript,
            usage=Usage("m", 2, 1200, 300, 0.5),
            waivers=("m asks to waive $.x: harmless.",),
        )

    monkeypatch.setattr("prefixguard.induce.induction.propose_with_model", propose)
    return asked


def run(samples: Path, **options: Any) -> Any:
    options.setdefault("out", samples.parent / "out")
    return induce_adapter(samples, **options)


def test_an_adapter_is_frozen_and_reads_the_samples(samples: Path, offline: Any) -> None:
    heard: list[str] = []
    induced = run(samples, listen=heard.append, hints={"outcome": "$.won"})
    assert induced.ok and induced.paths is not None
    assert offline()[0]["hints"] == {"outcome": "$.won"} and offline()[0]["name"] == "samples"
    adapter = load_adapter(induced.paths.adapter)
    assert (adapter.name, adapter.sha256) == ("samples", induced.adapter.sha256)
    assert sum(len(one.records) for one in read_runs(samples, adapter)) == sum(3 + i % 4 for i in range(24))
    assert heard[0] == "reading the samples" and heard[-1] == "writing"
    golden = samples.parent / "out" / "golden" / "samples"
    expected = [json.loads(line) for line in (golden / "expected.jsonl").read_text().splitlines()]
    again = [record for one in read_runs(golden / "runs", adapter) for record in one.records]
    assert [line["result"] for line in expected] == [record.result for record in again]
    assert {line["outcome"] for line in expected} == {"success", "failure"}


def test_the_same_samples_give_the_same_bytes(samples: Path) -> None:
    def files(out: Path) -> dict[str, bytes]:
        run(samples, out=out)
        return {p.relative_to(out).as_posix(): p.read_bytes() for p in out.rglob("*") if p.is_file()}

    first, second = files(samples.parent / "one"), files(samples.parent / "two")
    assert first == second


def test_the_report_says_what_was_done(samples: Path) -> None:
    induced = run(samples, recognise=False)
    kept = json.loads(induced.paths.report_json.read_text())
    assert kept["schema"] == "prefixguard/induction/v1"
    assert kept["adapter"]["sha256"] == induced.adapter.sha256
    assert kept["mapped"][0] == {
        "raw": "@.did", "field": "tool", "coverage": 1.0, "confidence": 0.9, "why": "few values",
    }  # fmt: skip
    assert kept["left_out"][0]["why"] == "says how the run ended"
    assert kept["choices"][0]["rule"] == "likeliest" and len(kept["choices"][0]["options"]) == 2
    assert kept["check"]["ok"] and kept["samples"]["files"] == 1 and "one note" in kept["notes"]
    assert str(samples.parent) not in induced.paths.report_json.read_text(), "no path of this machine"
    page = induced.paths.report.read_text()
    for said in ("@.did", "says how the run ended", "likeliest", "one note", induced.adapter.sha256, "## Checks"):
        assert said in page


def test_a_failed_check_writes_nothing(samples: Path, offline: Any) -> None:
    offline(proposal(rules=[{"when": {"@.did": "never"}, "emit": "skip"}]))
    induced = run(samples)
    assert not induced.ok and induced.paths is None and induced.report.check.findings[0].severity == "error"
    assert [path.name for path in induced.draft] == ["samples.draft.json", "samples.draft.report.md"], "not an adapter"
    assert sorted(path.name for path in (samples.parent / "out").iterdir()) == [path.name for path in induced.draft]
    assert json.loads(induced.draft[0].read_text())["rules"][0]["when"] == {"@.did": "never"}
    assert run(samples, write=False, out=samples.parent / "other").draft == ()
    assert not (samples.parent / "other").exists()


def test_a_draft_that_was_mended_is_frozen(samples: Path, offline: Any) -> None:
    offline(proposal(rules=[{"when": {"@.did": "never"}, "emit": "skip"}]))
    (draft, _) = run(samples).draft
    spec = {**json.loads(draft.read_text()), "rules": SPEC["rules"]}
    draft.write_text(json.dumps(spec))
    assert check_adapter(draft, samples, processes=False).ok
    assert freeze_mended(draft, samples, mended=["The rule was written by hand."], out=draft.parent).paths is not None


def test_a_spec_that_does_not_compile_is_a_finding(samples: Path, offline: Any) -> None:
    offline(proposal(rules=[{"emit": "step", "result": {"text": "@"}, "tool": {"re": "(?=x)", "of": "@.did"}}]))
    induced = run(samples)
    assert induced.adapter is None and induced.paths is None
    assert "rules[0]" in induced.report.check.findings[0].what


def test_a_waiver_stands_in_the_spec(samples: Path, offline: Any) -> None:
    leaky = [{"emit": "step", "tool": "@.did", "action": {"text": "$.won"}, "result": {"text": "@.saw"}}]
    offline(proposal(rules=leaky, hidden=[]))
    refused = run(samples)
    assert refused.adapter is None and "the outcome is read from" in refused.report.check.findings[0].what
    induced = run(samples, waive={"$.won": "said by the agent itself"}, write=False)
    assert induced.adapter is not None
    assert json.loads(induced.adapter.to_bytes())["waived"] == [{"path": "$.won", "reason": "said by the agent itself"}]
    assert induced.report.to_dict()["waived"] == [{"path": "$.won", "reason": "said by the agent itself"}]


def test_nothing_is_written_unless_it_is_approved(samples: Path) -> None:
    shown: list[str] = []
    induced = run(samples, approve=lambda adapter, report: bool(shown.append(report.to_markdown())))
    assert induced.ok and induced.paths is None and "## What is read" in shown[0]
    assert not (samples.parent / "out").exists()
    assert run(samples, write=False).paths is None
    assert not (samples.parent / "out").exists()


def test_what_is_there_is_not_overwritten_and_nothing_is_read_before(samples: Path, offline: Any) -> None:
    run(samples)
    asked = len(offline())
    with pytest.raises(OutputError, match="is there already"):
        run(samples)
    assert len(offline()) == asked
    assert run(samples, overwrite=True).paths is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "../x"}, "an adapter cannot be called"),
        ({"hints": {"colour": "$.x"}}, "hint 'colour'"),
        ({"hints": {"outcome": "won"}}, "a path is needed"),
        ({"base_url": "http://localhost:1/v1"}, "a base URL without a model"),
        ({"model": "m", "base_url": "ftp://x"}, "begins with http"),
    ],
)
def test_options_out_of_range(samples: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run(samples, **options)


def test_the_model_s_proposal_is_taken_with_its_transcript_and_bill(
    samples: Path, offline: Any, monkeypatch: Any
) -> None:
    asked = model(monkeypatch, proposal("m"))
    offline(TraceError("not needed"))
    induced = run(samples, model="m", base_url="http://localhost:1/v1", rounds=2, hints={"task": "$.goal"})
    ((endpoint, options),) = asked
    assert endpoint.base_url == "http://localhost:1/v1" and options["rounds"] == 2
    assert options["hints"] == {"task": "$.goal"}
    assert induced.proposal.origin == "m" and induced.paths.transcript is not None
    assert json.loads(induced.paths.transcript.read_text())["text"] == "hello"
    usage = induced.report.to_dict()["usage"]
    assert (usage["tokens_in"], usage["tokens_out"], usage["cost"], usage["why"]) == (1200, 300, 0.5, "")


def test_a_model_that_fails_is_said_and_inference_goes_on(samples: Path, monkeypatch: Any) -> None:
    model(monkeypatch, None, "it refused.")
    induced = run(samples, model="m", out=samples.parent / "a")
    assert induced.proposal.origin == "offline" and "it refused" in induced.report.usage.why
    model(monkeypatch, EndpointError("no answer in 3 s."))
    heard: list[str] = []
    induced = run(samples, model="m", out=samples.parent / "b", listen=heard.append)
    assert any("no answer in 3 s" in note for note in induced.report.notes)
    assert any("no answer in 3 s" in one for one in heard)
    model(monkeypatch, proposal("m", rules=[{"when": {"@.did": "never"}, "emit": "skip"}]), "best of 2.")
    induced = run(samples, model="m", out=samples.parent / "c")
    assert induced.proposal.origin == "offline" and "found errors in its adapter" in induced.report.usage.why


def test_what_a_model_said_and_asked_is_kept_where_no_adapter_comes_of_it(
    samples: Path, offline: Any, monkeypatch: Any
) -> None:
    asked = model(monkeypatch, proposal("m", rules=[{"when": {"@.did": "never"}, "emit": "skip"}]))
    offline(TraceError("nothing looks like runs."))
    monkeypatch.chdir(samples.parent)
    induced = induce_adapter(samples, model="m", waive={"$.x": "harmless"})
    assert not induced.ok and asked[0][1]["waive"] == {"$.x": "harmless"}
    assert "m asks to waive $.x: harmless." in induced.report.notes
    names = ["samples.draft.json", "samples.draft.report.md", "samples.draft.transcript.jsonl"]
    assert [path.name for path in induced.draft] == names and "hello" in induced.draft[2].read_text()
    model(monkeypatch, None)
    with pytest.raises(TraceError):
        run(samples, model="m")
    assert [path.name for path in (samples.parent / "out").iterdir()] == names[2:]


def test_offline_asks_nobody(samples: Path, monkeypatch: Any) -> None:
    asked = model(monkeypatch, proposal("m"))
    assert run(samples, model="m", offline=True).proposal.origin == "offline" and not asked


def test_a_mended_adapter_says_what_was_changed_by_hand(samples: Path, offline: Any) -> None:
    offline(proposal(rules=[{"when": {"@.did": "never"}, "emit": "skip"}]))
    first = run(samples)
    out = samples.parent / "out"
    mended = {**json.loads(first.adapter.to_bytes()), "rules": SPEC["rules"]}
    induced = freeze_mended(mended, samples, mended=["The rule was written by hand."], induced=first, out=out)
    kept = json.loads(induced.paths.report_json.read_text())
    assert kept["mended"] == ["The rule was written by hand."] and kept["origin"] == "offline" and kept["mapped"]
    assert load_adapter(out / "samples.json").sha256 == induced.adapter.sha256
    again = freeze_mended(out / "samples.json", samples, mended=[], out=out, overwrite=True)
    assert again.adapter.sha256 == induced.adapter.sha256 and again.report.proposal.origin == "hand"
    with pytest.raises(OutputError, match="is there already"):
        freeze_mended(mended, samples, mended=[], out=out)
    leaky = {**mended, "rules": [{"emit": "step", "tool": "@.did", "result": {"text": "$.won"}}]}
    with pytest.raises(AdapterError, match="hidden"):
        freeze_mended(leaky, samples, mended=[], out=samples.parent / "other")
    nothing = {**mended, "rules": [{"when": {"@.did": "never"}, "emit": "skip"}]}
    refused = freeze_mended(nothing, samples, mended=[], out=samples.parent / "other")
    assert not refused.ok and refused.paths is None and not (samples.parent / "other").exists()


def test_a_shipped_adapter_is_offered(fresh_lab_file: Path, samples: Path) -> None:
    offered: list[str] = []

    def take(shipped: Any) -> bool:
        offered.extend(one.name for one in shipped)
        return True

    induced = run(samples, offer=take)
    assert not offered, "no shipped adapter reads these"
    induced = induce_adapter(fresh_lab_file, offer=take, out=samples.parent / "none")
    assert offered == ["openai_chat"] and induced.adapter.name == "openai_chat"
    assert induced.ok and induced.report is None and induced.paths is None and not (samples.parent / "none").exists()
    offered.clear()
    induce_adapter(fresh_lab_file, offer=take, recognise=False, out=samples.parent / "none")
    assert not offered


def test_check_adapter_takes_names_paths_and_adapters(samples: Path) -> None:
    path = run(samples).paths.adapter
    by_path = prefixguard.check_adapter(path, samples, processes=False)
    assert by_path.ok and by_path.sha256 == load_adapter(path).sha256
    assert check_adapter(load_adapter(path), samples, processes=False).ok
    assert not check_adapter("tau2", samples, processes=False).ok


def test_labels_are_looked_at_before_anything_is_inferred(samples: Path, offline: Any) -> None:
    labels = samples.parent / "labels.csv"
    labels.write_text("file,result\nx,pass\n")
    with pytest.raises(TraceError, match="needed: run_id,outcome"):
        run(samples, labels=labels)
    with pytest.raises(TraceError, match="needed: run_id,outcome"):
        check_adapter("tau2", samples, labels=labels, processes=False)
    assert not offline(), "nothing was inferred"
    labels.write_text("run_id,outcome\nnobody,success\n")
    with pytest.raises(DataError, match=r"none of its 1 labels is of a run .* 'nobody'"):
        run(samples, labels=labels)


def test_an_outcome_that_no_run_has_is_a_question(samples: Path, offline: Callable[..., list[Any]]) -> None:
    offline(proposal(run={**SPEC["run"], "outcome": {**SPEC["run"]["outcome"], "of": "$.verdict"}}))
    open_ = run(samples)
    assert [(choice.field, choice.options[0].confidence) for choice in open_.open] == [("outcome", 0.0)]
    assert open_.paths is None and "Left open: What is outcome?" in open_.report.to_markdown()
    assert not run(samples, sure=0.4).open  # for an adapter that reads none
