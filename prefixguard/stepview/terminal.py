"""A terminal recording as the text a person would have seen, a line at a time.

Inside a line, escapes are applied (cursor left and right, erase) or taken out (colours, titles), a carriage return goes
back to the start and what follows overwrites. Escapes that move between lines are taken out: a line, once its newline
came, is final, so that a live stream and a whole file read the same.
"""

from __future__ import annotations

import re

# The standard library's engine: these expressions have no nested repetition, so they are linear too, and a
# recording has millions of short lines.
_ESCAPE = re.compile(
    r"\x1b\[([0-?]*)[ -/]*([@-~])|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]+[0-~]"
    r"|\x1b[0-Z\\^-~]|\x1b(?:\[[0-?]*[ -/]*)?|\x9b"
)
#: Escapes that change neither where the cursor stands nor what the line holds: colours, modes, titles, other lines.
_IDLE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@ABEFH-JL-Za-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]+[0-~]|\x1b[0-Z\\^-~]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\x9b]")
_REST = re.compile(r"[\x00-\x07\x0a-\x0c\x0e-\x1a\x1c-\x1f\x7f]")

#: An escape cannot send the cursor further right than this, or than the text goes: none can make a long line.
WIDEST = 4096


def render_line(line: str) -> str:
    """One line, without its newline, as a terminal leaves it.

    >>> render_line("10%\\r55%\\r100% done\\x1b[0m\\r")
    '100% done'
    """
    if line.isprintable() or _CONTROL.search(line) is None:
        return line
    if "\x1b" in line:
        line = _IDLE.sub("", line)
    line = _REST.sub("", line)
    if "\x1b" not in line and "\x08" not in line and "\x9b" not in line:
        return _overwrite(line) if "\r" in line else line
    cells: list[str] = []
    _apply(cells, 0, line)
    return "".join(cells).rstrip(" ")


#: The start of an escape whose end has not come.
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)\Z")
_LONGEST_ESCAPE = 32


def unfinished(text: str) -> tuple[int, str]:
    """Where an escape begins that the text ends inside of, and that escape, cut to what still matters of it."""
    found = _UNFINISHED.search(text)
    if found is None:
        return len(text), ""
    escape = found[0]
    if len(escape) > _LONGEST_ESCAPE:  # of a title nothing is shown; of parameters the first digits count
        is_title = escape[1] in "]PX^_"
        escape = escape[:2] + "\x1b" * escape.endswith("\x1b") if is_title else escape[:_LONGEST_ESCAPE]
    return found.start(), escape


def advance(shown: str, at: int, text: str) -> tuple[str, int, bool]:
    """More of a line after what it shows so far, with the cursor at `at`: what it shows then, where the cursor stands,
    and whether there was anything to render."""
    if _CONTROL.search(text) is None and at == len(shown):
        return shown + text, at + len(text), False
    cells = list(shown)
    at = _apply(cells, at, _REST.sub("", _IDLE.sub("", text)))
    return "".join(cells), at, True


def _apply(cells: list[str], at: int, line: str) -> int:
    position = 0
    for match in _ESCAPE.finditer(line):
        at = _print(cells, at, line[position : match.start()])
        position = match.end()
        final = match.group(2)
        if final is None:
            continue
        number = match.group(1).split(";")[0]
        count = min(int(number[:6]), WIDEST) if number.isdigit() else 0
        if final == "C":
            at = max(min(at + max(count, 1), WIDEST), at)
        elif final == "D":
            at = max(at - max(count, 1), 0)
        elif final in "G`":
            at = max(count - 1, 0)
        elif final == "K" and count == 0:
            del cells[at:]
        elif final == "K" and count == 2:
            cells.clear()
    return _print(cells, at, line[position:])


def _overwrite(line: str) -> str:
    """A line whose only controls are carriage returns."""
    parts = line.split("\r")
    shown = parts[-1]
    for part in reversed(parts[:-1]):  # from the last backwards, so that the cost is that of the line, not its square
        if len(part) > len(shown):
            shown += part[len(shown) :]
    return shown.rstrip(" ") if len(parts) > 2 or parts[-1] else shown


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
            if at > len(cells):
                cells.extend(" " * (at - len(cells)))
            cells[at : at + len(run)] = run
            at += len(run)
    return at


def render(text: str) -> str:
    """Every line of the text, rendered."""
    if _CONTROL.search(text.replace("\n", "")) is None:
        return text
    return "\n".join(map(render_line, text.split("\n")))
