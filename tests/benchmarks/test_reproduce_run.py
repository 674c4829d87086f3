"""The program: what to download, both readings of a set, and going on where it stopped."""

import json

import pytest
from reproduce.run import main
from reproduce.sets import BENCHMARKS

from prefixguard.errors import DataError


def test_without_a_folder_it_says_what_to_download(capsys):
    assert main([]) == 2
    said = capsys.readouterr().err
    for name, benchmark in BENCHMARKS.items():
        assert f"--{name} FOLDER" in said and benchmark.download in said
    for needed in (
        "release_v1.0_gpt4.zip",
        "data/tau2/results/final",
        "benchflow/skillsbench-trajectories-apr2026",
        "yoonholee/terminalbench-trajectories",
    ):
        assert needed in said


@pytest.mark.parametrize("name", list(BENCHMARKS))
def test_a_folder_that_lacks_the_files_ends_it_with_2(name, tmp_path, capsys):
    assert main([f"--{name}", str(tmp_path / "nowhere")]) == 2
    assert "there is no such folder" in capsys.readouterr().err
    assert main([f"--{name}", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "no file matches" in said and BENCHMARKS[name].download in said
    assert not list(tmp_path.iterdir()), "nothing was begun"


def test_what_is_said_when_asked(capsys):
    assert main(["--what"]) == 0
    assert "34,397 runs" in capsys.readouterr().out


def test_too_few_runs_for_the_split(skillsbench, tmp_path, capsys):
    assert main(["--skillsbench", str(skillsbench), "--quick", "--out", str(tmp_path / "out")]) == 2
    assert "no run on the" in capsys.readouterr().err


def test_both_readings_of_a_set(tau2, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    arguments = ["--tau2", str(tau2), "--quick", "--threads", "1", "--out", str(out)]
    assert main(arguments) == 0
    shown = capsys.readouterr()
    assert "Left out, for no folder was given" in shown.err and "tau2, clean, seed 13: gru done" in shown.err
    result = json.loads((out / "tau2.json").read_text())
    assert result["published"] == {"paper's setting": 0.71, "raw-text control": 0.554, "DFA": 0.316, "dfa_states": 20}
    assert list(result["rows"]) == ["paper's setting", "gbdt", "gru", "DFA", "step index", "end oracle (not causal)"]
    for row, entry in result["rows"].items():
        for reading in ("clean", "leaked"):
            assert 0 < entry[reading]["auprc"] <= 1, (row, reading)
    assert result["rows"]["step index"]["gain"]["auprc"] == 0
    assert result["rows"]["paper's setting"]["gain"]["auprc"] != 0, "the last step says more in one reading"
    assert result["readings"]["clean"]["runs"] == 40
    text = (out / "reproduce.md").read_text()
    assert text.strip() == shown.out.strip()
    assert "Not the paper's rows: 40 (leaked), 40 (clean) instead of 10,832" in text
    assert "0.710" in text and "Fewer than 5 tasks on the test side: no intervals." in text

    def fit(*_):
        raise AssertionError("everything was kept")

    monkeypatch.setattr("reproduce.rows.Fits.fit", fit)
    monkeypatch.setattr("reproduce.run.gather", fit)
    before = (out / "tau2.json").read_bytes()
    assert main(arguments) == 0
    assert (out / "tau2.json").read_bytes() == before


def test_an_interrupted_program_goes_on(tau2, tmp_path, monkeypatch):
    from reproduce.rows import Fits

    out = tmp_path / "out"
    arguments = ["--tau2", str(tau2), "--quick", "--threads", "1", "--reading", "clean", "--out", str(out)]
    made = []
    real = Fits.fit

    def interrupted(self, row, symbols=None):
        if row == "gru" and "gru" not in made:
            made.append(row)
            raise KeyboardInterrupt
        made.append(row)
        if row in ("paper's setting", "gru", "DFA"):
            raise DataError("not fitted here")
        return real(self, row, symbols)

    monkeypatch.setattr("reproduce.rows.Fits.fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        main(arguments)
    assert made == ["paper's setting", "gbdt", "gru"]
    assert main(arguments) == 0
    assert made == ["paper's setting", "gbdt", "gru", "gru", "DFA"]
    assert "- gru (clean): not fitted here" in (out / "reproduce.md").read_text()
