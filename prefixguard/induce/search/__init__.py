"""Offline inference as one search: families of formats make candidate specs, the interpreter runs each of them on the
samples, and one objective says which reads them best."""
