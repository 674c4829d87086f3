"""The DOT text: that the real `dot` reads it, and that no text of a run can break out of its label."""

from __future__ import annotations

import html
import json
import shutil
import subprocess
from dataclasses import replace
from typing import Any

import pytest
from invented_summary import HOSTILE, invented_summary

from prefixguard.automata.picture.dot import to_dot
from prefixguard.automata.picture.scene import scene_of
from prefixguard.automata.summary import AutomatonSummary

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


def test_the_same_summary_gives_the_same_text() -> None:
    assert to_dot(invented_summary(24)) == to_dot(invented_summary(24))


def test_care_and_rare_connections_are_said_in_the_legend() -> None:
    text = to_dot(invented_summary(24, care=("Ranks little better than chance.",)))
    assert "Audit with care: Ranks little better than chance." in text
    assert "connections are drawn" in text
