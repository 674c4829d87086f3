"""Worlds in which runs can be played again from any decision on."""

from prefixguard.factory.environments.opening import Environments, open_environment
from prefixguard.factory.environments.replayable import Action, Decision, Proposal, ReplayableEnvironment
from prefixguard.factory.environments.simulation import SimulationEnvironment

__all__ = [
    "Action",
    "Decision",
    "Environments",
    "Proposal",
    "ReplayableEnvironment",
    "SimulationEnvironment",
    "open_environment",
]
