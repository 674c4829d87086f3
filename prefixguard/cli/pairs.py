"""Options of the form KEY=VALUE that may be said several times."""

from __future__ import annotations

from prefixguard.errors import ConfigError

#: The example in the message of a --waive that is none.
WAIVE_EXAMPLE = "result=the tool says so live, too"


def pairs_of(given: list[str] | None, option: str, example: str) -> dict[str, str]:
    """KEY=VALUE, as often as it was said. ConfigError for what is none."""
    pairs = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not key.strip() or not equals or not value.strip():
            raise ConfigError(f"{option} {text!r}: KEY=VALUE is needed, such as {option} '{example}'.")
        pairs[key.strip()] = value.strip()
    return pairs
