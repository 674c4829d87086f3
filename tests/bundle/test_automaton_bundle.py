"""Bundles of kind automaton: what they hold, what they need, and how other releases meet them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny_automaton
import tiny_monitor
from invented_summary import PERFORMANCE
from tiny_automaton import MODEL, TREE, TYPED, by_hand, by_seed, glosses

from prefixguard.bundle import TreeMap, automaton_to_bytes, open_bundle, parts_of, state_names, write_bundle
from prefixguard.bundle.manifest import (
    AUTOMATON,
    OPTIONAL,
    PICTURES,
    REQUIRED,
    File,
    bundle_id,
    canonical,
    render,
)
from prefixguard.errors import BundleError

PICTURED: dict[str, bytes] = {name: f"what {name} shows".encode() for name in PICTURES}
FILES = sorted((File.MANIFEST, *REQUIRED[AUTOMATON], *OPTIONAL[AUTOMATON]))


@pytest.fixture
def bundle_path(tmp_path: Path) -> Path:
    """One that has every file that the kind can have."""
    write_bundle(tmp_path / "b", tiny_automaton.parts(by_seed(2, 6, MODEL.n_symbols), MODEL, pictures=PICTURED))
    return tmp_path / "b"


@pytest.mark.parametrize("name", list(tiny_automaton.variants()))
def test_what_was_written_comes_back(tmp_path: Path, name: str) -> None:
    parts = tiny_automaton.variants()[name]
    written = write_bundle(tmp_path / "b", parts)
    bundle = open_bundle(tmp_path / "b")
    assert parts.automaton is not None
    assert bundle.automaton is not None and bundle.symbol_map is not None
    assert (bundle.kind, bundle.id) == ("automaton", written)
    assert automaton_to_bytes(bundle.automaton, bundle.symbol_map, bundle.glosses) == parts.automaton
    assert bundle.model_bytes == parts.model
    assert bundle.reasons_bytes is None
    assert bundle.glosses[0] == "kind 0 of step"


def test_a_bundle_of_kind_onnx_has_no_automaton(tmp_path: Path) -> None:
    write_bundle(tmp_path / "b", tiny_monitor.parts())
    bundle = open_bundle(tmp_path / "b")
    assert (bundle.kind, bundle.automaton, bundle.symbol_map, bundle.glosses) == ("onnx", None, None, ())


def test_each_kind_names_the_first_release_that_reads_it(tmp_path: Path) -> None:
    """Release 0.1.0 reads v1 alone: it goes on reading monitors of kind onnx, and of an automaton it says who does."""
    write_bundle(tmp_path / "onnx", tiny_monitor.parts())
    write_bundle(tmp_path / "automaton", tiny_automaton.parts())
    said = {}
    for kind in ("onnx", "automaton"):
        manifest = json.loads((tmp_path / kind / "manifest.json").read_bytes())
        said[kind] = (manifest["kind"], manifest["schema"], manifest["read_by"])
    assert said == {
        "onnx": ("onnx", "prefixguard/bundle/v1", "0.1.0"),
        "automaton": ("automaton", "prefixguard/bundle/v2", "0.2.0"),
    }


def test_an_automaton_that_says_how_its_alarms_did_names_the_release_that_reads_that(tmp_path: Path) -> None:
    told = automaton_to_bytes(by_hand(), TYPED, glosses(TYPED), PERFORMANCE)
    write_bundle(tmp_path / "b", replace(tiny_automaton.parts(), automaton=told))
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_bytes())
    assert (manifest["schema"], manifest["read_by"]) == ("prefixguard/bundle/v4", "0.4.0")
    bundle = open_bundle(tmp_path / "b")
    assert "| automaton | 41 of 82, 50% [40, 60] | 5 of 158, 3% [1, 6] | 20 of 82, 24% [16, 34] | 4 |" in bundle.card
    assert "Cohen's kappa of its alarms with its teacher's, step by step: 0.34." in bundle.card
    assert "36 of 52 of the 90% intervals" in bundle.card
    again = parts_of(bundle)  # as for other thresholds: they did not alarm like this
    assert again.automaton is not None and b"performance" not in again.automaton


@pytest.mark.parametrize("what", ["behaviours", "names"])
def test_what_release_0_3_takes_for_damage_is_of_layout_4_before_and_after_new_thresholds(
    tmp_path: Path, what: str
) -> None:
    """Behaviours as symbols and names of states stay when the thresholds are set anew; the figures of alarms do not."""
    parts = tiny_automaton.variants()["behaviours automaton"]
    if what == "names":
        names = state_names(by_hand(), glosses(TYPED))
        parts = replace(parts, automaton=automaton_to_bytes(by_hand(), TYPED, glosses(TYPED), names=names))
    write_bundle(tmp_path / "a", parts)
    write_bundle(tmp_path / "b", parts_of(open_bundle(tmp_path / "a")))
    for name in ("a", "b"):
        manifest = json.loads((tmp_path / name / "manifest.json").read_bytes())
        assert (manifest["schema"], manifest["read_by"]) == ("prefixguard/bundle/v4", "0.4.0")
    again, bundle = json.loads((tmp_path / "b" / "automaton.json").read_bytes()), open_bundle(tmp_path / "a")
    assert bundle.automaton is not None
    assert again["names"] == list(state_names(bundle.automaton, bundle.glosses)) and "performance" not in again


def test_pictures_are_carried_and_verified(bundle_path: Path) -> None:
    manifest = json.loads((bundle_path / "manifest.json").read_bytes())
    assert sorted(manifest["files"]) == [name for name in FILES if name != File.MANIFEST]
    for name, data in PICTURED.items():
        assert (bundle_path / name).read_bytes() == data
    card = (bundle_path / "CARD.md").read_text()
    assert "A finite automaton of 6 states over 4 symbols" in card
    assert "`automaton.html`" in card


def test_the_same_parts_give_the_same_bytes(tmp_path: Path) -> None:
    one = write_bundle(tmp_path / "one", tiny_automaton.parts(pictures=PICTURED))
    turned = dict(reversed(PICTURED.items()))
    assert write_bundle(tmp_path / "two", tiny_automaton.parts(pictures=turned)) == one
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()


def test_an_automaton_may_be_replaced(bundle_path: Path) -> None:
    """Its files count as the bundle's own, not as somebody's that would be lost."""
    written = write_bundle(bundle_path, tiny_automaton.parts(), overwrite=True)
    assert open_bundle(bundle_path).id == written
    assert not (bundle_path / "automaton.html").exists()


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"model": tiny_monitor.model()}, "its symbols need no model.onnx"),
    ({"automaton": automaton_to_bytes(by_seed(1, 2, 4), MODEL, glosses(MODEL))}, "its symbols come from model.onnx"),
    ({"automaton": b"{}"}, "automaton.json: not an automaton"),
    ({"automaton": automaton_to_bytes(by_hand(), TYPED, ["x"] * 16)[:-1].replace(b'"x"', b"1", 1)}, "glosses"),
    (
        {"automaton": automaton_to_bytes(by_seed(1, 2, 2), TreeMap.of([-77], [0], [-1], [-2]), "ab")},
        "asks for term 76, the vocabulary has 5",
    ),
    ({"reasons": tiny_monitor.reasons()}, "check reasons.onnx"),
    ({"pictures": {"notes.txt": b"x"}}, "check notes.txt"),
    ({"pictures": {"calibration.json": b"x"}}, "check calibration.json"),
    ({"pictures": {"../../evil": b"x"}}, r"check \.\./\.\./evil"),
    ({"automaton": None}, "kind onnx has .*; check model.onnx"),
    ({"automaton": None, "model": tiny_monitor.model(), "pictures": PICTURED}, "kind onnx has .*; check GLOSSARY.md"),
]


@pytest.mark.parametrize(("changes", "said"), WRONG)
def test_parts_that_do_not_fit_are_not_written(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BundleError, match=said):
        write_bundle(tmp_path / "b", replace(tiny_automaton.parts(), **changes))
    assert list(tmp_path.iterdir()) == []


def test_the_tree_of_these_tests_fits(tmp_path: Path) -> None:
    """So that the test above does not pass for another reason."""
    assert write_bundle(tmp_path / "b", tiny_automaton.parts(by_seed(1, 2, TREE.n_symbols), TREE))


def test_a_kind_in_another_layout_is_refused(bundle_path: Path) -> None:
    """As a forger, or a slip of ours, might write it."""
    manifest = json.loads((bundle_path / "manifest.json").read_bytes())
    manifest["schema"] = "prefixguard/bundle/v1"
    del manifest["id"], manifest["seal"]
    manifest["id"] = bundle_id(manifest)
    manifest["seal"] = hashlib.sha256(canonical(manifest)).hexdigest()
    (bundle_path / "manifest.json").write_bytes(render(manifest))
    with pytest.raises(BundleError, match="kind automaton is of 'prefixguard/bundle/v2'"):
        open_bundle(bundle_path)
