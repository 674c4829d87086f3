"""`prefixguard sign`: vouch for a monitor."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from prefixguard.bundle import new_key, sign
from prefixguard.cli.console import say, write_json
from prefixguard.cli.terminal_text import visible
from prefixguard.errors import UsageError


def sign_command(
    monitor: Annotated[Path | None, typer.Argument(help="Folder of the bundle to sign.", show_default=False)] = None,
    key: Annotated[Path | None, typer.Option(help="Your private key: Ed25519, in PEM, without a passphrase.")] = None,
    new_key_name: Annotated[
        str | None,
        typer.Option("--new-key", help="Make a pair of keys first: NAME.pem, which stays secret, and NAME.pub.pem."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="What was written, as JSON on standard output.")] = False,
) -> None:
    """Sign a monitor, so that others can tell that it is from you and nobody changed it since.

    The signature stands in signature.json beside the bundle's files and holds for all of them; a bundle that is
    written again has none. Whoever has your public key asks for it with --trust. Keys are never overwritten or shown.

    Examples:

        prefixguard sign --new-key release
        prefixguard sign monitors/mine --key release.pem
        prefixguard watch monitors/mine - --trust release.pub.pem
    """
    if key is not None and new_key_name is not None:
        raise UsageError("--key and --new-key: give one of them.")
    if new_key_name is None and (monitor is None or key is None):
        raise UsageError(
            "To sign, name a bundle and your key: prefixguard sign MONITOR --key PRIVATE_KEY.pem; to make a pair of "
            "keys: prefixguard sign --new-key NAME"
        )
    facts: dict[str, str] = {}
    if new_key_name is not None:
        made = new_key(new_key_name)
        facts |= {name: str(value) for name, value in asdict(made).items()}
        key = made.private
        say(visible(f"{made.private}: the private key. Keep it secret; whoever has it can sign as you."))
        say(visible(f"{made.public}: the public key. Give it to those who are to trust your monitors."))
    if monitor is not None and key is not None:
        signed = sign(monitor, key)
        facts |= {name: str(value) for name, value in asdict(signed).items()}
        say(visible(f"{signed.path}: bundle {signed.id[:12]}, signed with key {signed.public_key[:16]}"))
    if as_json:
        write_json(facts)
