"""What a command of a shell, or a statement of SQL, does: told by its first words.

A command may be many, joined by `&&`, `;`, `|` and lines. The one with the greatest consequence says what all of them
are, in the order of `_GREATEST`.

>>> read_shell("cd repo && python -m pytest -q tests")
('tests', 'python -m pytest')
>>> read_shell("grep -rn name . | head")
('searches', 'grep')
>>> read_shell("SELECT a FROM b")
('reads', 'select')
"""

from __future__ import annotations

import re
from typing import Final

#: Code points that are looked at; what a command does stands at its beginning.
_LOOKED_AT = 1500
_GREATEST: Final = ("submits", "tests", "edits", "writes", "acts", "waits", "searches", "reads")

_WORDS: Final = {
    "reads": "cat ls head tail less more wc sort uniq cut tr awk jq diff cmp du df stat file tree ps top pwd whoami "
    "id date env printenv type which whereis basename dirname realpath readlink md5sum sha1sum sha256sum cksum xxd od "
    "hexdump nl echo printf test [ uname hostname history man help free uptime lsof column comm paste rev seq expr bc "
    "tac strings zcat gzcat true cd export set source . pushd popd select show describe desc explain with use pragma "
    "get-content dir",
    "searches": "grep egrep fgrep zgrep rg ag ack find fd locate search_dir search_file find_file",
    "edits": "rm mv cp mkdir rmdir touch chmod chown ln patch ed ex vi vim nano truncate dd tee edit create insert "
    "black isort ruff str_replace apply_patch sed perl install unzip tar",
    "writes": "pip pip3 npm yarn pnpm apt apt-get brew conda curl wget ssh scp rsync kill pkill killall systemctl "
    "service docker kubectl mount insert update delete drop alter replace truncate merge grant revoke",
    "tests": "pytest py.test tox nosetests nox unittest ctest jest mocha vitest rspec phpunit runtests",
    "waits": "sleep wait",
    "submits": "submit",
}
_KINDS: Final = {word: kind for kind in ("edits", *reversed(_WORDS)) for word in _WORDS[kind].split()}
_SQL: Final = frozenset(
    ("select", "insert", "update", "delete", "drop", "alter", "replace", "truncate", "merge", "grant", "revoke", "with")
)
_GIT: Final = {
    **dict.fromkeys(("status", "log", "diff", "show", "branch", "blame", "remote", "rev-parse", "ls-files"), "reads"),
    "grep": "searches",
    # They take edits back, put them aside, or move between branches: what was edited is no longer what is there.
    **dict.fromkeys(("checkout", "switch", "restore", "reset", "stash", "clean"), "acts"),
    **dict.fromkeys(("commit", "push", "fetch", "pull", "clone"), "writes"),
}

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_PARTS = re.compile(r"&&|\|\|?|;|\n|\$\(|`")
_REDIRECTED = re.compile(r"(?:^|[^0-9&>=<-])>>?(?!\s*/dev/null|[&>=])")
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
_BEFORE = frozenset(("sudo", "time", "timeout", "nohup", "env", "exec", "command", "xargs", "then", "do", "else", "("))


def read_shell(command: str) -> tuple[str, str]:
    """What a command does, one of `CONSEQUENCES`, and the words that tell it. Of no command: ("acts", "").

    command: text of a shell's command, or of a statement of SQL; its first 1,500 characters are looked at.
    """
    head, here, _ = command[:_LOOKED_AT].partition("<<")
    if _SUBMITTED.search(head):
        return "submits", "submit"
    bare = _QUOTED.sub("''", head)
    if here:  # what follows is a text, but for the rest of the line
        rest = command[:_LOOKED_AT].partition("<<")[2].partition("\n")[0]
        bare += "; " + rest if ">" in rest else ""
    best, told = len(_GREATEST), ""
    for part in _PARTS.split(bare):
        kind, words = _read_part(part)
        if kind and _GREATEST.index(kind) < best:
            best, told = _GREATEST.index(kind), words
    if best == len(_GREATEST):
        return "acts", ""
    return _GREATEST[best], told


def _read_part(part: str) -> tuple[str, str]:
    """The same of one simple command; ("", "") of none."""
    words = part.split()
    while words and (words[0] in _BEFORE or "=" in words[0] or words[0][0] in "-0123456789"):
        words = words[1:]  # assignments, `timeout 60`
    if not words:
        return ("edits", ">") if _REDIRECTED.search(part) else ("", "")
    first = words[0].rpartition("/")[2].lower().removesuffix(".exe").lstrip("({")
    rest = words[1:]
    if first in _RUNNERS or "/" in words[0] or first.endswith((".py", ".sh", ".js")):
        if _TESTING.search(" ".join(words[:6])) or any(word in _WORDS["tests"].split() for word in rest[:4]):
            return "tests", " ".join([first, *rest[:2]])
        kind = _KINDS.get(first, "acts") if first not in ("python", "perl") else "acts"
        return (kind, first) if kind != "tests" else ("tests", first)
    if first == "git":
        verb = next((word for word in rest if not word.startswith("-")), "")
        return _GIT.get(verb, "edits"), f"git {verb}"
    if _REDIRECTED.search(part):
        return "edits", f"{first} >"
    if first == "sed":
        return ("edits" if any(word.startswith(("-i", "--in-place")) for word in rest) else "reads"), first
    if first in ("insert", "replace", "truncate", "update", "delete") and first in _SQL:
        is_sql = any(word.lower() in ("into", "from", "table", "set") for word in rest)
        return ("writes" if is_sql else "edits"), first
    if first == "create" and rest and rest[0].lower() in ("table", "view", "index", "database", "temporary", "unique"):
        return "writes", first
    if first == "find" and any(word in ("-delete", "-exec") for word in rest):
        deletes = "-delete" in rest or "rm" in rest
        return ("edits" if deletes else "searches"), first
    return _KINDS.get(first, "acts"), first
