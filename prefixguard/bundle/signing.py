"""Sign a bundle, and make the keys to do it with."""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from prefixguard.bundle import layout
from prefixguard.bundle.manifest import render
from prefixguard.bundle.reading import open_bundle
from prefixguard.bundle.signature import Key, Signature, cryptography_parts, private_key
from prefixguard.bundle.writing import output_error, write_file
from prefixguard.errors import OutputError

_ONLY_MINE = 0o600


@dataclass(frozen=True, slots=True)
class Signed:
    """A signature that was written. id: of the bundle. public_key: the signer's, 64 hexadecimal digits."""

    path: Path
    id: str
    public_key: str


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Files of a private key, which stays secret, and of its public key, which those get who are to trust it."""

    private: Path
    public: Path
    public_key: str


def sign(monitor: str | os.PathLike[str], key: Key) -> Signed:
    """Sign a bundle: write `signature.json` beside its files, in place of one that is there. Nothing else changes.

    monitor: folder of the bundle, which is opened and checked first. key: private key of Ed25519 in PEM, without a
    passphrase: a path, or the bytes.
    Raises BundleError as `open_bundle` does, ConfigError for the key, OutputError where nothing can be written,
    MissingExtraError without the package cryptography.
    """
    private = private_key(key)
    bundle = open_bundle(monitor)
    signature = Signature.of(render(dict(bundle.manifest)), private)
    target = bundle.path / layout.SIGNATURE
    temporary = bundle.path / f".{layout.SIGNATURE}.{secrets.token_hex(4)}.tmp"
    try:
        write_file(temporary, signature.to_bytes())
        temporary.replace(target)
    except OSError as exc:
        raise output_error(target, exc) from exc
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return Signed(target, bundle.id, signature.key)


def new_key(name: str | os.PathLike[str]) -> KeyPair:
    """Make a pair of keys: NAME.pem, which only its owner may read, and NAME.pub.pem. Neither is ever overwritten.

    Raises OutputError where one of them is there or cannot be written, MissingExtraError without the package
    cryptography.
    """
    pem, ed25519, _ = cryptography_parts()
    stem = Path(os.fspath(name).removesuffix(".pem"))
    private, public = stem.with_name(f"{stem.name}.pem"), stem.with_name(f"{stem.name}.pub.pem")
    for path in (private, public):
        if os.path.lexists(path):
            raise OutputError(f"{path} is there already, and a key is never overwritten. Choose another name.")
    secret = ed25519.Ed25519PrivateKey.generate()
    data = secret.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())
    shown = secret.public_key().public_bytes(pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo)
    try:
        write_file(private, data, _ONLY_MINE)
        write_file(public, shown)
    except OSError as exc:
        raise output_error(private, exc) from exc
    return KeyPair(private, public, secret.public_key().public_bytes_raw().hex())
