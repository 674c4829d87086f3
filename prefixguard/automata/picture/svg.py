"""The picture as SVG: through `dot` where it is there, else laid out and drawn here."""

from __future__ import annotations

import shutil
import subprocess
import xml.etree.ElementTree as ET

from prefixguard.automata.atlas import Atlas
from prefixguard.automata.picture.dot import dot_of
from prefixguard.automata.picture.drawing import PAPER, TEXT, arrow_head, draw
from prefixguard.automata.picture.scene import Scene, scene_of

#: Seconds that `dot` may take.
TIME_OUT = 60.0

_SHORTEST_ARROW = 6.0
_NAMESPACE = "{http://www.w3.org/2000/svg}"
_KEPT_CLASSES = {"node", "edge", "level", "start"}


def find_dot() -> str | None:
    """Path of the `dot` program, or None where Graphviz is not installed."""
    return shutil.which("dot")


def to_svg(atlas: Atlas, *, dot: str | None, collapsed: bool = False) -> bytes:
    """The automaton as an SVG document in UTF-8 that refers to nothing outside itself.

    dot: path of the `dot` program; None: the layout made here. Where `dot` fails or takes longer than `TIME_OUT`
    seconds, the layout made here takes its place and the legend says so. collapsed: levels of risk, not states.
    The same bytes for the same atlas, `dot` (its version and fonts) and machine; without `dot`, everywhere.

    Groups have a class (node, edge, level, start); a node's and an edge's id is its key in the scene.
    """
    scene = scene_of(atlas, collapsed=collapsed)
    if dot is None:
        return draw(scene).encode()
    try:
        return _through_dot(scene, dot)
    except (OSError, subprocess.SubprocessError, ET.ParseError) as problem:
        why = f"took longer than {TIME_OUT:g} s" if isinstance(problem, subprocess.TimeoutExpired) else "failed"
        return draw(scene, f"Laid out without Graphviz: dot {why}.").encode()


def _through_dot(scene: Scene, dot: str) -> bytes:
    done = subprocess.run(
        [dot, "-Tsvg"], input=dot_of(scene).encode(), capture_output=True, timeout=TIME_OUT, check=True
    )
    # What comes back holds only what was escaped into the DOT text; no entity of it is defined anywhere.
    root = ET.fromstring(done.stdout)
    spoken = {node.key: node.spoken for node in scene.nodes}
    for element in root.iter():
        element.tag = element.tag.removeprefix(_NAMESPACE)
    for group in root.iter("g"):
        _tidy(group, spoken)
    for graph in root.iter("g"):
        for start in [group for group in graph.findall("g") if "start" in group.attrib["class"]]:
            graph.remove(start)  # over the lines that pass, so that its word and arrow are seen
            graph.append(start)
    width, height = (_pixels(root.attrib[side]) for side in ("width", "height"))
    root.attrib.clear()
    root.attrib.update(
        {
            "xmlns": _NAMESPACE[1:-1],
            "width": f"{width:g}",
            "height": f"{height:g}",
            "viewBox": f"0 0 {width * 0.75:g} {height * 0.75:g}",
            "role": "img",
            "aria-label": f"Automaton {scene.name}",
        }
    )
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode").encode() + b"\n"


def _tidy(group: ET.Element, spoken: dict[str, str]) -> None:
    """Class and id as in a drawing made here; a title only where it says more than the label."""
    key = group.attrib.get("id", "")
    classes = [name for name in dict.fromkeys(group.attrib.pop("class", "").split()) if name in _KEPT_CLASSES]
    what = next((name for name in ("level", *classes) if name in classes), "graph")
    group.attrib["class"] = "node start" if "start" in classes else what
    if what not in ("node", "edge"):
        group.attrib.pop("id", None)
    for title in group.findall("title"):
        if what == "node":
            title.text = spoken[key]
        else:
            group.remove(title)
    if what == "node":  # centred here, whatever width the reader's font has
        middle = next(group.iter("ellipse")).attrib["cx"]
        words = [text for text in group.iter("text") if "start" in classes and text.text == "start"]
        for text in group.iter("text"):
            if text not in words:
                text.attrib.update({"text-anchor": "middle", "x": middle})
        for word in words:
            _start_arrow(group, word)
    if what == "level":
        for text in group.iter("text"):
            text.attrib["font-weight"] = "bold"
    if what == "edge":  # labels stay legible where lines cross them
        for text in group.iter("text"):
            text.attrib.update({"stroke": PAPER, "stroke-width": "3", "paint-order": "stroke"})
    if what == "graph":
        for paper in group.findall("polygon")[:1]:
            paper.attrib.update({"class": "paper", "fill": PAPER, "stroke": "none"})


def _start_arrow(group: ET.Element, word: ET.Element) -> None:
    """An arrow into the start, from the word that `dot` put beside it."""
    word.attrib.update({"class": "word", "stroke": PAPER, "stroke-width": "3", "paint-order": "stroke"})
    x, y, rx, ry = (
        max(float(ring.attrib[name]) for ring in group.iter("ellipse")) for name in ("cx", "cy", "rx", "ry")
    )
    size = float(word.attrib["font-size"])
    half = 1.3 * size  # of the word's width
    word_x, word_y = float(word.attrib["x"]) + half, float(word.attrib["y"]) - size / 3
    word.attrib.update({"text-anchor": "middle", "x": f"{word_x:.2f}"})
    dx, dy = x - word_x, y - word_y
    leaves = min(half / abs(dx) if dx else 1.0, 0.6 * size / abs(dy) if dy else 1.0)
    enters = 1 - 1 / max(((dx / rx) ** 2 + (dy / ry) ** 2) ** 0.5, 1.0)
    length = (dx * dx + dy * dy) ** 0.5
    if (enters - leaves) * length < _SHORTEST_ARROW:
        return  # the word touches its state
    tip, tail = ((word_x + part * dx, word_y + part * dy) for part in (enters, leaves))
    line = f"M{tail[0]:.1f} {tail[1]:.1f}L{tip[0]:.1f} {tip[1]:.1f}"
    group.append(ET.Element("path", {"d": line, "stroke": TEXT, "stroke-width": "1.6"}))
    group.append(ET.fromstring(arrow_head(tip, (dx / length, dy / length), 1.6, TEXT)))


def _pixels(length: str) -> float:
    """A length of `dot`, in points, as CSS pixels."""
    return float(length.removesuffix("pt")) / 0.75
