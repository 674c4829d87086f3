"""What a step is by its consequence, told by the words of the tool's name, or by the command that a shell is given.

Words are those that tools are named with. A tool whose name says nothing `acts`: its consequence is unknown. Whoever
knows better says so in a file of behaviours (`tools`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from prefixguard.behaviours.shell import RUNS, FileEffect, read_shell
from prefixguard.stepview import StepRecord

_SHELL: Final = "shell"
_UNKNOWN: Final = "unknown"
_WORDS: Final = {
    "reads": "get read list view show fetch load open cat ls describe lookup look check inspect retrieve download "
    "status info head tail print watch poll stat count calculate calculator compute current see observe screenshot "
    "snapshot extract scroll goto go navigate visit browse back forward preview is has verify validate compare "
    "summarize history export explain analyze weather calendar time",
    "searches": "search find query grep glob rg google bing lookup_all discover",
    "writes": "create add insert update set put post send delete remove cancel modify change book buy purchase pay "
    "refund return exchange transfer move rename upload apply assign schedule reschedule close approve reject save "
    "store register reserve enable disable toggle commit push merge deploy restart kill start stop issue charge email "
    "publish subscribe unsubscribe grant revoke archive copy reset make write upsert place unlock lock block mark "
    "invite redeem activate deactivate suspend resume rebook ship",
    "edits": "edit patch replace editor",
    "tests": "test tests pytest lint",
    "acts": "click tap press hover drag key keyboard mouse select swipe type fill input enter choose",
    "submits": "submit finish finished done complete completed final answer terminate completion attempt",
    "waits": "wait sleep delay pause",
    "thinks": "think thinking thought thoughts reason reasoning reflect plan planning todo scratchpad note notes "
    "memo remember memory",
    "speaks": "respond reply ask say tell speak chat message inform talk communicate",
    "escalates": "escalate escalation",
    _SHELL: "bash shell sh zsh terminal execute exec run python code command cmd powershell ipython interpreter "
    "console repl eval sql",
}
_KINDS: Final = {word: kind for kind, words in reversed(_WORDS.items()) for word in words.split()}
_HUMANS: Final = frozenset(("human", "humans", "supervisor", "operator", "representative", "person", "support", "live"))
_PEOPLE: Final = frozenset(("user", "customer", "client", "caller"))
_FILES: Final = frozenset(("file", "files", "notebook", "editor", "cell", "code", "lines", "line"))
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[^\W\d_A-Za-z]+")
#: What points at a button, and the first word of those that change something outside.
_POINTS: Final = frozenset(("click", "tap"))
_PRESSED: Final = re.compile("buy|purchase|pay|checkout|submit|send|delete|remove|confirm|publish|subscribe")
#: What holds the command of a shell among its arguments, and where an editor says what it is to do.
_COMMANDS: Final = ("command", "cmd", "script", "code", "sql", "query", "statement", "input", "commands")
_VIEWS = re.compile(r'"command":\s*"(?:view|open|read|show|list)"')
_CREATES = re.compile(r'"command":\s*"create"')
_PATH = re.compile(r'"(?:path|file|file_?name|file_?path)"\s*:\s*"([^"]{1,300})"')
_LONGEST = 65_536
_LABEL, _BUTTON = 60, 4  # code points and words of what a button says


class Consequence(NamedTuple):
    """What a step is.

    kind : one of `CONSEQUENCES`. name : the tool; of a shell with the words that tell what its command does.
    effects : what it does to files, in order.
    """

    kind: str
    name: str
    effects: tuple[FileEffect, ...] = ()


_SPEAKS = Consequence("speaks", "")


def consequence_of(record: StepRecord, told: Mapping[str, str] | None = None) -> Consequence:
    """What a step is. told: tool to its kind, where somebody has said it.

    >>> step = StepRecord(1, "agent", "", "get_order", "{}", "", "", "", "ok")
    >>> consequence_of(step)
    Consequence(kind='reads', name='get_order', effects=())
    """
    tool = record.tool
    if tool in ("", "respond"):
        return _SPEAKS
    kind = told.get(tool) if told is not None else None
    if kind is not None:
        return Consequence(kind, tool, _effects(kind, record))
    kind = kind_of_tool(tool[:200])
    if kind == _SHELL:
        kind, words, effects = read_shell(command_in(record.arguments))
        return Consequence(kind, f"{tool}: {words}" if words else tool, effects)
    if kind == "edits" and _VIEWS.search(record.arguments, 0, 400):
        return Consequence("reads", tool)
    if kind == _UNKNOWN and tool.isalpha() and tool.islower() and not record.arguments.startswith("{"):
        kind, _, effects = read_shell(f"{tool} {record.arguments[:1000]}")  # a command is the tool (`grep`, `mvn test`)
        return Consequence(kind, tool, effects)
    if kind == "acts" and _POINTS.intersection(_WORD.findall(tool[:200].lower())):
        button = _WORD.findall(said_in(record.arguments)[:_LABEL])
        if 0 < len(button) <= _BUTTON and _PRESSED.fullmatch(button[0].lower()):
            return Consequence("writes", f"{tool}: {button[0].lower()}")
    kind = "acts" if kind == _UNKNOWN else kind
    return Consequence(kind, tool, _effects(kind, record))


def is_shell(tool: str) -> bool:
    """Is a tool of this name given commands?"""
    return kind_of_tool(tool[:200]) == _SHELL


def _effects(kind: str, record: StepRecord) -> tuple[FileEffect, ...]:
    """What a tool that is no shell does to files."""
    if kind in ("acts", "tests"):
        return RUNS
    if kind != "edits":
        return ()
    path = _PATH.search(record.arguments, 0, _LONGEST)
    creates = "create" in record.tool.lower() or _CREATES.search(record.arguments, 0, 400)
    return (FileEffect("written", path[1]) if path and creates else FileEffect("changes"),)


def is_speech(what: Consequence, tool: str) -> bool:
    """Is a step a message, or a call whose arguments are one: a text for somebody, or a last answer?

    >>> [is_speech(Consequence("writes", name), name) for name in ("send_message", "send_parcel")]
    [True, False]
    """
    if what.kind != "writes":
        return what.kind == "speaks" or (what.kind == "submits" and not is_shell(tool))
    return any(_KINDS.get(word.lower()) == "speaks" for word in _WORD.findall(tool[:200]))


def command_in(arguments: str) -> str:
    """The command that a shell was given, as one text: among JSON arguments by its name, else the arguments."""
    if not arguments.startswith(("{", "[", '"')) or len(arguments) > _LONGEST:
        return arguments
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    if isinstance(given, dict):
        given = next((given[name] for name in _COMMANDS if name in given), arguments)
    if isinstance(given, list):
        given = " ".join(part for part in given if isinstance(part, str))
    return given if isinstance(given, str) else arguments


def said_in(arguments: str) -> str:
    """What a tool that speaks was given to say: the texts among JSON arguments, each on lines of its own, else the
    arguments.

    >>> said_in('{"to": "user", "text": "It is on its way."}')
    'user\\nIt is on its way.'
    """
    if not arguments.startswith(("{", "[", '"')) or len(arguments) > _LONGEST:
        return arguments
    try:
        left, texts = [json.loads(arguments)], []
    except (ValueError, RecursionError):
        return arguments
    while left:
        one = left.pop()
        if isinstance(one, str):
            texts.append(one)
        elif isinstance(one, (dict, list)):
            left += reversed(one.values() if isinstance(one, dict) else one)
    return "\n".join(texts)


@lru_cache(maxsize=4096)
def kind_of_tool(tool: str) -> str:
    """The kind that a tool's name tells; "shell", whose command tells it; "unknown".

    >>> [kind_of_tool(name) for name in ("getOrder", "transfer_to_human_agents", "write_file", "python", "frobnicate")]
    ['reads', 'escalates', 'edits', 'shell', 'unknown']
    """
    words = [word.lower() for word in _WORD.findall(tool)]
    there = set(words)
    if there & {"escalate", "escalation"} or (there & {"transfer", "handoff", "handover", "hand"} and there & _HUMANS):
        return "escalates"
    if there & {"send", "message", "notify", "ask", "tell", "reply", "say"} and there & _PEOPLE:
        return "speaks"
    kinds = [_KINDS[word] for word in words if word in _KINDS]
    if not kinds:
        return _UNKNOWN
    first = kinds[0]
    if first == _SHELL and "tests" in kinds:
        return "tests"
    if first == "writes" and (there & _FILES or "edits" in kinds):
        return "edits"
    if first == "submits" and words[0] == "submit" and there & {"form", "order", "payment", "button"}:
        return "writes"
    return "edits" if "replace" in there and "editor" in there else first
