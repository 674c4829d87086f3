"""Keys are taken out of everything that leaves the client, replies too: servers repeat what they were sent."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from prefixguard.escalate.endpoint import Endpoint, proxy_for

MASK = "<masked key>"
#: Characters. Shorter keys ("none") are words; of longer ones this much of the beginning tells which one it is.
_SHORTEST, _TELLING = 6, 8


def secrets_of(endpoint: Endpoint, key: str) -> tuple[str, ...]:
    """The key, and the passwords of the base URL and of the proxy where they have one: as they stand there,
    plain, and as they are sent; each also as JSON may write it, since answers are JSON within the text of a reply."""
    found = [key]
    for url in (endpoint.base_url, proxy_for(endpoint.url)):
        parts = urlsplit(url or "")
        if parts.password:
            plain = unquote(parts.password)
            sent = base64.b64encode(f"{unquote(parts.username or '')}:{plain}".encode()).decode()
            found += [parts.password, plain, sent]
    escaped = [json.dumps(secret)[1:-1].replace("/", slash) for secret in found for slash in ("/", "\\/")]
    return tuple(dict.fromkeys((*found, *escaped)))


def masked(text: str, secrets: Sequence[str]) -> str:
    """The text without the secrets, whole or cut off at their end.

    >>> masked("bad key abcdefghijkl; again: abcdefghij", ["abcdefghijkl"])
    'bad key <masked key>; again: <masked key>'
    """
    for secret in secrets:
        if len(secret) < _SHORTEST or secret[:_TELLING] not in text:
            continue
        for length in range(len(secret), min(len(secret), _TELLING) - 1, -1):
            text = text.replace(secret[:length], MASK)
    return text
