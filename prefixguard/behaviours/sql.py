"""What a statement of SQL does. In it `>` compares, and lines and quotes of names are its own: it is no command.

>>> read_sql("select a from b\\nwhere c > 150"), read_sql("Update a Set b = 1"), read_sql("create notes.txt")
(('reads', 'select'), ('writes', 'update'), None)
"""

from __future__ import annotations

import re

_READS = (
    r"(?P<read>select)\b(?!\s+\w+\s+in\s+[^\s(])",  # `select NAME in WORDS` is the shell's
    r"(?P<shown>show|describe|desc|explain|pragma|use)\s+[\w`\"\[(<]",
    r"(?P<named>with)\s+(?:recursive\s+)?[\w`\"]+(?:\s*\([^()]*\))?\s+as\s+(?:(?:not\s+)?materialized\s+)?\(",
)
_OBJECT = (
    r"(?:or\s+replace\s+)?(?:(?:global|local|temp|temporary|unique|external|unlogged|virtual|materialized|fulltext)\s+)*"
    r"(?:table|view|index|database|schema|trigger|function|procedure|sequence|user|role|type|column|event)\b"
)
_CHANGES = (
    r"(?P<add>insert|replace|merge)\s+(?:(?:or\s+\w+|ignore|low_priority|delayed)\s+)?(?:into|overwrite)\b",
    r"(?P<set>update)\s[^;]{1,300}?\sset\s",
    r"(?P<remove>delete)\s+from\b",
    r"(?P<empty>truncate)\s+table\b",
    rf"(?P<make>create|drop|alter)\s+{_OBJECT}",
    r"(?P<allow>grant|revoke)\s[^;]{1,300}?\s(?:to|from)\s",
)
#: Blanks, comments and brackets before the first word.
_BEFORE = r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*"
_STATEMENT = re.compile(_BEFORE + "(?:" + "|".join((*_READS, *_CHANGES)) + ")", re.IGNORECASE | re.DOTALL)
#: What a statement that begins with its named parts does in the end.
_IN_THE_END = re.compile(r"\)\s*(?:insert\s+into|update\s+\S+\s+set|delete\s+from)\b", re.IGNORECASE)
_TEXTS = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"")
_LOOKED_AT = 4_000
_CHANGING = frozenset(("add", "set", "remove", "empty", "make", "allow"))


def read_sql(text: str) -> tuple[str, str] | None:
    """What a text does that begins as a statement of SQL, in any case of letters: "writes" where one of its statements
    changes something, else "reads"; and the word that tells it. None where it does not begin as one.

    text: its first 4,000 characters are looked at.
    """
    parts = _TEXTS.sub("''", text[:_LOOKED_AT]).split(";")
    told = ""
    for part in parts:
        found = _STATEMENT.match(part)
        if found is None:
            if not told:
                return None
            continue
        group, word = found.lastgroup or "", found[found.lastgroup or 0].lower()
        if group in _CHANGING or (group == "named" and _IN_THE_END.search(part)):
            return "writes", word
        told = told or word
    return "reads", told
