"""Simulated worlds whose true risk is known: runs for the demo and for tests, never evidence about real agents."""

from prefixguard.simulation.corpus import WORLDS, generate, write_runs

__all__ = ["WORLDS", "generate", "write_runs"]
