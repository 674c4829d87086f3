"""Anybody can change a bundle and hash it again. What comes of it is our error, or a bundle that works."""

from __future__ import annotations

import resource
import shutil
import sys
from pathlib import Path

import forged_bundle
import pytest
import tiny_automaton
import tiny_monitor

from prefixguard.bundle import write_bundle
from prefixguard.bundle.manifest import File
from prefixguard.errors import BundleError
from prefixguard.runtime import load

KINDS = {"onnx": tiny_monitor.parts, **{kind: (lambda p=p: p) for kind, p in tiny_automaton.variants().items()}}
SEEDS = range(1000, 1016)
MOST_SECONDS = 2.0
MOST_KILOBYTES = 600 * 1024  # of a whole test process with onnxruntime and onnx in it


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("forged")
    for number, parts in enumerate(KINDS.values()):
        write_bundle(root / str(number), parts())
    return {kind: root / str(number) for number, kind in enumerate(KINDS)}


def test_hashing_again_alone_changes_nothing(bundles: dict[str, Path], tmp_path: Path) -> None:
    """So that the test below finds what it changes, and not how."""
    for kind, path in bundles.items():
        copied = shutil.copytree(path, tmp_path / kind)
        forged_bundle.reseal(copied)
        assert forged_bundle.judge(copied)[0].startswith("runs")


@pytest.mark.parametrize("kind", KINDS)
def test_every_damage_is_refused_or_harmless(kind: str, bundles: dict[str, Path], tmp_path: Path) -> None:
    """Each file in many ways, hashed again: BundleError or readings, within the time and memory of an honest one."""
    folder = shutil.copytree(bundles[kind], tmp_path / "b")
    original = {file.name: file.read_bytes() for file in folder.iterdir()}
    before = _peak()
    refused = 0
    for name in sorted(set(original) - {File.CARD}):
        for seed in SEEDS:
            forged_bundle.forge(folder, name, forged_bundle.damaged(name, original[name], seed))
            said, seconds = forged_bundle.judge(folder)
            assert seconds < MOST_SECONDS, (name, seed, said)
            refused += said.startswith("refused")
            for changed in {name, "manifest.json"}:
                (folder / changed).write_bytes(original[changed])
    assert refused > 3 * len(SEEDS)
    assert _peak() - before < MOST_KILOBYTES


def _peak() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // 1024 if sys.platform == "darwin" else peak


@pytest.mark.parametrize("name", ["config", "data", "metrics", "libraries"])
def test_facts_of_another_type_are_refused(name: str, bundles: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(bundles["onnx"], tmp_path / "b")
    forged_bundle.reseal(folder, **{name: [1]})
    with pytest.raises(BundleError, match=rf"manifest\.json: {name} is not an object\. Copy the bundle again"):
        load(folder)


@pytest.mark.parametrize("horizon", ["3", -1, 2**80, 1.5, True])
def test_a_horizon_that_is_no_number_of_steps_is_refused(
    horizon: object, bundles: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(bundles["onnx"], tmp_path / "b")
    forged_bundle.reseal(folder, horizon=horizon)
    with pytest.raises(BundleError, match="the horizon is not a number of steps"):
        load(folder)


def test_a_number_too_large_for_a_float_is_refused_in_the_calibration(bundles: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(bundles["onnx"], tmp_path / "b")
    data = (folder / "calibration.json").read_bytes()
    forged_bundle.forge(folder, "calibration.json", data.replace(b'"a": 1.0', b'"a": 1' + b"0" * 400))
    with pytest.raises(BundleError, match=r"calibration\.json: not a calibration"):
        load(folder)


def test_a_vocabulary_of_too_many_terms_is_refused_before_it_is_read(bundles: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(bundles["onnx"], tmp_path / "b")
    data = bytearray((folder / "vocabulary.bin").read_bytes())
    data[12:16] = (1 << 20 | 1).to_bytes(4, "little")
    forged_bundle.forge(folder, "vocabulary.bin", bytes(data))
    with pytest.raises(BundleError, match=r"vocabulary\.bin: 1,048,577 terms; at most 1,048,576 are read"):
        load(folder)
