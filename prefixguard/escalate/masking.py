"""Likely secrets, taken out of what is sent to a language model or kept of what it was sent.

Equal secrets get equal marks (`<masked email 2>`), so that an address or a key that comes again is known as the same.
All expressions are RE2, so no text can make one slow. A mask is a safety net and no proof: what must not leave the
machine should not be sent to an endpoint outside it.

What stays: numbers of orders and parcels, UUIDs, hashes and commits, ids of calls and messages, telephone numbers,
names and postal addresses of people.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from prefixguard.escalate import secret_shapes as shapes
from prefixguard.escalate.endpoint import masked
from prefixguard.escalate.transcript_buffer import Hole, ShortenedStep, UnkeptStep
from prefixguard.runtime.host import TURN
from prefixguard.stepview import CUT_MARK, StepRecord

#: Where something begins and ends, and its kind.
Span = tuple[int, int, str]

#: What is looked at of one text; the rest is not shown (see `mask`).
MAX_TEXT = 200_000
#: Characters around a token in which the id of an access key makes it that key's secret.
_NEAR = 300
#: No secret is shorter.
_SHORTEST = 6
_OPEN = b"<masked "
_CUTS = b"<masked cut "
#: Bytes of a secret that is looked for wherever nothing beside it tells; shorter ones as a word of their own.
_LEAST_AGAIN = 8
_CUT = CUT_MARK.encode()


class Masker:
    """Masks texts; the same secret has the same mark everywhere.

    >>> Masker().mask("key sk-abcdefghijklmnopqrstuv and again sk-abcdefghijklmnopqrstuv")
    'key <masked key 1> and again <masked key 1>'
    """

    def __init__(self, known: Sequence[str] = (), *, mask: bool = True) -> None:
        """known: secrets that are known to be secret, such as the key of the endpoint. mask: False: mask only those."""
        self.is_on = mask
        self._known = tuple(known)
        self._marks: dict[bytes, bytes] = {}
        self._kinds: Counter[str] = Counter()

    @property
    def counts(self) -> dict[str, int]:
        """Different secrets met, by kind: private-key, token, aws-id, key, cookie, password, email,
        card, cut (what a cut left of a word that may have been one)."""
        return dict(sorted(self._kinds.items()))

    @property
    def masked(self) -> int:
        """Number of different secrets met."""
        return self._kinds.total()

    def mask(self, text: str, *, names: bool = False, cut_before: bool = False, cut_after: bool = False) -> str:
        """The text with likely secrets as marks. What goes beyond MAX_TEXT is left out, and said. names: the
        text is a name (an id, a hash), which may look random and is no secret. cut_before, cut_after: the text is what
        was left at a cut. There, and at a cut within it (`CUT_MARK`), words are masked that may be half of a secret."""
        text = masked(text, self._known)
        if not self.is_on or len(text) < _SHORTEST:
            return text
        rest = len(text) - MAX_TEXT
        text = text[:MAX_TEXT]
        data = text.encode("utf-8", "replace")
        parts = data.split(_CUT)
        last = len(parts) - 1
        with TURN:
            found = [
                self._whole(part, names, cut_before or i > 0, cut_after or i < last) for i, part in enumerate(parts)
            ]
        if found != parts:
            text = _CUT.join(found).decode("utf-8", "replace")
        return text + (f" <{rest:,} more characters>" if rest > 0 else "")

    def mask_field(self, key: str, text: str) -> str:
        """As `mask`, for the text under a key: what `password` holds is a secret whatever it looks like."""
        name = key.encode("utf-8", "replace")[:200]
        with TURN:
            is_secret, is_name = (key.search(name) is not None for key in (shapes.SECRET_KEY, shapes.NAME_KEY))
        if self.is_on and text and is_secret:
            return self._mark("password", text.encode("utf-8", "replace")).decode()
        return self.mask(text, names=is_name)

    def mask_all(self, value: Any, key: str = "") -> Any:
        """JSON with every text masked, also where it stands before what tells that it is a secret; keys stay as they
        are."""
        before = self.masked
        found = self._all(value, key)
        return found if self.masked == before else self._all(value, key)

    def _all(self, value: Any, key: str) -> Any:
        if isinstance(value, str):
            return self.mask_field(key, value)
        if isinstance(value, dict):
            return {name: self._all(inner, str(name)) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._all(inner, key) for inner in value]
        return value

    def shows_later(self, texts: Iterable[str], known: int) -> bool:
        """Whether one of the texts has a secret that was met after the first `known` ones: it is to be masked again."""
        later = [secret.decode("utf-8", "replace") for secret in list(self._marks)[known:] if _is_known_again(secret)]
        return bool(later) and any(secret in text for text in texts for secret in later)

    def _mark(self, kind: str, secret: bytes) -> bytes:
        mark = self._marks.get(secret)
        if mark is None:
            self._kinds[kind] += 1
            mark = self._marks[secret] = f"<masked {kind} {self._kinds[kind]}>".encode()
        return mark

    def _whole(self, data: bytes, names: bool, cut_before: bool, cut_after: bool) -> bytes:
        is_open = {name: gate.search(data) is not None for name, gate in shapes.GATES.items()}
        for shape in shapes.SHAPES:
            if is_open[shape.gate]:
                data = self._shaped(shape, data)
        if not names:
            for find in _FINDERS:
                data = self._replaced(data, find(data))
            data = self._known_again(data)
        ends = [shapes.HALF_AT_END.search(data)] if cut_after else []
        ends += [shapes.HALF_AT_BEGIN.search(data)] if cut_before else []
        halves = [(*end.span(), "cut") for end in reversed(ends) if end is not None and shapes.may_be_half(end.group())]
        return self._replaced(data, halves)

    def _known_again(self, data: bytes) -> bytes:
        """Secrets that were told by what stood beside them, wherever they stand alone. Not words, nor what is short:
        they may mean something else there."""
        for secret, mark in self._marks.items():
            if secret in data and _is_known_again(secret) and not mark.startswith(_CUTS):
                if len(secret) >= _LEAST_AGAIN:
                    data = data.replace(secret, mark)
                else:
                    data = re.sub(rb"(?<![0-9A-Za-z])" + re.escape(secret) + rb"(?![0-9A-Za-z])", mark, data)
        return data

    def _shaped(self, shape: shapes.Shape, data: bytes) -> bytes:
        found: list[Span] = []
        for match in shape.pattern.finditer(data):
            begin = match.end(1) if shape.has_keep else match.start()
            end = match.start(shape.pattern.groups) if shape.has_rest else match.end()
            secret = data[begin:end]
            if shape.kind == "cookie":
                pairs = [one for one in shapes.COOKIE.finditer(secret) if shapes.is_cookie(one.group(1), one.group(2))]
                found += [(begin + one.start(2), begin + one.end(2), "cookie") for one in pairs]
            elif not secret.startswith(_OPEN) and (shape.accepts is None or shape.accepts(secret)):
                found.append((begin, end, shape.kind))
        return self._replaced(data, found)

    def _replaced(self, data: bytes, found: Iterable[Span]) -> bytes:
        """found: in order, none within another. The data itself where there is none."""
        pieces: list[bytes] = []
        at = 0
        for begin, end, kind in found:
            if begin >= at:
                pieces += (data[at:begin], self._mark(kind, data[begin:end]))
                at = end
        return b"".join((*pieces, data[at:])) if pieces else data


def _is_known_again(secret: bytes) -> bool:
    """Whether a secret is masked where nothing tells: it is no word and no short number."""
    return not secret.isalpha() if len(secret) >= _LEAST_AGAIN else len(secret) >= _SHORTEST and shapes.is_token(secret)


def total_masked(each: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Counts by kind, added up."""
    total: Counter[str] = Counter()
    for counts in each:
        total.update(counts)
    return dict(sorted(total.items()))


def masked_in_words(counts: Mapping[str, int]) -> str:
    """What was masked, as a sentence.

    >>> masked_in_words({"card": 1, "email": 12})
    'Masked in what is sent: 1 card, 12 email. To send texts as they are: --no-mask (mask=False).'
    """
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in sorted(counts.items())) or "nothing"
    return f"Masked in what is sent: {kinds}. To send texts as they are: --no-mask (mask=False)."


def _cards(data: bytes) -> Iterator[Span]:
    for run in shapes.DIGITS.finditer(data):
        for begin, end in shapes.card_numbers(data, run.start(), run.group()):
            if not _is_named(data, begin):
                yield begin, end, "card"


def _ibans(data: bytes) -> Iterator[Span]:
    for run in shapes.IBAN.finditer(data):
        end = shapes.iban_end(run.group())
        if end is not None:
            yield run.start(), run.start() + end, "iban"


def _random(data: bytes) -> Iterator[Span]:
    for match in shapes.TOKEN.finditer(data):
        begin, end = match.span()
        beside_id = end - begin == 40 and b"<masked aws-id" in data[max(begin - _NEAR, 0) : end + _NEAR]
        if shapes.is_random(match.group(), beside_id=beside_id) and not _is_named(data, begin):
            yield begin, end, "key"


def _is_named(data: bytes, begin: int) -> bool:
    """Whether what begins here is said to be a hash, a part of a file or the id of something."""
    return shapes.BEFORE_NAME.search(data[max(begin - 40, 0) : begin]) is not None


#: What is looked for by more than its shape, in this order.
_FINDERS: tuple[Callable[[bytes], Iterator[Span]], ...] = (_cards, _ibans, _random)


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

    texts: dict[str, Any] = {name: text_of(name) for name in ("observation", "action", "arguments", "result")}
    shown = replace(record, agent=agent, tool=tool, **texts)
    return replace(shown, holes=tuple(holes)) if isinstance(shown, ShortenedStep) else shown
