"""Events as the interpreter will see them: attributes made plain, in time order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hand_written import chats, propose, steps, wanted


def typed(values: dict[str, Any]) -> list[dict[str, Any]]:
    """OpenTelemetry's spelling."""
    return [{"key": key, "value": {"stringValue": str(value)}} for key, value in values.items()]


def spans(*, flat: bool) -> list[dict[str, Any]]:
    lines = []
    for i in range(6):
        for j in range(5):
            attributes = {
                "tool.name": ("open", "close")[j % 2],
                "tool.arguments": f'{{"door": {j}, "of": {i}}}',
                "tool.result": f"door {j} of {i} creaks",
                "session.id": f"session-{i}",
            }
            lines.append(
                {
                    "traceId": f"{i:032x}",
                    "spanId": f"{i * 10 + j:016x}",
                    "name": "execute_tool",
                    "startTimeUnixNano": str(1_700_000_000_000_000_000 + j),
                    "attributes": attributes if flat else typed(attributes),
                }
            )
    return lines


def test_typed_and_dotted_attributes_are_read_alike(tmp_path: Path) -> None:
    for flat in (True, False):
        proposal, found = propose(tmp_path / str(flat), {"spans.jsonl": spans(flat=flat)})
        assert proposal.spec["events"]["unflatten"] == ["@.attributes"]
        assert steps(found[1])[2] == ("open", '{"door":2,"of":1}', "door 2 of 1 creaks")


def test_events_are_put_in_the_order_of_time(tmp_path: Path) -> None:
    files = {}
    for i, run in enumerate(chats()):
        lines = [{"ts": f"2024-05-0{i + 1}T10:{k:02d}:00Z", **message} for k, message in enumerate(run["messages"])]
        lines[3], lines[4] = lines[4], lines[3]
        files[f"{i}.jsonl"] = lines
    proposal, found = propose(tmp_path, files)
    assert proposal.spec["events"]["order_by"] == "@.ts"
    assert [steps(run) for run in found] == [wanted(i) for i in range(6)]


def test_events_that_are_in_order_are_left_alone(tmp_path: Path) -> None:
    runs = chats()
    for run in runs:
        for k, message in enumerate(run["messages"]):
            message["ts"] = k
    proposal, _ = propose(tmp_path, {"a.json": runs})
    assert proposal.spec["events"] == "$.messages[*]"


def test_a_text_is_no_time_whatever_it_is_called(tmp_path: Path) -> None:
    runs = chats()
    for run in runs:
        for message in run["messages"]:
            message["t"] = message.pop("content")
    proposal, found = propose(tmp_path, {"a.json": runs})
    assert proposal.spec["events"] == "$.messages[*]"
    assert [steps(run) for run in found] == [wanted(i) for i in range(6)]
