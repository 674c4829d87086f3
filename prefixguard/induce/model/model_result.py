"""What came of asking a model."""

from __future__ import annotations

from dataclasses import dataclass

from prefixguard.induce.model.pack import Pack
from prefixguard.induce.model.transcript import Transcript
from prefixguard.induce.model.trial import Trial
from prefixguard.induce.proposal import Proposal


@dataclass(frozen=True, slots=True)
class ModelResult:
    """What came of asking a model.

    proposal: the best spec that compiles; None where there was none. ok: the checks found no error in it; otherwise it
    must not be frozen as it is. trial: what the checks said of it. why: a sentence: which proposal won and by what, or
    why there is none. rounds: replies that were read. cost: in the currency of the endpoint's prices; None where they
    are not known. estimated: some tokens were not counted by the server but by us (four characters each).
    """

    proposal: Proposal | None
    ok: bool
    why: str
    transcript: Transcript
    trial: Trial | None
    pack: Pack
    rounds: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    estimated: bool
    seconds: float

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    @property
    def bill(self) -> str:
        """Rounds, tokens, cost and time in a line."""
        about = "about " if self.estimated else ""
        cost = f"cost {self.cost:.4f}" if self.cost is not None else "cost unknown (name prices to see it)"
        return (
            f"{self.rounds} round(s), {about}{self.tokens_in:,} tokens in and {self.tokens_out:,} out, {cost}, "
            f"{self.seconds:.1f} s"
        )
