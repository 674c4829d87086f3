"""automaton.html as a file: one document that loads nothing, holds all data, and that no text can break out of."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from invented_summary import HOSTILE, invented_summary

from prefixguard.automata.page import page_data, page_json, to_page
from prefixguard.automata.summary import Fidelity
from prefixguard.automata.summary.wording import one_line

#: What the page is made of. An image, a frame, a form or a link that text brought in would stand out.
ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "a", "header", "h1", "bdi", "p", "section", "h2", "ul", "li"),
    *("dl", "div", "dt", "dd", "b", "noscript", "main", "button", "label", "span", "input", "svg", "rect", "g", "path"),
    *("polygon", "ellipse", "text", "select", "i", "details", "summary", "footer", "script"),
}


class Reader(HTMLParser):
    """Elements and the content of scripts and styles."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": [], "title": [], "li": [], "h1": []}
        self._open: list[str] = []
        self.feed(page.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in self.texts:
            self.texts[tag].append("")
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open[-1]][-1] += data


@pytest.mark.parametrize("hostile", [False, True], ids=["plain", "hostile"])
def test_nothing_breaks_out_and_nothing_is_loaded(hostile: bool) -> None:
    summary = invented_summary(12, hostile=hostile, care=HOSTILE if hostile else ())
    page = to_page(summary)
    read = Reader(page)
    assert {tag for tag, _ in read.elements} <= ELEMENTS
    assert [tag for tag, _ in read.elements].count("script") == 2
    for tag, attributes in read.elements:
        assert not {"src", "action", "data", "poster", "style", "srcset", "xlink:href"} & set(attributes), tag
        assert not [name for name in attributes if name.startswith("on")], tag
        assert (attributes.get("href") or "#").startswith("#")
    addresses = set(re.findall(rb"(?:https?:)?//[\w.]+", page))
    # The name of SVG, which nobody asks for, and quoted text.
    assert {address for address in addresses if b"//examp" not in address} <= {b"http://www.w3.org"}
    assert b"@import" not in page and b"url(" not in page
    if hostile:
        assert one_line(summary.name, 80) in (read.texts["h1"][0], read.texts["title"][0].removesuffix(": automaton"))
        assert [text for text in read.texts["li"] if text] == [one_line(sentence, 400) for sentence in HOSTILE]


@pytest.mark.parametrize("hostile", [False, True], ids=["plain", "hostile"])
def test_the_data_come_back_as_they_are(hostile: bool) -> None:
    summary = invented_summary(64, 16, clock=(4, 9), hostile=hostile)
    read = Reader(to_page(summary))
    data = json.loads(read.texts["script"][0])
    assert data == json.loads(json.dumps(page_data(summary)))
    assert [symbol["gloss"] for symbol in data["symbols"]] == [one_line(entry.gloss, 120) for entry in summary.entries]
    assert [len(replay["steps"]) for replay in data["replays"]] == [len(replay.steps) for replay in summary.replays]
    assert data["states"][5]["columns"][1]["outcome"] == round(float(summary.automaton.risk[5, 1, 1]), 4)
    raw = page_json(summary)
    assert raw.isascii() and not set("<>&") & set(raw)


def test_only_its_own_script_and_style_may_run() -> None:
    read = Reader(to_page(invented_summary(3)))
    (policy,) = [attrs["content"] or "" for tag, attrs in read.elements if attrs.get("http-equiv")]
    hashes = {
        kind: "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for kind, text in (("script", read.texts["script"][1]), ("style", read.texts["style"][0]))
    }
    assert policy == (
        f"default-src 'none'; style-src '{hashes['style']}'; script-src '{hashes['script']}'; base-uri 'none';"
        " form-action 'none'"
    )


def test_trace_text_is_never_parsed_as_markup() -> None:
    (script,) = [text for text in Reader(to_page(invented_summary(2))).texts["script"] if "use strict" in text]
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "DOMParser"):
        assert way not in script
    for way in ("fetch(", "XMLHttpRequest", "WebSocket", "EventSource", "sendBeacon", "import(", "localStorage"):
        assert way not in script


def test_the_same_atlas_gives_the_same_bytes() -> None:
    assert to_page(invented_summary(24, hostile=True)) == to_page(invented_summary(24, hostile=True))


@pytest.mark.parametrize("n_states", [1, 64, 150])
def test_any_size_makes_a_page(n_states: int) -> None:
    read = Reader(to_page(invented_summary(n_states, 16)))
    nodes = [attrs for tag, attrs in read.elements if tag == "g" and "node" in (attrs.get("class") or "").split()]
    states = [attrs["id"] for attrs in nodes if (attrs["id"] or "").startswith("s")]
    levels = [attrs["id"] for attrs in nodes if (attrs["id"] or "").startswith("l")]
    assert len(states) == n_states == len(set(states))
    assert bool(levels) == (n_states > 1)
    ids = [attrs["id"] for _, attrs in read.elements if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_care_is_said_first_and_fidelity_in_words() -> None:
    page = to_page(invented_summary(6, care=("Ranks little better than chance.",))).decode()
    assert page.index("Audit with care") < page.index("Ranks little better than chance.") < page.index("<main>")
    assert "Measured on 240 test runs (3,720 steps) that neither of them learned from." in page
    assert "Audit with care" not in to_page(invented_summary(6)).decode().partition("<script")[0]


def test_figures_that_do_not_exist_are_left_out() -> None:
    nothing = Fidelity(None, None, None, None, None, None, float("nan"), 1, 1, ())
    page = to_page(replace(invented_summary(2), fidelity=nothing)).decode()
    assert "AUPRC" not in page.partition("<main>")[0] and "1 test run (1 step)" in page
