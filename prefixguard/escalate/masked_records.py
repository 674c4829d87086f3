"""The steps of a run as a language model may see them: likely secrets masked in every field, before anything is cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from prefixguard.escalate.masking import Masker
from prefixguard.escalate.transcript_buffer import Hole, ShortenedStep, UnkeptStep
from prefixguard.stepview import StepRecord


@dataclass(frozen=True, slots=True)
class MaskedRecords:
    """records: as they may be shown. agents: names of agents that were masked, mark -> name. counts: different secrets
    that were masked, by kind."""

    records: tuple[StepRecord, ...]
    masker: Masker
    agents: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(cls, records: Sequence[StepRecord], *, mask: bool = True, known: Sequence[str] = ()) -> MaskedRecords:
        """Equal secrets have equal marks in all of the records, also in records before the one that tells that it is a
        secret. They are numbered as they come, so that the steps of a run are masked in the same way while it grows,
        until a later step tells of one in them.

        mask: False: the records as they are. known: secrets that are known, such as the endpoint's key.
        """
        masker = Masker(known, mask=mask)
        if not mask:
            return cls(tuple(records), masker)
        agents: dict[str, str] = {}
        masked = []
        told_by = []  # secrets met, after each record
        for record in records:
            agent = masker.mask(record.agent, names=True)
            if agent != record.agent:
                agents[agent] = record.agent
            masked.append(_masked(record, agent, masker))
            told_by.append(masker.masked)
        for i, record in enumerate(records):
            texts = (record.observation, record.action, record.arguments, record.result)
            if told_by[i] < masker.masked and masker.shows_later(texts, told_by[i]):
                masked[i] = _masked(record, masked[i].agent, masker)
        return cls(tuple(masked), masker, MappingProxyType(agents))

    @property
    def counts(self) -> dict[str, int]:
        """Different secrets that were masked, by kind."""
        return self.masker.counts


def _masked(record: StepRecord, agent: str, masker: Masker) -> StepRecord:
    tool = masker.mask(record.tool, names=True)
    if isinstance(record, UnkeptStep):
        return replace(record, agent=agent, tool=tool)
    missing = {hole.field: hole for hole in record.holes} if isinstance(record, ShortenedStep) else {}
    holes: list[Hole] = []

    def text_of(name: str) -> str:
        text: str = getattr(record, name)
        hole = missing.get(name)
        if hole is None:
            return masker.mask(text)
        remark = text[hole.begin : hole.end]
        head = masker.mask(text[: hole.begin], cut_after=True)
        holes.append(Hole(name, len(head), len(head) + len(remark), hole.left_out))
        return f"{head}{remark}{masker.mask(text[hole.end :], cut_before=True)}"

    shown = replace(
        record,
        agent=agent,
        tool=tool,
        observation=text_of("observation"),
        action=text_of("action"),
        arguments=text_of("arguments"),
        result=text_of("result"),
    )
    return replace(shown, holes=tuple(holes)) if isinstance(shown, ShortenedStep) else shown
