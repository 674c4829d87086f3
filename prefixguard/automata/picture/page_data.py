"""What the page knows, as JSON that is safe inside HTML."""

from __future__ import annotations

import json
import math
from typing import Any

from prefixguard.automata.atlas import Atlas, Entry, Replay
from prefixguard.automata.picture.figures import THIN_RUNS, StateFigures
from prefixguard.automata.picture.levels import colour_of, ink_on, level_of
from prefixguard.automata.picture.scene import MANY_STATES, Scene, figures_of, scene_of
from prefixguard.automata.picture.wording import one_line

#: Code points kept of names (glosses, tools, terms, runs), of sentences (conditions, examples) and of a replayed step.
NAME_LETTERS = 120
SENTENCE_LETTERS = 600
STEP_LETTERS = 2_000

_ESCAPES = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}

Json = dict[str, Any]


def page_json(atlas: Atlas) -> str:
    """All data of the page as JSON, in letters that mean nothing to HTML: it cannot end the element it stands in."""
    text = json.dumps(page_data(atlas), ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True)
    return text.translate(_ESCAPES)


def page_data(atlas: Atlas) -> Json:
    """All data of the page. Probabilities are rounded to four digits; what is not a number becomes None.

    Scenes are by name: "states", and "levels" where there is more than one state; nodes and edges in their order.
    """
    scenes = {"states": scene_of(atlas)}
    if atlas.automaton.n_states > 1:
        scenes["levels"] = scene_of(atlas, collapsed=True)
    states = scenes["states"]
    return {
        "name": _name(atlas.name),
        "start": atlas.automaton.start,
        "clock": list(atlas.automaton.clock),
        "watch": _number(atlas.watch),
        "alarm": _number(atlas.alarm),
        "base": _number(atlas.base),
        "many": MANY_STATES,
        "thinRuns": THIN_RUNS,
        "levels": [
            {
                "low": _number(level.low),
                "high": _number(level.high),
                "says": str(level.says),
                "colour": level.colour,
                "ink": ink_on(level.colour),
                "used": number in states.used_levels,
            }
            for number, level in enumerate(states.levels)
        ],
        "states": [_state(atlas, figures, states) for figures in figures_of(atlas)],
        "symbols": [_symbol(entry) for entry in atlas.entries],
        "scenes": {name: _scene(scene) for name, scene in scenes.items()},
        "replays": [_replay(replay) for replay in atlas.replays],
    }


def _state(atlas: Atlas, figures: StateFigures, scene: Scene) -> Json:
    automaton, state = atlas.automaton, figures.state
    return {
        "outcome": _number(figures.outcome),
        "imminent": _number(figures.imminent),
        "peak": _number(figures.peak),
        "least": _number(figures.least),
        "interval": [_number(figures.low), _number(figures.high)],
        "level": level_of(figures.peak, scene.levels),
        "entered": figures.entered,
        "visits": figures.visits,
        "share": _number(figures.share),
        "runs": figures.runs,
        "mostRuns": figures.most_runs,
        "steps": figures.steps,
        "thin": figures.thin,
        "standIn": figures.stand_in,
        "columns": [
            {
                "imminent": _number(automaton.risk[state, column, 0]),
                "outcome": _number(automaton.risk[state, column, 1]),
                "imminentInterval": [_number(end) for end in automaton.interval[state, column, 0]],
                "interval": [_number(end) for end in automaton.interval[state, column, 1]],
                "level": level_of(float(automaton.risk[state, column, 1]), scene.levels),
                "met": figures.met[column],
                "colour": colour_of(float(automaton.risk[state, column, 1])),
                "ink": ink_on(colour_of(float(automaton.risk[state, column, 1]))),
                "steps": int(automaton.evidence[state, column]),
                "runs": int(automaton.evidence_runs[state, column]),
            }
            for column in range(len(automaton.clock) + 1)
        ],
        "examples": [_sentence(example) for example in atlas.state_examples[state]],
    }


def _symbol(entry: Entry) -> Json:
    return {
        "gloss": _name(entry.gloss),
        "condition": _sentence(entry.condition),
        "terms": [[_name(term), _number(weight)] for term, weight in entry.terms],
        "tools": [[_name(tool), _number(share)] for tool, share in entry.tools],
        "statuses": [[_name(status), _number(share)] for status, share in entry.statuses],
        "examples": [_sentence(example) for example in entry.examples],
        "count": entry.count,
        "share": _number(entry.share),
        "riskChange": _number(entry.risk_change),
        "readsHistory": entry.reads_history,
    }


def _scene(scene: Scene) -> Json:
    return {
        "nodes": [
            {"key": node.key, "states": list(node.states), "level": node.level, "spoken": node.spoken}
            for node in sorted(scene.nodes, key=lambda node: (node.risk, node.states))
        ],
        "edges": [
            {"tail": edge.tail, "head": edge.head, "count": edge.count, "symbols": edge.symbols, "drawn": edge.drawn}
            for edge in scene.edges
        ],
        "legend": list(scene.legend),
    }


def _replay(replay: Replay) -> Json:
    return {
        "run": _name(replay.run_id),
        "failed": replay.failed,
        "steps": [
            {
                "symbol": step.symbol,
                "state": step.state,
                "unseen": step.unseen,
                "imminent": _number(step.imminent),
                "outcome": _number(step.outcome),
                "level": _name(step.level),
                "teacher": _number(step.teacher),
                "text": one_line(step.text, STEP_LETTERS),
            }
            for step in replay.steps
        ],
    }


def _name(text: str) -> str:
    return one_line(text, NAME_LETTERS)


def _sentence(text: str) -> str:
    return one_line(text, SENTENCE_LETTERS)


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(float(value), 4)
