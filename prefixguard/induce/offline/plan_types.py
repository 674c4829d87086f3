"""How kinds of events are read: calls, results, speech, and what tells so."""

from __future__ import annotations

from dataclasses import dataclass, field

from prefixguard.induce.offline.call_forms import CallForm
from prefixguard.induce.offline.joins import Join
from prefixguard.induce.offline.shapes import CallShape
from prefixguard.induce.offline.speakers import Part
from prefixguard.induce.offline.texts import Said
from prefixguard.induce.offline.units import Column, Unit


@dataclass(slots=True)
class CallPlan:
    """A unit that is a call. inline: column of the result where the call carries it."""

    unit: Unit
    shape: CallShape
    call_id: Column | None
    inline: Column | None
    weight: float


@dataclass(slots=True)
class ResultPlan:
    """A unit that is a result. text: where it is."""

    unit: Unit
    text: Said
    call_id: Column | None
    weight: float


@dataclass(slots=True)
class KindPlan:
    """How one kind of event is read.

    part: what it is. said: its text. form: how calls stand in that text. agent: column of the speaker's name. speaker:
    path whose value is the speaker, where it is what tells kinds apart. sure: in [0, 1]. why: a sentence.
    called: its calls are read from another kind, where they ran.
    """

    own: Unit
    units: list[Unit]
    part: Part = Part.NOISE
    said: Said | None = None
    form: CallForm | None = None
    calls: list[CallPlan] = field(default_factory=list)
    results: list[ResultPlan] = field(default_factory=list)
    agent: Column | None = None
    sure: float = 0.5
    why: str = ""
    speaker: str | None = None
    called: bool = False


@dataclass(slots=True)
class Plans:
    """All kinds, the joins that hold, and how often calls of separate events stand open together."""

    kinds: list[KindPlan]
    joins: list[Join]
    matched: float
