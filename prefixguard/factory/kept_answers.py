"""Questions to a language model whose answers are kept, within a budget of tokens."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prefixguard.errors import ConfigError
from prefixguard.escalate import AsyncClient, Chat, Endpoint, Message, Reply, json_objects, without_thoughts
from prefixguard.store import Kept, Store

#: Why there is no answer.
SPENT, REFUSED = "not asked: the budget was used up", "the model refused"
CUT_OFF, NO_OBJECT = "the reply was cut off", "the reply is no JSON object"


@dataclass(slots=True)
class TokenBudget:
    """Tokens, sent and received, and questions that several askers share.

    most, most_questions: in all, 1 or more; None: no limit. spent, questions: so far, replies that were kept before
    left out.
    """

    most: int | None = None
    most_questions: int | None = None
    spent: int = 0
    questions: int = 0

    def __post_init__(self) -> None:
        for name, most in (("budget_tokens", self.most), ("budget_questions", self.most_questions)):
            if most is not None and most < 1:
                raise ConfigError(f"{name} {most}: 1 or more.")

    @property
    def is_spent(self) -> bool:
        """Whether no further question may be put."""
        is_full = self.most_questions is not None and self.questions >= self.most_questions
        return is_full or (self.most is not None and self.spent >= self.most)


class KeptAnswers:
    """Asks an endpoint for JSON objects. What was answered once is not asked again.

    endpoint: who is asked. store: of the replies. budget: of tokens, shared or its own; None: no limit. schema: of the
    object, for servers that hold a model to one; None for free text.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        store: Store,
        schema: Mapping[str, Any] | None,
        budget: TokenBudget | int | None = None,
        *,
        concurrency: int = 16,
    ) -> None:
        self.endpoint, self._store = endpoint, store
        self._budget = budget if isinstance(budget, TokenBudget) else TokenBudget(budget)
        self._chat = Chat(endpoint, schema)
        self._client = AsyncClient(endpoint, schema, concurrency=concurrency)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be sent or written."""
        return self._client.secrets

    def ask(self, what: str, messages: Sequence[Message]) -> tuple[dict[str, Any] | None, str]:
        """The object that was answered, and "" ; or None, and why there is none, a clause.

        what: kind of question, a plain word. EndpointError where nobody answers.
        """
        asked = self._asked(messages, 0)
        kept = self._store.get(what, **asked)
        if kept is None:
            if self._budget.is_spent:
                return None, SPENT
            self._budget.questions += 1
            kept = self._keep(self._chat.ask(messages), what, asked)
        return _object_of(kept)

    async def ask_again(self, what: str, messages: Sequence[Message], sample: int) -> tuple[dict[str, Any] | None, str]:
        """`ask` on the running loop. sample: the same question with another number is another question."""
        asked = self._asked(messages, sample)
        kept = self._store.get(what, **asked)
        if kept is None:
            if self._budget.is_spent:
                return None, SPENT
            self._budget.questions += 1  # before the reply, since others are asked meanwhile
            kept = self._keep(await self._client.ask(messages), what, asked)
        return _object_of(kept)

    async def aclose(self) -> None:
        """Close the connections of `ask_again`."""
        await self._client.aclose()

    def _asked(self, messages: Sequence[Message], sample: int) -> dict[str, Any]:
        digest = hashlib.sha256(json.dumps([dict(one) for one in messages]).encode()).hexdigest()
        who = {"model": self.endpoint.model, "url": self.endpoint.shown, "temperature": self.endpoint.temperature}
        return {**who, "question": digest, "sample": sample}

    def _keep(self, reply: Reply, what: str, asked: Mapping[str, Any]) -> Kept:
        self._budget.spent += reply.tokens_in + reply.tokens_out
        said = {"text": reply.text, "refusal": reply.refusal, "finish": reply.finish}
        kept = Kept({**said, "tokens_in": reply.tokens_in, "tokens_out": reply.tokens_out})
        self._store.put(kept, what, **asked)
        return kept


def _object_of(kept: Kept) -> tuple[dict[str, Any] | None, str]:
    if kept.facts["refusal"] or kept.facts["finish"] == "content_filter":
        return None, REFUSED
    found = [one.value for one in json_objects(without_thoughts(str(kept.facts["text"]))) if one.value is not None]
    if found:
        return dict(found[-1]), ""
    return None, CUT_OFF if kept.facts["finish"] in ("length", "limit", "max_tokens") else NO_OBJECT
