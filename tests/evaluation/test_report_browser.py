"""The report in a real browser: nothing overflows, nothing is asked for, nothing planted in it runs."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from browser import Browser, chromium, find_chromium
from report_material import invented_input

from prefixguard.evaluation.report import EvaluationReport
from prefixguard.results import number

CHROMIUM = find_chromium()

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: the page cannot be opened")


@pytest.fixture(scope="module")
def reports() -> dict[str, EvaluationReport]:
    return {
        "plain": EvaluationReport.of(invented_input()),
        "hostile": EvaluationReport.of(invented_input(hostile=True)),
        "bare": EvaluationReport.of(invented_input(30, bare=True)),
    }


@pytest.fixture(scope="module")
def folder(reports: dict[str, EvaluationReport], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("reports")
    for name, report in reports.items():
        (place / f"{name}.html").write_bytes(report.to_html())
    return place


@pytest.fixture(scope="module")
def running() -> Iterator[Browser]:
    assert CHROMIUM is not None
    with chromium(CHROMIUM) as browser:
        yield browser


@pytest.fixture
def browser(running: Browser) -> Iterator[Browser]:
    """Whatever a test does, the page may not complain, and asks for nothing but itself and what it carries along."""
    running.size(1440, 900)
    running.media()
    yield running
    assert running.complaints() == []
    assert len([address for address in running.requests() if not address.startswith("data:image/svg+xml")]) == 1
    assert running.run("window.taken ?? null") is None


def opened(browser: Browser, folder: Path, name: str) -> None:
    browser.open((folder / f"{name}.html").as_uri())


@pytest.mark.parametrize("name", ["plain", "hostile", "bare"])
@pytest.mark.parametrize(("width", "height"), [(390, 844), (820, 1180), (1440, 900)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_overflows(browser: Browser, folder: Path, name: str, width: int, height: int, scheme: str) -> None:
    browser.size(width, height, phone=width < 500)
    browser.media(scheme=scheme)
    opened(browser, folder, name)
    browser.run("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    wide = (
        "[...document.querySelectorAll('body *')]"
        ".filter(e => !e.closest('.box > *, .spoken, .skip')"
        " && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)"
        ".map(e => e.outerHTML.slice(0, 99))"
    )
    assert browser.run(wide) == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.body.innerText.length") > 1000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_its_ground(browser: Browser, folder: Path, scheme: str) -> None:
    """Contrast of 4.5 and more wherever there is text of the page's own, by the formula of WCAG 2.2."""
    browser.media(scheme=scheme)
    opened(browser, folder, "plain")
    low = browser.run("""(() => {
      const parts = (c) => c.match(/[\\d.]+/g).map(Number);
      const light = (c) => { const [r, g, b] = parts(c).map((v) => v / 255)
        .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
      const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
        const [, , , a = 1] = parts(c); if (a === 1) return c; } return "rgb(255, 255, 255)"; };
      const found = [];
      for (const e of document.querySelectorAll("p, li, a, h1, h2, h3, dt, dd, td, th, small, span, caption, pre")) {
        if (!e.innerText || e.closest(".skip")) continue;
        const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
        if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5) found.push(e.outerHTML.slice(0, 80));
      }
      return found;
    })()""")
    assert low == []


def test_scripts_of_others_do_not_run(browser: Browser, folder: Path) -> None:
    opened(browser, folder, "hostile")
    browser.run("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    browser.run(
        "document.querySelectorAll('.cell').forEach((e) => e.dispatchEvent(new Event('click', {bubbles: true})))"
    )
    assert browser.run("window.taken ?? null") is None
    assert browser.run("document.scripts.length") == 1
    assert browser.run("document.querySelectorAll('[onerror], [onmouseover], [onload], iframe, object').length") == 0
    pictures = browser.run("[...document.images].map((e) => [e.complete, e.naturalWidth, e.src.slice(0, 18)])")
    assert pictures == [[True, 1400, "data:image/svg+xml"]]
    assert "<script>window.taken = 1</script>" in browser.run("document.body.textContent")


def test_figures_on_the_screen_are_those_of_the_json(
    browser: Browser, folder: Path, reports: dict[str, EvaluationReport]
) -> None:
    opened(browser, folder, "plain")
    shown = browser.run(
        "[...document.querySelectorAll('#scores table')].map((t) => [...t.tBodies[0].rows].map((r) =>"
        " [r.cells[0].innerText.replace('\\u00a0', ' '), r.cells[1].firstChild.textContent || r.cells[1].innerText]))"
    )
    plain = reports["plain"].as_json()["table"]
    for table, which in zip(shown[:2], ("imminent", "outcome"), strict=True):
        wanted = [["monitor", number(plain[which]["auprc"])]]
        for name, row in plain["baselines"].items():
            wanted.append([f"{name} *" if row["oracle"] else name, number(row[which]["auprc"])])
        assert table == wanted


def test_a_step_is_read_by_pointer_and_by_keys(
    browser: Browser, folder: Path, reports: dict[str, EvaluationReport]
) -> None:
    opened(browser, folder, "plain")
    first = "document.querySelector('figure.wide')"
    x, y = browser.run(
        f"{first}.scrollIntoView({{block: 'center'}}), (r => [r.left + r.width / 2, r.top + r.height / 2])"
        f"({first}.querySelectorAll('.cell .shade')[1].getBoundingClientRect())"
    )
    browser.mouse(x, y)
    browser.until(f"{first}.querySelector('.said').textContent !== ''")
    runs = reports["plain"].as_json()["sections"]["examples"]["runs"]
    said = browser.run(f"{first}.querySelector('.said').textContent")
    assert said.startswith(f"Step 2 of {len(runs[0]['steps'])}: search. {runs[0]['steps'][1]['level']}")
    assert number(runs[0]["steps"][1]["outcome_risk"]) in said and 'search {"q":"x"}' in said
    browser.run(f"{first}.querySelector('.box').focus()")
    browser.key("ArrowRight")
    assert browser.run(f"{first}.querySelector('.said').textContent").startswith("Step 3 of ")
    assert browser.run(f"{first}.querySelectorAll('.cell.on').length") == 1


def test_headings_captions_and_names_for_those_who_cannot_see(browser: Browser, folder: Path) -> None:
    opened(browser, folder, "plain")
    levels = browser.run("[...document.querySelectorAll('h1, h2, h3')].map((e) => Number(e.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert browser.run("[...document.querySelectorAll('table')].every((e) => e.caption?.textContent)")
    assert browser.run("[...document.querySelectorAll('[role=img]')].every((e) => e.ariaLabel.length > 20)")
    assert browser.run("[...document.images].every((e) => e.alt.length > 20)")
    assert browser.run("[...document.querySelectorAll('.box')].every((e) => e.tabIndex === 0 && e.ariaLabel)")
    links = browser.run("[...document.querySelectorAll('nav a')].every((e) => document.querySelector(e.hash))")
    assert links and browser.run("document.documentElement.lang") == "en"


@pytest.mark.parametrize("name", ["plain", "hostile", "bare"])
def test_it_prints(browser: Browser, folder: Path, name: str) -> None:
    """On light paper whatever the screen's scheme is, no ribbon wider than the sheet, and PDF comes out."""
    browser.media(scheme="dark", kind="print")
    browser.size(718, 1000)  # A4 between its margins
    opened(browser, folder, name)
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.run("getComputedStyle(document.body).color") == "rgb(29, 39, 51)"
    ribbons = browser.run("[...document.querySelectorAll('.ribbon')].map((e) => e.getBoundingClientRect().right)")
    assert all(right <= 719 for right in ribbons) and bool(ribbons) == (name != "bare")
    pdf = base64.b64decode(browser.call("Page.printToPDF")["data"])
    assert pdf.startswith(b"%PDF-") and len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 2


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_a_picture_of_the_whole_page(browser: Browser, folder: Path, tmp_path: Path, width: int, scheme: str) -> None:
    """The page is painted: its ground has the scheme's colour, and the ribbons their own."""
    browser.size(width, 900, phone=width < 500)
    browser.media(scheme=scheme)
    opened(browser, folder, "plain")
    browser.picture(tmp_path / "page.png", whole=True)
    assert (tmp_path / "page.png").stat().st_size > 50_000
    ground = {"dark": "rgb(15, 19, 23)", "light": "rgb(243, 245, 248)"}[scheme]
    assert browser.run("getComputedStyle(document.body).backgroundColor") == ground
    fills = json.loads(
        browser.run("JSON.stringify([...document.querySelectorAll('.shade')].map((e) => e.getAttribute('fill')))")
    )
    assert len(set(fills)) > 10
