"""Simulated worlds whose true risk is known: runs for the demo and for tests, never evidence about real agents."""

from prefixguard.simulation.corpus import WORLDS, generate, write_runs
from prefixguard.simulation.steering import AGENTS, Choice, PlayedRun, Turn, play

__all__ = ["AGENTS", "WORLDS", "Choice", "PlayedRun", "Turn", "generate", "play", "write_runs"]
