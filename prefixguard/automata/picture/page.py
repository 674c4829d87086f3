"""The automaton as one HTML file that works offline: graph, glossary and replay."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterator
from pathlib import Path

from prefixguard.automata.atlas import Atlas, Fidelity
from prefixguard.automata.picture.drawing import to_svg
from prefixguard.automata.picture.page_data import page_json
from prefixguard.automata.picture.wording import count_text, one_line, risk_text, share_text

#: Scripts, in the order in which they run; all share one scope.
SCRIPTS = ("words.js", "graph.js", "details.js", "glossary.js", "curve.js", "replay.js", "page.js")

_HERE = Path(__file__).parent
_MARK = re.compile(r"\{\{(\w+)\}\}")


def to_page(atlas: Atlas) -> bytes:
    """automaton.html, in UTF-8; the same bytes for the same atlas.

    The page asks for nothing over any network, and its content security policy forbids that it could; it runs its own
    script and no other.
    """
    pictures = {
        "states": to_svg(atlas),
        "levels": to_svg(atlas, collapsed=True) if atlas.automaton.n_states > 1 else b"",
    }
    style = (_HERE / "page.css").read_text(encoding="utf-8")
    script = _script()
    name = one_line(atlas.name, 80) or "automaton"
    parts = {
        "policy": html.escape(_policy(style, script)),
        "title": html.escape(f"{name}: automaton"),
        "name": html.escape(name),
        "summary": html.escape(_summary(atlas)),
        "fidelity": "\n".join(_fidelity(atlas.fidelity)),
        "style": style,
        **{which: picture.decode().partition("?>\n")[2] for which, picture in pictures.items()},
        "data": page_json(atlas),
        "script": script,
    }
    page = (_HERE / "page.html").read_text(encoding="utf-8")
    # One pass: a mark inside what is filled in stays as it is.
    return _MARK.sub(lambda mark: parts[mark[1]], page).encode()


def _script() -> str:
    files = [(_HERE / name).read_text(encoding="utf-8") for name in SCRIPTS]
    return '"use strict";\n(() => {\n' + "\n".join(files) + "})();\n"


def _policy(style: str, script: str) -> str:
    """Nothing may be loaded from anywhere; only these very texts may style and run."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}';"
        " base-uri 'none'; form-action 'none'"
    )


def _summary(atlas: Atlas) -> str:
    automaton = atlas.automaton
    clock = ""
    if automaton.clock:
        steps = ", ".join(str(step) for step in automaton.clock)
        if len(automaton.clock) > 5:
            steps = f"{automaton.clock[0]}, {automaton.clock[1]} ... {automaton.clock[-1]}"
        clock = f" Beside it runs a clock: risks differ by the step at which a run is, anew from step {steps}."
    return (
        f"A finite automaton of {count_text(automaton.n_states, 'state')} over"
        f" {count_text(automaton.n_symbols, 'symbol')} (learner {one_line(atlas.learner, 40)}, alphabet"
        f" {one_line(atlas.alphabet, 40)}). {share_text(atlas.base)} of the training runs failed.{clock}"
    )


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
        yield '<h2 id="verdict">Faithful to its teacher</h2>'
        yield f"<p>All marks are kept: it rates steps nearly as the monitor does that it stands for. {measured}</p>"
    yield '<dl class="figures">'
    for name, value, meaning in _figures(fidelity):
        yield f"<div><dt>{name}</dt><dd><b>{value}</b> {meaning}</dd></div>"
    yield "</dl>"
    yield "</section>"


def _figures(fidelity: Fidelity) -> Iterator[tuple[str, str, str]]:
    """Name, value and what it means; figures that do not exist are left out."""
    if fidelity.agreement is not None:
        yield "Agreement", risk_text(fidelity.agreement), "rank correlation of its outcome risk with its teacher's"
    if fidelity.same_level is not None:
        yield "Same level", share_text(fidelity.same_level), "of steps get the same OK, WATCH or ALARM"
    if fidelity.auprc is not None:
        teacher = "" if fidelity.teacher_auprc is None else f"; its teacher {risk_text(fidelity.teacher_auprc)}"
        yield "Failing soon", risk_text(fidelity.auprc), f"AUPRC of the imminent risk{teacher}"
    if fidelity.rem is not None:
        teacher = "" if fidelity.teacher_rem is None else f"; its teacher {risk_text(fidelity.teacher_rem)}"
        yield "Failing at all", risk_text(fidelity.rem), f"AUROC at equally many steps left{teacher}; chance .50"
    yield "Unseen", share_text(fidelity.unseen_share), "of steps took a way that no training run took"
