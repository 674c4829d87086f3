"""The automaton as DOT, SVG and a page."""
