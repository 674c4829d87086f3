"""The automaton as a picture: SVG, and DOT for other readers of graphs."""
