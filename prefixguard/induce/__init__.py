"""Writes adapters: offline inference, proposals of a language model, checks, freezing."""
