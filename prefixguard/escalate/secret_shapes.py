"""Shapes of secrets in text, as one table: what is taken out, under which kind, and what must hold beside the shape.

All expressions are RE2, so no text can make one slow. A group named `keep` stays before the secret, one named `rest`
behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import re2

from prefixguard.escalate.secret_looks import (
    has_changes,
    is_address,
    is_login,
    is_mixed,
    is_password,
    is_token,
    is_told,
)

OPTIONS = re2.Options()
OPTIONS.log_errors = False


@dataclass(frozen=True, slots=True)
class Shape:
    """kind: the word in the mark. gate: one of GATES, without which the shape stands nowhere. pattern: compiled, over
    bytes. accepts: whether what matched is a secret; None: it always is. has_keep, has_rest: whether a part before or
    behind the secret stays."""

    kind: str
    gate: str
    pattern: Any
    accepts: Callable[[bytes], bool] | None
    has_keep: bool
    has_rest: bool


def _compiled(pattern: str) -> Any:
    return re2.compile(pattern.encode(), OPTIONS)


def _after_any(*patterns: str) -> str:
    """Any of these where a word begins, also after an escape: in JSON inside JSON a secret may follow the two
    characters of `\\n`. The beginning of a word may follow an underscore."""
    return rf"(?P<keep>\\[nrtbf\"]|\b|_)(?:{'|'.join(patterns)})"


_BLOCK = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?"
_BREAK = r"(?:\s|\\[nrt]|[|>\"',])"
#: Names of settings whose value is a secret.
_WORDS = (
    r"(?:password|passwd|passphrase|passcode|passwort|pwd|secret|credentials?|api[_-]?key|apikey|access[_-]?key"
    r"|access[_-]?token|auth[_-]?token|refresh[_-]?token|session[_-]?token|security[_-]?token|id[_-]?token"
    r"|bearer[_-]?token|bot[_-]?token|api[_-]?token|private[_-]?token|client[_-]?secret|secret[_-]?key"
    r"|private[_-]?key|account[_-]?key|shared[_-]?access[_-]?key|signing[_-]?key|encryption[_-]?key|master[_-]?key"
    r"|webhook[_-]?secret|auth[_-]?key|license[_-]?key|sessionid|sessid|session[_-]?id|csrf[_-]?token|[_-]pass)"
)
#: The same with a blank between, as people write it, and the bare words.
_SPACED = (
    r"\b(?:api|access|auth|refresh|session|security|bearer|bot|client|secret|private|account|signing|encryption|master"
    r"|webhook|license)[ \t](?:key|token|secret)"
)
_PASSWORD = r"\b(?:password|passwd|passphrase|passcode|pwd)"
_BECOMES = r"(?:(?:is|was|to|be|been|has|now|set|changed|reset|updated)\b[ \t]*)"
_SETTING = rf"{_WORDS}(?:[_-]?(?:base|base64|b64|value|prod|dev|test|live|old|new|main|[0-9]{{1,3}}))?"
_TOKENS = (
    r"(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}",  # OpenAI, Anthropic, Langfuse, OpenRouter
    r"(?:sk|pk|rk|whsec)_(?:live|test|prod)?_?[A-Za-z0-9]{16,}",  # Stripe, Clerk
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent|oas)-[A-Za-z0-9_-]{16,}",
    r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}",
    r"xapp-[A-Za-z0-9-]{10,}",
    r"AIza[A-Za-z0-9_-]{30,}",
    r"ya29\.[A-Za-z0-9_-]{20,}",
    r"GOCSPX-[A-Za-z0-9_-]{20,}",
    r"1//0[A-Za-z0-9_-]{30,}",
    r"ATATT3[A-Za-z0-9_=-]{20,}",
    r"dapi[0-9a-f]{32}",
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"key-[0-9a-f]{32}",
    r"SK[0-9a-f]{32}",
    r"EAA[A-Za-z][A-Za-z0-9]{60,}",
    r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",  # Discord
    r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}",  # Telegram
    r"hv[sbr]\.[A-Za-z0-9_-]{20,}",
    r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{20,}",
    r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{40,}",
    r"sl\.[A-Za-z0-9_-]{40,}",
    r"fm[12][a-z]{0,3}_[A-Za-z0-9+/=_-]{40,}",
    r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}",
    r"oy2[a-z0-9]{43}",
    r"AAAAAAAAAAAAAAAAAAAA[A-Za-z0-9%]{30,}",  # Twitter
    r"AGE-SECRET-KEY-1[0-9A-Z]{40,}",
)

#: Prefixes of keys that words of programs have as well; what follows has digits in it.
_PREFIXES = (
    r"(?:hf|npm|nvapi|tvly|gsk|pypi|xai|pplx|fw|r8|dckr_pat|shpat|shpss|shpca|shppa|lin_api|ntn|secret|figd|sntrys|sntryu"
    r"|glsa|glc|pscale_tkn|pscale_pw|sbp|sb_secret|rubygems|bkua|CCIPAT|pcsk|nfp|rnd|napi|lsv2_pt|lsv2_sk|dop_v1|doo_v1"
    r"|dor_v1|mdb_sa_sk|shippo_live|shippo_test|tskey|re|cio|ops|key|api|HRKU|NRAK|NRII|PMAK|sq0atp|sq0csp|EZAK|EZTK"
    r"|access-production|access-sandbox|access-development)[_-][A-Za-z0-9_=-]{20,}"
)

#: What must stand in a text for some shapes to be looked for at all: they cost less together than each alone.
_GATES = {
    "any": "",
    "at": "@",
    "block": r"PRIVATE KEY|Private-Lines",
    "hook": r"hooks\.slack|/webhooks/",
    "login": r"(?i)authorization|bearer|basic|cookie|\s-b|token|sig|identified by|login|password|passcode"
    r"|passphrase|passwd|pwd|mysql|mariadb|sshpass|\s-u|--user",
    "setting": f"(?i){_WORDS}|{_SPACED}|--?(?:[a-z]+-)*(?:pass|secret|token)",
}

#: Kind, gate, expression, and what must hold beside it; looked for in this order.
_TABLE: tuple[tuple[str, str, str, Callable[[bytes], bool] | None], ...] = (
    ("private-key", "block", rf"-----BEGIN {_BLOCK}-----(?s:.*?)-----END {_BLOCK}-----", None),
    (
        "private-key",
        "block",  # cut off at its end: its lines, as far as they go
        rf"-----BEGIN {_BLOCK}-----(?:{_BREAK}*(?:[A-Za-z0-9+/=]{{20,}}|[A-Z][A-Za-z-]{{2,20}}: [^\n\\]+))*"
        rf"(?:{_BREAK}*[A-Za-z0-9+/=]{{1,76}}(?:\z|{_BREAK}*(?:\.\.|\x{{2026}}|\[)))?",
        None,
    ),
    (
        "private-key",
        "block",
        rf"(?:[A-Za-z0-9+/=]{{8,}}{_BREAK}+)*[A-Za-z0-9+/=]+{_BREAK}*-----END {_BLOCK}-----",
        None,
    ),
    ("private-key", "block", r"(?P<keep>Private-Lines: [0-9]{1,3})(?:\s+[A-Za-z0-9+/=]{4,})+", None),
    (
        "token",
        "any",
        r"(?P<keep>\\[nrt]|\b|_)(?:eyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*){1,4}|eyJ(?:hbGciOi|0eXAiOi|raWQiOi|lbmMiOi)[A-Za-z0-9_-]{10,})",
        None,
    ),
    (
        "aws-id",
        "any",
        r"(?P<keep>\\[nrt]|\b|_)(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ABIA|ACCA)[0-9A-Z]{16}\b",
        None,
    ),
    ("key", "any", _after_any(*_TOKENS), None),
    ("key", "any", _after_any(_PREFIXES), has_changes),
    ("key", "hook", r"(?P<keep>hooks\.slack\.com/(?:services|workflows|triggers)/)[A-Za-z0-9_/-]{20,}", None),
    ("key", "hook", r"(?P<keep>discord(?:app)?\.com/api/webhooks/[0-9]{10,}/)[A-Za-z0-9_-]{30,}", None),
    (
        "token",
        "login",
        r"(?i)(?P<keep>\b(?:proxy-|x-)?authorization\b\\?[\"']?\s*[:=]\s*\\?[\"']?"
        r"(?:(?:bearer|basic|token|digest|apikey|api-key|negotiate|splunk|key)\s+)?)"
        r"[^\s\"',;<>\\]{4,}",
        is_password,
    ),
    ("token", "login", r"(?i)(?P<keep>\bbearer[\s:]+)[A-Za-z0-9._~+/=-]{12,}", is_token),
    ("password", "login", r"(?i)(?P<keep>\bbasic\s+)[A-Za-z0-9+/]{6,}={0,2}", is_login),
    (
        "cookie",
        "login",
        r"(?i)(?P<keep>(?:\b(?:set-)?cookie\b\\?[\"']?\s*[:=]\s*|\s(?:-b|--cookie)[ =])\\?[\"']?)"
        r"[^\s=;\"'<>\\]{1,100}=[^\n\"'<>\\]+",
        None,
    ),
    (
        "password",
        "at",
        r"(?P<keep>\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@\"'<>]{0,100}:)[^\s/\"'<>]{1,200}(?P<rest>@)",
        None,
    ),
    ("password", "setting", rf"(?i)(?P<keep>{_SETTING}\"[ \t]*:[ \t]*\")[^\"\\\n<]+(?P<rest>\")", is_password),
    ("password", "setting", rf"(?i)(?P<keep>{_SETTING}\\\"[ \t]*:[ \t]*\\\")[^\"\\\n<]+(?P<rest>\\\")", is_password),
    ("password", "setting", rf"(?i)(?P<keep>{_SETTING}'[ \t]*:[ \t]*')[^'\\\n<]+(?P<rest>')", is_password),
    ("password", "setting", rf"(?i)(?P<keep>{_SETTING}[ \t]*(?:=>|:=|=)[ \t]*\")[^\"\\\n<]+(?P<rest>\")", is_password),
    ("password", "setting", rf"(?i)(?P<keep>{_SETTING}[ \t]*(?:=>|:=|=)[ \t]*')[^'\\\n<]+(?P<rest>')", is_password),
    (
        "password",
        "setting",
        rf"(?i)(?P<keep>{_SETTING}\\?[\"']?[ \t]*(?:=>|:=|=|:)[ \t]*\\?[\"']?)[^\s\"',;&<>\\]{{4,}}",
        is_password,
    ),
    ("password", "setting", rf"(?i)(?P<keep><[\w.:-]*{_SETTING}>)[^<\s][^<\n]{{2,}}", is_password),
    (
        "password",
        "setting",
        r"(?i)(?P<keep>\s--?(?:[a-z]+-)*(?:password|passwd|pass|secret|token|api-?key)[ =][\"']?)[^\s\"']{4,}",
        is_password,
    ),
    (
        "token",
        "login",
        r"(?i)(?P<keep>(?:\b|_)(?:token|sig|signature)\\?[\"']?\s*[:=]\s*\\?[\"']?)[A-Za-z0-9._~+/=%-]{16,}",
        is_token,
    ),
    ("password", "login", r"(?P<keep>\s(?:-u|--user)[ =][\"']?[^\s:\"']{1,64}:)[^\s\"']{3,}", is_password),
    (
        "password",
        "login",
        r"(?P<keep>\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n]{0,120}?\s-p|\bsshpass\s+-p\s*[\"']?)[^\s\"']{4,}",
        is_password,
    ),
    ("password", "login", r"(?i)(?P<keep>\bidentified by\s+[\"'])[^\"'\n]{1,100}", None),
    ("password", "login", r"(?P<keep>\blogin\s+\S{1,80}\s+password\s+)\S{1,100}", None),
    (
        "password",
        "login",
        rf"(?i)(?P<keep>{_PASSWORD}\s+(?:(?:for|of)\s+\S{{1,60}}\s+)?{_BECOMES}+\s*:?\s*[\"'`]?)[^\s\"'`,<>]{{4,}}",
        is_told,
    ),
    (
        "password",
        "login",
        rf"(?i)(?P<keep>{_PASSWORD}\s+{_BECOMES}+\s*:?\s*[\"'`])[^\"'`\n<>]{{4,100}}(?P<rest>[\"'`])",
        is_password,
    ),
    ("password", "login", rf"(?i)(?P<keep>{_PASSWORD}[ \t]+[\"'`]?)[^\s\"'`,;:<>()]{{6,}}", is_mixed),
    (
        "key",
        "setting",
        rf"(?i)(?P<keep>{_SPACED}[\"'`*]{{0,3}}[ \t]*(?:(?:is|was|=>|:=|=|:)[ \t]*)+[\"'`*]{{0,3}})"
        r"[^\s\"'`,;&<>\\*]{6,}",
        is_mixed,
    ),
    (
        "email",
        "at",
        r"(?P<keep>\\[nrt]|\b)[A-Za-z0-9._%+-]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,24}\b",
        is_address,
    ),
)

GATES = {name: _compiled(pattern) for name, pattern in _GATES.items()}
SHAPES = tuple(
    Shape(kind, gate, _compiled(pattern), accepts, "(?P<keep>" in pattern, "(?P<rest>" in pattern)
    for kind, gate, pattern, accepts in _TABLE
)
#: Runs of digits that may hold the number of a card (see `card_numbers`).
DIGITS = _compiled(r"[0-9](?:[ -]?[0-9]){12,}")
#: What may be the number of a bank account (see `iban_end`).
IBAN = _compiled(r"\b[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]){11,30}")
#: A name and a value of a cookie.
COOKIE = _compiled(r"([^\s=;]+)=([^\s;]+)")
#: Tokens that may be random.
TOKEN = _compiled(r"[A-Za-z0-9+/_-]{24,}={0,2}")
#: Keys of an object whose text is a secret whatever it looks like.
SECRET_KEY = _compiled(rf"(?i)^(?:.*[_.-])?(?:{_WORDS}|authorization|proxy-authorization|cookie|set-cookie)$")
#: Keys whose text is a name of something: it may look random and joins things, and is shown.
NAME_KEY = _compiled(r"(?i:(?:^|[_.-])(?:ids?|uuid|guid|hash|sha|sha1|sha256|commit|digest)$)|Ids?$")
#: What a cut leaves of a word, or of a number in groups.
HALF_AT_END = _compiled(r"(?:[0-9][0-9 -]{5,}|[^\s\"',;<>()\[\]{}]{6,})\z")
HALF_AT_BEGIN = _compiled(r"\A(?:[0-9 -]{5,}[0-9]|[^\s\"',;<>()\[\]{}]{6,})")
