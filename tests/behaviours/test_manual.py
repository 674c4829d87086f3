"""docs/behaviours.md says what the catalogue says; its examples work."""

import json
import re
from pathlib import Path

from prefixguard.behaviours import CATALOGUE, DeclaredBehaviours

PAGE = Path(__file__).parents[2] / "docs" / "behaviours.md"


def table() -> str:
    """The catalogue as it stands in the page."""
    rows = [f"| `{b.name}` | {b.kind} | {b.sentence} | {b.nudge} | {b.advice} |" for b in CATALOGUE]
    head = "| behaviour | kind | what is the case | to the agent | to its developers |\n| --- | --- | --- | --- | --- |"
    return "\n".join([head, *rows])


def test_the_table_is_the_catalogue() -> None:
    page = PAGE.read_text("utf-8")
    _, begin, rest = page.partition("<!-- catalogue:begin -->\n")
    shown, end, _ = rest.partition("\n<!-- catalogue:end -->")
    assert begin and end and shown == table(), f"write this table there:\n{table()}"


def test_the_example_opens() -> None:
    (text,) = re.findall(r"```json\n(.+?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert DeclaredBehaviours(json.loads(text), "page").behaviours[0].behaviour.name == "cancels_unread"


def test_the_program_runs() -> None:
    text, *_ = re.findall(r"```python\n(.+?)```", PAGE.read_text("utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(text, names)  # our own page
    assert str(names["found"][0]).startswith("The same call gave the same result again")  # type: ignore[index]
