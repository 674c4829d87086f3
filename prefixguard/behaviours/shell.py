"""What a command of a shell, a statement of SQL or a program does: told by its first words.

A command may be many, joined by `&&`, `;`, `|` and lines. The one with the greatest consequence says what all of them
are, in the order of `_GREATEST`. What each of them does to files is said in their order. Texts that stand in the
command (here-documents, quotes, comments) are not read.

>>> read_shell("cd repo && python -m pytest -q tests")[:2]
('tests', 'python -m pytest')
>>> read_shell("grep -rn name . | head")
ShellCommand(kind='searches', name='grep', effects=())
>>> read_shell("echo 1 > a; make").effects
(FileEffect(kind='written', path='a'), FileEffect(kind='runs', path=''))
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from prefixguard.behaviours.sql import read_sql

#: Code points of a command that are looked at, and so many of them once its here-documents are taken out.
_LOOKED_AT, _READ = 65_536, 4000
_MOST_EFFECTS = 64
_GREATEST: Final = ("submits", "tests", "edits", "writes", "acts", "waits", "searches", "reads")

_WORDS: Final = {
    "reads": "cat ls head tail less more wc sort uniq cut tr awk jq diff cmp du df stat file tree ps top pwd whoami "
    "id date env printenv type which whereis basename dirname realpath readlink md5sum sha1sum sha256sum cksum xxd od "
    "hexdump nl echo printf test [ uname hostname history man help free uptime lsof column comm paste rev seq expr bc "
    "tac strings zcat gzcat true cd export set source . pushd popd get-content dir",
    "searches": "grep egrep fgrep zgrep rg ag ack find fd locate search_dir search_file find_file",
    "edits": "rm mv cp mkdir rmdir touch chmod chown ln patch ed ex vi vim nano truncate dd tee edit create insert "
    "black isort ruff str_replace apply_patch sed perl install unzip tar",
    "writes": "pip pip3 npm yarn pnpm apt apt-get brew conda curl wget ssh scp rsync kill pkill killall systemctl "
    "service docker kubectl mount update delete replace",
    "tests": "pytest py.test tox nosetests nox unittest ctest jest mocha vitest rspec phpunit runtests",
    "waits": "sleep wait",
    "submits": "submit",
}
_KINDS: Final = {word: kind for kind in ("edits", *reversed(_WORDS)) for word in _WORDS[kind].split()}
_GIT: Final = {
    **dict.fromkeys(("status", "log", "diff", "show", "branch", "blame", "remote", "rev-parse", "ls-files"), "reads"),
    "grep": "searches",
    # They take edits back, put them aside, or move between branches: what was edited is no longer what is there.
    **dict.fromkeys(("checkout", "switch", "restore", "reset", "stash", "clean"), "acts"),
    **dict.fromkeys(("commit", "push", "fetch", "pull", "clone"), "writes"),
}

#: They change the content of files; other commands that are edits make, move or take away files and folders.
_CHANGED: Final = "mv patch ed ex vi vim nano truncate dd edit insert black isort ruff str_replace apply_patch"
_CHANGING: Final = frozenset(_CHANGED.split())
_CHANGING_GIT: Final = frozenset(("merge", "rebase", "cherry-pick", "revert", "am", "apply", "mv"))

_HERE = re.compile(r"(?<![<\d])<<-?[ \t]*(['\"\\]?)([A-Za-z_]\w*)\1")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_PARTS = re.compile(r"&&|\|\|?|;|\n|\$\(|`")
_REDIRECTED = re.compile(r"(?:^|[^0-9&>=<-])>>?(?!\s*/dev/null|[&>=])\s*([^\s<>&()]*)")
_TESTING = re.compile(r"(?:^|[\s/._:-])(?:run[_-]?)?tests?(?:$|[\s/._:-])", re.IGNORECASE)
_SUBMITTED = re.compile(r"\b(?:COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT|MINI_SWE_AGENT_FINAL_OUTPUT)\b")
_RUNNERS: Final = {
    *(
        "python",
        "python3",
        "python2",
        "pypy",
        "node",
        "npx",
        "npm",
        "yarn",
        "pnpm",
        "bun",
        "make",
        "go",
        "cargo",
        "mvn",
    ),
    *(
        "gradle",
        "gradlew",
        "dotnet",
        "bash",
        "sh",
        "zsh",
        "php",
        "ruby",
        "perl",
        "bundle",
        "rake",
        "uv",
        "poetry",
        "mix",
    ),
    *("hatch", "swift", "java", "django-admin", "manage.py", "bazel", "cmake", "ninja"),
}
_FIRST: Final = "sudo time timeout nohup env exec command xargs if elif while until then do else ! ( {"
_BEFORE: Final = frozenset(_FIRST.split())
_BETWEEN: Final = frozenset(("for", "case", "select", "function", "fi", "done", "esac", "}", ")", "in"))


#: Begins as a program of Python, in which `>` compares.
_PYTHON = re.compile(
    r"(?:\s|#[^\n]*\n)*(?:def\s+\w+\s*\(|class\s+\w+\s*[(:]|from\s+[\w.]+\s+import\s|import\s+\w+(?:\s+as\s+\w+)?\s*$)",
    re.MULTILINE,
)


#: A name in brackets that stands for something else, as `<table_name>`, or a mark of a model's template.
_PLACEHOLDER = re.compile(r"<\|?[A-Za-z][\w-]{0,62}\|?>")
#: The fence of a block of code, before what is run.
_FENCE = re.compile(r"\s*```\w*\s*")
#: What stands in a word of a sentence, or after it; and code points in which its first words are looked for.
_IN_WORDS = re.compile("['’-]|[,.;:!?]$")
_SENTENCE: Final = 200


class FileEffect(NamedTuple):
    """What a part of a command does to files.

    kind : `changes` the content of a file that is there; a file is `written` whole, or at its end, whether it was there
    or not; a `folder` is made; `cd`, to a folder; something `runs` that is not known, or tests. path : as it stands
    there; "" where it is not told.
    """

    kind: Literal["changes", "written", "folder", "cd", "runs"]
    path: str = ""


class ShellCommand(NamedTuple):
    """What a command does. kind : one of `CONSEQUENCES`. name : the words that tell it. effects : in their order."""

    kind: str
    name: str
    effects: tuple[FileEffect, ...] = ()


_NOTHING: Final = ShellCommand("", "")
RUNS: Final = (FileEffect("runs"),)


def read_shell(command: str) -> ShellCommand:
    """What a command does. Of no command: ("acts", "") without effects.

    command: text of a shell's command, of a statement of SQL, or of a program of Python, of which nobody knows what it
    does. Of its first 65,536 characters the first 4,000 that are no here-document are looked at.
    """
    if (fence := _FENCE.match(command[:_READ])) is not None:
        command = command[fence.end() :]
    if (statement := read_sql(command)) is not None:
        return ShellCommand(*statement)
    if _PYTHON.match(command[:_READ]):
        return ShellCommand("acts", "python", RUNS)
    bare = _without_texts(command[:_LOOKED_AT])[:_READ]
    best, told = len(_GREATEST), ""
    effects: list[FileEffect] = []
    for part in _PARTS.split(_QUOTED.sub("''", _PLACEHOLDER.sub("''", bare))):
        kind, words, of_part = _read_part(part)
        effects += of_part
        if kind and _GREATEST.index(kind) < best:
            best, told = _GREATEST.index(kind), words
    seen = tuple(effects[:_MOST_EFFECTS])
    if _SUBMITTED.search(bare):
        return ShellCommand("submits", "submit", seen)
    return ShellCommand("acts", "", seen) if best == len(_GREATEST) else ShellCommand(_GREATEST[best], told, seen)


def is_prose(command: str) -> bool:
    """Whether a command begins as a sentence: four words of letters, the first with a capital.

    >>> [is_prose(text) for text in ("The file has two lines.", "I'll list the files", "SELECT name FROM users", "ls")]
    [True, True, False, False]
    """
    words = [_IN_WORDS.sub("", word) for word in command[:_SENTENCE].split()[:4]]
    begins = words[0] if words else ""
    spelled = begins[:1].isupper() and begins[1:] == begins[1:].lower()
    return len(words) == 4 and spelled and all(map(str.isalpha, words)) and read_sql(command) is None


def _without_texts(command: str) -> str:
    """The command without its here-documents and comments of a line; a line that goes on in the next is one with it."""
    kept, ends = [], list[str]()
    for line in command.replace("\\\n", " ").split("\n"):
        if ends:
            if line.strip() == ends[0]:
                ends = ends[1:]
        elif not line.lstrip().startswith("#"):
            ends = [found[2] for found in _HERE.finditer(line)][:8]
            kept.append(_HERE.sub(" ", line) if ends else line)
    return "\n".join(kept)


def _read_part(part: str) -> ShellCommand:
    """The same of one simple command; `_NOTHING` of none."""
    words = part.split()
    while words and (words[0] in _BEFORE or "=" in words[0] or words[0][0] in "-0123456789"):
        words = words[1:]  # assignments, `timeout 60`
    redirected = _REDIRECTED.search(part)
    into = (FileEffect("written", redirected[1].strip("'")),) if redirected else ()
    if words and words[0].startswith(">"):
        words = []
    if not words or words[0] in _BETWEEN or words[0].startswith(("#", "'")):
        return ShellCommand("edits", ">", into) if redirected and not words else _NOTHING
    first = words[0].rpartition("/")[2].lower().removesuffix(".exe").strip("({)}")
    rest = words[1:]
    if first in _RUNNERS or "/" in words[0] or first.endswith((".py", ".sh", ".js")):
        if first == "perl" and any(re.match("-[a-z0-9]*i", word) for word in rest):
            return ShellCommand("edits", first, (FileEffect("changes"),))
        if _TESTING.search(" ".join(words[:6])) or any(word in _WORDS["tests"].split() for word in rest[:4]):
            return ShellCommand("tests", " ".join([first, *rest[:2]]), RUNS)
        kind = _KINDS.get(first, "acts") if first not in ("python", "perl") else "acts"
        return ShellCommand(kind, first, _effects(kind, first, rest))
    if first == "git":
        verb = next((word for word in rest if not word.startswith("-")), "")
        kind = _GIT.get(verb, "edits")
        changes = (FileEffect("changes"),) if verb in _CHANGING_GIT else ()
        return ShellCommand(kind, f"git {verb}", into or (RUNS if kind == "acts" else changes))
    if redirected:
        return ShellCommand("edits", f"{first} >", RUNS if _KINDS.get(first, "acts") in ("acts", "tests") else into)
    if first == "sed":
        in_place = any(word.startswith(("-i", "--in-place")) for word in rest)
        return ShellCommand("edits", first, (FileEffect("changes"),)) if in_place else ShellCommand("reads", first)
    if first in ("insert", "replace", "truncate", "update", "delete"):
        return ShellCommand("edits", first, (FileEffect("changes"),))
    if first == "find" and any(word in ("-delete", "-exec") for word in rest):
        deletes = "-delete" in rest or "rm" in rest
        return ShellCommand("edits" if deletes else "searches", first)
    kind = _KINDS.get(first, "acts")
    return ShellCommand(kind, first, _effects(kind, first, rest))


def _effects(kind: str, first: str, rest: list[str]) -> tuple[FileEffect, ...]:
    """What a simple command does to files. first, rest: its words."""
    if kind in ("acts", "tests"):
        return RUNS
    paths = [word.strip("'") for word in rest if not word.startswith("-")]
    if first in ("cd", "pushd"):
        return (FileEffect("cd", paths[0] if paths else ""),)
    if kind != "edits":
        return ()
    if first == "mkdir":
        return tuple(FileEffect("folder", path) for path in paths)
    if first in ("tee", "create", "cp") and paths:
        return (FileEffect("written", paths[-1 if first == "cp" else 0]),)
    return (FileEffect("changes"),) if first in _CHANGING else ()
