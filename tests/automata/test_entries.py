"""The glossary says of symbols what a plain count over the training steps says."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_summary import HOSTILE
from lab_automaton import Learned, entries_of, lab_material, lay_out, learned, material_of, run_of, typed, wordless

from prefixguard.automata.alphabets.alphabet import fit_typed
from prefixguard.automata.material import Material
from prefixguard.automata.summary.calls_in_runs import failing_calls
from prefixguard.automata.summary.doing import Deed, deed_names, deeds, doing
from prefixguard.automata.summary.entries import calls_meant, state_examples, step_line
from prefixguard.errors import DataError
from prefixguard.learn import featurise, steps_of
from prefixguard.stepview import StepRecord, serialize
from prefixguard.trace import Side


def done_in(material: Material) -> np.ndarray:
    """What is done in every training step."""
    return deeds(material, deed_names(material))


@pytest.fixture(scope="module", params=[("memoryless", ()), ("ladder", (4, 9))], ids=["memoryless", "clocked ladder"])
def lab(request: pytest.FixtureRequest, lab_file: Path) -> Learned:
    learner, clock = request.param
    return learned(lab_material(lab_file), learner, clock=clock)


def test_counts_tools_and_statuses_are_those_of_the_steps(lab: Learned) -> None:
    """Typed symbols are a tool, an error and a repeat: what an entry says of them has to follow."""
    entries = entries_of(lab.alphabet, lab.material, lab.automaton, lab.states)
    assert [entry.symbol for entry in entries] == list(range(lab.alphabet.map.n_symbols))
    counts = Counter(lab.pool.symbols.tolist())
    assert [entry.count for entry in entries] == [counts[k] for k in range(len(entries))]
    assert sum(entry.share for entry in entries) == pytest.approx(1)
    assert sum(entry.count > 0 for entry in entries) > 5
    named = lab.alphabet.map.tools  # type: ignore[attr-defined]
    for entry in entries:
        assert entry.gloss == lab.alphabet.glosses[entry.symbol]
        assert entry.condition == lab.alphabet.conditions[entry.symbol]
        assert entry.reads_history == bool(entry.symbol % 2)
        if entry.count == 0:
            assert (entry.terms, entry.tools, entry.statuses, entry.examples) == ((), (), (), ())
            assert entry.risk_change == 0
            continue
        if entry.symbol // 4 < len(named):
            assert entry.tools == ((named[entry.symbol // 4] or "no tool", 1.0),)
        statuses = dict(entry.statuses)
        assert sum(statuses.values()) == pytest.approx(1)
        assert statuses.get("error", 0) == (1 if entry.symbol % 4 >= 2 else 0)


def test_terms_are_those_that_stand_out(lab: Learned) -> None:
    """Against dense means; and no term is said to stand out that does not."""
    entries = entries_of(lab.alphabet, lab.material, lab.automaton, lab.states)
    rows = lab.material.matrix[steps_of(lab.material.corpus, lab.material.pool)].toarray().astype(np.float64)
    place = {term: column for column, term in enumerate(lab.material.vocabulary.terms)}
    said = 0
    for entry in entries:
        mine = lab.pool.symbols == entry.symbol
        if not mine.any():
            continue
        contrast = rows[mine].mean(axis=0) - rows[~mine].mean(axis=0)
        expected = np.sort(contrast[contrast > 1e-9])[::-1][:6]
        assert [weight for _, weight in entry.terms] == pytest.approx(expected.tolist(), abs=1e-6)
        for term, weight in entry.terms:
            if term in place:  # long ones are cut
                assert contrast[place[term]] == pytest.approx(weight, abs=1e-6)
                said += 1
    assert said > 20


def test_risk_change_is_the_mean_over_the_steps(lab: Learned) -> None:
    """Run by run, following the automaton; before the first step stands the failure rate, no run returning there."""
    entries = entries_of(lab.alphabet, lab.material, lab.automaton, lab.states)
    changes: dict[int, list[float]] = {}
    assert lab.automaton.visits[lab.automaton.start] == 0
    for word in lab.pool.words():
        state, risk = lab.automaton.start, float(lab.pool.failed.mean())
        for count, symbol in enumerate(word, 1):
            state, _ = lab.automaton.follow(state, symbol)
            now = float(lab.automaton.risk[state, lab.automaton.column(count), 1])
            changes.setdefault(symbol, []).append(now - risk)
            risk = now
    for entry in entries:
        if entry.count:
            assert entry.risk_change == pytest.approx(np.mean(changes[entry.symbol]), abs=1e-9)
    assert max(entry.risk_change for entry in entries) > 0.02


def test_a_start_that_runs_come_back_to_says_its_own_risk(lab: Learned) -> None:
    visits = lab.automaton.visits.copy()
    visits[lab.automaton.start] = 1
    risk = lab.automaton.risk.copy()
    risk[lab.automaton.start, 0, 1] += 0.25
    plain, lifted = (
        entries_of(lab.alphabet, lab.material, replace(lab.automaton, visits=visits, risk=r), lab.states)
        for r in (lab.automaton.risk, risk)
    )
    first = Counter(word[0] for word in lab.pool.words())
    for one, other in zip(plain, lifted, strict=True):
        expected = 0.25 * first[one.symbol] / max(one.count, 1)
        assert one.risk_change - other.risk_change == pytest.approx(expected, abs=1e-9)


def test_examples_are_steps_of_the_symbol_from_different_tasks(lab: Learned) -> None:
    entries = entries_of(lab.alphabet, lab.material, lab.automaton, lab.states)
    corpus = lab.material.corpus
    tasks_of: dict[tuple[int, str], set[str]] = {}
    ends: dict[tuple[int, str], bool] = {}
    at = 0
    for r in lab.material.pool.tolist():
        for document in corpus.documents.each(int(corpus.first[r]), int(corpus.first[r + 1])):
            line = step_line(document)
            tasks_of.setdefault((int(lab.pool.symbols[at]), line), set()).add(corpus.task_ids[r])
            ends[int(lab.states[at]), line] = True
            at += 1
    for entry in entries:
        assert len(entry.examples) == len(set(entry.examples)) <= 3
        tasks = [tasks_of[entry.symbol, example] for example in entry.examples]  # KeyError: a step of another symbol
        assert len(set().union(*tasks)) >= len(tasks)
        assert bool(entry.examples) == bool(entry.count)
    assert sum(len(entry.examples) == 3 for entry in entries) > 3
    examples = state_examples(lab.material, lab.automaton, lab.states, done_in(lab.material))
    assert len(examples) == lab.automaton.n_states
    assert all(ends[state, line] for state, lines in enumerate(examples) for line in lines)
    assert [bool(lines) for lines in examples] == (lab.automaton.visits > 0).tolist()


def test_examples_are_not_all_of_one_habit() -> None:
    """Steps of one agent look alike and are the most; the examples show what the others do as well."""
    runs = []
    for n in range(60):
        asks = ["find the cheapest red shoes"] * 9 if n % 4 else [f"weather tomorrow{n}", "news of today", "stocks"]
        records = [{"tool": "search", "arguments": f'{{"q":"{ask} {n} {i}"}}'} for i, ask in enumerate(asks)]
        runs.append(run_of(f"r{n}", records, failed=n % 2 == 0, task=f"t{n}"))
    sides = {Side.TRAIN: np.arange(40), Side.CALIBRATION: np.arange(40, 50), Side.TEST: np.arange(50, 60)}
    it = learned(lay_out(featurise(runs), sides, teach=False), "memoryless")
    (entry,) = [one for one in entries_of(it.alphabet, it.material, it.automaton, it.states) if one.count > 200]
    assert len(entry.examples) == 3 and "shoes" in entry.examples[0]
    assert any("shoes" not in example for example in entry.examples[1:])


def test_without_examples_no_text_of_a_step_is_left(lab: Learned) -> None:
    entries = entries_of(lab.alphabet, lab.material, lab.automaton, lab.states, examples=False)
    full = entries_of(lab.alphabet, lab.material, lab.automaton, lab.states)
    assert entries == tuple(replace(entry, examples=()) for entry in full)
    none = state_examples(lab.material, lab.automaton, lab.states, done_in(lab.material), examples=False)
    assert none == ((),) * lab.automaton.n_states


def test_symbols_without_words_are_named_by_tool_and_term(lab: Learned) -> None:
    """No two alike, so that edges can be told apart."""
    entries = entries_of(wordless(lab.alphabet), lab.material, lab.automaton, lab.states)
    met = [entry for entry in entries if entry.count]
    assert len({entry.gloss for entry in met}) == len(met)
    for entry in met:
        tool = entry.tools[0][0]
        assert entry.gloss.startswith("speaks" if tool == "respond" else tool)
        assert entry.condition.startswith("stands out by word")
    assert any(": " in entry.gloss for entry in met)
    assert {(e.gloss, e.condition) for e in entries if not e.count} == {("not met in training", "not met in training")}


def test_symbols_of_the_same_name_have_their_number_in_front(lab: Learned) -> None:
    glosses = tuple("a tool" if k % 3 else f"tool {k}" for k in range(len(lab.alphabet.glosses)))
    alphabet = replace(lab.alphabet, glosses=glosses)
    entries = entries_of(alphabet, lab.material, lab.automaton, lab.states)
    assert len({entry.gloss for entry in entries}) == len(entries)
    for entry in entries:
        assert entry.gloss == (f"{entry.symbol}: a tool" if entry.symbol % 3 else f"tool {entry.symbol}")


def test_the_same_twice(lab: Learned) -> None:
    one, two = (entries_of(lab.alphabet, lab.material, lab.automaton, lab.states) for _ in range(2))
    assert one == two


def test_states_of_other_runs_are_refused(lab: Learned) -> None:
    with pytest.raises(DataError, match=r"states for .* steps of training runs: give the state after each step"):
        entries_of(lab.alphabet, lab.material, lab.automaton, lab.states[1:])
    with pytest.raises(DataError, match="states for"):
        state_examples(lab.material, lab.automaton, lab.states[1:], done_in(lab.material))


def test_hostile_texts_stay_on_their_line_and_are_cut() -> None:
    records = [
        {"tool": text, "arguments": text, "action": text, "result": text * 50, "observation": text} for text in HOSTILE
    ]
    said = [{"tool": "respond", "action": text} for text in HOSTILE]
    runs = [run_of(f"{n}\n", (records, said)[n % 2], failed=n % 3 == 0, task=f"t{n}") for n in range(12)]
    material = material_of(runs, teach=False)
    alphabet = wordless(typed(material))
    it = learned(material, "memoryless", alphabet=alphabet)
    entries = entries_of(alphabet, material, it.automaton, it.states)
    texts = [line for lines in state_examples(material, it.automaton, it.states, done_in(material)) for line in lines]
    for entry in entries:
        names = (*(n for n, _ in entry.terms), *(n for n, _ in entry.tools), *(n for n, _ in entry.statuses))
        texts += [entry.gloss, entry.condition, *names, *entry.examples]
    assert len(texts) > 50
    assert all(text.isprintable() and len(text) <= 600 for text in texts)
    assert any("broken out" in text for text in texts)
    assert not any(text.encode().count(b"\x1b") for text in texts)


@given(st.lists(st.text(max_size=400), min_size=7, max_size=7))
def test_any_record_is_one_printable_line(texts: list[str]) -> None:
    record = StepRecord(1, texts[0], "", *texts[1:6], status="ok")  # type: ignore[arg-type]
    line = step_line(serialize(replace(record, agent=texts[6])))
    assert line.isprintable() and line and len(line) <= 400


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"tool": "find", "arguments": '{"id":1}', "result": "x\n y"}, 'find({"id":1}) → x y'),
        ({"tool": "find", "status": "error"}, "find() → error"),
        ({"action": "Done.", "result": "ok"}, "agent: Done. → ok"),
        ({"actor": "user", "action": "No!"}, "user: No!"),
        ({"tool": "respond", "arguments": "Hi", "observation": "Hello?"}, "agent: Hi"),
        ({"observation": "a page"}, "sees: a page"),
        ({"result": "only this"}, "only this"),
        ({}, "nothing"),
        ({"tool": "t" * 90, "arguments": "é" * 999, "result": "\u202e" + "z" * 999}, None),
    ],
)
def test_a_step_in_one_line(fields: dict[str, str], line: str | None) -> None:
    (record,) = run_of("r", [fields], failed=False).records
    said = step_line(serialize(record))
    if line is None:
        assert said.startswith("t" * 59 + "…(" + "é" * 159 + "…) → \\u202e" + "z" * 100) and said.endswith("z…")
    else:
        assert said == line


def test_what_the_agent_does_is_counted_by_tool_and_by_questions() -> None:
    """By hand: in each state the share of each thing done, the most frequent first, with the first example."""
    steps = [{"tool": "find"}, {"tool": "find", "status": "error"}, {"tool": "write"}, {"action": "Which one?"}]
    runs = [run_of(f"r{n}", steps + [{"action": "Done."}] * (n % 2), failed=n % 2 == 0) for n in range(40)]
    sides = {Side.TRAIN: np.arange(20), Side.CALIBRATION: np.arange(20, 40), Side.TEST: np.arange(0)}
    material = lay_out(featurise(runs), sides, teach=False)
    done = deeds(material, deed_names(material))
    find, fails, write = (Deed("find", "find"), Deed("find", "find", True), Deed("write", "write"))
    asks, says = Deed("asks"), Deed("says something")
    assert Counter(done.tolist()) == Counter({find: 20, fails: 20, write: 20, asks: 20, says: 10})
    group = np.array([{asks: 1, says: 1, write: 2}.get(one, 0) for one in done], dtype=np.int32)
    assert doing(done, group, [["find() \u2192 x\n" + "y" * 200], [], [], []]) == (
        "Calls find (50 % of these fail). As in: find() \u2192 x " + "y" * 108 + "\u2026",
        "Asks (67 %) or says something (33 %).",
        "Calls write.",
        "",
    )
    rare = np.array([find] * 19 + [fails] + [asks] * 5, dtype=object)
    (said,) = doing(rare, np.zeros(25, dtype=np.int32), [[]])
    assert said == "Calls find (80 %; 5.0 % of these fail) or asks (20 %)."
    (said,) = doing(np.array([find] * 199 + [fails], dtype=object), np.zeros(200, dtype=np.int32), [[]])
    assert said == "Calls find.", "one failure in two hundred says nothing of what is done"
    assert doing(rare[19:20], np.zeros(1, dtype=np.int32), [[]]) == ("Calls find, which fails.",)


def test_calls_are_named_by_their_first_word_and_failures_by_their_error() -> None:
    """One tool for all calls: verbs of SQL and commands tell them apart. Names and numbers in errors do not."""
    gone = [f"Error executing query: Table 'world.{name}' doesn't exist" for name in "ab"]
    steps = [
        {"tool": "execute", "arguments": "SELECT a FROM b", "result": gone[0], "status": "error"},
        {"tool": "execute", "arguments": "SELECT c FROM d", "result": gone[1], "status": "error"},
        {"tool": "execute", "arguments": "SHOW TABLES", "result": "[('lamps',)]"},
        {"tool": "execute", "arguments": "DESC x", "result": "Error executing query: 1146 no", "status": "error"},
    ]
    runs = [run_of(f"r{n}", steps, failed=n % 2 == 0, task=f"t{n}") for n in range(20)]
    sides = {Side.TRAIN: np.arange(20), Side.CALIBRATION: np.arange(0), Side.TEST: np.arange(0)}
    material = lay_out(featurise(runs), sides, teach=False)
    done = deeds(material, deed_names(material))
    select, desc = "execute: select", "execute: desc"
    missing = Deed(select, "execute", True, "Table … doesn't exist")
    assert done[:4].tolist() == [missing, missing, Deed("execute: show", "execute"), Deed(desc, "execute", True, "no")]
    states = np.tile(np.array([1, 1, 2, 2], dtype=np.int32), 20)
    assert doing(done, states, [[]] * 3)[1:] == (
        "Calls execute: select, which fails with \"Table … doesn't exist\".",
        'Calls execute: desc, which fails with "no" (50 %) or calls execute: show (50 %).',
    )
    assert [(one.what, one.steps, one.share, one.states) for one in failing_calls(done, states)] == [
        (select, 40, 0.5, (1,)),
        (desc, 20, 0.25, (2,)),
    ]
    documents = [material.corpus.documents.read(n, n + 1) for n in range(4)]
    assert [deed_names(material).most(documents[:n]) for n in (2, 3, 4, 0)] == ["select", "select", "select", ""]
    bare = deeds(material, deed_names(material, examples=False))
    assert bare[0] == Deed(select, "execute", True)


def test_a_tool_whose_name_tells_nothing_is_named_by_what_it_is_called_on() -> None:
    said = ["Buy Now", "B09{}", "blue {}", "{}-pack"]
    runs = [
        run_of(f"r{n}", [{"tool": "click", "arguments": one.format(n)} for one in said], failed=False, task=f"t{n}")
        for n in range(60)
    ]
    sides = {Side.TRAIN: np.arange(60), Side.CALIBRATION: np.arange(0), Side.TEST: np.arange(0)}
    material = lay_out(featurise(runs), sides, teach=False)
    done = deeds(material, deed_names(material))[:4]
    others = ["click (other words)"] * 2
    assert [one.what for one in done] == ['click "buy now"', "click (an identifier)", *others], "a label is none"


def test_the_first_step_of_every_symbol_is_that_of_training(lab: Learned) -> None:
    entries = entries_of(lab.alphabet, lab.material, lab.automaton, lab.states)
    for entry in entries:
        steps = lab.pool.index[lab.pool.symbols == entry.symbol]
        assert entry.earliest == (steps.min() if len(steps) else 0)
    assert {entry.earliest for entry in entries} > {1}


def test_names_that_say_what_a_call_is_for_say_the_calls() -> None:
    """The call that most make, else what half of them call; a tool of nearly all calls tells nothing."""
    buys = [{"tool": "click", "arguments": "Buy Now"}] * 3
    other = [{"tool": "click", "arguments": str(n)} for n in range(4)]
    looks = [{"tool": "search", "arguments": str(n)} for n in range(3)]
    runs = [run_of(f"r{n}", [*buys, *other, *looks], failed=n % 2 == 0) for n in range(20)]
    sides = {Side.TRAIN: np.arange(10), Side.CALIBRATION: np.arange(10, 15), Side.TEST: np.arange(15, 20)}
    material = lay_out(featurise(runs), sides, teach=False)
    at = np.arange(len(material.tools)) % 10
    steps = [np.flatnonzero(of) for of in (at < 3, (at >= 3) & (at < 7), at >= 1, at < 0)]
    names = deed_names(material)
    meant = ["click(Buy Now)", "click", "click", ""]
    assert [calls_meant(material, of, names) for of in steps] == meant
    assert calls_meant(material, steps[0], deed_names(material, examples=False), examples=False) == "click"
    one_tool = replace(material, tools=["click"] * len(at))
    assert calls_meant(one_tool, steps[1], deed_names(one_tool, examples=False), examples=False) == ""
    alphabet = replace(fit_typed(material, material.pool), glosses=("writes",) * 12)
    it = learned(material, "memoryless", alphabet=alphabet)
    found = entries_of(it.alphabet, it.material, it.automaton, it.states)
    assert {entry.gloss.partition(": writes")[0] for entry in found if entry.count} and any(
        "writes: click" in entry.gloss or "writes: search" in entry.gloss for entry in found
    )
