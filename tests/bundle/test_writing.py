"""All of a bundle is written, or nothing; and the same parts give the same bytes."""

import errno
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import tiny_monitor

from prefixguard.alarm import Thresholds
from prefixguard.bundle import open_bundle, write_bundle, write_card
from prefixguard.bundle import writing as writing_module
from prefixguard.errors import BundleError, OutputError


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())}


def test_the_same_parts_give_the_same_bytes_anywhere(tmp_path: Path) -> None:
    one = write_bundle(tmp_path / "one", tiny_monitor.parts())
    two = write_bundle(tmp_path / "deep" / "two", tiny_monitor.parts())
    assert one == two
    assert contents(tmp_path / "one") == contents(tmp_path / "deep" / "two")


def test_the_id_leaves_out_the_training_time_and_nothing_else(tmp_path: Path) -> None:
    info = dict(tiny_monitor.parts().info)
    ids = [
        write_bundle(tmp_path / str(i), tiny_monitor.parts(info=info | change))
        for i, change in enumerate([{}, {"training_seconds": 99.0}, {"seed": 14}])
    ]
    assert ids[0] == ids[1] != ids[2]


def test_nothing_but_the_bundle_is_left(tmp_path: Path) -> None:
    write_bundle(tmp_path / "b", tiny_monitor.parts())
    write_bundle(tmp_path / "b", tiny_monitor.parts(), overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["b"]


def test_a_bundle_is_replaced_only_when_asked(tmp_path: Path) -> None:
    first = write_bundle(tmp_path / "b", tiny_monitor.parts())
    other = tiny_monitor.parts(info={"seed": 14})
    with pytest.raises(OutputError, match="holds a bundle already"):
        write_bundle(tmp_path / "b", other)
    assert open_bundle(tmp_path / "b").id == first
    second = write_bundle(tmp_path / "b", other, overwrite=True)
    assert open_bundle(tmp_path / "b").id == second != first


def test_other_peoples_files_are_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.txt").write_text("years of work")
    with pytest.raises(OutputError, match="folder with other things in it"):
        write_bundle(tmp_path / "work", tiny_monitor.parts(), overwrite=True)
    write_bundle(tmp_path / "b", tiny_monitor.parts())
    (tmp_path / "b" / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"also holds notes\.txt, which would be lost"):
        write_bundle(tmp_path / "b", tiny_monitor.parts(), overwrite=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="is a file; a bundle is a folder"):
        write_bundle(tmp_path / "file", tiny_monitor.parts(), overwrite=True)
    assert (tmp_path / "work" / "thesis.txt").read_text() == "years of work"
    assert (tmp_path / "b" / "notes.txt").read_text() == "mine"


def test_an_empty_folder_and_a_link_to_a_bundle_are_written_to(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write_bundle(tmp_path / "empty", tiny_monitor.parts())
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    written = write_bundle(tmp_path / "link", tiny_monitor.parts(info={"seed": 2}), overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert open_bundle(tmp_path / "empty").id == written


@pytest.mark.parametrize(
    ("call", "nth"), [("mkdir", 1), *((call, nth) for call in ("write", "fsync", "open") for nth in (1, 2, 5))]
)
def test_a_full_disk_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, nth: int
) -> None:
    """Whichever call fails first, and whether or not a bundle was there."""
    old = write_bundle(tmp_path / "old", tiny_monitor.parts())
    real, calls = getattr(os, call), [0]

    def full(*args: object, **kwargs: object) -> object:
        if call == "open" and not int(args[1]) & os.O_CREAT:  # type: ignore[call-overload]
            return real(*args, **kwargs)
        calls[0] += 1
        if calls[0] >= nth:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(writing_module.os, call, full)
        for name in ("new", "old"):
            calls[0] = 0
            with pytest.raises(OutputError, match=r"the disk is full, nothing was written\. Make room and try again"):
                write_bundle(tmp_path / name, tiny_monitor.parts(info={"seed": 2}), overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["old"]
    assert open_bundle(tmp_path / "old").id == old


def test_a_really_full_disk(tmp_path: Path) -> None:
    """A file system of 64 KB; needs the right to mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("may not mount a file system here")
    try:
        big = tiny_monitor.parts(info={"padding": "x" * 100_000})
        with pytest.raises(OutputError, match="the disk is full"):
            write_bundle(disk / "b", big)
        assert list(disk.iterdir()) == []
        write_bundle(disk / "b", tiny_monitor.parts())
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_failed_exchange_puts_the_old_bundle_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = write_bundle(tmp_path / "b", tiny_monitor.parts())
    real = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if self.name.endswith(".tmp"):
            raise OSError(errno.EACCES, "Permission denied")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OutputError, match="cannot be written"):
        write_bundle(tmp_path / "b", tiny_monitor.parts(info={"seed": 2}), overwrite=True)
    assert open_bundle(tmp_path / "b").id == old
    assert [p.name for p in tmp_path.iterdir()] == ["b"]


def test_an_interrupt_leaves_no_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(writing_module, "open_bundle", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_bundle(tmp_path / "b", tiny_monitor.parts())
    assert list(tmp_path.iterdir()) == []


def test_parts_that_no_reader_would_take_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="vocabulary"):
        write_bundle(tmp_path / "b", tiny_monitor.parts(vocabulary=b"words"))
    with pytest.raises(BundleError, match="needs the arrays typical"):
        write_bundle(tmp_path / "b", tiny_monitor.parts(context_arrays={}))
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_without_reasons_is_whole(tmp_path: Path) -> None:
    write_bundle(tmp_path / "b", tiny_monitor.parts(reasons=None))
    assert not (tmp_path / "b" / "reasons.onnx").exists()
    assert open_bundle(tmp_path / "b").reasons_bytes is None


ADAPTER = {"name": "tiny_chat", "version": "1.0.0", "sha256": "0"}


def test_the_card_names_what_matters() -> None:
    parts = tiny_monitor.parts()
    card = write_card(ADAPTER, parts.calibration, parts.info)
    for said in ("`tiny_chat`", "Horizon in steps: 3", "outcome_auroc | 0.5", "ALARM above an outcome risk of 0.7000"):
        assert said in card
    assert "at most 10% raise an alarm, with confidence 90%" in " ".join(card.split())


def test_no_time_stands_in_it() -> None:
    parts = tiny_monitor.parts()
    later = dict(parts.info) | {"training_seconds": 77.0}
    assert write_card(ADAPTER, parts.calibration, later) == write_card(ADAPTER, parts.calibration, parts.info)


def test_a_refused_alarm_says_why() -> None:
    calibration = tiny_monitor.parts().calibration
    refused = replace(calibration, thresholds=Thresholds(None, 0.3, 10, 0, 22, "10 runs cannot support it: 22 needed."))
    assert "never says ALARM: 10 runs cannot support it: 22 needed" in write_card(ADAPTER, refused, {})


def test_the_watch_mark_is_the_one_in_force() -> None:
    """A watch mark above the alarm's is passed with the alarm."""
    calibration = tiny_monitor.parts().calibration
    high = replace(calibration, thresholds=replace(calibration.thresholds, watch=0.9))
    assert "ALARM above an outcome risk of 0.7000, never WATCH." in write_card(ADAPTER, high, {})


def test_long_and_odd_content_stays_one_page() -> None:
    info = {"data": {f"row|{i}": "x\n" * 500 for i in range(100)} | {"hashes": list(range(99))}}
    card = write_card(ADAPTER, tiny_monitor.parts().calibration, info)
    assert "61 more in manifest.json" in card
    assert len(card.splitlines()) < 100
    assert "row/0" in card


def test_how_far_an_automaton_agrees_with_its_teacher_stands_in_it() -> None:
    fidelity = {"agreement": 0.57, "unseen_share": 0.01, "care": ["It ranks steps | otherwise."]}
    card = write_card(ADAPTER, tiny_monitor.parts().calibration, {"fidelity": fidelity})
    assert "## How far it agrees with its teacher" in card
    assert "| agreement | 0.57 |" in card
    assert "- Audit with care: It ranks steps / otherwise." in card
