"""The verdict in a reply: tolerant in form, strict in content. What is no verdict is an ERROR, never SAFE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from prefixguard.escalate.endpoint import Reply
from prefixguard.escalate.prompting import PromptKind
from prefixguard.escalate.verdict import Verdict
from prefixguard.stepview import StepRecord

#: Who may be blamed: agents only, or whoever acted.
Blame = Literal["agents", "anyone"]


def read_verdict(
    reply: Reply,
    records: Sequence[StepRecord],
    *,
    kind: PromptKind = PromptKind.ONLINE,
    blame: Blame = "agents",
    elided: Sequence[tuple[int, int]] = (),
    within: tuple[int, int] | None = None,
    aliases: Mapping[str, str] = MappingProxyType({}),
) -> Verdict:
    """The verdict in a reply on these records. Never raises for what a model said.

    elided: ranges of steps that were not shown (`Asked.elided`). within: the range that was halved, for BINARY_SEARCH;
    the verdict's step is then the first step of the half that was chosen. aliases: see AgentNames.
    """
    raise NotImplementedError
