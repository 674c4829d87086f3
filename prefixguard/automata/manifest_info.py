"""What the manifest of an automaton's bundle says: where it came from, and how it was made and measured."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from prefixguard.automata.model_selection import Candidate, CandidateTrial
from prefixguard.automata.picture.scene import figures_of
from prefixguard.automata.summary import AutomatonSummary
from prefixguard.bundle import Bundle
from prefixguard.results import finite


def automaton_info(
    bundle: Bundle,
    choice: Candidate,
    trials: Sequence[CandidateTrial],
    summary: AutomatonSummary,
    notes: Sequence[str],
) -> dict[str, Any]:
    """What the manifest says: the teacher's sides and data, how the automaton was made, its fidelity."""
    manifest, automaton, fidelity = bundle.manifest, summary.automaton, summary.fidelity
    kept = ("horizon", "seed", "split", "tasks", "runs", "data", "reading", "vocabulary", "reference_risks")
    metrics: dict[str, float | int | None] = {
        "test_runs": fidelity.runs,
        "imminent_auprc": fidelity.auprc,
        "outcome_auroc_at_remaining": fidelity.rem,
    }
    return {
        **{name: manifest[name] for name in kept if name in manifest},
        "backend": "automaton",
        "teacher": {"id": bundle.id, "backend": manifest.get("backend"), "metrics": manifest.get("metrics")},
        "config": asdict(choice),
        "automaton": {
            "states": automaton.n_states,
            "symbols": automaton.n_symbols,
            "clock_columns": len(automaton.clock) + 1,
            "thin_states": sum(one.thin for one in figures_of(summary)),
            "notes": list(notes),
            "glossary": [
                {
                    "meaning": entry.gloss,
                    "condition": entry.condition,
                    "share": entry.share,
                    "risk_change": entry.risk_change,
                    "example": entry.examples[0] if entry.examples else "",
                }
                for entry in summary.entries
            ],
        },
        "verdict": summary.verdict,
        "fidelity": {
            "agreement": fidelity.agreement,
            "teacher_imminent_auprc": fidelity.teacher_auprc,
            "teacher_outcome_auroc_at_remaining": fidelity.teacher_rem,
            "unseen_share": fidelity.unseen_share,
            "care": list(fidelity.care),
        },
        "trials": [
            {
                **asdict(t.choice),
                "states": t.states,
                "symbols": t.symbols,
                "soft_imminent_auprc": finite(t.soft),
                "imminent_auprc": finite(t.auprc),
                "outcome_auroc_at_remaining": finite(t.rem),
                "imminent_agreement": finite(t.imminent),
                "outcome_agreement": finite(t.outcome),
                "kappa": finite(t.kappa),
                "coverage": finite(t.coverage),
                "description": t.length,
            }
            for t in trials
        ],
        "metrics": metrics,
        "libraries": {name: importlib.metadata.version(name) for name in ("numpy", "scikit-learn", "lightgbm")},
    }
