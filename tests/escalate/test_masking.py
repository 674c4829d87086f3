"""Secrets do not reach a model or a transcript, and what is no secret does."""

from __future__ import annotations

import random
import string
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.escalate import MaskedRecords, PromptKind, ask_for_verdict
from prefixguard.escalate.masking import MAX_TEXT, Masker, masked_in_words
from prefixguard.escalate.transcript_buffer import NOT_KEPT, ShortenedStep, TranscriptBuffer
from prefixguard.stepview import StepRecord

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


def test_a_secret_that_was_told_once_is_masked_wherever_it_comes_again() -> None:
    masker = Masker()
    assert "hunter2Zx!9" not in masker.mask("password=hunter2Zx!9")
    assert "hunter2Zx!9" not in masker.mask("I set the account to hunter2Zx!9.")
    masker.mask("password=correcthorse")
    assert masker.mask("The correcthorse stays.") == "The correcthorse stays.", "it may be a word"


@pytest.mark.parametrize("name", sorted(SECRETS))
@pytest.mark.parametrize("around", ["{}", "token {} end", '{{"a": "{}"}}', "x={}\n", "\\n{}\\n", "url?k={}&b=1"])
def test_shapes_are_masked_wherever_they_stand(name: str, around: str) -> None:
    masked = Masker().mask(around.format(SECRETS[name]))
    assert SECRETS[name] not in masked and "<masked " in masked and "1>" in masked


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
        ("postgres://bob:p@ss@db/x", "@db/x", "p@ss"),
        ("redis://:s3cret@cache:6379/0", "cache:6379", "s3cret"),
        ("Server=db;User=sa;Pwd=Tr0ub4dor;Encrypt=no", "Encrypt=no", "Tr0ub4dor"),
        ('"passphrase": "correct horse battery"', "passphrase", "horse"),
        ("curl -u ann:hunter22 https://x.org", "https://x.org", "hunter22"),
        ("mysql -h db -pS3cr3t! shop", "shop", "S3cr3t!"),
        ("machine x.org login ann password hunter22", "login ann", "hunter22"),
        ("deploy --api-key 0123abcd --verbose", "--verbose", "0123abcd"),
        ("<password>hunter22</password>", "</password>", "hunter22"),
        ("the password is Hunter22! as before", "as before", "Hunter22!"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic ", "dXNlcjpwYXNz"),
        ("your api key: 0123abcdXY.", "your api key: ", "0123abcdXY"),
        ("The Secret Key is **Zx81kkq9** now", "** now", "Zx81kkq9"),
        ("access token: ya88abc123, valid", ", valid", "ya88abc123"),
        ("sudo passwd hunter22", "sudo passwd ", "hunter22"),
        ("log in as ann, password hunter22, then", ", then", "hunter22"),
        ("the password for admin is hunter22", "for admin is", "hunter22"),
        ("the password has been changed to Ab12cd34", "changed to", "Ab12cd34"),
        ("the passcode is 48392017, as told", ", as told", "48392017"),
        ("the password is 'swordfish'.", "password is '", "swordfish"),
        ("pay to GB82 WEST 1234 5698 7654 32 AND say so", "AND say so", "1234 5698"),
        ("IBAN:DE89370400440532013000,", "IBAN:", "DE89370400440532013000"),
        ("write to a.b+c@mail.example.org now", "now", "a.b+c@mail"),
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
        "password = os.environ['DB_PASSWORD']",
        "api_key=get_key(), token: str | None = None",
        "secret: ${VAULT_SECRET} password: null",
        "OLDPWD=/home/ann/project",
        "git clone git@github.com:org/repo.git",
        "icon@2x.png, getty@tty1.service, react@18.2.0",
        "integrity sha512-" + "aB3dE5fG7hJ9kL1m" * 5 + "==",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "Order #W1234567, tracking number 4111111111111111, item 9523456873",
        "order_id: 4012888888881881",
        "at 1700000000000 or 1700000000000000, about 0.4111111111111111",
        "ISBN 978-3-16-148410-0 and 4111 1111 1111 1112",
        "4111-1111-1111-1111-1111-1111",
        "+49 30 901820, (555) 010-2345",
        "src/main/java/com/example/AbstractOrderServiceImplV2Test.java",
        "tokens: 120, max_tokens: 4096",
        "GB83 WEST 1234 5698 7654 32, DE89370400440532013001, FR1420041010050500013M0260",
        "The password field, the password is required, password must contain 8 characters",
        "api key: see the documentation; access key: required; secret key: the one of step 2",
        "cat passwd.txt; edit password notes2.txt",
        "echo export PASSWORD='' >> ~/.bashrc",
        "risk-free-and-very-long-hyphenated-word",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Masker().mask(text) == text


def test_fields_before_the_one_that_tells_are_masked_as_well() -> None:
    masked = Masker().mask_all(
        {"env": "X=tr0ub4dor7", "login": {"password": "tr0ub4dor7"}, "pin": "Ab1!xy and Ab1!xyz"}
    )
    assert masked == {
        "env": "X=<masked password 1>",
        "login": {"password": "<masked password 1>"},
        "pin": "Ab1!xy and Ab1!xyz",
    }
    short = Masker().mask_all(["Ab1!xy and Ab1!xyz", "password: Ab1!xy"])
    assert short == ["<masked password 1> and Ab1!xyz", "password: <masked password 1>"], (
        "short ones as words of their own"
    )


def test_the_same_secret_has_the_same_mark() -> None:
    masker = Masker()
    a, b = SECRETS["google"], SECRETS["github"]
    assert masker.mask(f"{a} {b} {a}") == "<masked key 1> <masked key 2> <masked key 1>"
    assert masker.mask(b) == "<masked key 2>" and masker.counts == {"key": 2}


def test_fields_that_hold_secrets_are_masked_whatever_they_look_like() -> None:
    masked = Masker().mask_all({"password": "abc", "user": {"access_token": "x"}, "max_tokens": 5, "tokens": "many"})
    assert masked == {
        "password": "<masked password 1>",
        "user": {"access_token": "<masked password 2>"},
        "max_tokens": 5,
        "tokens": "many",
    }


def test_known_secrets_are_masked_without_a_shape() -> None:
    assert "swordfish" not in Masker(known=("swordfish",)).mask("say swordfish!")


@pytest.mark.parametrize(
    "number",
    ["4111111111111111", "4111-1111-1111-1111", "4111 1111 1111 1111", "378282246310005", "3782 822463 10005",
     "5500005555555559", "2223003122003222", "6011111111111117", "3530111333300000", "30569309025904"],
)  # fmt: skip
@pytest.mark.parametrize("around", ["card {}, 12/29", '{{"number": "{}"}}', "{}", "pay {}."])
def test_card_numbers_are_masked(number: str, around: str) -> None:
    assert Masker().mask(around.format(number)) == around.format("<masked card 1>")


def test_a_secret_access_key_is_known_beside_its_id_and_alone() -> None:
    key = "wJalrXUtn" + "FEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    plain = "abcdefghijABCDEFGHIJabcdefghijABCDEFGHIJ"  # no digit: only its id tells
    assert Masker().mask(f"the key {key} is") == "the key <masked key 1> is"
    assert Masker().mask(plain) == plain
    assert Masker().mask(f"{SECRETS['aws']},{plain}") == "<masked aws-id 1>,<masked key 1>"


@given(st.data())
def test_random_keys_are_masked(data: st.DataObject) -> None:
    """Of keys drawn at random a few have the look of a name; all others are masked."""
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    letters = string.ascii_letters + string.digits + "+/"
    keys = ["".join(rng.choices(letters, k=40)) for _ in range(50)]
    assert sum(key in Masker().mask(f"value {key} end") for key in keys) <= 4


def test_a_half_that_a_cut_left_is_masked() -> None:
    masker = Masker()
    assert masker.mask("key ghp_a1B2c3\n[...]\nd4E5f6 end") == "key <masked cut 1>\n[...]\n<masked cut 2> end"
    assert masker.mask("some words\n[...]\nmore words") == "some words\n[...]\nmore words"
    assert masker.mask("q8Zr2LmX", cut_before=True) == masker.mask("q8Zr2LmX", cut_after=True) == "<masked cut 3>"
    body = "MIIEpAIBAAKCAQEA7bq2abcdEFGH1234"
    text = f"-----BEGIN PRIVATE KEY-----\n{body}\n{body[:9]}\n[...]\n{body}\n-----END PRIVATE KEY-----\nthen"
    assert body[:9] not in Masker().mask(text) and Masker().mask(text).endswith("\nthen")


@given(st.lists(st.sampled_from(sorted([*SECRETS.values(), "ann@example.org", "4111 1111 1111 1111", "words", "\n"]))))
def test_what_is_masked_is_not_masked_again(parts: list[str]) -> None:
    masker = Masker()
    once = masker.mask(" ".join(parts))
    counts = masker.counts
    assert masker.mask(once) == once and masker.counts == counts


def test_nothing_but_known_secrets_is_masked_where_masking_is_off() -> None:
    masker = Masker(("swordfish",), mask=False)
    text = f"{SECRETS['aws']} ann@example.org password=hunter22"
    assert masker.mask(f"{text} swordfish") == f"{text} <masked key>" and masker.counts == {}


def test_what_was_masked_is_said() -> None:
    assert masked_in_words({"email": 3, "card": 1}) == (
        "Masked in what is sent: 1 card, 3 email. To send texts as they are: --no-mask (mask=False)."
    )


@pytest.mark.parametrize(
    "text", ["a" * 3_000_000, "eyJ" * 500_000, "password=" * 200_000, "-----BEGIN PRIVATE KEY-----" * 9_000]
)
def test_any_length_is_bounded(text: str) -> None:
    assert len(Masker().mask(text)) <= MAX_TEXT + 100


@given(st.text(max_size=300), st.sampled_from(sorted(SECRETS.values())), st.text(max_size=300))
def test_a_secret_between_blanks_never_comes_through(before: str, secret: str, after: str) -> None:
    assert secret not in Masker().mask(f"{before} {secret} {after}")


KEY = "ghp_" + "a1B2c3D4e5" * 3
STEP = StepRecord(1, "agent", "", "search", "{}", "Hello.", "I look.", "", "ok")


def test_equal_secrets_have_equal_marks_across_steps_and_while_the_run_grows() -> None:
    steps = [replace(STEP, index=i, result=f"{i}: {KEY} ann{i % 2}@example.org") for i in range(1, 5)]
    whole = MaskedRecords.of(steps)
    assert [step.result for step in whole.records] == [
        "1: <masked key 1> <masked email 1>",
        "2: <masked key 1> <masked email 2>",
        "3: <masked key 1> <masked email 1>",
        "4: <masked key 1> <masked email 2>",
    ]
    assert whole.counts == {"email": 2, "key": 1}
    assert MaskedRecords.of(steps[:2]).records == whole.records[:2]
    assert MaskedRecords.of(steps, mask=False).records == tuple(steps)


@given(st.integers(0, 3), st.integers(0, 3), st.sampled_from(["observation", "action", "arguments", "result"]))
def test_a_secret_is_masked_before_the_step_that_tells_of_it(first: int, told: int, field: str) -> None:
    """Wherever it stands bare and wherever it is told, it is in no text of what is sent, with one mark."""
    steps = [replace(STEP, index=i + 1) for i in range(4)]
    steps[first] = replace(steps[first], **{field: "export X=abc123def456; then"})  # type: ignore[arg-type]
    steps[told] = replace(steps[told], observation=f"{steps[told].observation} password: abc123def456")
    shown = MaskedRecords.of(steps)
    assert "abc123def456" not in repr(shown.records) and shown.counts == {"password": 1}
    assert "export X=<masked password 1>; then" in getattr(shown.records[first], field)


def test_a_shortened_step_is_masked_again_around_its_hole() -> None:
    kept = TranscriptBuffer(4096)
    kept.add(replace(STEP, result=f"X=abc123def456 {'x ' * 4000} end"))
    kept.add(replace(STEP, index=2, result="password: abc123def456"))
    before, after = MaskedRecords.of(kept.prefix()).records
    assert isinstance(before, ShortenedStep) and before.result.startswith("X=<masked password 1> ")
    assert before.result[before.holes[0].begin : before.holes[0].end] == NOT_KEPT
    assert after.result == "password: <masked password 1>"


@given(st.integers(0, 12_000), st.sampled_from(["observation", "action", "arguments", "result"]))
def test_no_cut_lets_half_of_a_secret_through(place: int, name: str) -> None:
    """Wherever a secret stands in a long text, nothing of it is in a prompt of a small budget, nor after a session has
    kept the ends of the text only."""
    text = f"{'word ' * (place // 5)}{KEY}{' word' * 2400}"
    record = replace(STEP, **{name: text})  # type: ignore[arg-type]
    kept = TranscriptBuffer(8192)
    kept.add(record)
    for records in ([record], kept.prefix()):
        asked = ask_for_verdict(PromptKind.ONLINE, MaskedRecords.of(records).records, 4000)
        sent = "".join(message["content"] for message in asked.messages)
        assert not any(KEY[i : i + 8] in sent for i in range(len(KEY) - 7))


def test_holes_stand_where_they_stood() -> None:
    kept = TranscriptBuffer(4096)
    kept.add(replace(STEP, result=f"ann@example.org {'x ' * 4000} bob@example.org"))
    (before,), (after,) = kept.prefix(), MaskedRecords.of(kept.prefix()).records
    assert isinstance(before, ShortenedStep) and isinstance(after, ShortenedStep)
    (hole,) = after.holes
    assert after.result[hole.begin : hole.end] == NOT_KEPT and hole.left_out == before.holes[0].left_out
    assert after.result.startswith("<masked email 1>") and after.result.endswith("<masked email 2>")


def test_names_of_agents_come_back() -> None:
    masked = MaskedRecords.of([replace(STEP, agent="ann@example.org"), replace(STEP, index=2, agent="Planner")])
    assert [step.agent for step in masked.records] == ["<masked email 1>", "Planner"]
    assert masked.agents == {"<masked email 1>": "ann@example.org"}
