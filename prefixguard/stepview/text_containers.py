"""Containers of text: files and notebooks cut into runs, and folders whose files make one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prefixguard.errors import TraceError
from prefixguard.stepview.compiling import Site, known_keys
from prefixguard.stepview.found import Counts, Found, Runs, Unread
from prefixguard.stepview.paths import MISSING, Companions
from prefixguard.stepview.schema import Pattern
from prefixguard.stepview.terminal import render
from prefixguard.trace.documents import Document


def text_runs(spec: Mapping[str, Any], site: Site) -> Runs:
    part = spec.get("runs")
    here = site.at("runs")
    head: Pattern | None = None
    sections: list[Pattern] = []
    if part is not None:
        if not isinstance(part, dict):
            raise here.error('{"split": {"head": RE}} and, if you like, "section": RE.')
        known_keys(part, ("split", "section", "tail"), here)
        if "split" in part:
            if not isinstance(part["split"], dict) or "head" not in part["split"]:
                raise here.at("split").error('{"head": RE}: a run begins where it matches.')
            known_keys(part["split"], ("head",), here.at("split"))
            head = Pattern(part["split"]["head"], here.at("split.head").where)
        named = part.get("section", [])
        sections = [Pattern(one, here.at("section").where) for one in (named if isinstance(named, list) else [named])]
    tail = Pattern(part["tail"], here.at("tail").where) if part is not None and "tail" in part else None
    cells = spec.get("cells", "all")
    if cells not in ("all", "last"):
        raise site.at("cells").error('"all" or "last": outputs of which cells.')

    def runs(document: Document, companions: Companions, counts: Counts) -> Iterator[Found | Unread]:
        data = document.read()
        is_text = spec["format"] == "text"
        text = counts.text(data) if is_text else _outputs(counts.json(data, document.where), cells, document.where)
        text = render(text)
        if head is None:
            yield Found({"text": text, "body": text, "section": {}}, MISSING, 1, document.where, several=False)
            return
        for position, run in enumerate(split_runs(text, head, sections, tail), 1):
            yield Found(run, MISSING, position, f"{document.where} run {position}")

    return runs


def split_runs(text: str, head: Pattern, sections: list[Pattern], tail: Pattern | None) -> Iterator[dict[str, Any]]:
    """Runs of a text: from one head to the next or to the next section heading, with the headings above it."""
    data = text.encode("utf-8", "replace")
    marks: list[tuple[int, int, int, dict[str, str]]] = [
        (start, end, -1, named) for start, end, named in head.all_spans(data)
    ]
    for i, section in enumerate(sections):
        marks.extend((start, end, i, named) for start, end, named in section.all_spans(data))
    marks.sort(key=lambda mark: (mark[0], -mark[2]))
    current: dict[int, dict[str, str]] = {}
    for n, (start, end, kind, named) in enumerate(marks):
        if kind >= 0:
            current[kind] = named
            continue
        stop = marks[n + 1][0] if n + 1 < len(marks) else len(data)
        whole = data[start:stop]
        if tail is not None:
            spans = tail.all_spans(whole)
            if spans:
                whole = whole[: spans[0][0]]
        above = {name: value for i in sorted(current) for name, value in current[i].items()}
        yield {
            **named,
            "text": whole.decode("utf-8", "replace"),
            "body": whole[end - start :].decode("utf-8", "replace"),
            "section": above,
        }


def _outputs(notebook: Any, cells: str, where: str) -> str:
    """Text of the outputs of a notebook's cells, joined."""
    found = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(found, list):
        raise TraceError(f"{where}: not a Jupyter notebook (no list of cells). Name another adapter.")
    texts: list[str] = []
    for cell in found:
        outputs = cell.get("outputs") if isinstance(cell, dict) else None
        if not isinstance(outputs, list) or not outputs:
            continue
        parts = []
        for output in outputs:
            if not isinstance(output, dict):
                continue
            text = output.get("text")
            if text is None and isinstance(output.get("data"), dict):
                text = output["data"].get("text/plain")
            if isinstance(text, list):
                text = "".join(one for one in text if isinstance(one, str))
            if isinstance(text, str):
                parts.append(text)
        if cells == "last":
            texts.clear()
        texts.append("".join(parts))
    return "".join(texts)


def folder_runs(spec: Mapping[str, Any], site: Site) -> Runs:
    marker = spec.get("marker")
    if not isinstance(marker, str) or not marker or ".." in marker.split("/"):
        raise site.at("marker").error("the name of a file that every folder of a run holds, such as results.json.")
    members = spec.get("members", {})
    here = site.at("members")
    if not isinstance(members, dict) or not members:
        raise here.error('names and files of the folder: {"log": {"path": "sessions/agent.log", "format": "text"}}.')
    parts: list[tuple[str, str, str]] = []
    for name, member in members.items():
        if isinstance(member, str):
            member = {"path": member}
        if not isinstance(member, dict) or not isinstance(member.get("path"), str):
            raise here.at(name).error('{"path": "sessions/agent.log", "format": "text"}.')
        known_keys(member, ("path", "format"), here.at(name))
        form = member.get("format", "json")
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

    return runs
