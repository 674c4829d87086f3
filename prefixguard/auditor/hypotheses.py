"""Failure modes as hypotheses, each verified against a whole run: does the run entail it, refute it, or neither?

The first question is asked alone and the others after it, all at once: a server that keeps prefixes has then read the
run. Whatever goes wrong with a question is an error of its hypothesis, counted apart, never a "neutral".

Source: VerifyMAS 3.1 and algorithm 1. Departures: errors are a fourth label; statements say what would refute them and
what they are taken for; the run is cut with its hypothesis outside the cut; one question may hold all hypotheses.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from prefixguard.auditor.failure_modes import MODES, FailureMode
from prefixguard.auditor.hypothesis_answers import (
    HypothesisAnswer,
    HypothesisLabel,
    failed,
    label_probability,
    read_one,
    read_several,
)
from prefixguard.errors import ConfigError, EndpointError
from prefixguard.escalate import (
    AgentNames,
    Client,
    MaskedRecords,
    Message,
    NoReplyError,
    Reply,
    RunExcerpt,
    fit,
    shown_name,
)
from prefixguard.stepview import StepRecord

_FOLDER = Path(__file__).parent
_WORDING = json.loads((_FOLDER / "wording.json").read_bytes())


def _prompts(
    excerpt: RunExcerpt, names: AgentNames, modes: Sequence[FailureMode], *, batch: bool
) -> list[tuple[Message, ...]]:
    """A prompt about each mode, or one about all. All begin with the same text, up to their questions."""
    if batch:
        statements = "\n".join(f"- {m.code}: {m.hypothesis} Against it: {m.against}." for m in modes)
        questions = ["\n".join(_WORDING["all"]).format(statements=statements)]
    else:
        of_code, one = {mode.code: mode.name for mode in MODES}, "\n".join(_WORDING["one"])
        questions = [
            one.format(
                hypothesis=mode.hypothesis,
                against=mode.against,
                near="; ".join(of_code[code] for code in mode.near if code in of_code) or "nothing in particular",
            )
            for mode in modes
        ]
    agents = "\n".join(f"- {shown_name(name)}" for name in names.names)
    after, system = _WORDING["after"].format(mark=excerpt.mark), "\n".join(_WORDING["system"])
    head = f"{excerpt.text}\n\n{after}\n\n{_WORDING['agents']}\n{agents}\n\n"
    return [({"role": "system", "content": system}, {"role": "user", "content": head + one}) for one in questions]


def hypothesis_prompts(
    records: Sequence[StepRecord], modes: Sequence[FailureMode], budget_tokens: int
) -> list[tuple[Message, ...]]:
    """What `verify` asks about each of these modes. records: as they may be shown (`MaskedRecords`)."""
    return _prompts(fit(records, budget_tokens), AgentNames.of(records), modes, batch=False)


def _version() -> str:
    texts = b"".join((_FOLDER / name).read_bytes() for name in ("wording.json", "modes.json"))
    return f"hypotheses-{_WORDING['version']}-{hashlib.sha256(texts).hexdigest()[:12]}"


#: Which wording asks: its number, and a hash of all its texts.
PROMPT_VERSION = _version()


#: Tokens of transcript a question holds where nothing else is said.
DEFAULT_BUDGET = 24_000


@dataclass(frozen=True, slots=True)
class HypothesisResult:
    """What a verifier says of all failure modes of a run.

    answers: code -> answer, one for every mode that was asked about, in their order.
    replies: as they came, in the order of the questions; questions without a reply have none. questions: how many were
    put.
    elided, cut_steps: what the verifier could not see of the run, see `RunExcerpt`.
    masked: different secrets that were masked in the records, by kind.
    """

    answers: Mapping[str, HypothesisAnswer]
    replies: tuple[Reply, ...]
    questions: int
    prompt_version: str
    elided: tuple[tuple[int, int], ...]
    cut_steps: tuple[int, ...]
    masked: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """(agent, code) of every entailed mode and every agent that is blamed for it."""
        return frozenset((agent, a.code) for a in self.answers.values() for agent in a.agents)

    @property
    def modes(self) -> frozenset[str]:
        """Codes of the entailed modes, also of those for which no agent of the run was named."""
        return frozenset(a.code for a in self.answers.values() if a.label is HypothesisLabel.ENTAIL)

    @property
    def agents(self) -> frozenset[str]:
        """Who is blamed for anything."""
        return frozenset(agent for agent, _ in self.pairs)

    @property
    def counts(self) -> dict[str, int]:
        """Label -> how many modes have it; all four labels, errors among them."""
        met = Counter(a.label for a in self.answers.values())
        return {label.value: met[label] for label in HypothesisLabel}

    @property
    def errors(self) -> int:
        """Modes about which nothing is known."""
        return self.counts[HypothesisLabel.ERROR]

    @property
    def taken(self) -> dict[str, Any]:
        """tokens_in, tokens_out: of all replies, estimated where `estimated`. seconds: of all questions, added up."""
        return {
            "tokens_in": sum(reply.tokens_in for reply in self.replies),
            "tokens_out": sum(reply.tokens_out for reply in self.replies),
            "estimated": any(reply.estimated for reply in self.replies),
            "seconds": math.fsum(reply.seconds for reply in self.replies),
        }

    def as_json(self) -> dict[str, Any]:
        """Answers, sets and counts as plain values."""
        return {
            "answers": [answer.as_json() for answer in self.answers.values()],
            "pairs": sorted([agent, code] for agent, code in self.pairs),
            "counts": self.counts,
            "questions": self.questions,
            "prompt_version": self.prompt_version,
            **self.taken,
            "elided": [list(part) for part in self.elided],
            "cut_steps": list(self.cut_steps),
            "masked": dict(self.masked),
        }


async def verify(
    records: Sequence[StepRecord],
    client: Client,
    *,
    modes: Sequence[FailureMode] = MODES,
    aliases: Mapping[str, str] = MappingProxyType({}),
    budget_tokens: int = DEFAULT_BUDGET,
    batch: bool = False,
    threshold: float | None = None,
    seconds: float | None = None,
    mask: bool = True,
) -> HypothesisResult:
    """Every mode against the run.

    records: the whole run, in order. aliases: other names of its agents, said -> name. budget_tokens: of the transcript
    in each question. batch: one question for all modes: one reading of the run even where the server keeps no prefixes,
    but the answers see each other. seconds: for each question, at most.
    threshold: in (0, 1]; a mode counts as entailed only where the verifier gave its "entail" at least this probability,
        else as NEUTRAL, with a note. It asks for log-probabilities; where the server sends none, or they cannot be
        brought in line with the reply, the label counts as said, with a note.
    mask: mask likely secrets of the records (`Masker`) before they are cut to the budget and sent.
    Never raises for what the endpoint does; ConfigError where the options are out of range.
    """
    if not modes:
        raise ConfigError("no failure modes to verify: name at least one.")
    if threshold is not None and not 0 < threshold <= 1:
        raise ConfigError(f"threshold {threshold}: a probability above 0, at most 1.")
    shown = MaskedRecords.of(records, mask=mask, known=getattr(client, "secrets", ()))
    names = AgentNames.of(shown.records, aliases)
    excerpt, codes = fit(shown.records, budget_tokens), [mode.code for mode in modes]
    prompts = _prompts(excerpt, names, modes, batch=batch)

    async def put(one: tuple[Message, ...]) -> Reply | HypothesisAnswer:
        try:
            return await client.ask(one, seconds=seconds, logprobs=threshold is not None)
        except EndpointError as exc:
            return failed(exc.fault.value if isinstance(exc, NoReplyError) else "no-answer", str(exc))

    came = [await put(prompts[0])]
    came += await asyncio.gather(*(put(one) for one in prompts[1:]))
    answers: dict[str, HypothesisAnswer] = {}
    of_all = _read(came[0], names, codes) if batch else {}
    for code, reply in zip(codes, came * len(codes) if batch else came, strict=True):
        read = of_all[code] if batch else _read(reply, names, None)[""]
        answers[code] = _after_threshold(replace(read, code=code), reply, threshold, shown)
    return HypothesisResult(
        answers=MappingProxyType(answers),
        replies=tuple(reply for reply in came if isinstance(reply, Reply)),
        questions=len(prompts),
        prompt_version=PROMPT_VERSION,
        elided=excerpt.elided,
        cut_steps=excerpt.cut_steps,
        masked=shown.counts,
    )


def _read(
    reply: Reply | HypothesisAnswer, names: AgentNames, codes: Sequence[str] | None
) -> dict[str, HypothesisAnswer]:
    """Answers by code; by "" where one hypothesis was asked about (codes is None)."""
    keys = [""] if codes is None else codes
    if isinstance(reply, HypothesisAnswer):
        return dict.fromkeys(keys, reply)
    if reply.refusal and not reply.text.strip():
        return dict.fromkeys(keys, failed("refusal", f"The model declines: {reply.refusal[:200]}", reply.refusal))
    cut = reply.finish in ("length", "limit", "max_tokens")
    thought = bool(reply.reasoning.strip()) and not reply.text.strip()  # some servers send all of it as reasoning
    text = reply.reasoning if thought else reply.text
    read = {"": read_one(text, names, cut=cut)} if codes is None else read_several(text, names, codes, cut=cut)
    if not thought:
        return read
    note = "the answer stood in the reasoning"
    return {key: replace(one, label_at=None, notes=(*one.notes, note)) for key, one in read.items()}


def _after_threshold(
    read: HypothesisAnswer, reply: Reply | HypothesisAnswer, threshold: float | None, shown: MaskedRecords
) -> HypothesisAnswer:
    """The answer with the run's own names of agents; an "entail" that is not probable enough is NEUTRAL."""
    answer = replace(read, agents=tuple(shown.agents.get(agent, agent) for agent in read.agents))
    if threshold is None or read.label is HypothesisLabel.ERROR:
        return answer
    probability = None
    if read.label_at is not None and isinstance(reply, Reply):
        probability = label_probability(reply, read.label_at)
    if probability is None:
        return replace(answer, notes=(*read.notes, "no log-probability of the label; it counts as said"))
    if read.label is not HypothesisLabel.ENTAIL or probability >= threshold:
        return replace(answer, probability=probability)
    note = f"entail was said with probability {probability:.2f}, below {threshold:g}"
    notes = (*read.notes, note)
    return replace(answer, label=HypothesisLabel.NEUTRAL, agents=(), probability=probability, notes=notes)
