"""Worlds in which runs can be played again from any decision on."""

from prefixguard.factory.environments.channel import Channel, HttpChannel, ProcessChannel
from prefixguard.factory.environments.opening import KNOWN_FAULTS, Environments, kinds_of, open_environment
from prefixguard.factory.environments.remote import RemoteEnvironment
from prefixguard.factory.environments.replayable import (
    WORLD_FAILED,
    Action,
    Decision,
    Proposal,
    ReplayableEnvironment,
    fault_of,
    outage_of,
)
from prefixguard.factory.environments.simulation import SimulationEnvironment
from prefixguard.factory.environments.tau2 import recorded_runs

__all__ = [
    "KNOWN_FAULTS",
    "WORLD_FAILED",
    "Action",
    "Channel",
    "Decision",
    "Environments",
    "HttpChannel",
    "ProcessChannel",
    "Proposal",
    "RemoteEnvironment",
    "ReplayableEnvironment",
    "SimulationEnvironment",
    "fault_of",
    "kinds_of",
    "open_environment",
    "outage_of",
    "recorded_runs",
]
