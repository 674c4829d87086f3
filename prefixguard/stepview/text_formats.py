"""Container formats of text: files and notebooks cut into runs, and folders whose files make one run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prefixguard.errors import TraceError
from prefixguard.stepview.compiling import Site
from prefixguard.stepview.found import Container, Counts, Found, Unread
from prefixguard.stepview.json_formats import Format, Spec
from prefixguard.stepview.paths import MISSING, Companions
from prefixguard.stepview.schema import Pattern
from prefixguard.stepview.terminal import render
from prefixguard.stepview.values import patterns
from prefixguard.trace.documents import Document


def _text(spec: Spec, site: Site) -> Container:
    """One text, or the runs that `runs` cuts it into. A notebook is the text of its outputs."""
    here, part = site.at("runs"), {} if spec.get("runs") is None else spec["runs"]
    here.keys(part, ("split", "section", "tail"), '{"split": {"head": RE}} and, if you like, "section": RE.')
    head: Pattern | None = None
    if "split" in part:
        at = here.at("split")
        at.keys(part["split"], ("head",), '{"head": RE}: a run begins where it matches.', needs=("head",))
        head = Pattern(part["split"]["head"], at.at("head").where)
    sections = patterns(part.get("section", []), here.at("section"))
    tail = Pattern(part["tail"], here.at("tail").where) if "tail" in part else None
    is_notebook = spec["format"] == "notebook"
    cells = site.choice(spec, "cells", ("all", "last"), '"all" or "last": outputs of which cells.')

    def runs(document: Document, companions: Companions, counts: Counts) -> Iterator[Found | Unread]:
        data = document.read()
        notebook = counts.json(data, document.where) if is_notebook else None
        text = render(_outputs(notebook, cells, document.where) if is_notebook else counts.text(data))
        if head is None:
            yield Found({"text": text, "body": text, "section": {}}, MISSING, 1, document.where, several=False)
            return
        for position, run in enumerate(_cut(text, head, sections, tail), 1):
            yield Found(run, MISSING, position, f"{document.where} run {position}")

    return Container(runs, ("**/*.ipynb",) if is_notebook else ("**/*.txt", "**/*.log"))


def _cut(text: str, head: Pattern, sections: tuple[Pattern, ...], tail: Pattern | None) -> Iterator[dict[str, Any]]:
    """Runs of a text: from one head to the next or to the next section heading, with the headings above it."""
    data = text.encode("utf-8", "replace")
    found = [(start, 1, end, named) for start, end, named in head.all_spans(data)]
    for i, section in enumerate(sections):
        found.extend((start, -i, end, named) for start, end, named in section.all_spans(data))
    found.sort(key=lambda one: one[:2])
    above: dict[int, dict[str, str]] = {}
    for n, (start, kind, end, named) in enumerate(found):
        if kind <= 0:
            above[-kind] = named
            continue
        whole = data[start : found[n + 1][0] if n + 1 < len(found) else len(data)]
        spans = tail.all_spans(whole) if tail is not None else []
        if spans:
            whole = whole[: spans[0][0]]
        yield {
            **named,
            "text": whole.decode("utf-8", "replace"),
            "body": whole[end - start :].decode("utf-8", "replace"),
            "section": {name: value for i in sorted(above) for name, value in above[i].items()},
        }


def _outputs(notebook: Any, cells: str, where: str) -> str:
    """Text of the outputs of a notebook's cells, joined."""
    found = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(found, list):
        raise TraceError(f"{where}: not a Jupyter notebook (no list of cells). Name another adapter.")
    outputs = [cell.get("outputs") for cell in found if isinstance(cell, dict)]
    texts = ["".join(map(_printed, one)) for one in outputs if isinstance(one, list) and one]
    return "".join(texts[-1:] if cells == "last" else texts)


def _printed(output: Any) -> str:
    """Text of one output of a cell."""
    if not isinstance(output, dict):
        return ""
    text = output.get("text")
    if text is None and isinstance(output.get("data"), dict):
        text = output["data"].get("text/plain")
    if isinstance(text, list):
        text = "".join(one for one in text if isinstance(one, str))
    return text if isinstance(text, str) else ""


def _folder(spec: Spec, site: Site) -> Container:
    marker, members, here = spec.get("marker"), spec.get("members"), site.at("members")
    if not isinstance(marker, str) or not marker or ".." in marker.split("/"):
        raise site.at("marker").error("the name of a file that every folder of a run holds, such as results.json.")
    if not isinstance(members, dict) or not members:
        raise here.error('names and files of the folder: {"log": {"path": "sessions/agent.log", "format": "text"}}.')
    parts: list[tuple[str, str, str]] = []
    for name, member in members.items():
        if isinstance(member, str):
            member = {"path": member}
        if not isinstance(member, dict) or not isinstance(member.get("path"), str):
            raise here.at(name).error('{"path": "sessions/agent.log", "format": "text"}.')
        form = here.at(name).keys(member, ("path", "format")).get("format", "json")
        if form not in ("json", "jsonl", "text"):
            raise here.at(name).error(f'format {form!r}: "json", "jsonl" or "text".')
        parts.append((name, member["path"], form))
    up = "../" * marker.count("/")

    def runs(document: Document, companions: Companions, counts: Counts) -> Iterator[Found | Unread]:
        run: dict[str, Any] = {}
        for name, path, form in parts:
            data = companions.raw(document.path, up + path)
            if data is None:
                continue
            place = f"{document.where} ({path})"
            if form == "text":
                run[name] = render(counts.text(data))
            elif form == "json":
                run[name] = counts.json(data, place)
            else:
                lines = enumerate(data.split(b"\n"), 1)
                run[name] = [counts.json(line, place, number) for number, line in lines if line.strip()]
        yield Found(run, MISSING, 1, document.where, several=False)

    return Container(runs, (f"**/{marker}",))


TEXT_FORMATS: dict[str, Format] = {
    "text": (_text, ("runs",)),
    "notebook": (_text, ("runs", "cells")),
    "folder": (_folder, ("marker", "members")),
}
