"""A bundle that is not exactly what was written is refused, with the place and what to do."""

import hashlib
import json
import os
from pathlib import Path

import pytest
import tiny_automaton
import tiny_monitor
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prefixguard.bundle import open_bundle, write_bundle
from prefixguard.bundle import reading as reading_module
from prefixguard.bundle.manifest import (
    AUTOMATON,
    LIMITS,
    ONNX,
    OPTIONAL,
    PICTURES,
    REQUIRED,
    RESERVED,
    File,
    bundle_id,
    canonical,
    make_manifest,
    read_manifest,
    render,
)
from prefixguard.errors import BundleError, BundleVersionError, DataError

#: A bundle of each kind that has every file that the kind can have.
PICTURED: dict[str, bytes] = {name: f"what {name} shows".encode() for name in PICTURES}
KINDS = {
    ONNX: tiny_monitor.parts,
    AUTOMATON: lambda: tiny_automaton.parts(
        tiny_automaton.by_seed(2, 6, tiny_automaton.MODEL.n_symbols), tiny_automaton.MODEL, pictures=PICTURED
    ),
}
FILES = [(kind, name) for kind in KINDS for name in sorted((File.MANIFEST, *REQUIRED[kind], *OPTIONAL[kind]))]
OF_ONNX = [name for kind, name in FILES if kind == ONNX]


@pytest.fixture
def whole(kind: str, tmp_path: Path) -> Path:
    write_bundle(tmp_path / "whole", KINDS[kind]())
    return tmp_path / "whole"


def test_what_was_written_comes_back(bundle_path: Path) -> None:
    """Types included: numbers, text and the model's bytes are those that went in."""
    parts, bundle = tiny_monitor.parts(), open_bundle(bundle_path)
    assert bundle.model_bytes == parts.model
    assert bundle.reasons_bytes == parts.reasons
    assert bundle.calibration == parts.calibration
    assert bundle.adapter.to_bytes() == parts.adapter
    assert bundle.vocabulary.to_bytes() == parts.vocabulary
    assert bundle.typical.tobytes() == parts.context_arrays["typical"].tobytes()
    assert bundle.manifest["training_seconds"] == 1.25
    assert bundle.horizon == 3
    assert bundle.id == bundle_id(bundle.manifest)


@pytest.mark.parametrize(("kind", "name"), FILES)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_a_flipped_bit_is_found(whole: Path, name: str, data: st.DataObject) -> None:
    """Any bit of any file, the training time in the manifest not excepted."""
    path = whole / name
    good = path.read_bytes()
    bad = bytearray(good)
    bad[data.draw(st.integers(0, len(good) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(bad)
    try:
        with pytest.raises(BundleError, match=name):
            open_bundle(whole)
    finally:
        path.write_bytes(good)


@pytest.mark.parametrize("name", OF_ONNX)
@pytest.mark.parametrize("keep", [0.0, 0.5, -1])
def test_a_truncated_file_is_found(bundle_path: Path, name: str, keep: float) -> None:
    good = (bundle_path / name).read_bytes()
    (bundle_path / name).write_bytes(good[: -1 if keep < 0 else int(len(good) * keep)])
    with pytest.raises(BundleError, match=name):
        open_bundle(bundle_path)


@pytest.mark.parametrize(("kind", "name"), FILES)
def test_a_missing_file_is_named(whole: Path, name: str) -> None:
    (whole / name).unlink()
    with pytest.raises(
        BundleError, match=rf"{name}: cannot be read \(No such file or directory\)\. Copy the bundle again"
    ):
        open_bundle(whole)


@pytest.mark.parametrize("name", OF_ONNX)
def test_a_link_is_not_followed(bundle_path: Path, tmp_path: Path, name: str) -> None:
    """Even to a file with the right content: what is read must lie in the folder."""
    elsewhere = tmp_path / "elsewhere"
    (bundle_path / name).rename(elsewhere)
    (bundle_path / name).symlink_to(elsewhere)
    with pytest.raises(BundleError, match=f"{name}: is a symbolic link"):
        open_bundle(bundle_path)


def test_a_link_beside_the_files_is_not_read(bundle_path: Path, tmp_path: Path) -> None:
    (bundle_path / "secret").symlink_to(tmp_path / "nowhere")
    assert open_bundle(bundle_path).id


def test_a_pipe_does_not_hang(bundle_path: Path) -> None:
    (bundle_path / "model.onnx").unlink()
    os.mkfifo(bundle_path / "model.onnx")
    with pytest.raises(BundleError, match=r"model\.onnx: is a named pipe, not a file"):
        open_bundle(bundle_path)


def test_a_missing_folder_and_a_file_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"does not exist\. Name the folder that `train` wrote"):
        open_bundle(tmp_path / "nothing")
    (tmp_path / "file").write_text("x")
    with pytest.raises(BundleError, match="it is a file, a bundle is a folder"):
        open_bundle(tmp_path / "file")


def rewrite(folder: Path, **changes: object) -> None:
    """The manifest with changes, id and seal made to fit: what a careful forger, or a newer release, would write."""
    manifest = json.loads((folder / "manifest.json").read_bytes())
    info = {name: value for name, value in manifest.items() if name not in RESERVED}
    fresh = make_manifest(manifest["kind"], {}, manifest["adapter"], info)
    fresh["files"] = manifest["files"]
    fresh |= changes
    for name in ("id", "seal"):
        fresh.pop(name)
    fresh["id"] = bundle_id(fresh)
    fresh["seal"] = hashlib.sha256(canonical(fresh)).hexdigest()
    (folder / "manifest.json").write_bytes(render(fresh))


def test_rewriting_without_changes_is_accepted(bundle_path: Path) -> None:
    """So that the tests below fail for what they change, not for how."""
    rewrite(bundle_path)
    open_bundle(bundle_path)


def test_a_newer_schema_is_refused_with_the_release_that_reads_it(bundle_path: Path) -> None:
    rewrite(bundle_path, schema="prefixguard/bundle/v5", read_by="0.9.0")
    with pytest.raises(
        BundleVersionError, match=r"schema v5, this release reads up to v4\. Install prefixguard 0\.9\.0"
    ):
        open_bundle(bundle_path)


def test_the_version_is_read_before_anything_else(bundle_path: Path) -> None:
    """A newer layout may have other files, kinds and ids; none of that is looked at."""
    (bundle_path / "manifest.json").write_text('{"schema": "prefixguard/bundle/v17", "shape": [1]}')
    (bundle_path / "model.onnx").unlink()
    with pytest.raises(BundleVersionError, match=r"schema v17.*a newer prefixguard"):
        open_bundle(bundle_path)


@pytest.mark.parametrize("schema", ["prefixguard/bundle/v0", "prefixguard/bundle/vX", "other/v1", ""])
def test_an_odd_schema_is_refused(bundle_path: Path, schema: str) -> None:
    rewrite(bundle_path, schema=schema)
    with pytest.raises(BundleError, match="is not a bundle's"):
        open_bundle(bundle_path)


def test_files_outside_the_folder_are_refused(bundle_path: Path) -> None:
    files = json.loads((bundle_path / "manifest.json").read_bytes())["files"]
    rewrite(bundle_path, files=files | {"../../etc/passwd": {"sha256": "0" * 64, "bytes": 1}})
    with pytest.raises(BundleError, match=r"unknown: '\.\./\.\./etc/passwd'"):
        open_bundle(bundle_path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": "pickle"}, "kind 'pickle' is not known here"),
        ({"files": []}, "lists no files"),
        ({"files": {}}, "files missing from the list"),
        ({"adapter": {"name": "other", "version": "1", "sha256": "0" * 64}}, "not the adapter that the manifest names"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(bundle_path: Path, changes: dict[str, object], said: str) -> None:
    rewrite(bundle_path, **changes)
    with pytest.raises(BundleError, match=said):
        open_bundle(bundle_path)


def test_other_context_features_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A monitor must not read numbers that mean something else than in training."""
    write_bundle(tmp_path / "b", tiny_monitor.parts())
    monkeypatch.setattr(reading_module, "FEATURES", reading_module.FEATURES[:-1])
    with pytest.raises(BundleError, match=r"other context features than this release computes.*log_vocabulary"):
        open_bundle(tmp_path / "b")


@pytest.mark.parametrize(
    ("kind", "name"), [(ONNX, "calibration.json"), (AUTOMATON, "automaton.json"), (AUTOMATON, "automaton.html")]
)
def test_a_file_over_its_limit_is_not_read(whole: Path, name: str) -> None:
    with (whole / name).open("r+b") as file:
        file.truncate(LIMITS[name] + 1)  # sparse
    with pytest.raises(BundleError, match=rf"{name}: {LIMITS[name] + 1:,} bytes, and at most [0-9,]+ are read"):
        open_bundle(whole)


@settings(max_examples=200)
@given(
    st.binary(max_size=200)
    | st.text(alphabet='{}[]":,schemafil prefixguard/bundle/v1\\u0', max_size=120).map(str.encode)
)
def test_any_bytes_as_manifest_give_our_error(data: bytes) -> None:
    with pytest.raises(BundleError):
        read_manifest(data, "manifest.json")


def test_deep_json_gives_our_error() -> None:
    with pytest.raises(BundleError, match="damaged"):
        read_manifest(b"[" * 100_000, "manifest.json")


def test_what_json_cannot_say_is_refused() -> None:
    with pytest.raises(DataError, match="leave out NaN"):
        make_manifest("onnx", {}, {}, {"auprc": float("nan")})
    with pytest.raises(DataError, match="info may not name id"):
        make_manifest("onnx", {}, {}, {"id": "mine"})
