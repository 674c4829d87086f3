"""Finished work, kept on disk: what takes long is done once, and a call that was interrupted goes on where it stopped.

Everything that takes long keeps its pieces here: the epochs of a training, fits of folds, replies of language models.

What it guarantees:

- *Keyed by what was asked.* A piece is found again only by a question that is equal in every part. Work that was asked
  otherwise lies beside it in the same folder, neither taken up nor overwritten.
- *Whole or not at all.* A file is written beside its place and renamed into it. A reader finds the old piece, the new
  one or none, whenever the process ends, and of several processes that write the same piece one wins.
- *Damage is absence.* A file whose digest is not that of its content counts as not there, and its work is done again.
  So do files of another format: what release 0.3 and older kept (`protocol.json`, `.npz`) is never read.
- *Nothing is run.* A file holds text, numbers and plain numeric arrays; reading one executes nothing.

It does not guarantee that a piece outlives a loss of power in the second after it was written.

A file is one line with format and SHA-256 of the rest, one line of JSON (`what`, `asked`, `facts`, and name, type and
shape of each array), and the arrays, one after the other, as their bytes in C order.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.errors import OutputError

FORMAT = "prefixguard/kept/v1"
_SUFFIX, _PART = ".kept", ".part"
#: Called with the number of pieces that are done, and of all. Every work that takes long tells its progress so.
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Kept:
    """A finished piece of work. facts: plain JSON values, also NaN and infinities. arrays: of numbers or bools."""

    facts: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


class Store:
    """A folder of finished work. It is made when the first piece is kept, and may be used by several threads.

    folder : of the files; None keeps nothing, and finds nothing.
    common : what is asked of every piece beside its own question, plain JSON values.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, common: Mapping[str, Any] | None = None) -> None:
        self.folder = None if folder is None else Path(folder)
        self._common = dict(common or {})

    def get(self, what: str, **asked: Any) -> Kept | None:
        """The piece of work that was asked for so; None where it is not there, or damaged.

        what : kind of work, a plain word that begins the name of the file. asked : plain JSON values.
        """
        if self.folder is None:
            return None
        path, question = self._place(self.folder, what, asked)
        found = _read(path)
        return None if found is None or found[0] != question else found[1]

    def put(self, kept: Kept, what: str, **asked: Any) -> None:
        """Keep a piece under what it answers; one that is there is replaced.

        Raises OutputError where the folder cannot be written.
        """
        if self.folder is None:
            return
        path, question = self._place(self.folder, what, asked)
        part = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}{_PART}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            part.write_bytes(_written(question, kept))
            part.replace(path)
        except OSError as exc:
            raise OutputError(f"{path}: cannot be written ({exc.strerror}). Name a folder with room.") from exc
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)

    def each(self, what: str) -> Iterator[tuple[dict[str, Any], Kept]]:
        """All whole pieces of a kind, whatever they answer, in the order of their files' names: what was asked, and the
        piece."""
        if self.folder is not None:
            for path in sorted(self.folder.glob(f"{what}-*{_SUFFIX}")):
                found = _read(path)
                question = {} if found is None else json.loads(found[0])
                if found is not None and question["what"] == what:
                    yield question["asked"], found[1]

    def clear(self) -> None:
        """Remove all that is kept, whatever it answers, and the folder if nothing else is in it."""
        if self.folder is not None and self.folder.is_dir():
            for path in (*self.folder.glob(f"*{_SUFFIX}"), *self.folder.glob(f".*{_PART}")):
                path.unlink(missing_ok=True)
            if not any(self.folder.iterdir()):
                self.folder.rmdir()

    def outdated(self) -> str:
        """A sentence where the folder holds what release 0.3 or older kept; else empty."""
        if self.folder is None:
            return ""
        older = ["protocol.json", "*/protocol.json", "*/*/protocol.json"]
        older += ["*.npz"] if self.folder.suffix == ".training" else []
        first = next((path for pattern in older for path in self.folder.glob(pattern)), None)
        said = "kept by release 0.3 or older. It is not taken up, and can be removed."
        return "" if first is None else f"{first}: {said}"

    def _place(self, folder: Path, what: str, asked: Mapping[str, Any]) -> tuple[Path, str]:
        """File of a question, and the question as text."""
        question = json.dumps({"what": what, "asked": {**self._common, **asked}}, sort_keys=True)
        return folder / f"{what}-{hashlib.sha256(question.encode()).hexdigest()[:32]}{_SUFFIX}", question


def _written(question: str, kept: Kept) -> bytes:
    arrays = {name: np.ascontiguousarray(array) for name, array in kept.arrays.items()}
    shapes = [[name, array.dtype.str, list(np.shape(kept.arrays[name]))] for name, array in arrays.items()]
    if odd := [name for name, array in arrays.items() if array.dtype.kind not in "biuf"]:
        raise TypeError(f"{odd[0]}: {arrays[odd[0]].dtype} is no type of plain numbers.")
    head = json.dumps({**json.loads(question), "facts": dict(kept.facts), "arrays": shapes}, sort_keys=True)
    body = b"".join([head.encode(), b"\n", *(array.tobytes() for array in arrays.values())])
    return f"{FORMAT} {hashlib.sha256(body).hexdigest()}\n".encode() + body


def _read(path: Path) -> tuple[str, Kept] | None:
    """The question as text, and its piece; None for what is not there, cut off, changed, or of another format."""
    try:
        first, _, body = path.read_bytes().partition(b"\n")
        if first != f"{FORMAT} {hashlib.sha256(body).hexdigest()}".encode():
            return None
        head, _, data = body.partition(b"\n")
        document = json.loads(head)
        arrays, start = {}, 0
        for name, kind, shape in document["arrays"]:
            count = math.prod(shape)
            arrays[name] = np.frombuffer(data, np.dtype(kind), count, start).reshape(shape).copy()
            start += arrays[name].nbytes
        question = json.dumps({"what": document["what"], "asked": document["asked"]}, sort_keys=True)
        return question, Kept(document["facts"], arrays)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
