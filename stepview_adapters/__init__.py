"""Frozen adapters, one JSON document each, with golden samples under `golden/NAME/`. Data only."""
