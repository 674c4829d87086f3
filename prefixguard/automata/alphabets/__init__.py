"""Alphabets: from a step and its context to one symbol, fitted once, one kind a file."""
