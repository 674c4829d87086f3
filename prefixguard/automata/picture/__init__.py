"""The automaton as a picture: SVG, and DOT for other readers of graphs."""

from prefixguard.automata.picture.dot import to_dot
from prefixguard.automata.picture.drawing import to_svg

__all__ = ["to_dot", "to_svg"]
