"""Readers of the paper's sets, on samples in their published formats."""

from dataclasses import replace

import pytest
from reproduce import webarena as webarena_reader
from reproduce.benchmark import refuse_large
from reproduce.sets import BENCHMARKS

from prefixguard.errors import DataError, TraceError
from prefixguard.stepview import ReadReport, serialize
from prefixguard.trace import Outcome

OF_STATUS = ("tau2", "skillsbench", "terminalbench")


def read(name, folder, leaked=False, report=None):
    benchmark = BENCHMARKS[name]
    reader = benchmark.read_leaked if leaked else benchmark.read
    return list(reader(folder, report if report is not None else ReadReport()))


@pytest.fixture(params=list(BENCHMARKS))
def sample(request):
    return request.param, request.getfixturevalue(request.param)


def test_both_outcomes_and_the_references_tasks(sample):
    name, folder = sample
    runs = read(name, folder)
    expected = {
        "webarena": (8, {str(n) for n in range(8)}, 3),
        "tau2": (40, {f"tau2-airline-{n}" for n in range(20)}, 13),
        "skillsbench": (6, {f"skillsbench::bread-{n}" for n in range(3)}, 3),
        "terminalbench": (12, {"terminalbench::clock-0", "terminalbench::clock-1"}, 4),
    }[name]
    tasks = {BENCHMARKS[name].task(run) for run in runs}
    assert (len(runs), tasks, sum(run.outcome is Outcome.FAILURE for run in runs)) == expected
    assert len({run.run_id for run in runs}) == len(runs)


def test_the_clean_reading_holds_nothing_of_the_harness(sample, verdict):
    name, folder = sample
    for run in read(name, folder):
        for record in run.records:
            assert verdict.encode() not in serialize(record)
            assert b"Early stop" not in serialize(record)


@pytest.mark.parametrize("name", OF_STATUS)
def test_the_leak_is_the_status_of_the_last_step_alone(name, request):
    folder = request.getfixturevalue(name)
    clean, leaked = read(name, folder), read(name, folder, leaked=True)
    assert len(clean) == len(leaked)
    told = {"ok": Outcome.SUCCESS, "error": Outcome.FAILURE}
    for one, other in zip(clean, leaked, strict=True):
        assert one.records[:-1] == other.records[:-1]
        last = other.records[-1]
        assert replace(last, status=one.records[-1].status) == one.records[-1]
        assert told[last.status] is one.outcome
    moved = sum(one.records[-1].status != other.records[-1].status for one, other in zip(clean, leaked, strict=True))
    assert moved == {"tau2": 13, "skillsbench": 3, "terminalbench": 4}[name], "failed runs whose last step went well"


def test_tau2_records(tau2):
    run = read("tau2", tau2)[0]
    assert run.outcome is Outcome.FAILURE
    assert [r.tool for r in run.records[:2]] == ["respond", "change_booking"]
    assert [r.status for r in run.records] == ["ok", "ok", "error", "error", "ok"]
    assert run.records[1].observation == "I want to change booking 0, point 1."
    assert run.records[1].arguments == '{"booking":"0","point":1}'


def test_terminalbench_records(terminalbench):
    report = ReadReport()
    run = read("terminalbench", terminalbench, report=report)[0]
    assert [r.tool for r in run.records] == ["bash", "bash", "respond"]
    assert run.records[0].observation == "Repair the clock in room 0."
    assert run.records[0].arguments == '{"cmd":"ls clock","fn":"bash"}'
    assert "oil gear" in run.records[1].arguments and "wind spring" in run.records[1].arguments
    assert [r.status for r in run.records] == ["ok", "error", "ok"]
    assert run.groups == {"agent": "terminus", "model": "m"}
    assert report.empty == {"failure": 1}, "the row without steps is counted, not read"


def test_skillsbench_records(skillsbench):
    report = ReadReport()
    run = read("skillsbench", skillsbench, report=report)[0]
    assert [r.tool for r in run.records] == ["execute", "edit", "respond"]
    assert run.records[0].observation == "Bake bread."
    assert "The oven first." in run.records[0].action
    assert run.records[0].result == "oven at 200"
    assert run.records[1].result.endswith("sugar")
    assert [r.status for r in run.records] == ["ok", "error", "ok"]
    assert run.groups == {"agent": "opus", "model": "m", "condition": "opus-with-skills-t1"}
    assert sum(report.empty.values()) == 1, "the trial without an ACP trajectory"


def test_webarena_records(webarena):
    runs = {run.task_id: run for run in read("webarena", webarena)}
    run = runs["1"]
    assert (run.run_id, run.outcome, run.groups["agent"]) == ("gpt35direct-1", Outcome.SUCCESS, "gpt35direct")
    assert [r.tool for r in run.records] == ["click", "click", "stop"]
    first = run.records[0]
    assert first.observation.endswith("http://shop/1/1\n[1] link 'lamp 1' a < b page-1-1.")
    assert first.observation.startswith("Find the price of lamp 1")
    assert first.action == "Let me see <shelf> 1. ```click [1]```"
    assert first.arguments == "[1] where [1] is [1] link 'lamp 1'"
    assert (first.result, first.status) == ("", "ok")
    assert [r.status for r in runs["6"].records] == ["ok", "ok"], "the harness's stop is no step"
    assert [len(runs[str(n)].records) for n in range(3)] == [2, 3, 4]


def test_a_page_that_does_not_exist_is_an_error():
    text = "".join(
        [
            "<h2>New Page</h2><div class='state_obv'><pre>a</pre><div>",
            "<div class='action_object'><pre>{'answer': ''}</pre></div>",
            "<div class='parsed_action'><pre>click [7] where [7] is No match found</pre></div>",
        ]
    )
    page = webarena_reader.pages(text)["pages"][0]
    assert page["parsed"].endswith("No match found")
    parser = webarena_reader.load_adapter(webarena_reader.ADAPTERS / "webarena.json").parser({"intent": ""})
    records = [*parser.observe(page), *parser.end()]
    assert [(r.tool, r.status) for r in records] == [("click", "error")]


def test_webarenas_leak_is_the_text_of_later_pages(webarena):
    clean = {run.task_id: run for run in read("webarena", webarena)}
    leaked = {run.task_id: run for run in read("webarena", webarena, leaked=True)}
    for task, run in clean.items():
        for t, record in enumerate(run.records, 1):
            assert f"page-{task}-{t}." in record.observation
            assert f"page-{task}-{t + 1}." not in record.observation
    run = leaked["2"]
    held = [sum(f"page-2-{t}." in record.observation for t in range(1, 5)) for record in run.records]
    assert held == [4, 3, 2, 1], "a count-down of what remains"
    assert "page-2-2." in run.records[0].result
    assert leaked["3"].records[-1].tool == "stop" and len(leaked["3"].records) == len(clean["3"].records) + 1
    assert "iVBOR" not in run.records[0].observation


def test_an_unpacked_archive_reads_the_same(webarena, webarena_runs, webarena_log, tmp_path):
    folder = tmp_path / "unpacked" / "release_v1.0_gpt3.5direct"
    folder.mkdir(parents=True)
    (folder / "merge_log.txt").write_text(webarena_log)
    for task, (_, text) in webarena_runs.items():
        (folder / f"render_{task}.html").write_text(text)
    packed = [(run.run_id, run.outcome, run.records) for run in read("webarena", webarena)]
    assert [(run.run_id, run.outcome, run.records) for run in read("webarena", folder.parent)] == packed


def test_hostile_archives(webarena, webarena_runs, tmp_path, monkeypatch):
    before = sorted(path for path in tmp_path.rglob("*"))
    largest = max(len(text) for _, text in webarena_runs.values())
    monkeypatch.setattr(webarena_reader, "LARGEST_PAGE", largest - 1)
    report = ReadReport()
    runs = read("webarena", webarena, report=report)
    assert 0 < len(runs) < 8
    assert len(runs) + len(report.skipped) == 8
    assert all("bytes" in reason for _, reason in report.skipped)
    assert sorted(path for path in tmp_path.rglob("*")) == before, "nothing is unpacked"
    whole = (webarena / "release_v1.0_gpt3.5direct.zip").read_bytes()
    (webarena / "torn.zip").write_bytes(whole[:200] + b"\x00\xff" * 20 + whole[240:])
    (webarena / "broken.zip").write_bytes(b"PK\x03\x04 no zip at all")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "merged_log.txt").write_text("[Result] (PASS) config_files/1.json")
    (webarena / "link").symlink_to(tmp_path / "secret")
    (webarena / "merged_log.txt").symlink_to(tmp_path / "secret" / "merged_log.txt")
    report = ReadReport()
    again = read("webarena", webarena, report=report)
    assert [run.run_id for run in again if not run.run_id.startswith("torn-")] == [run.run_id for run in runs]
    assert any("torn.zip" in where for where, _ in report.skipped)
    assert any("broken.zip" in where for where, _ in report.skipped)


def test_a_page_within_bounds():
    page = "<h2>New Page</h2><div class='state_obv'><pre>{}</pre><div>"
    with pytest.raises(TraceError, match="1,001 pages"):
        webarena_reader.pages(page.format("a") * 1_001)
    long = [f"{n} " + "x" * 40_000 for n in range(8)]
    held = [p["page"] for p in webarena_reader.pages("".join(map(page.format, long)), later=True)["pages"]]
    assert held[-1] == long[-1]
    assert held[-2] == f"{long[-2]}\nNew Page\n{long[-1]}"
    assert held[0].startswith(long[0] + "\nNew Page\n" + long[1])
    assert held[0].endswith("x" * 30_000) and len(held[0]) < 150_000


def test_too_large_a_file_is_refused(tau2):
    with pytest.raises(DataError, match=r"4trials\.json: .* bytes, more than the 1,000"):
        refuse_large(tau2, ("**/*.json",), 1_000)


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "a.json").write_text('{"simulations": []}')
    with pytest.raises(DataError, match="no run was read"):
        read("tau2", tmp_path)
