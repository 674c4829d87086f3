"""Documents: order, globs, archives, and no path that leaves the folder."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from prefixguard.errors import TraceError
from prefixguard.trace import glob_pattern, open_documents


def paths(source: object, *patterns: str) -> list[str]:
    with open_documents(str(source)) as documents:
        return [document.path for document in documents.matching(patterns or ("**/*.json",))]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "runs"
    for name in ("b/2.json", "b/10.json", "a.json", "B.json", "b/notes.txt", ".hidden/x.json", "b/.part.json"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


def test_a_folder_in_the_order_of_its_paths(tree: Path) -> None:
    assert paths(tree) == ["B.json", "a.json", "b/10.json", "b/2.json"]
    assert paths(tree, "b/*.txt", "*.json") == ["B.json", "a.json", "b/notes.txt"]
    with open_documents(tree) as documents:
        first = next(documents.matching(["a.json"]))
        assert first.read() == b"a.json"
        assert first.where == f"{tree.as_posix()}/a.json"


def test_a_file_and_a_glob_are_taken_as_they_are(tree: Path) -> None:
    assert paths(tree / "b" / "notes.txt") == ["notes.txt"]
    assert paths(f"{tree}/*/notes.*") == ["b/notes.txt"]
    assert paths(f"{tree}/**/*.txt") == ["b/notes.txt"]
    assert paths(f"{tree}/*.xyz") == []


@pytest.mark.parametrize("source", ["nowhere", "nowhere/*.json", "no/where/*.json"])
def test_nothing_there(tmp_path: Path, source: str) -> None:
    with pytest.raises(TraceError, match="Check the path"):
        paths(tmp_path / source)


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("*.json", ["a.json"], ["b/a.json", "a.jsonx", "ajson"]),
        ("**/*.json", ["a.json", "b/a.json", "c/b/a.json"], ["a.txt"]),
        ("trajs/*.traj", ["trajs/a.traj"], ["x/trajs/a.traj", "trajs/b/a.traj"]),
        ("**/trajs/**", ["trajs/a", "x/trajs/b/c"], ["traj/a"]),
        ("run?.{log,txt}", ["run1.log", "run2.txt"], ["run.log", "run1.json"]),
        ("a+b(c).json", ["a+b(c).json"], ["aab(c).json"]),
    ],
)
def test_globs(pattern: str, matching: list[str], other: list[str]) -> None:
    fits = glob_pattern([pattern])
    assert all(fits(path) for path in matching)
    assert not any(fits(path) for path in other)


def test_companions_stay_inside(tree: Path) -> None:
    (tree.parent / "secret").write_text("s")
    (tree / "link").symlink_to(tree.parent / "secret")
    (tree / "inside").symlink_to(tree / "a.json")
    with open_documents(tree) as documents:
        assert documents.companion("b/2.json", "../a.json") == b"a.json"
        assert documents.companion("b/2.json", "./notes.txt") == b"b/notes.txt"
        assert documents.companion("b/2.json", "../inside") == b"a.json"
        for outside in ("../../secret", "../link", "../b/../../secret", "/etc/passwd", "x\x00y", "", "..", "absent"):
            assert documents.companion("b/2.json", outside) is None, outside
    with open_documents(tree / "b" / "2.json") as documents:
        assert documents.companion("2.json", "notes.txt") == b"b/notes.txt"
        assert documents.companion("2.json", "../a.json") is None


def test_links_to_outside_are_not_documents(tree: Path) -> None:
    (tree.parent / "secret.json").write_text("s")
    (tree / "z.json").symlink_to(tree.parent / "secret.json")
    (tree / "zz.json").symlink_to(tree / "a.json")
    (tree / "broken.json").symlink_to(tree / "nothing")
    assert paths(tree) == ["B.json", "a.json", "b/10.json", "b/2.json", "zz.json"]


def test_an_archive_gives_regular_files_and_nothing_else(tmp_path: Path) -> None:
    archive = tmp_path / "runs.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in ("runs/b.json", "./a.json", "../evil.json", "/abs.json", "c/../../evil2.json"):
            info = tarfile.TarInfo(name)
            info.size = 1
            tar.addfile(info, io.BytesIO(b"x"))
        link = tarfile.TarInfo("link.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    with open_documents(archive) as documents:
        found = list(documents.matching(["**/*.json"]))
        assert [document.path for document in found] == ["a.json", "abs.json", "runs/b.json"]
        assert found[0].where == f"{archive}/a.json"
        assert found[0].read() == b"x"
        folder = documents.root
    assert folder is not None
    assert not folder.exists()
    assert not (tmp_path / "evil.json").exists()
    for broken in (b"", b"not a tar", archive.read_bytes()[:40]):
        archive.write_bytes(broken)
        with pytest.raises(TraceError, match="cannot be unpacked"):
            paths(archive)
