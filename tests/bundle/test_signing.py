"""Verified is not trusted: anybody can hash a bundle again, but only who has the key can sign it."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import forged_bundle
import pytest
import tiny_monitor

from prefixguard.bundle import KeyPair, new_key, open_bundle, read_signature, sign, write_bundle
from prefixguard.bundle.signature import Signature
from prefixguard.errors import BundleError, ConfigError, MissingExtraError, OutputError, UntrustedBundleError
from prefixguard.runtime import load


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> tuple[KeyPair, KeyPair]:
    folder = tmp_path_factory.mktemp("keys")
    return new_key(folder / "ours"), new_key(folder / "theirs")


@pytest.fixture
def ours(pairs: tuple[KeyPair, KeyPair]) -> KeyPair:
    return pairs[0]


@pytest.fixture
def theirs(pairs: tuple[KeyPair, KeyPair]) -> KeyPair:
    return pairs[1]


def test_a_signed_bundle_opens_for_who_trusts_the_key(bundle_path: Path, ours: KeyPair, theirs: KeyPair) -> None:
    """By path, by bytes, and among several; signing changes no other byte and not the id."""
    before = {file.name: file.read_bytes() for file in bundle_path.iterdir()}
    signed = sign(bundle_path, ours.private)
    assert signed.id == open_bundle(bundle_path).id and signed.public_key == ours.public_key
    after = {file.name: file.read_bytes() for file in bundle_path.iterdir()}
    assert after.keys() - before.keys() == {"signature.json"} and before.items() <= after.items()
    for trust in (ours.public, str(ours.public), ours.public.read_bytes(), [theirs.public, ours.public]):
        assert load(bundle_path, trust=trust).bundle.id == signed.id
    load(bundle_path)


def test_the_same_bundle_and_key_give_the_same_signature(bundle_path: Path, ours: KeyPair) -> None:
    sign(bundle_path, ours.private)
    first = (bundle_path / "signature.json").read_bytes()
    sign(bundle_path, ours.private.read_bytes())
    assert (bundle_path / "signature.json").read_bytes() == first


def refused(path: Path, trust: Path, said: str) -> None:
    """Both doors, with the sentence."""
    for door in (open_bundle, load):
        with pytest.raises(UntrustedBundleError, match=said):
            door(path, trust=trust)


def test_an_unsigned_bundle_is_refused(bundle_path: Path, ours: KeyPair) -> None:
    refused(bundle_path, ours.public, rf"is not signed; only bundles signed with {ours.public_key[:16]} are trusted")


def test_a_bundle_that_another_key_signed_is_refused(bundle_path: Path, ours: KeyPair, theirs: KeyPair) -> None:
    sign(bundle_path, theirs.private)
    refused(bundle_path, ours.public, rf"signed with key {theirs.public_key[:16]}, which is none of those trusted")


def test_a_bundle_that_was_changed_and_hashed_again_is_refused(bundle_path: Path, ours: KeyPair) -> None:
    sign(bundle_path, ours.private)
    data = (bundle_path / "calibration.json").read_bytes()
    forged_bundle.forge(bundle_path, "calibration.json", data.replace(b'"alarm": 0.7', b'"alarm": 0.9'))
    load(bundle_path)  # verified, which is not trusted
    refused(bundle_path, ours.public, "not the signature of this bundle: the bundle was changed after key")


def test_a_file_that_was_changed_alone_is_damaged_as_ever(bundle_path: Path, ours: KeyPair) -> None:
    sign(bundle_path, ours.private)
    data = (bundle_path / "calibration.json").read_bytes()
    (bundle_path / "calibration.json").write_bytes(data.replace(b'"alarm": 0.7', b'"alarm": 0.9'))
    with pytest.raises(BundleError, match=r"calibration\.json: damaged"):
        load(bundle_path, trust=ours.public)


def test_a_forged_signature_is_refused(bundle_path: Path, ours: KeyPair, theirs: KeyPair) -> None:
    """Another's signature under our key's name; and the signature of another bundle."""
    sign(bundle_path, theirs.private)
    found = read_signature(bundle_path)
    assert found is not None
    (bundle_path / "signature.json").write_bytes(Signature(ours.public_key, found.value).to_bytes())
    refused(bundle_path, ours.public, "or the signature is forged")


def test_a_signature_of_plain_manifest_bytes_is_none_of_a_bundle(bundle_path: Path, ours: KeyPair) -> None:
    """What the key signed for another purpose must not pass here: the purpose stands before the signed bytes."""
    from prefixguard.bundle.signature import private_key

    value = private_key(ours.private).sign((bundle_path / "manifest.json").read_bytes())
    (bundle_path / "signature.json").write_bytes(Signature(ours.public_key, value).to_bytes())
    refused(bundle_path, ours.public, "not the signature of this bundle")


def test_the_signature_is_looked_at_before_anything_is_parsed(bundle_path: Path, ours: KeyPair) -> None:
    sign(bundle_path, ours.private)
    (bundle_path / "manifest.json").write_bytes(b"[" * 1000)
    refused(bundle_path, ours.public, "not the signature of this bundle")


def linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def huge(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(1 << 40)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def edit(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def change_file(path: Path) -> None:
        path.write_bytes(change(path.read_bytes()))

    return change_file


HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "link": (linked, "is a symbolic link"),
    "pipe": (piped, "is a named pipe, not a file"),
    "huge": (huge, "1,099,511,627,776 bytes, and at most 4,096 are read"),
    "folder": (folder, "is a folder, not a file"),
    "empty": (edit(lambda data: b""), "not a signature. Sign the bundle again"),
    "no JSON": (edit(lambda data: b"\0" * 300), "not a signature"),
    "another field": (edit(lambda data: data.replace(b"{\n", b'{\n  "more": 1,\n')), "not a signature"),
    "short": (edit(lambda data: data[:-8] + b'"\n}\n'), "not a signature"),
    "capitals": (edit(bytes.upper), "not a signature"),
    "more behind": (edit(lambda data: data + b"\n"), "not a signature"),
    "zeros": (edit(lambda data: data[:-132] + b"0" * 128 + data[-4:]), "not the signature of this bundle"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_signature_file_is_refused(name: str, bundle_path: Path, ours: KeyPair) -> None:
    """And where nobody asks for a signature, it is not looked at."""
    sign(bundle_path, ours.private)
    change, said = HOSTILE[name]
    change(bundle_path / "signature.json")
    refused(bundle_path, ours.public, rf"signature\.json: ({said})")
    load(bundle_path)


def test_a_bundle_that_is_written_again_loses_its_signature(bundle_path: Path, ours: KeyPair) -> None:
    sign(bundle_path, ours.private)
    write_bundle(bundle_path, tiny_monitor.parts(), overwrite=True)
    assert not (bundle_path / "signature.json").exists()


def test_a_damaged_bundle_is_not_signed(bundle_path: Path, ours: KeyPair) -> None:
    (bundle_path / "model.onnx").write_bytes(b"x")
    with pytest.raises(BundleError, match=r"model\.onnx"):
        sign(bundle_path, ours.private)
    assert not (bundle_path / "signature.json").exists()


def test_a_private_key_is_for_its_owner_alone_and_never_overwritten(tmp_path: Path) -> None:
    pair = new_key(tmp_path / "mine.pem")
    assert (pair.private.name, pair.public.name) == ("mine.pem", "mine.pub.pem")
    assert stat.S_IMODE(pair.private.stat().st_mode) == 0o600
    before = pair.private.read_bytes()
    with pytest.raises(OutputError, match=r"mine\.pem is there already, and a key is never overwritten"):
        new_key(tmp_path / "mine")
    pair.private.unlink()
    with pytest.raises(OutputError, match=r"mine\.pub\.pem is there already"):
        new_key(tmp_path / "mine")
    assert not pair.private.exists() and before
    with pytest.raises(OutputError, match="cannot be written"):
        new_key(tmp_path / "nowhere" / "mine")


@pytest.mark.parametrize("bad", [b"", b"hello", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_what_is_no_key_is_refused(bad: bytes, bundle_path: Path) -> None:
    with pytest.raises(ConfigError, match="the key: not a public key in PEM"):
        load(bundle_path, trust=bad)
    with pytest.raises(ConfigError, match="the key: not a private key in PEM"):
        sign(bundle_path, bad)


def test_keys_in_the_wrong_place_are_refused(bundle_path: Path, tmp_path: Path, ours: KeyPair) -> None:
    with pytest.raises(ConfigError, match=r"ours\.pem: a private key\. Trust is in the public one"):
        load(bundle_path, trust=ours.private)
    with pytest.raises(ConfigError, match=r"ours\.pub\.pem: not a private key in PEM"):
        sign(bundle_path, ours.public)
    with pytest.raises(ConfigError, match=r"nothing\.pem: cannot be read .* Make a pair of keys"):
        load(bundle_path, trust=tmp_path / "nothing.pem")
    with pytest.raises(ConfigError, match="/dev/zero: is a device or a terminal, not a file"):
        load(bundle_path, trust="/dev/zero")
    with pytest.raises(ConfigError, match="trust names no key"):
        load(bundle_path, trust=[])


def test_no_message_holds_anything_of_a_private_key(bundle_path: Path, tmp_path: Path, ours: KeyPair) -> None:
    """Not even of one that was cut in two or is for another purpose."""
    secret = ours.private.read_bytes()
    body = secret.splitlines()[1]
    for bad in (secret[:-30], secret.replace(body, body[:-8]), secret.replace(b"PRIVATE", b"RSA PRIVATE")):
        with pytest.raises(ConfigError) as caught:
            sign(bundle_path, bad)
        assert body.decode()[:8] not in str(caught.value) and caught.value.__cause__ is None


def test_without_the_package_the_extra_is_named(
    bundle_path: Path, ours: KeyPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    for call in (lambda: load(bundle_path, trust=ours.public), lambda: sign(bundle_path, ours.private)):
        with pytest.raises(MissingExtraError, match=r"a signature needs cryptography\. Install it with: .*\[sign\]"):
            call()
    load(bundle_path)
