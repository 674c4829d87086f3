"""How calls stand in an agent's text: told by shape, and what the spec does with them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.induce.offline.call_forms import CallForm, infer_call_form
from prefixguard.stepview import Adapter

AT = "@.content"
CITIES = ("Lisbon", "Oslo", "Quito", "Perth", "Turin", "Kyoto", "Dakar", "Lyon", "Bergen", "Graz")
THOUGHT = "I should look at what is known about this town before I answer the question."


def read(form: CallForm, texts: list[str]) -> list[tuple[str, str, str]]:
    """(tool, arguments, action) of each text, as a spec with this form reads them."""
    rules: list[dict[str, Any]] = []
    for variant in form.variants():
        rule: dict[str, Any] = {"emit": variant.emits}
        if variant.when is not None:
            rule["when"] = {AT: variant.when}
        for name in ("tool", "arguments", "action"):
            value = getattr(variant, name)
            if value is not None:
                rule[name] = value
        rules.append(rule)
    rules.append({"emit": "say", "action": AT})
    adapter = Adapter(
        {
            "schema": "prefixguard/adapter/v1",
            "name": "t",
            "version": "1",
            "container": {"format": "json"},
            "events": "$.events[*]",
            "rules": rules,
        }
    )
    parser = adapter.parser()
    records = []
    for text in texts:
        records += list(parser.observe({"content": text}))
    records += list(parser.end())
    return [(record.tool, record.arguments, record.action) for record in records]


def form_of(texts: list[str]) -> CallForm:
    form = infer_call_form(texts, AT)
    assert form is not None
    return form


def test_name_and_brackets() -> None:
    texts = [f"{('Search', 'Lookup', 'Finish')[i % 3]}[{city}, {i}]" for i, city in enumerate(CITIES)]
    found = read(form_of(texts), texts)
    assert found[0] == ("Search", "Lisbon, 0", "")
    assert [tool for tool, _, _ in found] == [("Search", "Lookup", "Finish")[i % 3] for i in range(10)]


def test_a_cut_off_bracket_and_a_bare_name() -> None:
    texts = (
        [f"click[{city}]" for city in CITIES]
        + [f"find[{city}]" for city in CITIES]
        + ["find[long town na", "stop", "stop"]
    )
    found = read(form_of(texts), texts)
    assert found[-3] == ("find", "long town na", "")
    assert found[-1] == ("stop", "", "")


def test_thoughts_in_brackets_are_text() -> None:
    texts = []
    for city in CITIES:
        texts += [f"search[{city} museum]", f"think[{THOUGHT} It is {city}.]", f"click[{city[:3]}]"]
    found = read(form_of(texts), texts)
    assert found[1] == ("think", "", f"{THOUGHT} It is Lisbon.")
    assert found[2] == ("click", "Lis", "")


def test_fenced_block_exactly_one() -> None:
    texts = [f"THOUGHT: {THOUGHT}\n\n```bash\ngrep -rn {city} .\n```" for city in CITIES]
    texts.append("THOUGHT: both at once.\n```bash\nls\n```\nand\n```bash\npwd\n```")
    found = read(form_of(texts), texts)
    assert found[0] == ("bash", "grep -rn Lisbon .", f"THOUGHT: {THOUGHT}")
    assert found[-1][0] == "" and "pwd" in found[-1][2]


def test_fenced_blocks_in_some_messages() -> None:
    texts = []
    for i, city in enumerate(CITIES):
        lang = "python" if i % 2 else "sh"
        texts += [
            f"Let me compute it for {city}.\n```{lang}\nrun('{city}')\n```",
            f"The answer for {city} is what the output says, I think.",
        ]
    found = read(form_of(texts), texts)
    assert found[0][:2] == ("sh", "run('Lisbon')")
    assert found[1][0] == "respond"


def test_action_and_its_input() -> None:
    texts = [
        f"Thought: {THOUGHT}\nAction: {('wiki', 'calc')[i % 2]}\nAction Input: {city} {i}"
        for i, city in enumerate(CITIES)
    ]
    found = read(form_of(texts), texts)
    assert found[0] == ("wiki", "Lisbon 0", f"Thought: {THOUGHT}")
    assert found[1][0] == "calc"


@pytest.mark.parametrize("names", [("name", "arguments"), ("tool", "args"), ("k1", "k2")])
def test_json_object(names: tuple[str, str]) -> None:
    texts = [
        json.dumps({names[0]: ("a.search", "b_open")[i % 2], names[1]: {"q": city}}) for i, city in enumerate(CITIES)
    ]
    found = read(form_of(texts), texts)
    assert found[0] == ("a.search", '{"q":"Lisbon"}', "")


def test_json_in_a_fenced_block_and_beside_text() -> None:
    texts = [
        f"{THOUGHT}\n```json\n" + json.dumps({"action": ("open", "find")[i % 2], "action_input": {"q": city}}) + "\n```"
        for i, city in enumerate(CITIES)
    ]
    found = read(form_of(texts), texts)
    assert found[0] == ("open", '{"q":"Lisbon"}', THOUGHT)


def test_json_without_an_arguments_key_keeps_the_other_keys() -> None:
    texts = [
        json.dumps({"thought": THOUGHT, "action": ("open", "find")[i % 2], "city": city, "n": i})
        for i, city in enumerate(CITIES)
    ]
    found = read(form_of(texts), texts)
    assert found[2] == ("open", '{"city":"Quito","n":2}', THOUGHT)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda tool, city: (
            f'{THOUGHT}\n<tool_call>\n{{"name": "{tool}", "arguments": {{"q": "{city}"}}}}\n</tool_call>'
        ),
        lambda tool, city: f"{THOUGHT}\n<function={tool}>\n<parameter=q>{city}</parameter>\n</function>",
        lambda tool, city: f'{THOUGHT}\n<invoke name="{tool}"><q>{city}</q></invoke>',
        lambda tool, city: f"{THOUGHT}\n<{tool}>\n{city} {city}\n</{tool}>",
    ],
)
def test_tags(wrap: Any) -> None:
    texts = [wrap(("open", "find")[i % 2], city) for i, city in enumerate(CITIES)]
    found = read(form_of(texts), texts)
    assert [tool for tool, _, _ in found] == ["open", "find"] * 5
    assert all(city in arguments for city, (_, arguments, _) in zip(CITIES, found, strict=True))
    assert found[0][2] == THOUGHT


def test_first_word_commands() -> None:
    texts = []
    for i, city in enumerate(CITIES):
        texts += [
            f"Click at ({i * 40}, {i + 7})",
            f"Navigate to https://{city}.example/",
            f'search_dir "{city}" /src',
            "Press ENTER",
        ]
    found = read(form_of(texts), texts)
    assert found[0] == ("Click", "(0, 7)", "")
    assert found[1] == ("Navigate", "https://Lisbon.example/", "")
    assert found[2] == ("search_dir", '"Lisbon" /src', "")
    assert found[3] == ("Press", "ENTER", "")


def test_code_is_executed_whole() -> None:
    texts = [f"SELECT name FROM towns WHERE n > {i}" for i in range(9)] + ["SHOW TABLES", "DESCRIBE towns"]
    form = form_of(texts)
    assert form.name == "code"
    assert read(form, texts)[0] == ("execute", "SELECT name FROM towns WHERE n > 0", "")


def test_code_beside_brackets_is_what_the_brackets_hold() -> None:
    texts = (
        [f"SELECT a FROM t{i} WHERE b = {i}" for i in range(60)]
        + [f"execute[SELECT a FROM t{i}]" for i in range(12)]
        + ["submit"] * 4
    )
    found = read(form_of(texts), texts)
    assert found[0] == ("execute", "SELECT a FROM t0 WHERE b = 0", "")
    assert found[60] == ("execute", "SELECT a FROM t0", "")
    assert found[-1] == ("submit", "", "")


def test_speech_is_no_call() -> None:
    said = [
        f"I have found your booking for {city}. Would you like me to change it to the later flight?" for city in CITIES
    ] + [f"The flight to {city} leaves at nine, and you can take one bag with you." for city in CITIES]
    assert infer_call_form(said, AT) is None
    assert infer_call_form([], AT) is None
    assert infer_call_form(["", "  "], AT) is None


def test_names_that_do_not_repeat_are_no_tools() -> None:
    assert infer_call_form([f"Word{i}Made{i * 7}[x]" for i in range(40)], AT) is None


@given(st.lists(st.text(max_size=120), max_size=30))
@settings(max_examples=60, deadline=None)
def test_any_text_gives_a_form_that_compiles(texts: list[str]) -> None:
    form = infer_call_form(texts, AT)
    if form is not None:
        assert 0 <= form.share <= 1 and 0 <= form.confidence <= 1
        assert len(read(form, texts)) == len(texts)
        assert form == infer_call_form(texts, AT)


@pytest.mark.parametrize(
    "text", ["calling {tool} with {args}", "`{tool}`\n\n```json\n{args}\n```", "{tool} {args}", "**{tool}**: {args}"]
)
def test_a_name_and_a_json_object_with_words_around(text: str) -> None:
    rows = [("search", {"q": f"oak {i}"}) if i % 3 else ("open", {"page": i, "deep": {"a": 1}}) for i in range(12)]
    texts = [text.replace("{tool}", tool).replace("{args}", json.dumps(args)) for tool, args in rows]
    form = infer_call_form(texts, "@.body")
    assert form is not None and form.when is None, form
    for one, (tool, args) in zip(texts, rows, strict=True):
        assert re2.search(form.tool["re"], one).group(1) == tool
        assert json.loads(re2.search(form.arguments["re"], one).group(1)) == args
