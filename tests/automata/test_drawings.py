"""Every form that an automaton is written in: SVG, DOT, one HTML file, a glossary in Markdown. Each shows the scene or
the symbols, loads nothing, and no text of a run breaks out of its place."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_summary import HOSTILE, PERFORMANCE, invented_summary

from prefixguard.alarm import Level
from prefixguard.automata.page import page_data, page_json, to_page
from prefixguard.automata.page.glossary import NAME_LETTERS, SENTENCE_LETTERS, to_glossary
from prefixguard.automata.picture.dot import to_dot
from prefixguard.automata.picture.layout import lay_out
from prefixguard.automata.picture.scene import scene_of
from prefixguard.automata.picture.svg import to_svg
from prefixguard.automata.summary import AutomatonSummary, Fidelity
from prefixguard.automata.summary.state_figures import state_figures
from prefixguard.automata.summary.wording import one_line

FORMS: list[Callable[[AutomatonSummary], str | bytes]] = [to_svg, to_dot, to_page, to_glossary]
CARE = "Ranks little better than chance."


@pytest.mark.parametrize("write", FORMS)
def test_the_same_summary_gives_the_same_bytes(write: Callable[[AutomatonSummary], str | bytes]) -> None:
    one, two = (write(invented_summary(24, hostile=True)) for _ in range(2))
    assert one == two


@pytest.mark.parametrize("write", FORMS)
def test_care_is_said(write: Callable[[AutomatonSummary], str | bytes]) -> None:
    said, unsaid = (write(invented_summary(24, care=care)) for care in ((CARE,), ()))
    shown, quiet = (text.decode() if isinstance(text, bytes) else text for text in (said, unsaid))
    assert "Audit with care" in shown and CARE in shown
    assert "Audit with care" not in quiet.partition("<script")[0]
    assert "connections are drawn" in shown or write is to_glossary


# SVG


NAMESPACE = "{http://www.w3.org/2000/svg}"
#: All that a drawing needs; nothing that runs, loads or links.
HARMLESS = {"svg", "g", "title", "path", "polygon", "ellipse", "rect", "text", "desc"}


def parsed(picture: bytes) -> ET.Element:
    root = ET.fromstring(picture)
    assert root.tag == NAMESPACE + "svg"
    return root


def groups(root: ET.Element, kind: str) -> dict[str, ET.Element]:
    found = [group for group in root.iter(NAMESPACE + "g") if kind in group.attrib.get("class", "").split()]
    return {group.attrib["id"]: group for group in found}


@pytest.mark.parametrize(
    ("summary", "collapsed"),
    [
        (invented_summary(1, 3), False),
        (invented_summary(12, clock=(10, 20)), False),
        (invented_summary(64, 16), False),
        (invented_summary(64, 16), True),
        (invented_summary(150, 32), True),
        (invented_summary(12, hostile=True, care=HOSTILE), False),
    ],
    ids=["1 state", "clock", "64 states", "64 collapsed", "150 collapsed", "hostile"],
)
def test_it_shows_the_scene_and_nothing_from_outside(summary: AutomatonSummary, collapsed: bool) -> None:
    picture = to_svg(summary, collapsed=collapsed)
    root, scene = parsed(picture), scene_of(summary, collapsed=collapsed)
    nodes, edges = groups(root, "node"), groups(root, "edge")
    assert sorted(nodes) == sorted(node.key for node in scene.nodes)
    assert sorted(edges) == sorted(edge.key for edge in scene.drawn)
    for node in scene.nodes:
        shown = [text.text for text in nodes[node.key].iter(NAMESPACE + "text")]
        badge = [f"{sum(node.alarms):,}"] if sum(node.alarms) else []
        assert [text for text in shown if text != "start"] == [node.title, *node.lines, *badge]
        assert nodes[node.key].findtext(NAMESPACE + "title") == node.spoken
        body = [ellipse.attrib for ellipse in nodes[node.key].iter(NAMESPACE + "ellipse")]
        assert any(look.get("fill") == node.colour for look in body)
        assert any("stroke-dasharray" in look for look in body) == node.thin
    for edge in scene.drawn:
        assert [text.text for text in edges[edge.key].iter(NAMESPACE + "text")] == list(edge.label)
    assert {element.tag.removeprefix(NAMESPACE) for element in root.iter()} <= HARMLESS
    for element in root.iter():
        for name, value in element.attrib.items():
            assert "href" not in name and not name.startswith("on") and name != "style", name
            assert "url(" not in value
    assert picture.count(b"http") - picture.count(b"http://www.w3.org/2000/svg") == sum(
        (text or "").count("http")
        for element in root.iter()
        for text in (element.text, element.attrib.get("aria-label"))
    )
    assert not picture.count(b"<!")


@pytest.mark.parametrize("n_states", [1, 12, 24, 64])
@pytest.mark.parametrize("collapsed", [False, True])
def test_the_word_start_stands_beside_the_start(n_states: int, collapsed: bool) -> None:
    """Nearer to the start than to any other state, and not far from it."""
    summary = invented_summary(n_states, clock=(10, 20))
    nodes = groups(parsed(to_svg(summary, collapsed=collapsed)), "node")
    (start,) = [node.key for node in scene_of(summary, collapsed=collapsed).nodes if node.start]
    words = {key: [t for t in group.iter(NAMESPACE + "text") if t.text == "start"] for key, group in nodes.items()}
    assert [key for key, found in words.items() if found] == [start]
    (word,) = words[start]

    def away(key: str) -> float:
        """From the word to a state's outline."""
        ring = list(nodes[key].iter(NAMESPACE + "ellipse"))[-1].attrib
        dx, dy = (float(word.attrib[side]) - float(ring["c" + side]) for side in "xy")
        length = (dx * dx + dy * dy) ** 0.5
        return length * (1 - 1 / ((dx / float(ring["rx"])) ** 2 + (dy / float(ring["ry"])) ** 2) ** 0.5)

    far = {key: away(key) for key in nodes}
    assert min(far, key=lambda key: far[key]) == start and 0 < far[start] < 60


# DOT


DOT = shutil.which("dot")
needs_dot = pytest.mark.skipif(DOT is None, reason="Graphviz is not installed: no dot program to read the text with")


def read_by_dot(text: str) -> Any:
    """The graph as `dot` understands it, laid out by nothing."""
    assert DOT is not None
    done = subprocess.run([DOT, "-Tdot_json"], input=text.encode(), capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    assert b"syntax error" not in done.stderr
    return json.loads(done.stdout)


@needs_dot
@pytest.mark.parametrize(
    "summary",
    [
        invented_summary(1, 3),
        invented_summary(12, clock=(10, 20)),
        invented_summary(64, 16),
        invented_summary(12, hostile=True, care=HOSTILE),
    ],
    ids=["1 state", "clock", "64 states", "hostile"],
)
def test_dot_reads_the_very_nodes_and_edges_of_the_scene(summary: AutomatonSummary) -> None:
    graph, scene = read_by_dot(to_dot(summary)), scene_of(summary)
    nodes = {node["id"]: node for node in graph["objects"] if node.get("class") in ("node", "start")}
    others = {node.get("class", "column") for node in graph["objects"] if node.get("id") not in nodes}
    edges = {edge["id"]: edge for edge in graph["edges"] if edge.get("class") == "edge"}
    assert sorted(nodes) == sorted(node.key for node in scene.nodes)
    assert others <= {"level", "column"}
    assert sorted(edges) == sorted(edge.key for edge in scene.drawn)
    for edge in scene.drawn:
        label = edges[edge.key].get("label") or edges[edge.key]["xlabel"]
        assert unescaped(label) == "\n".join(edge.label)
    for node in scene.nodes:
        assert nodes[node.key]["fillcolor"] == node.colour
        assert ("dashed" in nodes[node.key]["style"]) == node.thin
        assert all(line in nodes[node.key]["label"] for line in (node.title, *node.lines))
        assert ("first alarm" in nodes[node.key]["label"]) == (sum(node.alarms) > 0)
        assert ("start" in nodes[node.key].get("xlabel", "")) == node.start


def unescaped(label: str) -> str:
    """A label as it is shown: `\\n` ends a line, `\\\\` is a backslash."""
    return html.unescape(label.replace("\\\\", "\0").replace("\\n", "\n").replace("\0", "\\"))


@needs_dot
@pytest.mark.parametrize(
    "text", [*HOSTILE, "<b>bold</b>", "<not closed", "\\", "\\\\", 'a"', "\\N\\E\\T", "/*", "#x", ""]
)
def test_any_gloss_is_a_label_and_nothing_else(text: str) -> None:
    summary = invented_summary(2, 2)
    entries = tuple(replace(entry, gloss=text) for entry in summary.entries)
    summary = replace(summary, name=text, entries=entries)
    graph, scene = read_by_dot(to_dot(summary)), scene_of(summary)
    shown = [
        unescaped(edge.get("label") or edge.get("xlabel")) for edge in graph["edges"] if edge.get("class") == "edge"
    ]
    assert sorted(shown) == sorted("\n".join(edge.label) for edge in scene.drawn)
    assert unescaped(graph["label"].replace("\\l", "\\n")).startswith(scene.name[:20])


# HTML


#: What the page is made of. An image, a frame, a form or a link that text brought in would stand out.
ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "a", "header", "h1", "bdi", "p", "section", "h2", "ul", "li"),
    *("dl", "div", "dt", "dd", "b", "noscript", "main", "button", "label", "span", "input", "svg", "rect", "g", "path"),
    *("polygon", "ellipse", "text", "select", "i", "details", "summary", "footer", "script", "desc"),
    *("table", "thead", "tbody", "tr", "th", "td", "small"),
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
        care = [one_line(sentence, 400) for sentence in HOSTILE]
        lines = read.texts["li"][read.texts["li"].index(care[0]) :]
        assert [text for text in lines if text][: len(HOSTILE)] == care


@pytest.mark.parametrize("hostile", [False, True], ids=["plain", "hostile"])
def test_the_data_come_back_as_they_are(hostile: bool) -> None:
    summary = invented_summary(64, 16, clock=(4, 9), hostile=hostile)
    read = Reader(to_page(summary))
    data = json.loads(read.texts["script"][0])
    assert data == json.loads(json.dumps(page_data(summary)))
    assert [symbol["gloss"] for symbol in data["symbols"]] == [one_line(entry.gloss, 120) for entry in summary.entries]
    assert [len(replay["steps"]) for replay in data["replays"]] == [len(replay.steps) for replay in summary.replays]
    assert data["states"][5]["columns"][1]["outcome"] == round(float(summary.automaton.risk[5, 1, 1]), 6)
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


def untried(summary: AutomatonSummary) -> AutomatonSummary:
    """The same, chosen among nothing else."""
    return replace(summary, origin=replace(summary.origin, tried=0, best=()))


def test_the_head_says_of_what_the_automaton_is_and_why_it_was_taken() -> None:
    summary = invented_summary(12)
    head = to_page(summary).decode().partition("What its alarms are worth")[0].replace("\u00a0", " ")
    for said in (
        "<b>900</b> of 300 tasks from airline.jsonl, read through adapter events 1.0.0; 306 failed.",
        "<b>400</b> training runs; risks were set on 130 held-out runs, thresholds on some of 130 others",
        "<dt>Agents</dt><dd><b>7</b> alpha 60 %, beta 30 % and 5 more",
        "<dt>Tools</dt><dd><b>9</b> get_user_details 40 % and 8 more",
        "<b>a7a7a7a7a7a7</b> SHA-256 of automaton.json",
        "<b>9e9e9e9e9e9e</b> id of the monitor that it was learned from (gru)",
        "2 combinations of symbols, states and clock were tried on folds of the training runs.",
        '<tr class=on><th scope="row" data-label="">taken</th><td class="words" data-label="alphabet, learner">typed',
    ):
        assert said in head, said
    assert "what it was chosen from" not in to_page(untried(summary)).decode()
    assert "90 % of its AUPRC" in head and "states: the most on one of the folds" in head


def test_that_symbols_are_an_ordered_list_is_said_where_they_are() -> None:
    said, other = "the first, by number, that holds", invented_summary(6)
    behaviours = replace(other, alphabet="behaviours")
    for write in (lambda of: to_page(of).decode(), to_glossary):
        assert said in write(behaviours) and said not in write(other)
    _, _, beside = to_page(behaviours).decode().partition('id="symbols"')
    assert said in beside.partition("</p>")[0]


def test_a_long_piece_of_advice_stands_whole() -> None:
    summary = invented_summary(6)
    long = replace(summary.ranked[0], flags=("word " * 400 + "the end.",))
    page = to_page(replace(summary, ranked=(long, *summary.ranked[1:]))).decode()
    assert "the end." in page.partition("What to change")[2].partition("</ul>")[0]


def test_figures_that_do_not_exist_are_left_out() -> None:
    nothing = Fidelity(None, None, None, None, None, float("nan"), 1, 1, ())
    page = to_page(untried(replace(invented_summary(2), fidelity=nothing))).decode()
    assert "AUPRC" not in page.partition("<main>")[0] and "1 test run (1 step)" in page


def test_fidelity_is_said_in_words_before_the_graph() -> None:
    page = to_page(invented_summary(6, care=(CARE,))).decode()
    assert page.index("Audit with care") < page.index(CARE) < page.index("<main>")
    assert "Measured on 240 test runs (3,720 steps) that neither of them learned from." in page


def test_the_auditors_questions_are_answered_first_and_in_order() -> None:
    """Whether to trust it, alarms, what to change with the states that alarm, and then the graph."""
    summary = invented_summary(12, care=(CARE,))
    page = to_page(summary).decode().partition("<script")[0].replace("\u00a0", " ")
    order = (summary.effect, "Audit with care", "What its alarms are worth", "agent alone", "What to change")
    order += ("Whose steps", "Its first alarms", "What it cannot see", "<main>")
    places = [page.index(one) for one in order]
    assert places == sorted(places)
    assert "41 of 82<small>50 % [40, 60]</small>" in page and "5 of 158<small>3.2 % [1, 6]</small>" in page
    assert "<b>.34</b> Cohen&#x27;s kappa" in page and "<b>36 of 52</b> 90 % intervals" in page
    assert "if the intervals are right, 44.2 would" in page
    assert "Training, held-out and test runs:" in page.partition("Audit")[0]
    worst = summary.ranked[0]
    assert f"State {worst.state} raises 12 of the 28 first alarms on failed runs and 0 on successful ones." in page
    assert page.count(summary.effect) == 1
    rows = re.findall(r'<th scope="row"[^>]*>(\d+)', page[page.index("Whose steps") : page.index("Its first alarms")])
    assert list(map(int, rows)) == [one.state for one in summary.ranked]
    assert "This may be no behaviour to change." in page
    unseen = page[page.index("What it cannot") :]
    assert "41 of 82 failed test runs raise no alarm. 30 of these 41 go through the same states" in unseen
    assert "writes: book_reservation (33 of 41; of successes 120 of 158)" in unseen and "of two tasks" in unseen
    assert "Failed: airline-01" in unseen and "Succeeded: airline-09" in unseen
    assert "Of the failures that raise no alarm 12 of 41, and of successes 3 of 158: The agent wrote a call" in page
    todo = page[page.index("What to change") : page.index("States by first")]
    items = [re.findall(r"<p>(.*?)</p>", item) for item in re.findall(r"<li>(.*?)</li>", todo)]
    assert items[0][0].startswith(f"State {worst.state} raises 12 of the 28")
    begin = ("State", "First alarms come at ", "At all of these: ", "To change: ", "As in run r0, step 7: “b")
    assert all(line.startswith(words) for line, words in zip(items[0], begin, strict=True))
    assert any(line.startswith("Against that: 92 % of its steps") for line in items[1])
    assert all(line.endswith((".", ":", "”")) for item in items for line in item)
    none = replace(summary, missed=replace(summary.missed, missed=0, twins=None))
    assert "Every failed test run raises an alarm." in to_page(none).decode()


def test_little_evidence_and_risks_on_the_threshold_are_said_above_the_states() -> None:
    summary = invented_summary(12, clock=(10, 20))
    state = summary.ranked[0].state
    edge = "The risk of a state stands on the threshold."
    ranked = (replace(summary.ranked[0], on_threshold=edge), *summary.ranked[1:])
    interval, runs = summary.automaton.interval.copy(), summary.automaton.evidence_runs.copy()
    interval[state], runs[state] = (0.0, 1.0), 0
    bare = replace(summary.automaton, interval=interval, evidence_runs=runs)
    whole = to_page(replace(summary, ranked=ranked, automaton=bare)).decode().replace("\u00a0", " ")
    page = whole.partition("<script")[0]
    assert page.index(edge) < page.index("What to change") and page.count(edge) == 2
    figures = state_figures(bare)
    thin = sum(one.failed + one.successful for one in ranked if figures[one.state].thin)
    assert thin >= 12 and f"{thin} of 30 first alarms came in states of thin evidence." in page
    assert "1 state has the interval .00–1.0: no held-out run was there" in page


def test_when_it_can_alarm_is_said_for_all_and_for_every_state() -> None:
    """Spans without held-out runs count: live their risks are read all the same."""
    summary = invented_summary(12, clock=(10, 20))
    risk = np.full_like(summary.automaton.risk, 0.3)
    state = next(one.state for one in summary.ranked if one.state != summary.automaton.start)
    risk[state, 2] = 0.7
    evidence = np.where(np.arange(3) == 2, 0, summary.automaton.evidence + 1)
    bare = replace(summary.automaton, risk=risk, evidence=evidence, stand_in=np.arange(12, dtype=np.int32))
    ranked = [replace(one, at=(20, 24, 26, 27) if one.state == state else ()) for one in summary.ranked]
    whole = to_page(replace(summary, automaton=bare, ranked=tuple(ranked))).decode().replace("\u00a0", " ")
    page = whole.partition("<script")[0]
    assert "No alarm before step 20: no state has a risk above the threshold earlier." in page
    late = tuple(replace(one, earliest=24) for one in ranked)
    later = to_page(replace(summary, automaton=bare, ranked=late)).decode().replace("\u00a0", " ")
    why = "no training or test run came to a state with a risk above the threshold earlier."
    assert f"No alarm before step 24: {why}" in later
    assert page.count("step 20 and later, .70, where no held-out run was") == 1
    calibrated = replace(bare, evidence=evidence + 1)
    page = to_page(replace(summary, automaton=calibrated, ranked=tuple(ranked))).decode().replace("\u00a0", " ")
    assert "step 20 and later, .70<" in page and "where no held-out run was" not in page
    risk[state, 0] = 0.7
    again = to_page(replace(summary, automaton=calibrated, ranked=tuple(ranked))).decode().replace("\u00a0", " ")
    again = re.sub(r'<span class="whole">([^<]*)</span>', r"\1", again)  # which keeps a range of numbers on one line
    between = "in between .30, for there runs fail less often"
    assert f"steps 1–9, .70; {between}; step 20 and later, .70<" in again and between not in page
    quiet = tuple(replace(one, at=()) for one in ranked)
    page = to_page(replace(summary, automaton=bare, ranked=quiet)).decode()
    assert "No alarm before" not in page


@pytest.mark.parametrize("collapsed", [False, True])
def test_a_level_that_is_said_where_no_state_stands_has_a_column(collapsed: bool) -> None:
    summary = invented_summary(12)
    low = replace(summary.automaton, risk=np.minimum(summary.automaton.risk, 0.6))
    summary = replace(summary, automaton=low, alarm=0.62, said=((Level.OK, 0.2), (Level.ALARM, 0.65)))
    scene = scene_of(summary, collapsed=collapsed)
    assert [scene.levels[number].says for number in scene.stateless_levels] == [Level.ALARM]
    found = parsed(to_svg(summary, collapsed=collapsed)).iter(NAMESPACE + "g")
    headings = [one for one in found if one.attrib.get("class") == "level"]
    assert [text.text for text in headings[-1].iter(NAMESPACE + "text")] == [
        *("ALARM", "above .62 to .75", "said: 50 % of steps", "no state", "has this as", "usual risk")
    ]
    laid = lay_out(scene)
    ends = [end for _, *span in laid.stripes for end in span]
    assert ends == sorted(ends) and laid.width == ends[-1] >= max(one.x + one.rx for one in laid.nodes)
    level = page_data(summary)["levels"][scene.stateless_levels[0]]
    assert (level["says"], level["used"]) == ("ALARM", True)
    used = [one["used"] for one in page_data(replace(summary, said=((Level.WATCH, 0.615),)))["levels"]]
    assert used[scene.stateless_levels[0] - 1] and used[-1] is False, "one that is said has its colour in the legend"
    assert scene_of(replace(summary, said=())).stateless_levels == ()


def test_advice_and_doubt_stand_on_the_page() -> None:
    summary = invented_summary(12)
    data = page_data(
        replace(summary, entries=tuple(replace(one, advice="Say what exists.") for one in summary.entries))
    )
    assert {one["advice"] for one in data["symbols"]} == {"Say what exists."}
    doubts = {one.state: one.doubt for one in summary.ranked}
    assert [one["doubt"] for one in data["states"]] == [doubts[state] for state in range(12)] and any(doubts.values())
    assert (
        next(filter(None, doubts.values())) in to_page(summary).decode().replace("\u00a0", " ").partition("<main>")[0]
    )


def test_what_one_should_know_of_the_alarms_is_said_before_their_figures() -> None:
    told = replace(PERFORMANCE, notes=("The test side is too small to say much.",), kappa=None, coverage=None)
    page = to_page(untried(replace(invented_summary(6), performance=told))).decode()
    assert page.index("The test side is too small") < page.index("41 of 82")
    assert "kappa" not in page.partition("<main>")[0]


def test_texts_of_steps_are_cut_to_the_bound_of_a_page_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from prefixguard.automata import page

    summary = invented_summary(12)
    long = tuple(
        replace(replay, steps=tuple(replace(step, texts=(("arrived", "long " * 2_000),)) for step in replay.steps))
        for replay in summary.replays
    )
    whole = to_page(replace(summary, replays=long))
    monkeypatch.setattr(page, "MOST_BYTES", len(whole) // 3)
    cut = to_page(replace(summary, replays=long))
    assert len(cut) <= len(whole) // 3
    steps = sum(len(replay.steps) for replay in long)
    for written, number, letters in ((whole, 0, 20_000), (cut, steps, 1_000)):
        data = json.loads(Reader(written).texts["script"][0])
        assert (data["cut"], data["letters"]) == (number, letters)
        assert len(data["replays"][0]["steps"][0]["texts"][0][1]) == min(letters, 10_000)


def test_the_text_beside_the_picture_says_what_it_shows() -> None:
    """Every state with its risk, from the highest down, and the busiest transitions."""
    summary = invented_summary(12)
    root, scene = parsed(to_svg(summary)), scene_of(summary)
    said = root.findtext(NAMESPACE + "desc") or ""
    spoken = [node.spoken for node in sorted(scene.nodes, key=lambda node: -node.risk)]
    places = [said.index(one) for one in spoken]
    assert places == sorted(places) and "of steps" in said
    busiest = scene.drawn[0]
    assert f"state {busiest.tail[1:]} to" in said and f"{busiest.count:,} times" in said
    assert root.attrib["aria-describedby"] == root.find(NAMESPACE + "desc").attrib["id"]  # type: ignore[union-attr]


# Markdown


markdown_it = pytest.importorskip("markdown_it")

#: Blocks and inlines of the glossary itself; what else comes out has broken out of a cell.
OURS = {
    *("heading_open", "heading_close", "inline", "paragraph_open", "paragraph_close"),
    *("blockquote_open", "blockquote_close", "table_open", "table_close", "thead_open", "thead_close"),
    *("tbody_open", "tbody_close", "tr_open", "tr_close", "th_open", "th_close", "td_open", "td_close"),
}


def blocks(text: str) -> list:  # type: ignore[type-arg]
    return markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)


def shown(inline) -> str:  # type: ignore[no-untyped-def]
    return "".join(child.content for child in inline.children)


@pytest.mark.parametrize("hostile", [False, True], ids=["plain", "hostile"])
def test_every_symbol_has_its_table_and_nothing_breaks_out(hostile: bool) -> None:
    summary = invented_summary(12, hostile=hostile, care=HOSTILE if hostile else ("Ranks little better than chance.",))
    tokens = blocks(to_glossary(summary))
    assert {token.type for token in tokens} <= OURS
    inlines = [token for token in tokens if token.type == "inline"]
    assert {child.type for inline in inlines for child in inline.children} <= {"text"}
    assert sum(token.type == "table_open" for token in tokens) == 2 + len(summary.entries)
    headings = [shown(after) for token, after in pairwise(tokens) if token.type == "heading_open"]
    of_symbols = [f"{entry.symbol}: {one_line(entry.gloss, NAME_LETTERS)}" for entry in summary.entries]
    assert headings[1:] == ["States", *of_symbols]
    cells = [shown(after) for token, after in pairwise(tokens) if token.type == "td_open"]
    for entry in summary.entries:
        for example in entry.examples:
            assert one_line(example, SENTENCE_LETTERS) in cells
        assert one_line(entry.condition, SENTENCE_LETTERS) in cells
        assert one_line(summary.does[1][entry.symbol], SENTENCE_LETTERS) in cells
    assert {one_line(what, SENTENCE_LETTERS) for what in summary.does[0]} <= set(cells)
    rows = 2 + len(summary.ranked) + len(summary.entries) * (1 + 1 + 8 + 3)
    assert sum(token.type == "tr_open" for token in tokens) == rows


def test_that_symbols_rest_on_earlier_steps_is_said_only_where_they_differ_in_it() -> None:
    summary = invented_summary(12)
    alike = replace(summary, entries=tuple(replace(one, reads_history=True) for one in summary.entries))
    assert to_glossary(summary).count("Rests on earlier steps") == len(summary.entries)
    assert "earlier steps" not in to_glossary(alike) and "History" not in to_glossary(alike)


def test_no_alarm_is_named_before_the_first_step_at_which_a_run_was_there() -> None:
    summary = invented_summary(12, clock=(4, 10))
    automaton = replace(summary.automaton, risk=np.full_like(summary.automaton.risk, 0.9))
    automaton.risk[:, 1] = 0.8
    known = replace(automaton, evidence=automaton.evidence + 1, stand_in=np.arange(12, dtype=np.int32))
    said = {}
    for earliest in (1, 3, 4, 10, 12):
        ranked = tuple(replace(one, earliest=earliest) for one in summary.ranked)
        states = page_data(replace(summary, automaton=known, ranked=ranked))["states"]
        said[earliest] = next(one["alarms_at"] for one in states if one["entered"])
    assert said[1] == "steps 1–3, .90; steps 4–9, .80; step 10 and later, .90"
    assert said[3] == said[1].replace("steps 1–3", "step 3") and said[4] == said[1].partition("; ")[2]
    assert said[10] == "step 10 and later, .90" and said[12] == "step 12 and later, .90"


def test_a_symbol_that_no_training_step_has_is_hidden() -> None:
    summary = invented_summary(12)
    never = replace(summary.entries[3], count=0, gloss="never seen")
    hidden = replace(summary, entries=(*summary.entries[:3], never, *summary.entries[4:]))
    assert "never seen" not in to_glossary(hidden) and f"{len(hidden.entries) - 1} symbols" in to_glossary(hidden)
    assert f"{len(hidden.entries) - 1} symbols".encode() in to_page(hidden)


@given(st.text(alphabet=st.sampled_from("a_*`|\\[]()<>!&;:/#~$ -w.\n1x"), min_size=1, max_size=24))
def test_any_text_is_taken_literally(text: str) -> None:
    summary = invented_summary(2, 2)
    odd = replace(summary.entries[0], gloss=f"a{text}", condition=f"b{text}", examples=(f"c{text}",))
    tokens = blocks(to_glossary(replace(summary, name=f"d{text}", entries=(odd, *summary.entries[1:]))))
    assert {token.type for token in tokens} <= OURS
    inlines = [token for token in tokens if token.type == "inline"]
    assert {child.type for inline in inlines for child in inline.children} <= {"text"}
    seen = {shown(inline) for inline in inlines}
    wanted = [one_line(f"{letter}{text}", NAME_LETTERS) for letter in "abcd"]
    assert {f"0: {wanted[0]}", *wanted[1:3], f"{wanted[3]}: symbols"} <= seen


def test_a_symbol_without_words_is_named_by_its_number() -> None:
    summary = invented_summary(3, 3)
    bare = replace(summary.entries[0], gloss="", condition="", terms=(), tools=(), statuses=(), examples=())
    text = to_glossary(replace(summary, entries=(bare, *summary.entries[1:])))
    assert "## 0: symbol 0" in text
    assert {token.type for token in blocks(text)} <= OURS


def test_expressions_that_do_not_explain_themselves_are_explained() -> None:
    summary = invented_summary(3, 3)
    condition = "words of runs that fail: the highest 9 % of steps; " + "failed steps so far = 0; " * 40 + "the end"
    scored = replace(summary.entries[0], condition=condition)
    meanings = ("The end: where it ends. " * 30, "Words: these.")
    told = replace(summary, entries=(scored, *summary.entries[1:]), expressions=meanings)
    tokens = blocks(to_glossary(told))
    texts = [shown(token) for token in tokens if token.type == "inline"]
    said = [text for text in texts if text.startswith("What the expressions mean. ")]
    assert said == ["What the expressions mean. " + meanings[0].strip()] and meanings[1] in texts
    assert condition in texts  # a definition is never cut
    assert "What the expressions mean" not in to_glossary(replace(summary, expressions=()))
    page = html.unescape(to_page(told).decode())
    assert all(" ".join(meaning.split()) in page for meaning in meanings)
