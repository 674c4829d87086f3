"""Questions to a language model whose answers are kept, within a budget of tokens."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from prefixguard.errors import ConfigError
from prefixguard.escalate import Chat, Endpoint, json_objects, without_thoughts
from prefixguard.store import Kept, Store


class KeptAnswers:
    """Asks an endpoint for JSON objects. What was answered once is not asked again.

    endpoint: who is asked. store: of the replies. budget_tokens: sent and received in all, by this object; None: no
    limit. schema: of the object, for servers that hold a model to one.
    """

    def __init__(
        self, endpoint: Endpoint, store: Store, schema: Mapping[str, Any], budget_tokens: int | None = None
    ) -> None:
        if budget_tokens is not None and budget_tokens < 1:
            raise ConfigError(f"budget_tokens {budget_tokens}: 1 or more.")
        self.endpoint, self._store, self._left = endpoint, store, budget_tokens
        self._chat = Chat(endpoint, schema)

    def ask(self, what: str, messages: Sequence[Mapping[str, str]]) -> tuple[dict[str, Any] | None, str]:
        """The object that was answered, and "" ; or None, and why there is none, a clause.

        what: kind of question, a plain word. EndpointError where nobody answers.
        """
        digest = hashlib.sha256(json.dumps([dict(one) for one in messages]).encode()).hexdigest()
        asked = {"model": self.endpoint.model, "url": self.endpoint.shown, "question": digest}
        kept = self._store.get(what, **asked)
        if kept is None:
            if self._left is not None and self._left <= 0:
                return None, "the budget of tokens is spent"
            reply = self._chat.ask(messages)
            if self._left is not None:
                self._left -= reply.tokens_in + reply.tokens_out
            said = {"text": reply.text, "refusal": reply.refusal, "finish": reply.finish}
            kept = Kept({**said, "tokens_in": reply.tokens_in, "tokens_out": reply.tokens_out})
            self._store.put(kept, what, **asked)
        if kept.facts["refusal"]:
            return None, "the model refused"
        found = [one.value for one in json_objects(without_thoughts(str(kept.facts["text"]))) if one.value is not None]
        if not found:
            cut = kept.facts["finish"] in ("length", "limit")
            return None, "the reply was cut off" if cut else "the reply is no JSON object"
        return dict(found[-1]), ""
