"""What the agent does in the steps of a symbol or state, in a sentence: its calls, how they fail, and whether it asks.

A call is named by its tool; in a shell by the word that tells what the command does as well (a verb of SQL), and where
the tool's name does not tell what it is for (`click`) by what it is called on: a text that is frequent, an identifier,
or other words. A failure is named by the first words of its error that come again in several tasks. All is counted on
training steps, from the records alone; quoted words are text from runs, as such untrusted.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.material import Material
from prefixguard.automata.summary.wording import one_line, share_text
from prefixguard.behaviours.consequences import consequence_of, is_shell, kind_of_tool, said_in
from prefixguard.runtime import plain
from prefixguard.stepview import FIELDS, StepRecord

#: Things done that a sentence names, each at this share of the steps or more; the most frequent is named in any case.
NAMED = 3
OFTEN = 0.1
#: Of what is done at least this share fails where it is said how.
_FEW = 0.01
#: Errors of one thing done that are named, each at this share of its failures or more.
_ERRORS, _SOME = 2, 0.2
#: A text that a tool is called on, and an error, are named from these shares of all calls and of all failures on, in so
#: many tasks; words that nearly all errors begin with are left out.
_TEXT_SHARE, _ERROR_SHARE, _TASKS, _NEARLY_ALL = 0.02, 0.02, 3, 0.8
_TOOL, _TEXT, _EXAMPLE = 60, 40, 120
_LOOKED_AT, _WORDS = 600, 10  # bytes of an error, and its first words
_TAGS = re.compile(b"[%b]" % bytes(range(1, len(FIELDS) + 1)))
_QUOTED = re.compile(r"(?<!\w)(['\"`])(?:(?!\1).){1,200}\1|[\[{(<][^\s\])}>]*\d[^\])}>]*[\])}>]")
_PART = re.compile(r"[\d/_\\=]|\w\.\w")
#: Of an identifier, one word: four digits in a row, three after a letter, or letters between digits or digits between
#: letters, as a short label of a size or a number of pieces ("10-pack", "4x-large") has not.
_IDENTIFIER = re.compile(r"^\S*(?:\d{4}|[^\W\d_]\d{3}|\d[^\W\d_]+\d|[^\W\d_]\d+[^\W\d_])\S*$")
_UNSAID = "…"


@dataclass(frozen=True, slots=True)
class Deed:
    """What is done in a step. what: in a few words. tool: that is called, "" in a message. failing: whether the call
    fails, and error: by which kind of error, "" where none is known."""

    what: str
    tool: str = ""
    failing: bool = False
    error: str = ""


class DeedNames:
    """What steps are called, by what the training runs have in common.

    texts: what tools are called on often, by tool. errors: beginnings of errors, as words. begins: those that nearly
    all errors begin with, which are left out. only: the tool of nearly all calls, "" where there is none.
    """

    def __init__(
        self,
        texts: Mapping[str, frozenset[str]],
        errors: frozenset[tuple[str, ...]],
        begins: tuple[str, ...] = (),
        only: str = "",
    ) -> None:
        self._texts, self._errors, self._begins, self._only = texts, errors, begins, only

    def deed(self, document: bytes) -> Deed:
        r"""Of a step, from its serialised record: a call, or whether a message asks.

        >>> names = DeedNames({}, frozenset({("no", "such", "file")}))
        >>> names.deed(b"\x01agent\x02bash\x03ls -l x\x04\x05look\x06no such file x\x07error")
        Deed(what='bash: ls', tool='bash', failing=True, error='no such file')
        >>> names.deed(b"\x01agent\x02respond\x03\x04\x05Who?\x06\x07ok").what
        'asks'
        """
        fields = _fields(document)
        tool = _text(fields["tool"])
        if tool and tool != "respond":
            failing = fields["status"] == b"error"
            what = plain(self._call(tool, _text(fields["arguments"])), _TOOL)
            return Deed(what, plain(tool, _TOOL), failing, self._error(fields["result"]) if failing else "")
        said = fields["action"] or fields["arguments"]
        if not said.strip():
            return Deed("says nothing")
        return Deed("asks" if b"?" in said or "？".encode() in said else "says something")

    def most(self, documents: Iterable[bytes]) -> str:
        """What at least half of these steps call, else whose tool; "" where there is none, or no more than the tool of
        nearly all calls.

        documents: their serialised records.
        """
        done = list(map(self.deed, documents))
        for called in ([one.what for one in done if one.tool], [one.tool for one in done if one.tool]):
            what, n = min(Counter(called).items(), key=lambda pair: (-pair[1], pair[0]), default=("", 0))
            if n and 2 * n >= len(done) and what != self._only:
                return what.removeprefix(f"{self._only}: ")
        return ""

    def _call(self, tool: str, arguments: str) -> str:
        if is_shell(tool):
            return consequence_of(StepRecord(1, "agent", "", tool, arguments, "", "", "", "ok")).name
        if tool not in self._texts or not (said := _called_on(arguments)):
            return tool
        if said in self._texts[tool]:
            return f'{tool} "{said}"'
        return f"{tool} (an identifier)" if is_identifier(said) else f"{tool} (other words)"

    def _error(self, result: bytes) -> str:
        words = _error_words(result)
        known = next((n for n in range(len(words), 0, -1) if words[:n] in self._errors), 0)
        n = len(self._begins) if words[: len(self._begins)] == self._begins else 0
        kept = words[n:known] or words[:known]
        return plain(" ".join(kept).strip(f" :,;{_UNSAID}"), _TOOL)


def is_identifier(text: str) -> bool:
    """Whether a text is a number or code of something, and no word or label.

    >>> [is_identifier(one) for one in ("b00e4moe5w", "b01mssdepk", "#w1234567", "john_doe_1234")]
    [True, True, True, True]
    >>> [is_identifier(one) for one in ("5", "8-9", "10-pack", "4x-large", "12 ounce", "buy now")]
    [False, False, False, False, False, False]
    """
    return _IDENTIFIER.search(text) is not None


def deed_names(material: Material, *, examples: bool = True) -> DeedNames:
    """What the steps of the pool's runs are called. examples: False leaves out what is text from runs."""
    texts, errors = defaultdict[str, Counter[str]](Counter), Counter[tuple[str, ...]]()
    tasks = defaultdict[object, set[int]](set)
    calls = Counter(tool for tool in material.tools if tool and tool != "respond")
    only = next((tool for tool, n in calls.items() if n >= _NEARLY_ALL * calls.total()), "")
    if not examples:
        return DeedNames({}, frozenset(), only=only)
    failures = 0
    for task, document in _documents(material):
        fields = _fields(document)
        tool = _text(fields["tool"])
        if not tool or tool == "respond":
            continue
        if kind_of_tool(tool[:200]) in ("acts", "unknown") and (said := _called_on(_text(fields["arguments"]))):
            texts[tool][said] += 1
            tasks[tool, said].add(task)
        if fields["status"] == b"error":
            failures += 1
            words = _error_words(fields["result"])
            for n in range(1, len(words) + 1):
                errors[words[:n]] += 1
                tasks[words[:n]].add(task)
    often = {
        tool: frozenset(
            said for said, n in of.items() if n >= _TEXT_SHARE * of.total() and len(tasks[tool, said]) >= _TASKS
        )
        for tool, of in texts.items()
    }
    known = frozenset(
        words for words, n in errors.items() if n >= _ERROR_SHARE * failures and len(tasks[words]) >= _TASKS
    )
    begins = max((words for words in known if errors[words] >= _NEARLY_ALL * failures), key=len, default=())
    return DeedNames(often, known, begins, only)


def _documents(material: Material) -> Iterator[tuple[int, bytes]]:
    """Of every step of the pool its task and its record, run by run in the pool's order."""
    corpus = material.corpus
    for r in material.pool.tolist():
        for document in corpus.documents.each(int(corpus.first[r]), int(corpus.first[r + 1])):
            yield int(material.tasks[r]), document


def _fields(document: bytes) -> dict[str, bytes]:
    return dict(zip(FIELDS, _TAGS.split(document)[1:], strict=True))


def _text(field: bytes) -> str:
    return field.decode("utf-8", "replace")


def _called_on(arguments: str) -> str:
    """The only text that a tool is called on, in small letters and cut; "" where there are more."""
    said = said_in(arguments)
    return "" if "\n" in said else plain(" ".join(said.split()).lower(), _TEXT)


def _error_words(result: bytes) -> tuple[str, ...]:
    """The first words of an error, without what is quoted, numbers, paths and identifiers; of a traceback those of its
    last line.

    >>> _error_words(b"Error 1146: Table 'world.lamps' doesn't exist")
    ('Error', '…', 'Table', '…', "doesn't", 'exist')
    """
    lines = said_in(result[-_LOOKED_AT:].decode("utf-8", "replace")).split("\n")
    if b"Traceback (most recent" not in result:
        lines = said_in(result[:_LOOKED_AT].decode("utf-8", "replace")).split("\n")[::-1]
    line = next((line for line in reversed(lines) if line.strip()), "")
    words: list[str] = []
    for word in _QUOTED.sub(f" {_UNSAID} ", line).split():
        said = _UNSAID if _PART.search(word) else word
        if said != _UNSAID or words[-1:] != [_UNSAID]:
            words.append(said)
    return tuple(words[:_WORDS])


def deeds(material: Material, names: DeedNames) -> NDArray[np.object_]:
    """What is done in every step of the pool's runs, run by run in the pool's order."""
    found = [names.deed(document) for _, document in _documents(material)]
    done = np.empty(len(found), dtype=object)
    done[:] = found
    return done


def doing(done: NDArray[np.object_], groups: NDArray[np.int32], examples: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """For each group of steps a sentence on what is done there, with its first example; "" for one without steps.

    done: of every step, as `deeds` gives it. groups: of every step. examples: of each group, lines.

    >>> done = np.array([Deed("asks"), Deed("asks"), Deed("ls", "ls", True, "no file")], dtype=object)
    >>> doing(done, np.array([0, 0, 1]), [["agent: Who?"], []])
    ('Asks. As in: agent: Who?', 'Calls ls, which fails with "no file".')
    """
    return tuple(_sentence(Counter(done[groups == group].tolist()), shown) for group, shown in enumerate(examples))


def _sentence(counts: Counter[Deed], shown: Sequence[str]) -> str:
    total = counts.total()
    if not total:
        return ""
    whole = Counter[str]()
    for deed, n in counts.items():
        whole["calls " * bool(deed.tool) + deed.what] += n
    order = sorted(whole, key=lambda what: (-whole[what], what))
    top = [order[0], *(what for what in order[1:NAMED] if whole[what] >= OFTEN * total)]
    errors = {what: Counter[str]() for what in top}
    for deed, n in counts.items():
        if deed.failing and (what := f"calls {deed.what}") in errors:
            errors[what][deed.error] += n
    parts = [_part(what, whole[what], errors[what], total) for what in top]
    said = " or ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]
    example = f" As in: {one_line(shown[0], _EXAMPLE)}" if shown else ""
    return f"{said[0].upper()}{said[1:]}.{example}"


def _part(what: str, n: int, errors: Counter[str], total: int) -> str:
    """One thing done in n of so many steps, with how many of the n fail, and how."""
    failing = errors.total()
    order = sorted((error for error in errors if error), key=lambda error: (-errors[error], error))
    often = list(takewhile(lambda error: errors[error] >= _SOME * failing, order))[:_ERRORS]
    kinds = " or ".join(
        f'"{error}"' + ("" if errors[error] == failing else f" ({share_text(errors[error] / failing)})")
        for error in often
    )
    how = f" with {kinds}" if kinds else ""
    said = [share_text(n / total)] * (n < total)
    said += [f"{share_text(failing / n)} of these fail{how}"] * (_FEW * n <= failing < n and failing > 0)
    return what + f", which fails{how}" * (failing == n) + (f" ({'; '.join(said)})" if said else "")
