"""WebArena execution archives: zips of `render_N.html` with a log of PASS and FAIL lines.

The adapter language has no HTML, so a page is taken apart here and adapters/webarena.json makes the records. The writer
of these pages escapes nothing and leaves the observation's `<div>` open: everything after an observation, later pages
and actions, stands inside it. What the agent saw is the first `<pre>` alone. The reference takes the text of the whole
`<div>`; that is the leak of this set, and `leaked` reads so.

Archives are read in memory, member by member; nothing is unpacked to disk. Archives that were unpacked read as well.
"""

from __future__ import annotations

import html
import json
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from prefixguard.errors import TraceError
from prefixguard.stepview import Adapter, ReadReport, StepRecord, load_adapter
from prefixguard.trace import Document, Documents, Outcome, Run, open_documents, task_key
from reproduce.benchmark import ADAPTERS, Benchmark, Published, Runs, counted
from reproduce.splits import TaskSplit

#: Largest page and log that are read, in bytes unpacked; a page with its screenshots has some tens of MB.
LARGEST_PAGE = 1 << 28
#: Most pages of a run; the published ones have at most 31.
MOST_PAGES = 1_000
#: What a damaged archive or file raises.
_BROKEN = (TraceError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, EOFError, RuntimeError, ValueError)
_LOGS = ("merged_log.txt", "merge_log.txt")
_FILES = ("**/*.zip", *(f"**/{name}" for name in _LOGS))
_RESULT = re.compile(r"\[Result\]\s+\((PASS|FAIL)\)\s+config_files/(\d{1,9})\.json")
_PAGE = re.compile(r"<h2>New Page</h2>")
_URL = re.compile(r"<h3\b[^>]*class=['\"]url['\"][^>]*>\s*<a\b[^\n]*?>(?:URL: )?([^<\n]*)</a>")
_OBSERVED = re.compile(r"<div class=['\"]state_obv['\"][^>]*>\s*<pre>(.*?)</pre>", re.DOTALL)
_PREDICTION = re.compile(
    r"<div class=['\"]raw_parsed_prediction['\"][^>]*><pre>(.*?)</pre></div>(?=\s*<div class=['\"]action_object|\s*$)",
    re.DOTALL,
)
_OBJECT = re.compile(
    r"<div class=['\"]action_object['\"][^>]*><pre>(.*?)</pre></div>(?=\s*<div class=['\"]parsed_action|\s*$)",
    re.DOTALL,
)
_PARSED = re.compile(r"<div class=['\"]parsed_action['\"][^>]*><pre>(.*?)</pre>", re.DOTALL)
_INTENT = re.compile(r"(?m)^(?:<pre>)?intent: (.*)$")
_TAG = re.compile(r"</?[a-zA-Z!][^>]*>")
#: Code points of a field in the reading with the leak: the reference cuts nothing. The language allows no more.
_UNCUT = [70_000, 30_000]


@dataclass(frozen=True, slots=True)
class _Archive:
    """One archive, open. name: of the agent that made it. read: bytes of a file beside the log; None: not there."""

    name: str
    where: str
    log: str
    read: Callable[[str], bytes | None]


def runs(folder: Path, report: ReadReport) -> Runs:
    """Runs that the log judged, each page's observation being what the agent saw, the harness's stop left out."""
    return counted(_runs(folder, report, load_adapter(ADAPTERS / "webarena.json"), later=False), folder)


def leaked(folder: Path, report: ReadReport) -> Runs:
    """The reference's reading: observation and next observation hold all later pages; the harness's stop is a step."""
    spec = json.loads((ADAPTERS / "webarena.json").read_text(encoding="utf-8"))
    spec = {**spec, "name": "webarena_leaked", "events": spec["events"]["path"]}
    spec["budgets"] = {**spec["budgets"], "observation": _UNCUT, "result": _UNCUT}
    return counted(_runs(folder, report, Adapter(spec), later=True), folder)


def _runs(folder: Path, report: ReadReport, adapter: Adapter, *, later: bool) -> Runs:
    with open_documents(folder) as documents:
        for document in documents.matching(_FILES):
            try:
                with _opened(document, documents) as archive:
                    if archive is None:
                        continue  # a recording of the browser, or another zip
                    report.documents += 1
                    yield from _of_archive(archive, report, adapter, later=later)
            except _BROKEN as exc:
                report.skipped.append((document.where, f"{document.where}: cannot be read ({exc}). Copy it again."))


def _of_archive(archive: _Archive, report: ReadReport, adapter: Adapter, *, later: bool) -> Runs:
    results = {int(number): verdict == "PASS" for verdict, number in _RESULT.findall(archive.log)}
    for number in sorted(results):
        file = f"render_{number}.html"
        where = f"{archive.where}/{file}"
        try:
            data = archive.read(file)
            if data is None:
                raise TraceError("the log judges it, and it is not there.")
            found = pages(data.decode("utf-8", "replace"), later=later)
        except _BROKEN as exc:
            report.skipped.append((where, f"{where}: {exc}"))
            continue
        parser = adapter.parser({"intent": found["intent"], "task_id": number})
        records: list[StepRecord] = []
        for page in found["pages"]:
            records.extend(parser.observe(page))
        records.extend(parser.end())
        outcome = Outcome.SUCCESS if results[number] else Outcome.FAILURE
        if not records:
            report.empty[outcome.value] = report.empty.get(outcome.value, 0) + 1
            continue
        report.runs += 1
        report.records += len(records)
        groups = MappingProxyType({"agent": archive.name})
        yield Run(f"{archive.name}-{number}", str(number), outcome, tuple(records), where, groups)


def pages(text: str, *, later: bool = False) -> dict[str, Any]:
    """A rendered run as adapters/webarena.json reads it: {intent, pages}.

    later: a page's text goes on to the end of the run, as the reference's does, and each page has that of the next.
    The head of the file holds the task with its reference answers; the intent alone is taken of it.
    Raises TraceError where there are more pages than a run can have.
    """
    marks = [*(m.start() for m in _PAGE.finditer(text)), len(text)]
    if len(marks) > MOST_PAGES:
        raise TraceError(f"{len(marks) - 1:,} pages, more than {MOST_PAGES:,}. It is not of the published set.")
    intent = _INTENT.search(text[: marks[0]])
    rest = _Later([text[start:end] for start, end in pairwise(marks)]) if later else None
    out: list[dict[str, Any]] = []
    for number, (start, end) in enumerate(pairwise(marks)):
        block = text[start:end]
        url, observed = _URL.search(block), _OBSERVED.search(block)
        if observed is None:
            continue
        page: dict[str, Any] = {"url": url.group(1).strip() if url else "", "page": observed.group(1)}
        if rest is not None:
            page["page"] = rest.after(_text(block[observed.start() :]), number)
            if out:
                out[-1]["next"] = f"{page['url']}\n{page['page']}"
        below = block[observed.end() :]
        for name, pattern in (("prediction", _PREDICTION), ("action_object", _OBJECT), ("parsed", _PARSED)):
            if (match := pattern.search(below)) is not None:
                page[name] = match.group(1)
        out.append(page)
    return {"intent": intent.group(1) if intent else "", "pages": out}


class _Later:
    """The text of all pages after one, no more of it than a record holds: time does not grow with their square."""

    def __init__(self, blocks: list[str]) -> None:
        texts = [_text(block) for block in blocks]
        self._all = "\n".join(texts)
        self._starts = [0]
        for text in texts:
            self._starts.append(self._starts[-1] + len(text) + 1)

    def after(self, own: str, number: int) -> str:
        """The text of a page's own observation, and of all pages after page `number`."""
        begin = self._starts[number + 1]
        if len(self._all) - begin > sum(_UNCUT):
            return f"{own}\n{self._all[begin : begin + _UNCUT[0]]}{self._all[-_UNCUT[1] :]}"
        return f"{own}\n{self._all[begin:]}" if begin < len(self._all) else own


def _text(markup: str) -> str:
    """What an HTML reader gives for a piece of the file: no tags, pieces by line."""
    pieces = (html.unescape(piece).strip() for piece in _TAG.split(markup))
    return "\n".join(piece for piece in pieces if piece)


@contextmanager
def _opened(document: Document, documents: Documents) -> Iterator[_Archive | None]:
    """The archive of a zip, or of the log of an unpacked one; None for a zip without a log."""
    path = PurePosixPath(document.path)
    if path.suffix.lower() != ".zip":
        log = _beside(documents, document.path, path.name)
        if log is None:
            yield None
            return
        name = _name(path.parent.name)
        yield _Archive(name, document.where, _decoded(log), lambda file: _beside(documents, document.path, file))
        return
    if document.file is None:
        yield None
        return
    with zipfile.ZipFile(document.file) as archive:
        members = {info.filename: info for info in archive.infolist() if not info.is_dir()}
        logs = [name for name in members if PurePosixPath(name).name in _LOGS]
        if not logs:
            yield None
            return
        chosen = min(logs, key=lambda name: (name.count("/"), name))
        root = chosen[: -len(PurePosixPath(chosen).name)]

        def read(file: str) -> bytes | None:
            info = members.get(root + file)
            return None if info is None else _member(archive, info)

        yield _Archive(_name(path.stem), document.where, _decoded(_member(archive, members[chosen])), read)


def _beside(documents: Documents, beside: str, file: str) -> bytes | None:
    """A file next to another, never outside the folder. TraceError where it is too large."""
    size = documents.size(f"{beside.rpartition('/')[0]}/{file}".lstrip("/"))
    if size > LARGEST_PAGE:
        raise TraceError(f"{size:,} bytes, more than {LARGEST_PAGE:,}. It is not of the published set.")
    return documents.companion(beside, file)


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """A member, unpacked in memory. What it says of its size is not believed."""
    with archive.open(info) as stream:
        data = stream.read(LARGEST_PAGE + 1)
    if len(data) > LARGEST_PAGE:
        raise TraceError(f"over {LARGEST_PAGE:,} bytes unpacked. It is not of the published set.")
    return data


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _name(stem: str) -> str:
    """The agent, of an archive's name, as the reference spells it."""
    return stem.removeprefix("release_v1.0_").replace(".", "")


def task(run: Run[StepRecord]) -> str:
    """The number of the task."""
    return task_key(run)


BENCHMARK = Benchmark(
    name="webarena",
    title="WebArena execution archives, v1 and v2",
    rows=4_430,
    seeds=(1, 2, 3),
    symbols=16,
    split=TaskSplit(seed=13, validation=0.10, test=0.10, inner=(1, 0.8)),
    published=Published(strongest=0.900, raw_text=0.871, dfa=0.792, dfa_states=29),
    download="""\
Nine zips in two public folders, named in resources/README.md of the repository web-arena-x/webarena:
  v1  https://drive.google.com/drive/folders/18Oww0fAgwhuSjSzxUNgzBUlC6M9IZZB2
      release_v1.0_gpt3.5direct.zip  release_v1.0_gpt3.5dreasoning.zip  release_v1.0_gpt4.zip
  v2  https://drive.google.com/drive/folders/1H4wkzDkY2ufiC63DISMXllri0j-ipWcs
      v2_919_gpt35_16k_cot.zip     v2_919_gpt35_16k_cot_na.zip     v2_919_gpt35_16k_direct.zip
      v2_919_gpt35_16k_direct_na.zip  v2_919_gpt4_8k_cot.zip       v2_919_text_bison_001_cot.zip
Put all nine below one folder; they need not be unpacked.
    gdown --folder URL -O FOLDER
    python benchmarks/reproduce/run.py --webarena FOLDER""",
    files=_FILES,
    read=runs,
    read_leaked=leaked,
    leak="every observation holds the text of all later pages, and the harness's stop is a step",
    task=task,
)
