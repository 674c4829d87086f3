"""Nothing of the machine's own set-up reaches a test of this room."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
