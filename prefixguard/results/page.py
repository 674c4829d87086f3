"""A page as one HTML file that works offline."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from prefixguard.results.blocks import (
    Block,
    Bullets,
    Card,
    Cell,
    Facts,
    Figure,
    Folded,
    Heading,
    Image,
    Key,
    Page,
    Pair,
    Section,
    Summary,
    TableBlock,
    Text,
    Verbatim,
)
from prefixguard.results.plot import pixels
from prefixguard.results.text import visible

_HERE = Path(__file__).parent
_PLACE = re.compile(r"\{\{(\w+)\}\}")
_TOGETHER = re.compile(r"(?<=\d) (?=%)|(?<=\S) (?=\*$)")
#: Two numbers, shares or risks, and what lies between.
_RANGE = re.compile(r"(?<![\w.])[\d.,]+–[\d.,]*\d(?![\w])")
_SIZE = re.compile(rb"\A[^<]*(?:<(?!svg)[^>]*>[^<]*)*<svg\b[^>]*?\bwidth=\"([0-9.]+)", re.DOTALL)
#: Pixels of a picture's width at which it scrolls in its own box instead of shrinking further.
READABLE = 640


def to_html(page: Page) -> bytes:
    """The file, in UTF-8; the same bytes for the same page.

    All text is escaped here, wherever it came from; the content security policy forbids to load anything and to run
    any script but the page's own.
    """
    parts = {
        "name": _text(page.title),
        "verdict": "\n".join(_summary(page.summary)),
        "links": "".join(
            f'<li><a href="#{section.key}"{" class=none" if section.missing else ""}>'
            f"{html.escape(section.title)}</a></li>"
            for section in page.sections
        ),
        "sections": "\n".join(_section(section) for section in page.sections),
    }
    script = (_HERE / "page.js").read_text(encoding="utf-8")
    return offline_page(_HERE, f"{page.title}: report", parts, script, images=True)


def offline_page(folder: Path, title: str, parts: Mapping[str, str], script: str, *, images: bool = False) -> bytes:
    """An HTML file that stands alone, in UTF-8: what a folder's page.html says, in page.css's looks.

    The body has places, such as {{name}}, each for one of `parts`, which is HTML already; the title is plain text.
    Nothing may be loaded from anywhere but the page itself (images: pictures inside it may be shown), and only these
    very texts may style and run. frame.html and frame.css are common to all such files.
    """
    style = "".join(path.read_text(encoding="utf-8") for path in (_HERE / "frame.css", folder / "page.css"))
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    shown = " img-src data:;" if images else ""
    policy = (
        f"default-src 'none';{shown} style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}';"
        " base-uri 'none'; form-action 'none'"
    )
    parts = {**parts, "policy": html.escape(policy), "title": html.escape(title), "style": style, "script": script}
    frame, body = (
        (at / name).read_text(encoding="utf-8") for at, name in ((_HERE, "frame.html"), (folder, "page.html"))
    )
    # One pass: a place inside what is filled in stays as it is.
    filled = _PLACE.sub(lambda place: parts[place[1]], frame.replace("{{body}}\n", body))
    return filled.encode("utf-8", "replace")


def _text(text: str) -> str:
    return html.escape(_TOGETHER.sub("\u00a0", visible(text)))  # a number and its sign stay on one line


def _summary(summary: Summary) -> Iterator[str]:
    yield f'<section class="verdict{"" if summary.good else " care"}" aria-labelledby="verdict">'
    yield f'<h2 id="verdict">{_text(summary.headline)}</h2>'
    yield from (f"<p>{_text(sentence)}</p>" for sentence in summary.sentences)
    yield _facts(summary.facts)
    yield "</section>"


def _section(section: Section) -> str:
    inside = blocks_to_html(section.blocks)
    return (
        f'<section class="{"missing" if section.missing else "part"}" id="{section.key}" '
        f'aria-labelledby="{section.key}-title">\n'
        f'<h2 id="{section.key}-title">{_text(section.title)}</h2>\n{inside}\n</section>'
    )


def blocks_to_html(blocks: Iterable[Block]) -> str:
    """Blocks as they stand in a page, all text escaped."""
    return "\n".join(map(_block, blocks))


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"<h3>{_text(block.text)}</h3>"
        case Text():
            return f"<p{'' if block.tone == 'plain' else f' class={block.tone}'}>{_text(block.text)}</p>"
        case Bullets():
            title = f"<p class=lead>{_text(block.title)}</p>" if block.title else ""
            return title + "<ul>" + "".join(f"<li>{_lines(lines)}</li>" for lines in block.lines) + "</ul>"
        case TableBlock():
            return _table(block)
        case Figure():
            return _figure(block)
        case Image():
            return _image(block)
        case Verbatim():
            return _box(f"<pre>{_text(block.text)}</pre>", block.label)
        case Facts():
            return _facts(block)
        case Pair():
            return f'<div class="pair">{"".join(_block(inner) for inner in block.blocks)}</div>'
        case Folded():
            inside = "".join(_block(inner) for inner in block.blocks)
            return f"<details><summary>{_text(block.summary)}</summary>{inside}</details>"
        case Card():
            inside = "".join(_block(inner) for inner in block.blocks)
            return (
                f'<article class="run"><h3><span class="chip {block.style}">{_text(block.kind)}</span> '
                f"<bdi>{_text(block.name)}</bdi></h3><p class=faint>{_text(block.line)}</p>{inside}</article>"
            )


def _lines(lines: tuple[str, ...]) -> str:
    return _text(lines[0]) if len(lines) == 1 else "".join(f"<p>{_text(line)}</p>" for line in lines)


def _box(inside: str, label: str) -> str:
    """What may be wider than the page scrolls in here, with keys too."""
    return f'<div class="box" role="region" tabindex="0" aria-label="{_text(label)}">{inside}</div>'


def _facts(facts: Facts) -> str:
    items = (
        f"<div><dt>{_text(what)}</dt><dd><b>{_text(value)}</b> {_text(meaning)}</dd></div>"
        for what, value, meaning in facts.items
    )
    return f'<dl class="figures">{"".join(items)}</dl>'


def _table(table: TableBlock) -> str:
    classes = ["" if column.kind == "text" else f' class="{column.kind}"' for column in table.columns]
    said = [_text(column.name) for column in table.columns]
    head = "".join(f'<th scope="col"{kind}>{name}</th>' for kind, name in zip(classes, said, strict=True))
    # On a phone long text has no room for other columns: a row becomes lines there.
    stack = any(column.kind == "words" for column in table.columns)
    names = [f' data-label="{name}"' if stack else "" for name in said]
    rows = []
    for place, row in enumerate(table.rows):
        cells = [f'<th scope="row"{names[0]}>{_cell(row[0])}</th>']
        rest = zip(classes[1:], names[1:], row[1:], strict=True)
        cells += [f"<td{kind}{name}>{_cell(cell)}</td>" for kind, name, cell in rest]
        rows.append(f"<tr{' class=on' if place in table.marked else ''}>{''.join(cells)}</tr>")
    caption = f"<caption><span>{_text(table.caption)}</span></caption>" if table.caption else ""
    inside = (
        f"<table{' class=stack' if stack else ''}>{caption}"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
    return _box(inside, table.caption or "Table")


def _cell(cell: Cell) -> str:
    small = f"<small>{_whole(cell.small)}</small>" if cell.small else ""
    said = f"{_whole(cell.text)}{small}"
    return cell.svg + (f'<span title="{_text(cell.why)}">{said}</span>' if cell.why else said)


def _whole(text: str) -> str:
    """Text of a cell as one element or none; a range of numbers stays on one line."""
    escaped = _text(text)
    said = _RANGE.sub('<span class="whole">\\g<0></span>', escaped)
    return said if said == escaped or _RANGE.fullmatch(escaped) else f"<span>{said}</span>"


def _figure(figure: Figure) -> str:
    keys = "".join(_key(key) for key in figure.key)
    keys = f'<ul class="key">{keys}</ul>' if keys else ""
    drawing = f'<div role="img" aria-label="{_text(figure.alt)}">{figure.svg}</div>'
    if figure.wide:
        said = '<p class="said" aria-live="polite"></p>'
        return f'<figure class="wide">{_box(drawing, figure.caption)}{said}{keys}</figure>'
    caption = f"<figcaption>{_text(figure.caption)}</figcaption>" if figure.caption else ""
    if figure.broad:
        drawing = _box(drawing, figure.caption)
    return f"<figure{' class=broad' if figure.broad else ''}>{caption}{drawing}{keys}</figure>"


def _key(key: Key) -> str:
    value = f" <b>{_text(key.value)}</b>" if key.value else ""
    return f"<li>{_swatch(key.style)}<span>{_text(key.name)}{value}</span></li>"


def _swatch(style: str) -> str:
    if not style:
        return ""
    if style == "alert":
        sign = '<path class="alert" d="M13 1l5.5 9h-11z"/>'
    elif style.startswith("level"):
        sign = f'<rect class="{style}" x="0" y="4" width="26" height="4"/>'
    elif style.startswith("bar"):
        sign = f'<rect class="{style}" x="6" y="1" width="14" height="10"/>'
    else:
        sign = f'<line class="line {style}" x1="0" x2="26" y1="6" y2="6"/>'
    return f'<svg class="swatch" viewBox="0 0 26 12" width="26" height="12" aria-hidden="true">{sign}</svg>'


def _image(image: Image) -> str:
    found = _SIZE.match(image.svg[:4000])
    width = min(float(found[1]), 1180.0) if found else 900.0
    wide = " class=large" if width > READABLE else ""
    data = base64.b64encode(image.svg).decode()
    picture = (
        f'<img{wide} width="{pixels(round(width))}" alt="{_text(image.alt)}" src="data:image/svg+xml;base64,{data}">'
    )
    return _box(picture, "Picture")
