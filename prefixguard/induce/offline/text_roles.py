"""What the heads of a log mean: who acts, thinks, answers. Names help; alternation, place and call forms decide."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from prefixguard.induce.offline.call_forms import CallForm, infer_call_form, vocabulary
from prefixguard.induce.offline.text_words import prose_share
from prefixguard.lexicon import words

#: Words that name a part of a step. The last word of a head that is here counts.
_ROLES: dict[str, str] = {
    "thought": "thought thoughts think thinking reasoning reason rationale reflection plan scratchpad",
    "action": "action actions act command cmd call toolcall invoke execute exec executing run input click",
    "agent": "agent assistant ai bot model llm gpt claude actor planner solver",
    "result": "observation observations obs result results output outputs out response return returned stdout env "
    "environment toolresult feedback reply observe tool tools",
    "user": "user human customer client operator",
    "noise": "system debug warning metrics stats usage tokens cost heartbeat",
    "task": "question task goal instruction instructions objective query problem prompt request",
    "end": "score reward outcome verdict summary finished final graded evaluation",
}
_WORDS = {word: role for role, listed in _ROLES.items() for word in listed.split()}


@lru_cache(maxsize=4096)
def role_of_name(name: str) -> str:
    """thought, action, agent, result, user, noise, task, end, or "" where the name says nothing.

    >>> role_of_name("Thought"), role_of_name("tool_result"), role_of_name("mini-swe-agent step"), role_of_name("A")
    ('thought', 'result', 'agent', '')
    """
    found = [_WORDS[word] for word in words(name) if word in _WORDS]
    if not found:
        return ""
    if "result" in found and "tool" in words(name):
        other = [role for word, role in ((w, _WORDS.get(w)) for w in words(name)) if role and word != "tool"]
        return other[-1] if other else ("action" if words(name)[-1] == "call" else "result")
    return found[-1]


@dataclass(frozen=True, slots=True)
class RoleEvent:
    """An event of the samples: its head, its text and where it stands. number: the first number of its head."""

    kind: str
    body: str
    run: int
    number: str = ""


@dataclass(frozen=True, slots=True)
class Roles:
    """of: role by kind (thought, action, result, step, user, noise, say). form: of the calls. sure: in [0, 1]."""

    of: Mapping[str, str]
    form: CallForm | None
    sure: float
    why: tuple[str, ...]
    forms: Mapping[str, CallForm]


def assign_roles(events: Sequence[RoleEvent], names: Mapping[str, str], prompts: frozenset[str] = frozenset()) -> Roles:
    """The role of every kind of event. names: by kind. prompts: kinds whose first line is typed, the rest returned."""
    bodies: dict[str, list[str]] = {}
    for event in events:
        bodies.setdefault(event.kind, []).append(event.body)
    kinds = sorted(bodies, key=lambda kind: (-len(bodies[kind]), kind))
    named = {kind: role_of_name(names[kind]) for kind in kinds}
    forms = {
        kind: form
        for kind in kinds
        if (form := infer_call_form([b for b in bodies[kind] if b.strip()], "@.body")) is not None
    }
    why: list[str] = []
    if len(kinds) == 1 and kinds[0] in prompts:
        first = [body.split("\n", 1)[0] for body in bodies[kinds[0]]]
        form = infer_call_form(first, "@.body")
        return Roles({kinds[0]: "step"}, form, 0.7, (f"{names[kinds[0]]!r}: typed, and what came back",), forms)
    follow = _follow(events)
    runs = len({event.run for event in events})
    roles: dict[str, str] = {}
    once = {kind for kind in kinds if len(bodies[kind]) <= max(1, runs) and len(kinds) > 2}
    actions = [kind for kind in kinds if named[kind] == "action" and _repeats(kind, bodies, kinds)]
    agents = [kind for kind in kinds if named[kind] == "agent"]
    if not actions:
        actions = agents
    elif agents:
        for kind in agents:  # beside actions, what an agent says is its thought
            roles[kind] = "thought" if prose_share(bodies[kind]) >= 0.4 else "action"
    sure = 0.9
    if not actions:
        sure = 0.6
        chosen = _acting(kinds, bodies, named, forms, follow, once)
        actions = [chosen] if chosen is not None else []
        if actions:
            why.append(f"{names[actions[0]]!r} acts: what follows it answers it, and its texts have the form of calls")
    parted = _parted_call(kinds, bodies, follow, named, actions)
    if parted is not None:
        tool, arguments = parted
        actions = [tool]
        roles[arguments] = "arguments"
        why.append(f"{names[tool]!r} names the tool, {names[arguments]!r} its arguments")
    for kind in actions:
        roles[kind] = "action"
    for kind in kinds:
        if kind in roles:
            continue
        role = named[kind]
        if role in ("thought", "result", "noise", "end"):
            roles[kind] = role
        elif role == "task":
            roles[kind] = "task"
        elif role == "user":
            roles[kind] = "user"
        elif role == "action":
            roles[kind] = "action"
    if actions and "result" not in roles.values():
        after = Counter(
            {
                k: n
                for k, n in follow.get(actions[0], Counter()).items()
                if k not in roles or roles[k] in ("user", "noise")
            }
        )
        best = max(sorted(after), key=lambda kind: after[kind], default=None)
        if best is not None and after[best] >= 0.3 * len(bodies[actions[0]]):
            form = forms.get(actions[0])
            if roles.get(best) != "user" or (form is not None and form.share >= 0.5):
                roles[best] = "result"
                why.append(f"{names[best]!r} answers: it follows {names[actions[0]]!r}")
    results = [kind for kind in kinds if roles.get(kind) == "result"]
    for kind in kinds:
        if kind not in roles and results and _answers_too(kind, len(bodies[kind]), actions, results, roles, follow):
            roles[kind] = "result"
            why.append(
                f"{names[kind]!r} answers as {names[results[0]]!r} does: it comes right after a call, in its place"
            )
    for kind in kinds:
        if kind in roles:
            continue
        before = sum(n for one in follow for other, n in follow[one].items() if other == kind)
        next_is_action = sum(follow.get(kind, Counter())[a] for a in actions)
        if actions and next_is_action >= 0.6 * len(bodies[kind]) and prose_share(bodies[kind]) >= 0.5:
            roles[kind] = "thought"
            why.append(f"{names[kind]!r} is thought: prose that comes before {names[actions[0]]!r}")
        elif kind in once and before == 0:
            roles[kind] = "task"
        else:
            roles[kind] = "observe"
    main = actions[0] if actions else None
    form = forms.get(main) if main is not None else None
    return Roles(roles, form, sure, tuple(why), forms)


def _answers_too(
    kind: str,
    n: int,
    actions: Sequence[str],
    results: Sequence[str],
    roles: Mapping[str, str],
    follow: Mapping[str, Counter[str]],
) -> bool:
    """Does it always come right after a call, and never before what answers calls?"""
    acting = [*actions, *(one for one, role in roles.items() if role == "arguments")]
    after = sum(follow.get(one, Counter())[kind] for one in acting)
    then = sum(follow.get(kind, Counter())[one] for one in results)
    return n >= 2 and after >= 0.9 * n and then <= 0.1 * n


def _parted_call(
    kinds: Sequence[str],
    bodies: Mapping[str, Sequence[str]],
    follow: Mapping[str, Counter[str]],
    named: Mapping[str, str],
    actions: Sequence[str],
) -> tuple[str, str] | None:
    """The kind that says names that repeat and the kind that always comes right after it, before what came back."""
    for tool in kinds:
        n = len(bodies[tool])
        said = [body for body in bodies[tool] if body and len(body.split()) == 1]
        if named[tool] in ("result", "user") or len(said) < 0.9 * n or not vocabulary(said, n):
            continue
        for kind in kinds:
            nexts = follow.get(kind, Counter())
            if kind == tool or named[kind] == "result" or follow.get(tool, Counter())[kind] < 0.9 * n or not nexts:
                continue
            if len(bodies[kind]) > 1.1 * n or not {tool, kind} & set(actions):
                continue
            after = max(sorted(nexts), key=lambda one: nexts[one])
            beyond = follow.get(after, Counter())
            again = max(sorted(beyond), key=lambda one: beyond[one], default=None)
            if after != tool and (named[kind] == "action" or named[after] == "result" or again not in (tool, None)):
                return tool, kind
    return None


def _repeats(kind: str, bodies: Mapping[str, Sequence[str]], kinds: Sequence[str]) -> bool:
    return len(bodies[kind]) >= 0.1 * len(bodies[kinds[0]])


def _follow(events: Sequence[RoleEvent]) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for one, two in pairwise(events):
        if one.run == two.run:
            found.setdefault(one.kind, Counter())[two.kind] += 1
    return found


def _acting(
    kinds: Sequence[str],
    bodies: Mapping[str, Sequence[str]],
    named: Mapping[str, str],
    forms: Mapping[str, CallForm],
    follow: Mapping[str, Counter[str]],
    once: set[str],
) -> str | None:
    """Who acts, where no name says so: has the form of calls, short texts, and is answered by longer ones."""
    best: tuple[float, str] | None = None
    for kind in kinds:
        if named[kind] in ("result", "user", "noise", "task", "end", "thought") or kind in once:
            continue
        form = forms.get(kind)
        score = 0.0
        if form is not None and form.name != "code":
            score += 2 * form.confidence * min(1.0, form.share) * (1.2 if form.name != "first word" else 0.6)
        nexts = follow.get(kind, Counter())
        answer = max(sorted(nexts), key=lambda one: nexts[one], default=None)
        if answer is not None and answer != kind:
            score += 0.5 * nexts[answer] / max(1, len(bodies[kind]))
            if _length(bodies[answer]) > _length(bodies[kind]):
                score += 0.3
            if named[answer] == "result":
                score += 1
            elif named[answer] == "user":
                score += 0.4
        score -= 0.6 * prose_share(bodies[kind])
        score += 0.2 * min(1.0, len(bodies[kind]) / len(bodies[kinds[0]]))
        if best is None or score > best[0]:
            best = (score, kind)
    return best[1] if best is not None else None


def _length(texts: Sequence[str]) -> float:
    return sorted(map(len, texts))[len(texts) // 2] if texts else 0.0


def plain(name: str) -> str:
    """A name as a group of an expression may be called."""
    return re.sub(r"\W+", "_", name).strip("_").lower()
