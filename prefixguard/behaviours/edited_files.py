"""Which files a call edits, and whether something ran after it: an edit of what was there, or a new file beside it.

A new file is written for the first time under a name that stood nowhere before, outside the folders of what is there;
or in a folder that the run has made. Whoever prepares a reproduction makes such files, and none of them is under test.
What is written again is edited, but for files below `/tmp`.
"""

from __future__ import annotations

import re
from typing import Final

from prefixguard.behaviours.consequences import Consequence
from prefixguard.behaviours.tracker import BehaviourTracker, name_hash
from prefixguard.context import ContextState
from prefixguard.encoder import Tokens, tokenize
from prefixguard.stepview import FIELDS, plain

#: What the key of a folder or file that the run has made is crossed with, among the names of tools.
_MADE: Final = 0xC2B2AE3D27D4EB4F
_TEMPORARY = re.compile(r"/(?:private/)?(?:var/)?tmp/|/dev/shm/")
_OBSERVATION: Final = FIELDS.index("observation")
_LONGEST: Final = 300


def tried_and_edited(
    t: BehaviourTracker, what: Consequence, tokens: Tokens, context: ContextState
) -> tuple[bool, bool]:
    """Whether something ran that may have tried edits out, and whether something was edited after it, or without it.

    Folders and files that are made are kept in `t`. tokens, context: of the step, and after it.
    """
    ran = edited = False
    here = ""
    for kind, path in what.effects:
        path = path[:_LONGEST]
        if kind == "cd":
            here = path
        elif kind == "runs":
            ran, edited = True, False
        elif kind == "folder":
            t.names.bump(name_hash(_last(path)) ^ _MADE)
        elif kind == "changes" or not _is_new(t, here, path, tokens, context):
            edited = True
    return ran, edited


def _is_new(t: BehaviourTracker, here: str, path: str, tokens: Tokens, context: ContextState) -> bool:
    """Whether a file that is written is new, and beside what is there. here: the folder that the command went to."""
    if _TEMPORARY.match(path):
        return True
    whole = path if path.startswith("/") or not here else f"{here}/{path}"
    *folders, _ = whole.split("/")
    if any(t.names.get(name_hash(folder) ^ _MADE) for folder in folders[-8:]):
        return not t.names.bump(name_hash(whole) ^ _MADE)
    beside = path.removeprefix("./").count("/") <= (2 if path.startswith("/") else 0)
    return beside and _stood_nowhere(_last(path), tokens, context)


def _stood_nowhere(name: str, tokens: Tokens, context: ContextState) -> bool:
    """Whether a word of the name is among the words that the run has not held before this call."""
    tags = bytes(range(1, len(FIELDS)))
    document = tags + plain(name, _LONGEST).encode() + bytes([len(FIELDS)])
    new = set(context.new_words.tolist()) - set(tokens.field(_OBSERVATION).tolist())
    return not new.isdisjoint(tokenize(document).hashes.tolist())


def _last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
