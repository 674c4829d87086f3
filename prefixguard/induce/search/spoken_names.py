"""What text looks like: names of tools, prose, code; and values of a spec, run on one text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from prefixguard.lexicon import words
from prefixguard.stepview.compiling import Base, Site
from prefixguard.stepview.paths import Scope
from prefixguard.stepview.values import compile_value

NAME = r"[A-Za-z_][\w/-]*(?:[.:]+[\w/-]+)*"
#: What a line of a shell begins with: a name, or the path of a program.
COMMAND = r"[A-Za-z_./~][\w./-]*"
_FUNCTION_WORDS = frozenset(
    """
    i you we he she it they me us them my your our their its the a an this that these those is are was were
    be been am have has had do does did will would can could should may might must not and but or so because
    if then which who what when how there here please let's let i'm i'll i've it's don't of with need now
    yes no to in on for from at first next ok okay sorry thank thanks based since after before as all some
    """.split()  # noqa: SIM905, a list would be longer
)
_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
_STATEMENT = re.compile(
    r"\s*(?:(?:select|insert|update|delete|create|drop|alter|def|import|from|class|return|for|while|try|assert|const|let"
    r"|var|function)\b|[\w.\[\]]+ ?= ?\S)",
    re.I,
)

_ROLES = {
    "thought": "thought thoughts think thinking reasoning reason rationale reflection plan scratchpad",
    "call": "action actions act command cmd call toolcall invoke execute exec executing input click",
    "agent": "agent assistant ai bot model llm gpt claude actor planner solver say says answer final",
    "result": "observation observations obs result results output outputs out response return returned ret stdout env "
    "environment toolresult feedback reply observe tools terminal error errors",
    "tool": "tool function",
    "user": "user human customer client operator question task goal instruction instructions query problem prompt",
    "noise": "system metrics stats usage tokens cost heartbeat score reward outcome verdict summary "
    "finished graded evaluation correct expected gold reference",
}
_BY_WORD = {word: role for role, said in _ROLES.items() for word in said.split()}


def role_of(name: str) -> str:
    """What a head of this name may be: thought, call, agent, result, tool, user, noise, or "" where it does not say."""
    found = [_BY_WORD[word] for word in words(name) if word in _BY_WORD]
    if "tool" in found and len(found) > 1:
        found = [role for role in found if role != "tool"]
    if not found or (found[-1] == "agent" and "noise" in found):  # a correct answer is not the agent's
        return "noise" if found else ""
    return found[-1]


def quoted(text: str) -> str:
    """RE2 for exactly this text, no more escaped than needs be."""
    return re.sub(r"([\\.^$*+?()\[\]{}|])", r"\\\1", text)


def value_of(spec: Any) -> Callable[[str], Any]:
    """The value of a spec as a function of the text at `@.text`; MISSING where it is absent."""
    get, scope = compile_value(spec, Site("text", {"@": Base(None)})), Scope()

    def run(text: str) -> Any:
        scope.event = {"text": text}
        return get(scope)

    return run


def speaks(word: str) -> bool:
    """Is it a word that joins others in a sentence?"""
    return word.lower() in _FUNCTION_WORDS


def names_share(names: Sequence[str]) -> float:
    """How much the names look like tools', in [0, 1]: few, repeated, no function words of English, no sentences."""
    if not names:
        return 0.0
    counts = Counter(names)
    total = len(names)
    proper = sum(n for name, n in counts.items() if re.fullmatch(NAME, name) and len(name) <= 60)
    spoken = sum(n for name, n in counts.items() if name.lower() in _FUNCTION_WORDS)
    if spoken > 0.03 * total or len(counts) > 64:
        return 0.0
    once = sum(n == 1 for n in counts.values())
    repeated = 1.0 if total < 6 else 1 - once / total
    few = 1.0 if total < 12 or len(counts) <= 0.34 * total else 0.5
    return proper / total * repeated * few


def reads_as_prose(text: str) -> bool:
    """Has a text at least four words, mostly letters, and function words as speech has?"""
    shown = text[:2000]
    found = _WORD.findall(shown)
    if len(found) < 4 or sum(map(len, found)) < 0.5 * len(shown.strip()):
        return False
    share = sum(word.lower() in _FUNCTION_WORDS for word in found) / len(found)
    return share > 0.28 or (share > 0.12 and shown.rstrip().endswith((".", "!", "?", ":")))


#: From this share of the texts on it is the agent that says them.
LEAST_OWN = 0.5
_OWN = re.compile(r"(?i)\b(?:i|i'll|i'm|i've|let me|let's|we|my)\b")


def own_share(texts: Sequence[str]) -> float:
    """Share of the texts that begin as one who acts says what it does and thinks, in [0, 1]; 0 for none."""
    some = texts[:: max(1, len(texts) // 200)]
    return sum(bool(_OWN.search(text[:300])) for text in some) / len(some) if some else 0.0


def prose_share(texts: Sequence[str]) -> float:
    """Share of the texts that read as prose, in [0, 1]; 0 for none."""
    some = texts[:: max(1, len(texts) // 200)]
    return sum(map(reads_as_prose, some)) / len(some) if some else 0.0


def code_share(texts: Sequence[str]) -> float:
    """Share of the texts that hold a line as programs have it, in [0, 1]; 0 for none."""
    some = texts[:: max(1, len(texts) // 200)]
    found = sum(any(_STATEMENT.match(line) for line in text.split("\n")[:40]) for text in some)
    return found / len(some) if some else 0.0
