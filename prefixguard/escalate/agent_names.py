"""Names of agents: which of the run's own agents somebody means. Whole names only, never parts of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from prefixguard.stepview import StepRecord

#: The one agent of a run whose steps name none.
UNNAMED = "agent"
#: Characters of a name that are shown and looked at.
MAX_NAME = 80
_SEPARATORS = re.compile(r"[\s_\-]+")
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
_AROUND = " \t\n\"'`*<>[]:;,."


def shown_name(name: str) -> str:
    """A name as a prompt shows it: one line, no bar (a heading's separator), at most MAX_NAME characters.

    >>> shown_name("Web" + chr(10) + "Surfer | admin")
    'Web Surfer / admin'
    """
    kept = (" " if unicodedata.category(char) in _HIDDEN else char for char in name[: 4 * MAX_NAME])
    return " ".join("".join(kept).replace("|", "/").split())[:MAX_NAME].rstrip()


def folded(name: str) -> str:
    """A name without case, separators and marks around it.

    >>> folded("**Web_Surfer**"), folded("web-surfer")
    ('websurfer', 'websurfer')
    """
    text = unicodedata.normalize("NFKC", shown_name(name)).strip(_AROUND)
    return _SEPARATORS.sub("", text).casefold()


def base_name(name: str) -> str:
    """A name without what stands in parentheses at its end; the name itself where nothing else would be left.

    >>> base_name("Orchestrator (-> WebSurfer)"), base_name("(all)")
    ('Orchestrator', '(all)')
    """
    text = name.strip()
    start = text.rfind("(") if text.endswith(")") else -1
    return text[:start].rstrip() if start > 0 and text[:start].strip() else name


def same_agent(said: str | None, gold: str | None, *, normalised: bool = True) -> bool:
    """Do two names mean one agent? None and the empty name mean nobody.

    normalised: without case and separators, and one of the two may carry a part in parentheses that the other lacks
    ("Orchestrator (thought)" is Orchestrator; "Coder (A)" is not "Coder (B)"). Without it: the same characters.

    >>> same_agent("web surfer", "WebSurfer"), same_agent("web surfer", "WebSurfer", normalised=False)
    (True, False)
    >>> same_agent("Assistant", "Assistant_2"), same_agent(None, None)
    (False, False)
    """
    if not said or not gold:
        return False
    if said == gold:
        return True
    if not normalised:
        return False
    left, right = folded(said), folded(gold)
    return bool(left and right) and (
        left == right or folded(base_name(said)) == right or left == folded(base_name(gold))
    )


def agent_of(record: StepRecord) -> str:
    """The name of the agent that acted; UNNAMED where the step names none. For steps of other actors: their kind."""
    if record.actor != "agent":
        return record.actor
    return record.agent or UNNAMED


@dataclass(frozen=True, slots=True)
class AgentNames:
    """The agents of one run, in the order in which they first act.

    names: as the run spells them; at least one. aliases: other names for them, said -> name.
    """

    names: tuple[str, ...]
    aliases: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(cls, records: Iterable[StepRecord], aliases: Mapping[str, str] = MappingProxyType({})) -> AgentNames:
        """The agents that act in these records. Where none does, or none is named: the one agent UNNAMED."""
        names = dict.fromkeys(agent_of(record) for record in records if record.actor == "agent")
        return cls(tuple(names) or (UNNAMED,), MappingProxyType(dict(aliases)))

    def resolve(self, said: str) -> str | None:
        """The run's agent that `said` means; None where it means none of them, or could mean several.

        Tried in this order: the name itself; the name without case and separators; also without a part in parentheses
        at its end; an alias. Each counts only where one agent alone fits it.

        >>> names = AgentNames(("Orchestrator", "WebSurfer"), {"browser": "WebSurfer"})
        >>> names.resolve("Orchestrator (thought)"), names.resolve("web_surfer"), names.resolve("Browser")
        ('Orchestrator', 'WebSurfer', 'WebSurfer')
        >>> names.resolve("Web"), names.resolve("WebSurfer2")
        (None, None)
        """
        found, several = self._own(said)
        if found is not None or several:
            return found
        if said in self.aliases:
            return self._own(self.aliases[said])[0]
        wanted = folded(said)
        targets = {self._own(name)[0] for alias, name in self.aliases.items() if wanted and folded(alias) == wanted}
        return targets.pop() if len(targets) == 1 else None

    def _own(self, said: str) -> tuple[str | None, bool]:
        """The agent by its own name, and whether several fit."""
        if said in self.names:
            return said, False
        wanted = folded(said)
        meanings: tuple[Callable[[str], bool], ...] = (
            lambda name: bool(said) and said == shown_name(name),
            lambda name: bool(wanted) and wanted == folded(name),
            lambda name: same_agent(said, name),
        )
        for means in meanings:
            fitting = [name for name in self.names if means(name)]
            if fitting:
                return (fitting[0], False) if len(fitting) == 1 else (None, True)
        return None, False
