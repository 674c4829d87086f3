"""Results of further analyses, and the automaton."""

from __future__ import annotations

import math

from prefixguard.evaluation.report.material import LONGEST, TEXT_LETTERS, AutomatonView, name
from prefixguard.evaluation.table import Said, blocks_of
from prefixguard.results import (
    Block,
    Bullets,
    Cell,
    Facts,
    Folded,
    Image,
    Section,
    Table,
    Text,
    Verbatim,
    percent,
    signed,
)
from prefixguard.runtime import plain


def finding_section(key: str, title: str, finding: Said | None) -> Section | None:
    """What it shows, and its figures. None without a finding."""
    if finding is None:
        return None
    return Section(key, title, blocks_of(finding, title), finding.as_json())


def automaton_section(view: AutomatonView | None, measured: Said | None = None) -> Section | None:
    """How far it may be trusted, its picture, its symbols. measured: what the evaluation found about it."""
    title = "The automaton and its symbols"
    if view is None:
        return finding_section("automaton", title, measured)
    blocks: list[Block] = [
        Text(
            f"{name(view.name)}: a finite automaton of {view.states:,} states over {view.symbols:,} symbols. It "
            "explains itself; how far it also explains the monitor it was learned from, these figures say."
        )
    ]
    if view.care:
        blocks.append(Bullets(tuple(plain(line, 400) for line in view.care), "Audit with care"))
    if view.fidelity:
        blocks.append(Facts(tuple((name(a), name(b), plain(c, TEXT_LETTERS)) for a, b, c in view.fidelity)))
    if measured is not None:
        blocks += blocks_of(measured, title)
    if view.svg:
        blocks.append(Image(view.svg, f"The automaton {name(view.name)}: states, coloured by risk, and what leads on."))
    if view.glossary:
        blocks.append(Folded(f"Glossary: what {len(view.glossary):,} symbols mean", (_glossary(view),)))
    elif view.glossary_text:
        blocks.append(Folded("Glossary", (Verbatim(view.glossary_text[:LONGEST], "Glossary"),)))
    data = {
        "name": view.name,
        "states": view.states,
        "symbols": view.symbols,
        "care": list(view.care),
        "measured": None if measured is None else measured.as_json(),
        "fidelity": [list(line) for line in view.fidelity],
        "glossary": [
            {"symbol": line.symbol, "meaning": line.meaning, "condition": line.condition} for line in view.glossary
        ],
    }
    return Section("automaton", title, tuple(blocks), data)


def _glossary(view: AutomatonView) -> Table:
    rows = tuple(
        (
            Cell(str(line.symbol)),
            Cell(plain(line.meaning, TEXT_LETTERS), plain(line.condition, TEXT_LETTERS)),
            Cell(percent(line.share)),
            Cell(signed(line.risk_change) if math.isfinite(line.risk_change) else "–"),
            Cell(plain(line.example, TEXT_LETTERS)),
        )
        for line in view.glossary
    )
    head = ("No.", "meaning", "of steps", "moves the risk by", "for example")
    return Table.of("Symbols", head, rows, words={1, 4})
