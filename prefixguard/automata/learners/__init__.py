"""Learners: symbol strings to the transitions of an automaton, one algorithm a file."""
