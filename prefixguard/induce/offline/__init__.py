"""Inference of an adapter from samples alone, without a model and without a list of known formats."""
