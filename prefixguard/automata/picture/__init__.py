"""The automaton as DOT, SVG and a page."""

from prefixguard.automata.picture.dot import to_dot
from prefixguard.automata.picture.page import to_page
from prefixguard.automata.picture.svg import find_dot, to_svg

__all__ = ["find_dot", "to_dot", "to_page", "to_svg"]
