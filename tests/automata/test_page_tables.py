"""What stands on the page in lists and tables: whose alarms, first alarms one by one, badges and digits of risks."""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
from invented_summary import invented_summary

from prefixguard.alarm import Level
from prefixguard.automata.page import page_data, to_page
from prefixguard.automata.page.words import words_of
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
    assert page.count(">domain: airline") == page.count(">domain: retail") == 1 and ">agent: alpha" in page
    assert ">kind of task: " not in page
    assert page.count("Domain airline: 40 of 60 failures raise no alarm.") == 1
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


def test_the_share_of_failed_runs_on_every_side_and_what_failed_means_stand_once() -> None:
    summary = invented_summary(12)
    page = words_of_page(to_page(summary)).partition("<script")[0]
    assert page.count("of the training runs, 33 % of the held-out runs") == 1
    assert "of the training runs failed" not in page and "of them failed, of the training runs" not in page
    assert "36 % of the test runs. By the adapter a run succeeded if $.reward is at least 1.0." in page
    lower = replace(summary.origin, failed_of=(0.64, 0.58, 0.6, 0.68))
    page = words_of_page(to_page(replace(summary, origin=lower)))
    assert "68 % of the test runs: test runs fail more often than those, so risks lean low." in page


def test_names_with_a_comma_are_set_apart_from_the_entries_of_a_list() -> None:
    summary = invented_summary(12)
    agents = (("agent", 7, (("Qwen2.5-7B, 12", 0.6), ("beta", 0.3))),)
    page = words_of_page(to_page(replace(summary, origin=replace(summary.origin, groups=agents))))
    assert "“Qwen2.5-7B, 12” 60 %, beta 30 % and 5 more" in page


def test_steps_that_stand_on_the_threshold_of_watch_are_told_of() -> None:
    summary = invented_summary(12)
    risk = np.full_like(summary.automaton.risk, 0.2)
    risk[5] = 0.31
    said = tuple((Level.OK, 0.31) for _ in range(20)) + tuple((Level.OK, 0.2) for _ in range(80))
    tied = replace(summary, automaton=replace(summary.automaton, risk=risk), said=said)
    page = words_of_page(to_page(tied)).partition("<script")[0]
    assert "A risk of state 5 is the threshold of WATCH itself, .31, and WATCH needs more: 20 % of test steps" in page
    assert "threshold of WATCH itself" not in to_page(replace(tied, watch=0.25)).decode().partition("<script")[0]
    assert "threshold of WATCH itself" not in to_page(replace(tied, alarm=0.31)).decode().partition("<script")[0]


def test_a_range_that_leaves_an_alarm_out_says_that_it_is_the_usual_one() -> None:
    """A late span of no held-out run has another risk than the spans that are known."""
    summary = invented_summary(12, clock=(10, 20))
    risk, evidence = summary.automaton.risk.copy(), np.ones_like(summary.automaton.evidence)
    risk[7, :, 1], evidence[7, 2] = (0.11, 0.17, 0.8), 0
    own = np.arange(12, dtype=np.int32)
    late = replace(summary.automaton, risk=risk, evidence=evidence, stand_in=own)
    cells = np.where(np.arange(3) == 2, 1, 9 * np.ones_like(summary.cells))
    found = replace(summary, automaton=late, cells=cells)
    (node,) = (node for node in scene_of(found).nodes if node.key == "s7")
    assert node.lines[-1] == "clock usually .11–.17" and "by the clock usually from .11 to .17" in node.spoken
    assert "usually .11–.17" in words_of_page(to_page(found))
    assert page_data(found)["states"][7]["usually"] == "usually"
    whole = replace(found, automaton=replace(late, evidence=np.ones_like(evidence)))
    assert page_data(whole)["states"][7]["usually"] == ""


def test_the_words_say_that_an_alarm_stays_on_and_what_a_tool_is_called_on() -> None:
    summary = invented_summary(12)
    words = " ".join(words_of(summary))
    assert "ALARM is said of every later step until the run ends." in words and "An identifier" not in words
    assert "until its risk is below .41." in " ".join(words_of(replace(summary, release=0.41)))
    assert "stays on" not in " ".join(words_of(replace(summary, alarm=None)))
    does = (("Calls click (an identifier).", *summary.does[0][1:]), summary.does[1])
    assert "short label such as 10-pack" in " ".join(words_of(replace(summary, does=does)))


def test_what_is_unseen_is_a_symbol_in_a_state() -> None:
    page = words_of_page(to_page(invented_summary(12)))
    assert "of test steps took a symbol in a state where no training run took it" in page
