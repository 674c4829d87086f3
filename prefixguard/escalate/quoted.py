"""Does a quote stand in a step? Compared without what copying changes: white space, escapes, quotation marks."""

from __future__ import annotations

import re
import unicodedata

from prefixguard.stepview import StepRecord

#: Characters of one field, and of a quote, that are looked at.
MAX_FIELD = 1 << 20
MAX_QUOTE = 2000

_BACKSLASHES = re.compile(r"\\{2,}")
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|[nrtbf]|)")
_MARKS = str.maketrans(
    dict.fromkeys("\"'`\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u00b4", "'") | {"\u2011": "-"}
)
_GONE = re.compile(
    r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]+"
)
_OMISSION = re.compile(r"\[?\s?(?:\.{3}|\u2026)\s?\]?")


def plain(text: str) -> str:
    """A text as it is compared.

    >>> plain('He  said:\\n \u201cno\u201d') == plain(r'He said:\\n \\"no\\"')
    True
    """
    text = _ESCAPED.sub(lambda met: chr(int(met[1], 16)) if met[1] else "", _BACKSLASHES.sub(r"\\", text))
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")  # pairs of escapes are one character
    return _GONE.sub("", unicodedata.normalize("NFKC", text)).translate(_MARKS)


def stands_in(quote: str, record: StepRecord) -> bool:
    """Are these words in one field of the step? Words around an omission (...) must follow each other in order.

    A call counts as one field with its tool in front. A quote without a letter or digit stands nowhere.
    """
    pieces = [piece for piece in map(plain, _OMISSION.split(quote[:MAX_QUOTE])) if piece]
    if not any(char.isalnum() for piece in pieces for char in piece):
        return False
    fields = (record.observation, record.action, f"{record.tool} {record.arguments}", record.result)
    return any(_in_order(pieces, plain(field[:MAX_FIELD])) for field in fields)


def _in_order(pieces: list[str], text: str) -> bool:
    position = 0
    for piece in pieces:
        position = text.find(piece, position)
        if position < 0:
            return False
        position += len(piece)
    return True
