"""A terminal recording as the text a person would have seen, a line at a time.

Inside a line, escapes are applied (cursor left and right, erase) or taken out (colours, titles), a carriage return goes
back to the start and what follows overwrites. Escapes that move between lines are taken out: a line, once its newline
came, is final, so that a live stream and a whole file read the same.
"""

from __future__ import annotations

import re2

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_ESCAPE = re2.compile(
    r"\x1b\[([0-?]*)[ -/]*([@-~])|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]+[0-~]|\x1b[0-Z\\^-~]|\x1b|\x9b", _OPTIONS
)
_PLAIN = re2.compile(r"[\x00-\x08\x0b-\x1f\x7f\x9b]", _OPTIONS)

#: A cursor cannot be sent further right than this: a hostile escape must not make a long line.
_WIDEST = 1000


def render_line(line: str) -> str:
    """One line, without its newline, as a terminal leaves it.

    >>> render_line("10%\\r55%\\r100% done\\x1b[0m\\r")
    '100% done'
    """
    if line.isprintable() or _PLAIN.search(line) is None:
        return line
    if "\x1b" not in line and "\x08" not in line and line.find("\r") in (-1, len(line) - 1):
        return _without_controls(line.rstrip("\r"))
    cells: list[str] = []
    at = 0
    position = 0
    for match in _ESCAPE.finditer(line):
        at = _print(cells, at, line[position : match.start()])
        position = match.end()
        final = match.group(2)
        if final is None:
            continue
        number = match.group(1).split(";")[0]
        count = min(int(number[:6]), _WIDEST) if number.isdigit() else 0
        if final == "C":
            at += max(count, 1)
        elif final == "D":
            at = max(at - max(count, 1), 0)
        elif final in "G`":
            at = max(count - 1, 0)
        elif final == "K":
            _erase(cells, at, count)
        elif final == "P":
            del cells[at : at + max(count, 1)]
        elif final == "X":
            for i in range(at, min(at + max(count, 1), len(cells))):
                cells[i] = " "
        elif final == "@":
            cells[at:at] = [" "] * max(count, 1)
    _print(cells, at, line[position:])
    return "".join(cells).rstrip(" ")


def _without_controls(line: str) -> str:
    return "".join(c for c in line if c == "\t" or not (c < " " or c == "\x7f"))


def _print(cells: list[str], at: int, text: str) -> int:
    """Writes text over the cells from `at`; returns where the cursor stands then."""
    for i, part in enumerate(text.split("\r")):
        if i:
            at = 0
        for j, run in enumerate(part.split("\x08")):
            if j:
                at = max(at - 1, 0)
            if not run:
                continue
            if not run.isprintable():
                run = _without_controls(run)
            if at > len(cells):
                cells.extend(" " * (at - len(cells)))
            cells[at : at + len(run)] = run
            at += len(run)
    return at


def _erase(cells: list[str], at: int, how: int) -> None:
    if how == 0:
        del cells[at:]
    elif how == 1:
        cells[: at + 1] = [" "] * min(at + 1, len(cells))
    else:
        cells.clear()


def render(text: str) -> str:
    """Every line of the text, rendered."""
    if _PLAIN.search(text) is None:
        return text
    return "\n".join(map(render_line, text.split("\n")))
