"""The SVG: one structure, no reference to anything outside."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from invented_summary import HOSTILE, invented_summary

from prefixguard.automata.picture.scene import scene_of
from prefixguard.automata.picture.svg import to_svg
from prefixguard.automata.summary import AutomatonSummary

NAMESPACE = "{http://www.w3.org/2000/svg}"
#: All that a drawing needs; nothing that runs, loads or links.
HARMLESS = {"svg", "g", "title", "path", "polygon", "ellipse", "rect", "text"}


def read(picture: bytes) -> ET.Element:
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
    root, scene = read(picture), scene_of(summary, collapsed=collapsed)
    nodes, edges = groups(root, "node"), groups(root, "edge")
    assert sorted(nodes) == sorted(node.key for node in scene.nodes)
    assert sorted(edges) == sorted(edge.key for edge in scene.drawn)
    for node in scene.nodes:
        shown = [text.text for text in nodes[node.key].iter(NAMESPACE + "text")]
        assert [text for text in shown if text != "start"] == [node.title, *node.lines]
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


@pytest.mark.parametrize("hostile", [False, True])
def test_the_same_atlas_gives_the_same_bytes(hostile: bool) -> None:
    assert to_svg(invented_summary(24, hostile=hostile)) == to_svg(invented_summary(24, hostile=hostile))


@pytest.mark.parametrize("n_states", [1, 12, 24, 64])
@pytest.mark.parametrize("collapsed", [False, True])
def test_the_word_start_stands_beside_the_start(n_states: int, collapsed: bool) -> None:
    """Nearer to the start than to any other state, and not far from it."""
    summary = invented_summary(n_states, clock=(10, 20))
    nodes = groups(read(to_svg(summary, collapsed=collapsed)), "node")
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


def test_150_states_are_drawn() -> None:
    assert len(groups(read(to_svg(invented_summary(150, 32))), "node")) == 150


def test_care_and_rare_connections_are_said_on_the_picture() -> None:
    summary = invented_summary(24, care=("Ranks little better than chance.",))
    shown = "".join(read(to_svg(summary)).itertext())
    assert "Audit with care: Ranks little better than chance." in shown
    assert "connections are drawn" in shown
