"""What stands on the page in lists and tables: whose alarms, first alarms one by one, badges and digits of risks."""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
from invented_summary import invented_summary

from prefixguard.automata.page import page_data, to_page
from prefixguard.automata.picture.scene import scene_of
from prefixguard.automata.picture.svg import to_svg
from prefixguard.automata.summary import AutomatonSummary
from prefixguard.results import Bullets, blocks_to_html, to_markdown, to_text

SVG = "{http://www.w3.org/2000/svg}"


def words_of_page(page: bytes) -> str:
    """A page whose ranges of numbers, which stay on one line, have no tags around them."""
    return re.sub(r'<span class="whole">([^<]*)</span>', r"\1", page.decode().replace("\u00a0", " "))


def test_an_item_of_many_lines_has_them_one_under_another_in_every_form() -> None:
    block = Bullets(("alone", ("subject", "first <b>", "second")), "Title")
    assert "<li>alone</li><li><p>subject</p><p>first &lt;b&gt;</p><p>second</p></li>" in blocks_to_html([block])
    assert "- alone\n- subject\n  - first \\<b>\n  - second\n" in to_markdown([block])
    assert "- alone\n- subject\n  first <b>\n  second" in to_text([block])


def test_where_two_groups_part_the_runs_alike_they_share_a_row() -> None:
    summary = invented_summary(12)
    kinds = tuple(replace(summary.parts[0], value=value, behaviours=()) for value in ("airline", "retail"))
    domains = tuple(replace(one, by="domain") for one in kinds)
    page = to_page(replace(summary, parts=(*kinds, *domains, summary.parts[1]))).decode()
    assert page.count("kind of task and domain: airline") == page.count("kind of task and domain: retail") == 1
    assert ">domain: " not in page and ">kind of task: " not in page and ">agent: alpha" in page
    assert page.count("Kind of task and domain airline: 40 of 60 failures raise no alarm.") == 1
    other = (*kinds, replace(domains[0], caught=21), domains[1])
    page = to_page(replace(summary, parts=other)).decode()
    assert ">domain: airline" in page and ">kind of task: airline" in page, "one figure differs: two ways to part them"


def raising(summary: AutomatonSummary, failed: int, successful: int) -> AutomatonSummary:
    """The same with so many first alarms, all in one state."""
    first = replace(summary.ranked[0], failed=failed, successful=successful)
    none = tuple(replace(one, failed=0, successful=0) for one in summary.ranked[1:])
    return replace(summary, ranked=(first, *none))


def test_first_alarms_stand_one_by_one_with_what_their_step_was() -> None:
    summary = invented_summary(12)
    sound = [(run, one) for run, one in enumerate(summary.replays) if any(s.level == "ALARM" for s in one.steps)]
    known = [(run, one) for run, one in sound if one.failed is not None]
    assert known and len(known) <= 10
    few = raising(summary, 15, 3)
    page = words_of_page(to_page(few))
    listed = page[page.index('id="first"') : page.index('id="missed"')]
    rows = re.findall(r'<tr><th scope="row".*?</tr>', listed)
    assert len(rows) == len(known) == len(page_data(few)["first"])
    assert f"{len(known)} of 18 first alarms on test runs" in listed
    assert f"{18 - len(known)} are not listed because their run is not replayed below." in listed
    for row, (run, step) in zip(rows, page_data(few)["first"], strict=True):
        replay = few.replays[run]
        at = next(n for n, s in enumerate(replay.steps, 1) if s.level == "ALARM")
        cells = re.findall(r"<t[hd].*?</t[hd]>", row)
        shown = [html.unescape(re.sub("<[^>]*>", " ", cell)).strip() for cell in cells]
        assert step == at and shown[0] == replay.run_id and shown[1] == replay.kind
        assert shown[2].split() == [str(at), "of", str(len(replay.steps))]
        assert shown[3] == str(replay.steps[at - 1].state)
        assert shown[4] == few.entries[replay.steps[at - 1].symbol].gloss
        assert dict(replay.steps[at - 1].texts)["calls"].partition(",")[0] in shown[5]
        assert "the user says" not in shown[5], "what had arrived before"
    order = [few.replays[run].failed for run, _ in page_data(few)["first"]]
    assert order == sorted(order, reverse=True), "failed runs first"
    many = replace(raising(summary, 50, 9), replays=tuple(one for _, one in known) * 12)
    data, page = page_data(many)["first"], words_of_page(to_page(many))
    failures = sum(bool(many.replays[run].failed) for run, _ in data)
    assert failures == 10 and len(data) - failures <= 10
    assert f"{len(known) * 12 - len(data)} more are left out: at most 10 on failed runs" in page
    note = "asked for: no test run, so it may have been learned from"
    asked = tuple(replace(one, note=note) for one in summary.replays)
    assert page_data(replace(few, replays=asked))["first"] == []
    bare = tuple(replace(one, steps=tuple(replace(s, texts=()) for s in one.steps)) for one in few.replays)
    assert "What the step was" not in to_page(replace(few, replays=bare)).decode()
    assert "No test run raised an alarm." in to_page(raising(summary, 0, 0)).decode()


def test_a_badge_counts_the_first_alarms_of_a_state_also_in_words() -> None:
    summary = raising(invented_summary(12, clock=(10, 20)), 25, 4)
    state = summary.ranked[0].state
    for collapsed in (False, True):
        root = ET.fromstring(to_svg(summary, collapsed=collapsed))
        badges = [one for one in root.iter(SVG + "g") if one.attrib.get("class") == "badge"]
        assert [badge.findtext(SVG + "text") for badge in badges] == ["29"]
        said = root.findtext(SVG + "desc") or ""
        assert "29 first alarms on test runs, 25 of them failed" in said and "Dark badge: how many test runs" in said
    nodes = {node.key: node for node in scene_of(summary).nodes}
    assert nodes[f"s{state}"].alarms == (25, 4)
    assert "badge" not in to_svg(raising(summary, 0, 0)).decode()


def test_a_risk_has_more_digits_only_where_it_is_near_the_threshold_and_says_why() -> None:
    summary = invented_summary(12)
    risk = np.full_like(summary.automaton.risk, 0.41)
    near, equal, below = (one.state for one in summary.ranked[:3])
    risk[near], risk[equal], risk[below] = 0.6825, 0.67936, 0.67931
    close = replace(summary, automaton=replace(summary.automaton, risk=risk), alarm=0.67936)
    page = to_page(close).decode().partition("<script")[0]
    assert close.risks.digits == 5 and "In two digits .6825 would look like the threshold, .67936." in page
    assert '.">.6825<' in page and '.">.67936<' in page and ".68250" not in page
    assert page.count(".67936 is a threshold: in two digits") == 2  # its mean and its usual risk
    assert '.">.41<' not in page
