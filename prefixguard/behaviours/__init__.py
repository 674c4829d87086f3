"""What agents do, in words that people act on: a catalogue of behaviours, found step by step in fixed memory."""

from prefixguard.behaviours.behaviour import Behaviour, BehaviourFinding, BehaviourKind
from prefixguard.behaviours.catalogue import BY_NAME, CATALOGUE, CATALOGUE_SHA256, CONSEQUENCES
from prefixguard.behaviours.consequences import Consequence, consequence_of
from prefixguard.behaviours.declared import DeclaredBehaviours, load_behaviours
from prefixguard.behaviours.held import NONE_HELD, PLACES, held
from prefixguard.behaviours.observing import update
from prefixguard.behaviours.tracker import TRACKER_BYTES, BehaviourTracker, pack, start, unpack

__all__ = [
    "BY_NAME",
    "CATALOGUE",
    "CATALOGUE_SHA256",
    "CONSEQUENCES",
    "NONE_HELD",
    "PLACES",
    "TRACKER_BYTES",
    "Behaviour",
    "BehaviourFinding",
    "BehaviourKind",
    "BehaviourTracker",
    "Consequence",
    "DeclaredBehaviours",
    "consequence_of",
    "held",
    "load_behaviours",
    "pack",
    "start",
    "unpack",
    "update",
]
