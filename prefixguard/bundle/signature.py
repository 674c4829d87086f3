"""signature.json: who vouches for a bundle. A detached Ed25519 signature over the exact bytes of its manifest.

The manifest names the hash of every other file, so the signature holds for all that is read. It stands beside the
files and is not named in the manifest: signing changes no byte of a bundle and not its id.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.bundle.files import output_error, write_file
from prefixguard.errors import ConfigError, OutputError, UntrustedBundleError, missing_extra
from prefixguard.trace import read_named

#: A key as a PEM file or as the bytes of one.
Key = str | os.PathLike[str] | bytes
#: One public key or several; a bundle that any of them signed is trusted.
Trust = Key | Iterable[Key]

#: Before the manifest's bytes, so that no signature of anything else can be taken for one of a bundle.
_PURPOSE = b"prefixguard bundle signature v1\0"
_MOST_KEY_BYTES = 16_384
#: The file has one spelling and is read by no parser.
_FILE = re.compile(
    rb'\{\n  "key": "([0-9a-f]{64})",\n  "schema": "prefixguard/signature/v1",\n  "signature": "([0-9a-f]{128})"\n\}\n'
)


@dataclass(frozen=True, slots=True)
class Signature:
    """key: the signer's public key, 64 hexadecimal digits. value: 64 bytes."""

    key: str
    value: bytes

    def to_bytes(self) -> bytes:
        """The file `signature.json`."""
        return (
            f'{{\n  "key": "{self.key}",\n  "schema": "prefixguard/signature/v1",\n'
            f'  "signature": "{self.value.hex()}"\n}}\n'
        ).encode()

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Signature:
        """Raises UntrustedBundleError for anything but what `to_bytes` gives."""
        found = _FILE.fullmatch(data)
        if found is None:
            raise UntrustedBundleError(f"{where}: not a signature. {_SIGN_AGAIN}")
        return cls(found[1].decode(), bytes.fromhex(found[2].decode()))

    @classmethod
    def of(cls, manifest: bytes, private: Any) -> Signature:
        """The signature of a manifest's bytes. private: what `private_key` gives."""
        return cls(private.public_key().public_bytes_raw().hex(), private.sign(_PURPOSE + manifest))

    def check(self, manifest: bytes, trusted: Iterable[str], where: str) -> None:
        """UntrustedBundleError unless one of the trusted keys made this signature, of these bytes."""
        _, ed25519, invalid = cryptography_parts()
        known = tuple(trusted)
        if self.key not in known:
            raise UntrustedBundleError(
                f"{where}: signed with key {short(self.key)}, which is none of those trusted "
                f"({', '.join(map(short, known))}). Ask who signed it for the public key, and trust that if you do."
            )
        try:
            ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.key)).verify(self.value, _PURPOSE + manifest)
        except (invalid, ValueError) as exc:
            raise UntrustedBundleError(
                f"{where}: not the signature of this bundle: the bundle was changed after key {short(self.key)} signed "
                f"it, or the signature is forged. Do not use it; get it again from who made it."
            ) from exc


_SIGN_AGAIN = "Sign the bundle again: prefixguard sign MONITOR --key PRIVATE_KEY.pem"


def unsigned(folder: Path, trusted: Iterable[str]) -> UntrustedBundleError:
    """The error for a bundle without a signature."""
    keys = ", ".join(map(short, trusted))
    return UntrustedBundleError(
        f"{folder}: is not signed; only bundles signed with {keys} are trusted here. Ask for a signed one, or, if you "
        f"know where it is from: prefixguard sign {folder} --key PRIVATE_KEY.pem"
    )


def short(key: str) -> str:
    """How a public key is named to people."""
    return key[:16]


def public_keys(trust: Trust) -> tuple[str, ...]:
    """The public keys in hexadecimal digits. Raises ConfigError where one cannot be read or none is given."""
    keys = tuple(map(_public_key, (trust,) if isinstance(trust, str | bytes | os.PathLike) else trust))
    if not keys:
        raise ConfigError("trust names no key. Give the path of a public key in PEM, or leave trust out.")
    return keys


def _public_key(key: Key) -> str:
    serialization, ed25519, _ = cryptography_parts()
    data, where = _pem(key)
    if b"PRIVATE KEY" in data:
        raise ConfigError(
            f"{where}: a private key. Trust is in the public one, which `sign --new-key` wrote beside it."
        )
    try:
        public = serialization.load_pem_public_key(data)
    except Exception as exc:  # of many kinds, by the sort of key
        raise ConfigError(f"{where}: not a public key in PEM. {_MAKE}") from exc
    if not isinstance(public, ed25519.Ed25519PublicKey):
        raise ConfigError(f"{where}: a public key of another kind than Ed25519. {_MAKE}")
    found: str = public.public_bytes_raw().hex()
    return found


def private_key(key: Key) -> Any:
    """The Ed25519PrivateKey of this PEM. ConfigError for anything else; no message holds anything of the key."""
    serialization, ed25519, _ = cryptography_parts()
    data, where = _pem(key)
    try:
        private = serialization.load_pem_private_key(data, password=None)
    except TypeError:
        raise ConfigError(f"{where}: a private key with a passphrase, which cannot be asked for. {_MAKE}") from None
    except Exception:  # its text could quote the file
        raise ConfigError(f"{where}: not a private key in PEM. {_MAKE}") from None
    if not isinstance(private, ed25519.Ed25519PrivateKey):
        raise ConfigError(f"{where}: a private key of another kind than Ed25519. {_MAKE}")
    return private


_MAKE = "Make a pair of keys: prefixguard sign --new-key NAME"


def _pem(key: Key) -> tuple[bytes, str]:
    """The bytes of a key and how to name it; a file is of a key's size at most."""
    if isinstance(key, bytes):
        return key, "the key"
    return read_named(Path(key), _MOST_KEY_BYTES, remedy=_MAKE, error=ConfigError), os.fspath(key)


def cryptography_parts() -> tuple[Any, Any, type[Exception]]:
    """What is used of the package that is only needed for signatures."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as exc:
        raise missing_extra("a signature", "sign", exc) from exc
    return serialization, ed25519, InvalidSignature


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Files of a private key, which stays secret, and of its public key, which those get who are to trust it."""

    private: Path
    public: Path
    public_key: str


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
        write_file(private, data, 0o600)
        write_file(public, shown)
    except OSError as exc:
        raise output_error(private, exc) from exc
    return KeyPair(private, public, secret.public_key().public_bytes_raw().hex())
