"""What the report says of a proposal: what is read from text, and what is left out because it says the same again."""

from __future__ import annotations

from pathlib import Path

from hand_written import TOWNS, propose


def test_a_copy_of_what_is_read_is_called_a_copy(tmp_path: Path) -> None:
    runs = []
    for n in range(6):
        messages = []
        for i in range(3):
            asked, said = f"How is {TOWNS[i]} on day {n}?", f"In {TOWNS[i]} it rains until day {n + i}."
            messages.append({"role": "user", "content": asked})
            messages.append({"role": "assistant", "content": said, "raw": {"reply": said, "finish": f"because {n}{i}"}})
        runs.append({"task_id": f"t{n}", "passed": n % 2 == 0, "messages": messages})
    left = {one.raw: one.why for one in propose(tmp_path, {"all.json": runs})[0].left_out}
    assert left["@.raw.reply"] == "says again, word for word, what is read"
    assert left["@.raw.finish"] != left["@.raw.reply"]
