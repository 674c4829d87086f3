"""The automaton as one HTML file that works offline: graph, glossary and replay."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from prefixguard.automata.page.first_alarms import first_alarm_blocks, listed_alarms
from prefixguard.automata.page.front import alarm_blocks, effect_blocks, missed_blocks, state_blocks
from prefixguard.automata.page.origin import origin_blocks
from prefixguard.automata.page.state_table import alarms_at
from prefixguard.automata.page.words import order_of, words_of
from prefixguard.automata.picture.risk_levels import RiskLevel, level_of
from prefixguard.automata.picture.scene import MANY_STATES, Scene, figures_of, scene_of
from prefixguard.automata.picture.svg import to_svg
from prefixguard.automata.summary import AutomatonSummary, Fidelity, Replay, StateAlarms
from prefixguard.automata.summary.replays import TEXT_LETTERS
from prefixguard.automata.summary.shared_names import short_names
from prefixguard.automata.summary.state_figures import THIN_RUNS, StateFigures
from prefixguard.automata.summary.wording import (
    RiskWords,
    both_ends,
    count_text,
    many_lines,
    one_line,
    risk_text,
    share_text,
)
from prefixguard.results import Bullets, Facts, blocks_to_html, ink_on, offline_page

#: Scripts, in the order in which they run; all share one scope.
SCRIPTS = ("words.js", "graph.js", "details.js", "glossary.js", "curve.js", "replay.js", "page.js")

_HERE = Path(__file__).parent
_ESCAPES = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}
#: Code points kept of a name, and of longer texts by their field.
_NAME_LETTERS = 120
_SHORT = 40  # of the short name of a run
_LETTERS = {
    **dict.fromkeys(
        ("condition", "examples", "sentence", "does", "flags", "doubt", "advice", "spoken", "alarms_at"), 600
    ),
    "legend": 2_000,
    "chosen": 1_200,
}
#: Bytes of a page. Texts of replayed steps are cut at the first of these numbers of letters with which it is no larger.
MOST_BYTES = 8_000_000
_TEXT_LETTERS = (TEXT_LETTERS, 4_000, 1_000, 300, 80, 0)

Json = dict[str, Any]


def to_page(summary: AutomatonSummary) -> bytes:
    """automaton.html, in UTF-8; the same bytes for the same summary.

    The page asks for nothing over any network, and its content security policy forbids that it could; it runs its own
    script and no other.
    """
    pictures = {
        "states": to_svg(summary),
        "levels": to_svg(summary, collapsed=True) if summary.automaton.n_states > 1 else b"",
    }
    name = one_line(summary.name, 80) or "automaton"
    parts = {
        "name": html.escape(name),
        "origin": blocks_to_html(origin_blocks(summary)),
        "order": order_of(summary),
        "words": blocks_to_html([Bullets(words_of(summary))]),
        "verdict": html.escape(one_line(summary.verdict, 900)),
        "effect": blocks_to_html(effect_blocks(summary)),
        "alarms": blocks_to_html(alarm_blocks(summary)),
        "ranked": blocks_to_html(state_blocks(summary)),
        "first": blocks_to_html(first_alarm_blocks(summary)),
        "missed": blocks_to_html(missed_blocks(summary.missed)),
        "fidelity": "\n".join(_fidelity(summary.fidelity)),
        **{which: picture.decode().partition("?>\n")[2] for which, picture in pictures.items()},
    }
    files = [(_HERE / script).read_text(encoding="utf-8") for script in SCRIPTS]
    script = '"use strict";\n(() => {\n' + "\n".join(files) + "})();\n"
    for letters in _TEXT_LETTERS:
        data = page_json(summary, letters)
        page = offline_page(_HERE, f"{name}: automaton", {**parts, "data": data}, script)
        if len(page) <= MOST_BYTES:
            break
    return page


def _fidelity(fidelity: Fidelity) -> Iterator[str]:
    """Whether the automaton may stand for its teacher, in plain words and with figures."""
    measured = (
        f"Measured on {count_text(fidelity.runs, 'test run')} ({count_text(fidelity.steps, 'step')}) that neither of"
        " them learned from."
    )
    yield f'<section class="verdict{" care" if fidelity.care else ""}" aria-labelledby="verdict">'
    if fidelity.care:
        yield '<h2 id="verdict">Audit with care</h2><ul>'
        yield from (f"<li>{html.escape(one_line(sentence, 400))}</li>" for sentence in fidelity.care)
        yield f"</ul><p>{measured}</p>"
    else:
        yield '<h2 id="verdict">High fidelity to its teacher</h2>'
        yield f"<p>Every threshold of fidelity is met: it rates steps nearly as the monitor does. {measured}</p>"
    yield blocks_to_html([Facts(tuple(_figures(fidelity)))])
    yield "</section>"


def _figures(fidelity: Fidelity) -> Iterator[tuple[str, str, str]]:
    """Name, value and what it means; figures that do not exist are left out."""
    if fidelity.agreement is not None:
        yield "Agreement", risk_text(fidelity.agreement), "rank correlation of its outcome risk with its teacher's"
    if fidelity.auprc is not None:
        teacher = "" if fidelity.teacher_auprc is None else f"; its teacher {risk_text(fidelity.teacher_auprc)}"
        yield (
            "Failing soon",
            risk_text(fidelity.auprc),
            f"AUPRC of the imminent risk{teacher}{_clock(fidelity.clock[0])}",
        )
    if fidelity.rem is not None:
        teacher = "" if fidelity.teacher_rem is None else f"; its teacher {risk_text(fidelity.teacher_rem)}"
        ends = "" if fidelity.rem_interval is None else f", 95 % interval {RiskWords().range(*fidelity.rem_interval)}"
        known = (f"; {one_line(name, 60)} alone {risk_text(rem)}" for name, rem in fidelity.groups if rem is not None)
        clock = f"{_clock(fidelity.clock[1])}{''.join(known)}; chance .50"
        yield "Failing at all", risk_text(fidelity.rem), f"AUROC at equally many steps left{ends}{teacher}{clock}"
    unseen = "of test steps took a symbol in a state where no training run took it"
    yield "Unseen", share_text(fidelity.unseen_share), unseen


def _clock(figure: float | None) -> str:
    return "" if figure is None else f"; the number of the step alone {risk_text(figure)}"


def page_json(summary: AutomatonSummary, letters: int = TEXT_LETTERS) -> str:
    """All data of the page as JSON, in letters that mean nothing to HTML: it cannot end the element it stands in."""
    text = json.dumps(
        page_data(summary, letters), ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True
    )
    return text.translate(_ESCAPES)


def page_data(summary: AutomatonSummary, letters: int = TEXT_LETTERS) -> Json:
    """All data of the page: entries and replays as they are, scenes, figures of states, levels of risk.

    Texts of replayed steps keep their lines and are cut at so many letters; `cut` says how many are. Other texts stand
    on one line and are cut, probabilities are rounded to six digits, and what is not a number is None. Scenes are by
    name: "states", and "levels" where there is more than one state; nodes and edges in their order.
    """
    states = scene_of(summary)
    scenes = {"states": states}
    if summary.automaton.n_states > 1:
        scenes["levels"] = scene_of(summary, collapsed=True)
    shown_levels = {*states.used_levels, *states.said}
    levels = [
        {**asdict(level), "colour": level.colour, "ink": ink_on(level.colour), "used": number in shown_levels}
        for number, level in enumerate(states.levels)
    ]
    ranked = {one.state: one for one in summary.ranked}
    data: Json = _plain(
        {
            "start": summary.automaton.start,
            "clock": summary.automaton.clock,
            "watch": summary.watch,
            "alarm": summary.alarm,
            "digits": summary.risks.digits,
            "many": MANY_STATES,
            "thin_runs": THIN_RUNS,
            "training_runs": summary.origin.sides[0],
            "levels": levels,
            "states": [_state(summary, figures, states, ranked[figures.state]) for figures in figures_of(summary)],
            "symbols": [{**asdict(entry), "does": summary.does[1][entry.symbol]} for entry in summary.entries],
            "scenes": {name: _scene(scene) for name, scene in scenes.items()},
            "first": [[one.run, one.step] for one in listed_alarms(summary)],
            "behaviours": summary.alphabet == "behaviours",
            "chosen": summary.chosen,
            "letters": letters,
            "cut": sum(
                len(text) > letters or len(text) >= TEXT_LETTERS
                for replay in summary.replays
                for step in replay.steps
                for _, text in step.texts
            ),
        }
    )
    short = short_names(replay.run_id for replay in summary.replays)
    data["replays"] = [
        {**_replay(replay, letters, states.levels), "short": both_ends(one_line(short[replay.run_id], 120), _SHORT)}
        for replay in summary.replays
    ]
    return data


def _state(summary: AutomatonSummary, figures: StateFigures, scene: Scene, alarms: StateAlarms) -> Json:
    """A state's figures, its first alarms, and its columns of the clock in place of what the figures say of them."""
    automaton, state = summary.automaton, figures.state
    known = {
        name: value for name, value in asdict(figures).items() if name not in ("by_clock", "met", "pools", "known")
    }
    columns = [
        {
            "imminent": automaton.risk[state, column, 0],
            "outcome": outcome,
            "interval": [low, high],
            "level": level_of(outcome, scene.levels),
            "pool": figures.pools[column],
            "met": figures.met[column],
            "known": figures.known[column],
            "colour": scene.levels[level_of(outcome, scene.levels)].colour,
            "steps": int(automaton.evidence[state, column]),
            "runs": int(automaton.evidence_runs[state, column]),
        }
        for column, outcome in enumerate(figures.by_clock)
        for low, high in [automaton.interval[state, column, 1].tolist()]
    ]
    level = level_of(figures.usual, scene.levels)
    examples = summary.state_examples[state]
    first = {
        "does": summary.does[0][state],
        "sentence": f"{alarms.sentence} {alarms.read_at_alarms}".strip(),
        "flags": (*alarms.flags, *filter(None, (alarms.on_threshold,))),
        "doubt": alarms.doubt,
        "alarms": [alarms.failed, alarms.successful],
        "earliest": alarms.earliest,
        "alarms_at": alarms_at(summary, figures, alarms.earliest),
    }
    return {
        **known,
        **first,
        "thin": figures.thin,
        "usually": figures.usually,
        "level": level,
        "columns": columns,
        "examples": examples,
    }


def _replay(replay: Replay, letters: int, levels: tuple[RiskLevel, ...]) -> Json:
    """A run as it is; texts of its steps keep their lines. alone: what a step's risk would say by itself; None without
    a risk. The page compares no risk with a threshold: its numbers are rounded."""
    found: Json = _plain(asdict(replay))
    for step, of in zip(found["steps"], replay.steps, strict=True):
        step["alone"] = levels[level_of(of.outcome, levels)].says if math.isfinite(of.outcome) else None
        step["texts"] = [[one_line(name, _NAME_LETTERS), many_lines(text, letters)] for name, text in of.texts]
    return found


def _scene(scene: Scene) -> Json:
    return {
        "nodes": [
            {"key": node.key, "states": node.states, "level": node.level, "spoken": node.spoken}
            for node in sorted(scene.nodes, key=lambda node: (node.risk, node.states))
        ],
        "edges": [
            {"tail": edge.tail, "head": edge.head, "count": edge.count, "symbols": edge.symbols, "drawn": edge.drawn}
            for edge in scene.edges
        ],
        "legend": scene.legend,
    }


def _plain(value: Any, letters: int = _NAME_LETTERS) -> Any:
    """As JSON and the page take it; letters: that a text is cut to, where its field sets no other number."""
    if isinstance(value, dict):
        return {name: _plain(one, _LETTERS.get(name, letters)) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one, letters) for one in value]
    if isinstance(value, str):
        return one_line(value, letters)
    if isinstance(value, float):
        return round(float(value), 6) if math.isfinite(value) else None
    return value
