"""The symbols and states of an automaton in words, counted on the training steps: nothing is written by hand.

Text that comes from runs is cut and made harmless (`plain`); it stays text from outside.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from prefixguard.automata.alphabets.alphabet import Alphabet
from prefixguard.automata.material import Material
from prefixguard.automata.state_risk import columns_of
from prefixguard.automata.strings import before
from prefixguard.automata.summary.doing import DeedNames
from prefixguard.automata.summary.state_figures import state_figures
from prefixguard.behaviours import BY_NAME, CONSEQUENCES
from prefixguard.bundle import Automaton
from prefixguard.errors import DataError
from prefixguard.learn import steps_of
from prefixguard.runtime import plain, say_term
from prefixguard.stepview import FIELDS

#: Most terms, tools or statuses, and examples of one symbol.
TERMS = 6
SHARES = 4
EXAMPLES = 3
#: Code points of a step's call or speech, of what came back, and of a name.
_CALL, _RESULT, _NAME = 160, 160, 60
_GLOSS = 60
_TRIED = 40  # steps looked at for an example: the nearest ones
_TAGS = re.compile(b"[%b]" % bytes(range(1, len(FIELDS) + 1)))
#: Share of the steps that another example is of: those least like the examples so far.
_UNLIKE = 0.1
_NOT_MET = "not met in training"
#: What calls are for, as names say it; names of these say which call is meant, in so many code points.
_VAGUE = frozenset(BY_NAME[name].title for name in CONSEQUENCES) - {"thinks", "speaks"}
_MEANT = 40

Steps = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Entry:
    """One symbol in words, from training steps.

    symbol: its number. gloss: a few words, for edges. condition: the full definition in words (tree, typed), or the
    terms of highest weight. terms: those terms with their weights. tools, statuses: what the symbol stands for, with
    shares, most frequent first. examples: up to three steps, one line each; text from runs, as such untrusted.
    count: training steps with it; share: of all. risk_change: mean change of the outcome risk, over steps, that it
    brings. reads_history: whether it depends on earlier steps of the run, not on the step alone. advice: what the
    agent's developers can do about it; "" where nothing is known. earliest: the first step, from 1, at which any
    training run had it; 0 where none had. A symbol that none has before a late step tells the step too. thin:
    whether most of its steps end in states of thin evidence, so that the risk change rests on little.
    """

    symbol: int
    gloss: str
    condition: str
    terms: tuple[tuple[str, float], ...]
    tools: tuple[tuple[str, float], ...]
    statuses: tuple[tuple[str, float], ...]
    examples: tuple[str, ...]
    count: int
    share: float
    risk_change: float
    reads_history: bool
    advice: str = ""
    earliest: int = 0
    thin: bool = False


def make_entries(
    alphabet: Alphabet,
    material: Material,
    automaton: Automaton,
    states: NDArray[np.int32],
    names: DeedNames,
    done: NDArray[np.object_],
    *,
    examples: bool = True,
) -> tuple[Entry, ...]:
    """One entry a symbol, in order, from the steps of the pool.

    states: int32 (pool steps,), the automaton's state after each step of the pool's runs, run by run in the pool's
    order. names: of what is done in steps; done: in each of them (`deeds`). examples: False leaves texts of steps out.
    Terms are those whose mean TF-IDF in the symbol's steps exceeds most the mean elsewhere; only those above it. The
    risk change is that of the outcome risk from after the step before to after this one, the clock's share in it
    included; before the first step it is the start's risk, or, where no step ever ended there, the failure rate.
    Where the alphabet has no words, the condition names the terms, and the gloss the tool and the strongest of them.
    A name that says what a call is for ("writes") says the call that at least half of its steps make too.
    Symbols that would still have the same name have their number in front of it, but for those not met in training.
    Raises DataError where there is not one state a step.
    """
    steps = _pool_steps(material, states)
    strings = alphabet.strings(material, material.pool)
    symbols, column = strings.symbols, columns_of(automaton.clock, strings)
    after = automaton.risk[states, column, 1]
    earlier = automaton.risk[before(strings, states, automaton.start), np.roll(column, 1), 1]
    base = float(material.corpus.failed[material.pool].mean())
    known = automaton.visits[automaton.start] > 0
    earlier[strings.first[:-1]] = automaton.risk[automaton.start, 0, 1] if known else base
    contrasts = _contrasts(material.matrix[steps], symbols, alphabet.map.n_symbols)
    statuses, thin = _statuses(material), np.array([one.thin for one in state_figures(automaton)])
    shown = _examples(material, steps, symbols, alphabet.map.n_symbols, done) if examples else None
    entries: list[Entry] = []
    for k, contrast in enumerate(contrasts):
        mine = symbols == k
        count = int(np.count_nonzero(mine))
        top = [c for c in np.argsort(-contrast, kind="stable")[:TERMS].tolist() if contrast[c] > 0]
        terms = [material.vocabulary.terms[c] for c in top]
        tools = _shares(material.tools[i] for i in steps[mine].tolist())
        gloss = alphabet.glosses[k] or _gloss(tools, terms, {entry.gloss for entry in entries})
        if is_vague(gloss) and (meant := calls_meant(material, steps[mine], names, examples=examples)):
            gloss = f"{gloss}: {meant}"
        entries.append(
            Entry(
                symbol=k,
                gloss=gloss,
                condition=alphabet.conditions[k] or (_condition(terms) if count else _NOT_MET),
                terms=tuple((plain(term, _NAME), float(contrast[c])) for term, c in zip(terms, top, strict=True)),
                tools=tuple((plain(tool, _NAME) or "no tool", share) for tool, share in tools),
                statuses=tuple(_shares(statuses[i] for i in np.flatnonzero(mine).tolist())),
                examples=shown[k] if shown else (),
                count=count,
                share=count / max(len(steps), 1),
                risk_change=float((after - earlier)[mine].mean()) if count else 0.0,
                reads_history=alphabet.reads_history[k],
                advice=alphabet.advice[k] if alphabet.advice else "",
                earliest=int(strings.index[mine].min()) if count else 0,
                thin=bool(count and thin[states[mine]].mean() > 0.5),
            )
        )
    often = Counter(entry.gloss for entry in entries if entry.gloss != _NOT_MET)
    return tuple(replace(e, gloss=f"{e.symbol}: {e.gloss}") if often[e.gloss] > 1 else e for e in entries)


def state_examples(
    material: Material,
    automaton: Automaton,
    states: NDArray[np.int32],
    done: NDArray[np.object_],
    *,
    examples: bool = True,
) -> tuple[tuple[str, ...], ...]:
    """For each state up to three typical steps of different tasks that ended in it, one line each; the arguments and
    errors are those of `make_entries`."""
    steps = _pool_steps(material, states)
    if not examples:
        return ((),) * automaton.n_states
    return _examples(material, steps, states, automaton.n_states, done)


def nearest_first(rows: csr_matrix) -> NDArray[np.int64]:
    """The order of rows by how near they lie to their mean; what differs by rounding alone keeps its order."""
    rows = rows.astype(np.float64)
    mean = np.asarray(rows.mean(axis=0)).ravel()
    distance = np.asarray(rows.power(2).sum(axis=1)).ravel() - 2 * (rows @ mean)
    return np.argsort(np.round(distance, 6), kind="stable")


def is_vague(gloss: str) -> bool:
    """Whether a name begins with what a call is for, in the catalogue's words, and so says no call.

    >>> is_vague("writes, call failed"), is_vague("uses a tool"), is_vague("call failed"), is_vague("thinks")
    (True, True, False, False)
    """
    return gloss.partition(",")[0] in _VAGUE


def calls_meant(material: Material, steps: Steps, names: DeedNames, *, examples: bool = True) -> str:
    """The call that most of these steps make, else what at least half of them call (`DeedNames.most`).

    examples: False leaves arguments out.
    """
    documents = [material.corpus.documents.read(i, i + 1) for i in steps.tolist()]
    if examples and documents:
        line, n = Counter(step_line(one).partition(" → ")[0] for one in documents).most_common(1)[0]
        if 2 * n > len(documents) and len(line) <= _MEANT:
            return line
    return plain(names.most(documents), _MEANT)


def step_line(document: bytes, call: int = _CALL) -> str:
    r"""A serialised record in one line: the call or the speech, and the result.

    Absent texts are left out; a step without any is "nothing". White space is one space, other control characters are
    escaped, texts are cut; call: code points of a call or speech. What is said with a call is left out, but for a call
    without arguments.

    >>> step_line(b"\x01agent\x02ls\x03{}\x04\x05look\x06a\n b\x07ok")
    'ls({}) → a b'
    >>> step_line(b"\x01agent\x02think\x03\x04\x05I look\x06OK.\x07ok")
    'think(): I look → OK.'
    >>> step_line(b"\x01agent\x02respond\x03\x04Hi\x05Hello!\x06\x07unknown")
    'agent: Hello!'
    """
    fields = dict(zip(FIELDS, _TAGS.split(document)[1:], strict=True))
    tool = "" if fields["tool"] == b"respond" else _line(fields["tool"], _NAME)
    back = _line(fields["result"], _RESULT)
    if tool:
        given, said_line = (_line(fields[name], call) for name in ("arguments", "action"))
        done = f"{tool}(): {said_line}" if said_line and not given else f"{tool}({given})"
    else:
        who = _line(fields["actor"], _NAME)
        said = next((fields[name] for name in ("action", "arguments") if fields[name].strip()), b"")
        if not said.strip() and not back:
            said, who = fields["observation"], "sees"
        said_line = _line(said, call)
        done = f"{who}: {said_line}" if said_line else ""
    if not back and fields["status"] == b"error":
        back = "error"
    return " → ".join(filter(None, (done, back))) or "nothing"


def _line(text: bytes, limit: int) -> str:
    # Cut before decoding, with room for white space: the cost is that of the line, however long the text is.
    head = text[: 8 * limit].decode("utf-8", "ignore")
    return plain(" ".join(head.split()), limit)


def _pool_steps(material: Material, states: NDArray[np.int32]) -> Steps:
    steps = steps_of(material.corpus, material.pool)
    if len(steps) != len(states):
        raise DataError(
            f"{len(states):,} states for {len(steps):,} steps of training runs: give the state after each step of the "
            "material's pool."
        )
    return steps


def _statuses(material: Material) -> list[str]:
    """Of every step of the pool."""
    corpus, tag = material.corpus, bytes((len(FIELDS),))
    return [
        document.rpartition(tag)[2].decode("utf-8", "replace")
        for r in material.pool.tolist()
        for document in corpus.documents.each(int(corpus.first[r]), int(corpus.first[r + 1]))
    ]


def _contrasts(rows: csr_matrix, groups: NDArray[np.int32], n_groups: int) -> NDArray[np.float64]:
    """Of each term, its mean in a group's steps minus its mean elsewhere, (groups, V); 0 for a group without steps."""
    n = len(groups)
    one_hot = csr_matrix((np.ones(n), (groups, np.arange(n))), shape=(n_groups, n))
    sums = (one_hot @ rows).toarray()
    counts = np.bincount(groups, minlength=n_groups)[:, None]
    found = sums / np.maximum(counts, 1) - (sums.sum(axis=0) - sums) / np.maximum(n - counts, 1)
    return np.where(counts > 0, np.round(found, 9), 0.0)  # rounded, so that the order of adding decides no tie


def _examples(
    material: Material, steps: Steps, groups: NDArray[np.int32], n_groups: int, done: NDArray[np.object_]
) -> tuple[tuple[str, ...], ...]:
    """Of each group, up to three steps; their tasks and their lines differ. The first is, of those that do what most of
    the group do, the one whose row lies nearest to the mean; each other is so among the tenth of the steps that is
    least like those before it: one habit does not stand for all, nor does an outlier. done: of every step."""
    corpus = material.corpus
    task = np.repeat(material.tasks[material.pool], corpus.lengths[material.pool])
    found = []
    for group in range(n_groups):
        mine = np.flatnonzero(groups == group)
        rows, like = material.matrix[steps[mine]], np.zeros(len(mine))
        lines: dict[str, int] = {}  # with the task of each
        what = [one.what for one in done[mine].tolist()]
        most = np.array(what) == Counter(sorted(what)).most_common(1)[0][0] if what else np.zeros(0, dtype=np.bool_)
        known = -1
        while len(mine) and known < len(lines) < EXAMPLES:
            known = len(lines)
            unlike = like <= np.quantile(like, _UNLIKE) if lines else most
            for part in (np.flatnonzero(unlike), np.flatnonzero(~unlike)):
                near = part[nearest_first(rows[part])][:_TRIED].tolist() if len(part) else []
                for at in (at for at in near if int(task[mine[at]]) not in lines.values() and len(lines) == known):
                    i = int(steps[mine[at]])
                    lines.setdefault(step_line(corpus.documents.read(i, i + 1)), int(task[mine[at]]))
                    if len(lines) > known:
                        like = np.maximum(like, np.round((rows @ rows[at].T).toarray().ravel(), 6))
        found.append(tuple(lines))
    return tuple(found)


def _shares(names: Iterable[str]) -> list[tuple[str, float]]:
    """The most frequent names with their shares, ties by name."""
    counts = Counter(names)
    total = max(counts.total(), 1)
    return [(name, counts[name] / total) for name in sorted(counts, key=lambda name: (-counts[name], name))[:SHARES]]


def _condition(terms: Sequence[str]) -> str:
    return "stands out by " + "; ".join(map(say_term, terms)) if terms else "no word of its own"


def _gloss(tools: Sequence[tuple[str, float]], terms: Sequence[str], taken: set[str]) -> str:
    """The most frequent tool and its strongest term; a weaker one where another symbol has that gloss."""
    if not tools:
        return _NOT_MET
    tool = "speaks" if tools[0][0] == "respond" else plain(tools[0][0], _NAME) or "no tool"
    words = [term.partition(":")[2] for term in terms if not term.startswith(("tool:", "actor:"))]
    for said in [f"{tool}: {plain(word, _GLOSS)}" for word in words]:
        if (short := plain(said, _GLOSS)) not in taken:
            return short
    return tool
