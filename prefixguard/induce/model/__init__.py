"""Proposals of a language model, behind any endpoint that speaks chat completions."""
