"""The picture as SVG: through `dot` where it is there, else laid out and drawn here."""

from __future__ import annotations

import shutil
import subprocess
import xml.etree.ElementTree as ET

from prefixguard.automata.atlas import Atlas
from prefixguard.automata.picture.dot import dot_of
from prefixguard.automata.picture.drawing import PAPER, draw
from prefixguard.automata.picture.scene import Scene, scene_of

#: Seconds that `dot` may take.
TIME_OUT = 60.0

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
    what = next((name for name in ("level", "start", *classes) if name in classes), "graph")
    group.attrib["class"] = what
    if what not in ("node", "edge"):
        group.attrib.pop("id", None)
    for title in group.findall("title"):
        if what == "node":
            title.text = spoken[key]
        else:
            group.remove(title)
    if what == "node":  # centred here, whatever width the reader's font has
        middle = next(group.iter("ellipse")).attrib["cx"]
        for text in group.iter("text"):
            text.attrib.update({"text-anchor": "middle", "x": middle})
    if what == "level":
        for text in group.iter("text"):
            text.attrib["font-weight"] = "bold"
    if what == "edge":  # labels stay legible where lines cross them
        for text in group.iter("text"):
            text.attrib.update({"stroke": PAPER, "stroke-width": "3", "paint-order": "stroke"})
    if what == "graph":
        for paper in group.findall("polygon")[:1]:
            paper.attrib.update({"class": "paper", "fill": PAPER, "stroke": "none"})


def _pixels(length: str) -> float:
    """A length of `dot`, in points, as CSS pixels."""
    return float(length.removesuffix("pt")) / 0.75
