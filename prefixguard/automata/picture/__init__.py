"""The automaton as DOT, SVG and a page."""

from prefixguard.automata.picture.dot import to_dot
from prefixguard.automata.picture.drawing import to_svg
from prefixguard.automata.picture.page import to_page

__all__ = ["to_dot", "to_page", "to_svg"]
