"""The report of an evaluation: its figures are the table's, its text is nobody's markup."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from report_material import HOSTILE, invented_input, with_ids

from prefixguard.alarm import AlarmPolicy, first_alert
from prefixguard.errors import ConfigError, DataError
from prefixguard.evaluation import evaluate_scores
from prefixguard.evaluation.report import (
    AutomatonView,
    EvaluationReport,
    ExampleKind,
    ExampleRun,
    ReportInput,
    SymbolLine,
    choose_examples,
    write_report,
)
from prefixguard.evaluation.report.report import TITLES
from prefixguard.evaluation.report.sections import POINTS, precision_recall
from prefixguard.metrics import average_precision
from prefixguard.results import Block, Card, Figure, Folded, Pair, Result, TableBlock, Text, escaped, number, percent
from prefixguard.runtime import load
from prefixguard.stepview import read_runs
from prefixguard.trace import Outcome, task_key

RUN_IDS = [f"run-{i}" for i in range(90)]


@pytest.fixture(scope="module")
def given() -> ReportInput:
    return invented_input()


@pytest.fixture(scope="module")
def report(given: ReportInput) -> EvaluationReport:
    return EvaluationReport.of(given)


def words(page: bytes) -> str:
    """What a reader sees of a page, tags and drawings taken out."""
    text = re.sub(r"(?s)<(style|script|svg)\b.*?</\1>", " ", page.decode())
    return html.unescape(re.sub(r"<[^>]*>", " ", text)).replace("\u00a0", " ")


def inside(blocks: tuple[Block, ...]) -> list[Block]:
    found: list[Block] = []
    for block in blocks:
        found.append(block)
        if isinstance(block, Pair | Folded | Card):
            found += inside(block.blocks)
    return found


def tables(report: EvaluationReport, key: str) -> list[TableBlock]:
    return [block for block in inside(report.section(key).blocks) if isinstance(block, TableBlock)]


def test_tables_hold_the_figures_of_the_table_json(report: EvaluationReport) -> None:
    plain = report.table.as_json()
    names = ["auprc", "auroc", "outcome_auroc_at_index", "outcome_auroc_at_remaining", "outcome_auroc_within_groups"]
    for shown, which in zip(tables(report, "scores")[:2], ("imminent", "outcome"), strict=True):
        rows = [plain[which], *(row[which] for row in plain["baselines"].values())]
        assert len(shown.rows) == len(rows)
        for cells, row in zip(shown.rows, rows, strict=True):
            figures = [cells[1], *cells[4:8], *cells[8:]]
            for cell, figure in zip(figures, [*names, "skill", "brier", "ece"], strict=True):
                assert cell.text == number(float("nan") if row[figure] is None else row[figure])
                ends = row["intervals"].get(figure)
                assert cell.small == ("" if ends is None else f"[{number(ends[0])}, {number(ends[1])}]")
            if row is not plain[which]:
                ahead = row["differences"]["auprc"]
                assert cells[3].text.lstrip("+") == number(ahead["value"])
    (alerts,) = tables(report, "first_alerts")
    rows = [*plain["first_alert"]]
    rows += [a for row in plain["baselines"].values() for a in row["first_alert"] if a["threshold"] is not None]
    for cells, row in zip(alerts.rows, rows, strict=True):
        if row["threshold"] is not None:
            shares = ("false_alarm_rate", "alerted", "early")
            assert [cell.text for cell in cells[3:6]] == [percent(row[share]) for share in shares]


@pytest.mark.parametrize("form", ["page", "markdown"])
def test_every_cell_stands_in_page_and_markdown(report: EvaluationReport, form: str) -> None:
    text = words(report.to_html()) if form == "page" else report.to_markdown()
    for key in ("scores", "first_alerts", "reliability", "composition", "reproduction", "examples"):
        for table in tables(report, key):
            for cell in (cell for row in table.rows for cell in row):
                for said in (cell.text, cell.small):
                    assert (said if form == "page" else escaped(said)) in text
    for sentence in report.verdict.sentences:
        assert (sentence if form == "page" else escaped(sentence)) in text


def test_three_sentences_with_the_figures_of_the_table(report: EvaluationReport) -> None:
    ranking, lead, alarm = report.verdict.sentences
    table = report.table
    assert number(table.outcome.outcome_auroc_at_index) in ranking
    honest = {name: row for name, row in table.baselines.items() if not row.oracle}
    for which in ("imminent", "outcome"):
        best = max(honest, key=lambda name: getattr(honest[name], which).auprc)
        assert best in lead and number(getattr(honest[best], which).auprc) in lead
        assert number(getattr(table, which).auprc) in lead
    assert "outcome known" not in lead
    found = next(row.alerts for row in table.first_alert if row.budget == 0.1)
    assert found is not None
    assert all(percent(share) in alarm for share in (found.false_alarm_rate, found.alerted, found.early))


def test_no_figure_where_there_is_none() -> None:
    """One class, one task, no alarm: the report says so and stays whole."""
    risks = [np.array([0.2, 0.3]), np.array([0.5])]
    table = evaluate_scores(risks, risks, [False, False], ["a", "a"], resamples=5)
    report = EvaluationReport.of(ReportInput(with_ids(table, ["x", "y"])))
    assert report.verdict.headline == "Nothing can be said about ranking"
    assert {"precision_recall", "first_alerts", "examples"} <= {one.key for one in report.sections if one.missing}
    assert "nan" not in words(report.to_html()).lower().split()
    json.dumps(report.as_json(), allow_nan=False)


def test_missing_sections_say_what_would_fill_them() -> None:
    report = EvaluationReport.of(invented_input(30, bare=True))
    page, markdown = words(report.to_html()), report.to_markdown()
    missing = [key for key in TITLES if report.section(key) is None]
    assert {"leaks", "automaton", "examples", "ablation"} <= set(missing)
    for key in missing:
        title, line = TITLES[key]
        assert line and title in page and line in page and escaped(line) in markdown
        assert report.as_json()["sections"][key] is None


def test_same_bytes_for_the_same_input(report: EvaluationReport) -> None:
    again = EvaluationReport.of(invented_input())
    assert again.to_html() == report.to_html()
    assert again.to_markdown() == report.to_markdown()
    assert json.dumps(again.as_json()) == json.dumps(report.as_json())


def test_json_holds_the_table_and_no_nan(report: EvaluationReport) -> None:
    plain = json.loads(json.dumps(report.as_json(), allow_nan=False))
    assert plain["table"] == json.loads(report.table.to_json())
    assert list(plain["sections"]) == list(TITLES)
    assert plain["sections"]["leaks"]["nothing"] is None


def test_hostile_text_is_text() -> None:
    """No tag, attribute or entity comes from a run; Markdown forms no image and no link."""
    report = EvaluationReport.of(invented_input(hostile=True))
    page = report.to_html().decode()
    for attack in ("<script>window", "<img src=x", "</title></svg>", "onerror='", "'onmouseover='"):
        assert attack not in page
    assert page.count("<script>") == 1 and "\x1b" not in page and "\u202e" not in page and "\x00" not in page
    assert "&lt;script&gt;window.taken = 1&lt;/script&gt;" in page  # it is shown, not dropped
    markdown = report.to_markdown()
    outside = re.sub(r"(?s)```+text\n.*?\n```+", "", markdown)
    assert not re.search(r"(?<!\\)!\[|(?<!\\)\]\(|(?<!\\)<", outside)
    assert all(c.isprintable() or c == "\n" for c in markdown)
    assert len(page) < 1_500_000


def test_examples_are_what_their_kind_says(given: ReportInput) -> None:
    working = given.working()
    assert working is not None and working[0] == 0.1
    outcome = given.behind.rows[0].outcome
    chosen = choose_examples(outcome, given.behind.failed, RUN_IDS, working[1], given.policy, horizon=3)
    assert [choice.kind for choice in chosen] == list(ExampleKind)
    for choice in chosen:
        alert = first_alert(outcome[choice.run], working[1], given.policy)
        assert choice.alert == alert
        assert given.behind.failed[choice.run] == (
            choice.kind in (ExampleKind.EARLY, ExampleKind.LATE, ExampleKind.MISSED)
        )
        if alert is None:
            assert choice.kind in (ExampleKind.MISSED, ExampleKind.PASSED)
        elif given.behind.failed[choice.run]:
            assert (choice.kind is ExampleKind.EARLY) == (len(outcome[choice.run]) - alert > 3)


def test_choice_takes_the_middle_and_does_not_mind_the_order(given: ReportInput) -> None:
    leads = [9, 8, 7, 6, 5]
    outcome = [np.r_[np.zeros(5), 0.9, np.zeros(lead)] for lead in leads]
    ids = [f"r{lead}" for lead in leads]
    (middle,) = choose_examples(outcome, [True] * 5, ids, 0.5, AlarmPolicy(), horizon=3)
    assert (ids[middle.run], middle.alert) == ("r7", 6)
    more = choose_examples(outcome, [True] * 5, ids, 0.5, AlarmPolicy(), horizon=3, per_kind=9)
    assert sorted(ids[choice.run] for choice in more) == sorted(ids)
    risks, failed = given.behind.rows[0].outcome, given.behind.failed
    turned = choose_examples(risks[::-1], failed[::-1], RUN_IDS[::-1], 0.6, given.policy, horizon=3)
    straight = choose_examples(risks, failed, RUN_IDS, 0.6, given.policy, horizon=3)
    last = len(RUN_IDS) - 1
    assert [(c.kind, last - c.run) for c in turned] == [(c.kind, c.run) for c in straight]


def test_cards_come_in_the_order_of_kinds(given: ReportInput) -> None:
    report = EvaluationReport.of(replace(given, examples=given.examples[::-1]))
    cards = [block for block in report.section("examples").blocks if isinstance(block, Card)]
    assert [card.kind for card in cards] == [kind.value for kind in ExampleKind]
    ribbons = [block for card in cards for block in card.blocks if isinstance(block, Figure)]
    for example, ribbon in zip(given.examples, ribbons, strict=True):
        assert ribbon.svg.count('class="cell"') == len(example.readings)


def test_long_runs_keep_every_step_in_the_ribbon_and_the_alert_in_the_table(given: ReportInput) -> None:
    example = next(e for e in given.examples if any(r.level == "ALARM" for r in e.readings))
    n = 700
    steps, readings = [example.steps[0]] * n, [replace(example.readings[0], step=i + 1) for i in range(n)]
    risks = np.full(n, 0.1)
    risks[400:] = 0.95
    readings = [replace(r, outcome_risk=float(v)) for r, v in zip(readings, risks, strict=True)]
    lengths = [*given.behind.lengths]
    lengths[example.run] = n
    rows = [replace(given.behind.rows[0], imminent=_with(given.behind.rows[0].imminent, example.run, risks),
                    outcome=_with(given.behind.rows[0].outcome, example.run, risks))]  # fmt: skip
    behind = replace(given.behind, lengths=tuple(lengths), rows=tuple(rows))
    table = replace(given.table, behind=behind)
    report = EvaluationReport.of(replace(given, table=table, examples=[ExampleRun(example.run, steps, readings)]))
    (card,) = [block for block in report.section("examples").blocks if isinstance(block, Card)]
    (table,) = [block for block in inside(card.blocks) if isinstance(block, TableBlock)]
    (ribbon,) = [block for block in card.blocks if isinstance(block, Figure)]
    assert ribbon.svg.count('class="cell"') == n
    shown = [row[0].text for row in table.rows]
    assert {"1", "401", str(n)} <= set(shown) and len(shown) <= 60
    assert "60 of 700" in table.caption


def _with(scores, place, values):
    return [values if i == place else score for i, score in enumerate(scores)]


def test_precision_recall_is_the_curve_under_which_auprc_lies() -> None:
    rng = np.random.default_rng(3)
    labels = (rng.random(4000) < 0.3).astype(int)
    scores = np.round(labels * 0.4 + rng.normal(0, 0.5, 4000), 2)  # with ties
    whole = precision_recall(labels, scores, points=10_000)
    recall, precision = np.array([(0.0, 1.0), *whole]).T
    assert float((np.diff(recall) * precision[1:]).sum()) == pytest.approx(average_precision(labels, scores))
    fewer = precision_recall(labels, scores)
    assert len(fewer) <= POINTS + 2 and set(fewer) <= set(whole)
    assert (fewer[0], fewer[-1]) == (whole[0], whole[-1])


def test_what_the_monitor_did_not_judge_is_in_no_curve(given: ReportInput, report: EvaluationReport) -> None:
    assert report.table.unknown_prefixes == 1
    bins = report.section("reliability").data["outcome"]
    assert sum(point["prefixes"] for point in bins) == report.table.prefixes - 1


def test_histogram_counts_every_lead(report: EvaluationReport) -> None:
    drawn = report.section("first_alerts").data["histogram"]
    found = next(row.alerts for row in report.table.first_alert if row.budget == drawn["budget"])
    assert found is not None
    for bar in drawn["bars"]:
        assert bar["runs"] == sum(bar["from"] <= lead <= bar["to"] for lead in found.leads)
    assert sum(bar["runs"] for bar in drawn["bars"]) == len(found.leads)


def test_two_thousand_runs_stay_small() -> None:
    page = EvaluationReport.of(invented_input(2000, resamples=5)).to_html()
    assert len(page) < 1_500_000


def test_three_files_side_by_side(report: EvaluationReport, tmp_path: Path) -> None:
    paths = write_report(report, tmp_path / "new" / "out.html")
    assert [path.name for path in paths] == ["out.html", "out.md", "out.json"]
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["out.html", "out.json", "out.md"]
    assert paths[0].read_bytes() == report.to_html()
    assert paths[1].read_text(encoding="utf-8") == report.to_markdown()
    assert json.loads(paths[2].read_text(encoding="utf-8")) == json.loads(json.dumps(report.as_json()))
    with pytest.raises(ConfigError, match=r"must end in \.html"):
        write_report(report, tmp_path / "out.txt")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_report(report, tmp_path / "file" / "out.html")


def test_counts_that_differ_are_refused(given: ReportInput) -> None:
    with pytest.raises(DataError, match="a report needs the runs behind its table"):
        replace(given, table=with_ids(given.table, RUN_IDS[1:]))
    with pytest.raises(DataError, match="a report needs the runs behind its table"):
        replace(given, table=replace(given.table, behind=None))
    with pytest.raises(DataError, match="example run 90 is none of 90 runs"):
        replace(given, examples=[replace(given.examples[0], run=90)])
    example = given.examples[0]
    with pytest.raises(DataError, match="readings"):
        replace(given, examples=[replace(example, readings=example.readings[1:])])


def test_real_runs_of_the_lab(lab_bundle: Path, fresh_lab_file: Path) -> None:
    """From a bundle and runs it has not seen, as `prefixguard evaluate` has them."""
    monitor = load(lab_bundle)
    runs = [run for run in read_runs(fresh_lab_file, monitor.bundle.adapter) if run.outcome is not Outcome.UNKNOWN]
    readings = [monitor.score_run(run.records) for run in runs]
    risks = [
        [np.array([getattr(reading, risk) for reading in part]) for part in readings]
        for risk in ("imminent_risk", "outcome_risk")
    ]
    failed = [run.outcome is Outcome.FAILURE for run in runs]
    tasks = [task_key(run) for run in runs]
    table = evaluate_scores(*risks, failed, tasks, resamples=20)
    given = ReportInput(
        with_ids(table, [run.run_id for run in runs]),
        examples=[ExampleRun.of(i, runs[i].records, readings[i]) for i in range(3)],
        monitor="lab",
        manifest=monitor.bundle.manifest,
    )
    page = words(EvaluationReport.of(given).to_html())
    assert monitor.bundle.id in page and "openai_chat 1.0.0" in page
    called = next(record for record in runs[0].records if record.tool not in ("", "respond"))
    assert called.tool in page and called.status in page
    assert all(run.run_id in page for run in runs[:3])
    assert HOSTILE[0] not in page


class Found(Result):
    """A section that says what it is given."""

    def __init__(self, **facts: object) -> None:
        self._facts = facts

    def as_json(self) -> dict[str, object]:
        return self._facts

    def blocks(self) -> tuple[Block, ...]:
        return (Text("A section."),)


def test_the_verdict_says_what_folds_and_the_leak_audit_found() -> None:
    given = invented_input()
    quiet = EvaluationReport.of(given).verdict.sentences
    idx = {"outcome_auroc_at_index": 0.621, "intervals": {"outcome_auroc_at_index": [0.574, 0.664]}}
    folds = Found(folds=3, runs=500, outcome=idx)
    leaks = Found(findings=[{"severity": "error", "field": "status"}, {"severity": "warning", "field": "length"}])
    told = EvaluationReport.of(
        replace(given, table=given.table.with_sections({"folds": folds, "leaks": leaks}))
    ).verdict.sentences
    assert told[: len(quiet)] == quiet and len(told) == len(quiet) + 2
    assert "on 3 task-grouped folds" in told[-2] and "AUROC .621 [.574, .664]" in told[-2]
    assert "The leak audit found errors in status:" in told[-1]
    calm = Found(findings=[{"severity": "warning", "field": "length"}])
    assert (
        EvaluationReport.of(replace(given, table=given.table.with_sections({"leaks": calm}))).verdict.sentences == quiet
    )


def test_symbols_come_from_the_manifest_and_odd_ones_do_no_harm() -> None:
    line = {
        "meaning": "search: error",
        "condition": "tool is search",
        "share": 0.25,
        "risk_change": 0.1,
        "example": "x",
    }
    told = SymbolLine.of_manifest({"automaton": {"glossary": [line, {"share": "much"}, 7]}})
    assert told[0] == SymbolLine(0, "search: error", "tool is search", 0.25, 0.1, "x")
    assert (told[1].symbol, told[1].meaning, len(told)) == (1, "", 2) and np.isnan(told[1].share)
    assert SymbolLine.of_manifest({}) == SymbolLine.of_manifest({"automaton": {"glossary": "none"}}) == ()


def test_an_older_glossary_is_shown_as_it_stands() -> None:
    text = f"# Symbols\n\n| No. | Symbol |\n| --- | --- |\n| 0 | {HOSTILE[0]} |"
    report = EvaluationReport.of(
        replace(invented_input(30, bare=True), automaton=AutomatonView("a", 1, 1, glossary_text=text))
    )
    assert HOSTILE[0] not in report.to_html().decode() and HOSTILE[0] in words(report.to_html())
    assert text in report.to_markdown()
