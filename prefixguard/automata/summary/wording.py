"""Numbers and untrusted text as a picture shows them: one line, nothing invisible, nothing that turns it around."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

#: Stands where text was cut.
CUT = "…"
#: Risks are the same that six digits do not tell apart.
_SAME = 1e-6

_SPACES = re.compile(r"[\s\x85\u2028\u2029]+")
#: Joiners shape scripts and emoji; they neither hide nor reorder anything.
_KEPT = {"\u200c", "\u200d"}


def one_line(text: str, longest: int) -> str:
    """The text on one line of at most `longest` code points, with what cannot be seen made visible.

    Runs of white space become one space; control characters become their pictures (U+2400 and after), and everything
    else that is not printed (marks of direction, lone surrogates, unassigned code points) becomes U+FFFD. What comes
    out is valid UTF-8 and valid in XML.

    >>> one_line("a\\n\\tb\\x07 \\u202ec", 40), one_line("abcdef", 4)
    ('a b␇ �c', 'abc…')
    """
    # Cut before cleaning, with room for the white space that cleaning takes out: the cost is that of the line.
    text = _SPACES.sub(" ", text[: 4 * longest + 64]).strip()
    text = text if text.isprintable() else "".join(map(_visible, text))
    return text if len(text) <= longest else text[: longest - 1].rstrip() + CUT


def both_ends(text: str, longest: int) -> str:
    """The text, of at most `longest` code points, cut in its middle: names of files differ at their ends.

    >>> both_ends("run-1234567890.json#7", 11), both_ends("abc", 3)
    ('run-1…son#7', 'abc')
    """
    half = (longest - 1) // 2
    return text if len(text) <= longest else text[: longest - 1 - half] + CUT + text[len(text) - half :]


def many_lines(text: str, longest: int) -> str:
    """The text with its line breaks, of at most `longest` code points, and what else cannot be seen made visible.

    >>> many_lines("a\\r\\n  b\\tc\\x07 \\u202ed", 40), many_lines("abcdef", 4), many_lines("abc", 0)
    ('a\\n  b c␇ �d', 'abc…', '')
    """
    if len(text) > longest:
        text = (text[: longest - 1].rstrip() + CUT) if longest > 0 else ""
    lines = text.expandtabs(2).splitlines()
    return "\n".join(line if line.isprintable() else "".join(map(_visible, line)) for line in lines)


def _visible(letter: str) -> str:
    if letter.isprintable() or letter in _KEPT:
        return letter
    code = ord(letter)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return " " if unicodedata.category(letter) == "Zs" else "\ufffd"


def risk_text(risk: float) -> str:
    """A probability in two digits, without the zero before the point, near 1 in up to four; a dash where there is no
    number.

    >>> risk_text(0.414), risk_text(0.0), risk_text(1.0), risk_text(0.9968), risk_text(float("nan"))
    ('.41', '.00', '1.0', '.997', '–')
    """
    if not math.isfinite(risk):
        return "–"
    texts = (f"{risk:.{digits}f}" for digits in (2, 3, 4))
    return next((text.removeprefix("0") for text in texts if not text.startswith("1")), "1.0")


@dataclass(frozen=True, slots=True)
class RiskWords:
    """Risks in two digits, and in more where two would not tell a risk from a threshold, up to six.

    thresholds: of the risks. digits: with which all risks differ from thresholds that they are not equal to; 4 to 6.
    """

    thresholds: tuple[float, ...] = ()
    digits: int = 4

    @classmethod
    def of(cls, thresholds: Iterable[float | None], risks: Iterable[float]) -> RiskWords:
        """For all risks that are said.

        >>> RiskWords.of([0.41, None], [0.4, 0.410002, 0.41]).digits
        6
        """
        known = tuple(one for one in thresholds if one is not None)
        gaps = [gap for risk in risks for one in known if (gap := abs(risk - one)) > _SAME]
        nearest = min(gaps, default=1.0)
        return cls(known, next((digits for digits in (4, 5) if nearest > 10.0**-digits), 6))

    def risk(self, risk: float) -> str:
        """One risk.

        >>> words = RiskWords((0.8197,))
        >>> words.risk(0.8197), words.risk(0.8202), words.risk(0.41), words.risk(0.82)
        ('.8197', '.8202', '.41', '.82')
        """
        text = risk_text(risk)
        if not any(risk_text(one) == text for one in self.thresholds) or not math.isfinite(risk):
            return text
        whole, _, part = f"{risk:.{self.digits}f}".partition(".")
        part = part[:2] + part[2:].rstrip("0")
        return "1.0" if whole == "1" else f".{part}"

    def range(self, low: float, high: float) -> str:
        """Two risks and what lies between."""
        return f"{self.risk(low)}–{self.risk(high)}"


def level_said(level: str) -> str:
    """A monitor's level in a picture's words: OK says no more than that there is no alarm.

    >>> level_said("OK"), level_said("ALARM")
    ('no alarm', 'ALARM')
    """
    return "no alarm" if level == "OK" else str(level)


def share_text(share: float) -> str:
    """A share as per cent, with a digit more where it is near none or all.

    >>> share_text(0.412), share_text(0.0123), share_text(0.0), share_text(0.0001), share_text(0.997)
    ('41 %', '1.2 %', '0 %', '<0.1 %', '99.7 %')
    """
    if not math.isfinite(share):
        return "–"
    if 0 < share < 0.001:
        return "<0.1 %"
    if 0.999 < share < 1:
        return ">99.9 %"
    return f"{100 * share:.0f} %" if 0.1 <= share < 0.995 or share in (0, 1) else f"{100 * share:.1f} %"


def count_text(count: int, one: str) -> str:
    """A number of things.

    >>> count_text(1, "step"), count_text(12345, "step")
    ('1 step', '12,345 steps')
    """
    return f"{count:,} {one if count == 1 else one + 's'}"


def change_text(change: float, *, thin: bool) -> str:
    """A symbol's change of risk, without a number where it rests on little."""
    return "too few held-out runs" if thin else signed_text(change)


def signed_text(change: float) -> str:
    """A change of risk with its sign.

    >>> signed_text(0.123), signed_text(-0.05), signed_text(0.001)
    ('+.12', '−.05', '±.00')
    """
    if not math.isfinite(change):
        return "–"
    size = risk_text(abs(change))
    return f"±{size}" if size == ".00" else f"{'+' if change > 0 else '−'}{size}"
