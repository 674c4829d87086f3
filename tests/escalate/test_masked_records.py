"""Records are masked before anything is cut; positions of what a session did not keep stay right."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from prefixguard.escalate import MaskedRecords, PromptKind, ask_for_verdict
from prefixguard.escalate.transcript_buffer import NOT_KEPT, ShortenedStep, TranscriptBuffer
from prefixguard.stepview import StepRecord

KEY = "ghp_" + "a1B2c3D4e5" * 3
STEP = StepRecord(1, "agent", "", "search", "{}", "Hello.", "I look.", "", "ok")


def test_equal_secrets_have_equal_marks_across_steps_and_while_the_run_grows() -> None:
    steps = [replace(STEP, index=i, result=f"{i}: {KEY} ann{i % 2}@example.org") for i in range(1, 5)]
    whole = MaskedRecords.of(steps)
    assert [step.result for step in whole.records] == [
        "1: <masked key 1> <masked email 1>",
        "2: <masked key 1> <masked email 2>",
        "3: <masked key 1> <masked email 1>",
        "4: <masked key 1> <masked email 2>",
    ]
    assert whole.counts == {"email": 2, "key": 1}
    assert MaskedRecords.of(steps[:2]).records == whole.records[:2]
    assert MaskedRecords.of(steps, mask=False).records == tuple(steps)


@given(st.integers(0, 3), st.integers(0, 3), st.sampled_from(["observation", "action", "arguments", "result"]))
def test_a_secret_is_masked_before_the_step_that_tells_of_it(first: int, told: int, field: str) -> None:
    """Wherever it stands bare and wherever it is told, it is in no text of what is sent, with one mark."""
    steps = [replace(STEP, index=i + 1) for i in range(4)]
    steps[first] = replace(steps[first], **{field: "export X=abc123def456; then"})  # type: ignore[arg-type]
    steps[told] = replace(steps[told], observation=f"{steps[told].observation} password: abc123def456")
    shown = MaskedRecords.of(steps)
    assert "abc123def456" not in repr(shown.records) and shown.counts == {"password": 1}
    assert "export X=<masked password 1>; then" in getattr(shown.records[first], field)


def test_a_shortened_step_is_masked_again_around_its_hole() -> None:
    kept = TranscriptBuffer(4096)
    kept.add(replace(STEP, result=f"X=abc123def456 {'x ' * 4000} end"))
    kept.add(replace(STEP, index=2, result="password: abc123def456"))
    before, after = MaskedRecords.of(kept.prefix()).records
    assert isinstance(before, ShortenedStep) and before.result.startswith("X=<masked password 1> ")
    assert before.result[before.holes[0].begin : before.holes[0].end] == NOT_KEPT
    assert after.result == "password: <masked password 1>"


@given(st.integers(0, 12_000), st.sampled_from(["observation", "action", "arguments", "result"]))
def test_no_cut_lets_half_of_a_secret_through(place: int, name: str) -> None:
    """Wherever a secret stands in a long text, nothing of it is in a prompt of a small budget, nor after a session has
    kept the ends of the text only."""
    text = f"{'word ' * (place // 5)}{KEY}{' word' * 2400}"
    record = replace(STEP, **{name: text})  # type: ignore[arg-type]
    kept = TranscriptBuffer(8192)
    kept.add(record)
    for records in ([record], kept.prefix()):
        asked = ask_for_verdict(PromptKind.ONLINE, MaskedRecords.of(records).records, 4000)
        sent = "".join(message["content"] for message in asked.messages)
        assert not any(KEY[i : i + 8] in sent for i in range(len(KEY) - 7))


def test_holes_stand_where_they_stood() -> None:
    kept = TranscriptBuffer(4096)
    kept.add(replace(STEP, result=f"ann@example.org {'x ' * 4000} bob@example.org"))
    (before,), (after,) = kept.prefix(), MaskedRecords.of(kept.prefix()).records
    assert isinstance(before, ShortenedStep) and isinstance(after, ShortenedStep)
    (hole,) = after.holes
    assert after.result[hole.begin : hole.end] == NOT_KEPT and hole.left_out == before.holes[0].left_out
    assert after.result.startswith("<masked email 1>") and after.result.endswith("<masked email 2>")


def test_names_of_agents_come_back() -> None:
    masked = MaskedRecords.of([replace(STEP, agent="ann@example.org"), replace(STEP, index=2, agent="Planner")])
    assert [step.agent for step in masked.records] == ["<masked email 1>", "Planner"]
    assert masked.agents == {"<masked email 1>": "ann@example.org"}
