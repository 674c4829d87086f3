"""Archives: regular files within bounds, whatever a small file says that it holds."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from prefixguard.errors import TraceError
from prefixguard.trace import archives, open_documents

FORMS = {"plain": ("w:", ".tar"), "gz": ("w:gz", ".tgz"), "bz2": ("w:bz2", ".tar.bz2"), "xz": ("w:xz", ".tar.xz")}


def pack(path: Path, members: dict[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def read(archive: Path) -> dict[str, bytes]:
    with open_documents(archive) as documents:
        return {document.path: document.read() for document in documents.matching(["**/*.json"])}


def left_out(archive: Path) -> dict[str, str]:
    with open_documents(archive) as documents:
        list(documents.matching(["**/*.json"]))
        return documents.left_out


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read(tmp_path: Path, form: str) -> None:
    mode, suffix = FORMS[form]
    members = {"a.json": b"1", "b/c.json": b"x" * 100_000}
    assert read(pack(tmp_path / f"runs{suffix}", members, mode)) == members


def test_what_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "ALWAYS_UNPACKED", 1 << 20)
    monkeypatch.setattr(archives, "_LONGEST_READ", 1 << 16)
    bomb = pack(tmp_path / "bomb.tgz", {"a.json": b"1", "b.json": b"\x00" * (16 << 20)})
    with pytest.raises(TraceError, match=r"bomb.tgz: unpacks to more than .* \(at most 100 times its own size"):
        read(bomb)
    apart = pack(tmp_path / "apart.tgz", {f"{i}.json": b"\x00" * (1 << 19) for i in range(32)})
    with pytest.raises(TraceError, match="unpacks to more than"):
        read(apart)
    unseen = tmp_path / "unseen.tgz"  # what is not unpacked has to be gone through all the same
    with gzip.open(unseen, "wb") as file:
        info = tarfile.TarInfo("device")
        info.type, info.size = b"Z", 16 << 20
        file.write(info.tobuf() + b"\x00" * (16 << 20))
    with pytest.raises(TraceError, match="unpacks to more than"):
        read(unseen)
    assert len(read(pack(tmp_path / "small.tgz", {"b.json": b"\x00" * (1 << 19)}))) == 1


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_that_is_too_long_is_refused(tmp_path: Path, kind: bytes) -> None:
    archive = tmp_path / "runs.tgz"
    with gzip.open(archive, "wb") as file:
        info = tarfile.TarInfo("x")
        info.type, info.size = kind, 64 << 20
        file.write(info.tobuf(tarfile.GNU_FORMAT) + b"\x00" * (8 << 20))
    with pytest.raises(TraceError, match=r"a header of 67,108,864 bytes"):
        read(archive)


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_MEMBERS", 3)
    assert len(read(pack(tmp_path / "three.tar", {f"{i}.json": b"" for i in range(3)}, "w:"))) == 3
    with pytest.raises(TraceError, match="more than 3 members"):
        read(pack(tmp_path / "four.tar", {f"{i}.json": b"" for i in range(4)}, "w:"))


def test_members_that_are_no_files_are_named(tmp_path: Path) -> None:
    archive = tmp_path / "runs.tar"
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind in (
            ("link.json", tarfile.SYMTYPE),
            ("device.json", tarfile.CHRTYPE),
            ("pipe", tarfile.FIFOTYPE),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info)
        holes = tarfile.TarInfo("holes.json")  # a terabyte, of which nothing is there
        holes.pax_headers = {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(1 << 40)}
        tar.addfile(holes)
        for name in ("../up.json", "n" * 2000 + ".json", "a" * 300 + ".json", "file.json", "file.json/below.json"):
            info = tarfile.TarInfo(name)
            info.size = 1
            tar.addfile(info, io.BytesIO(b"1"))
    assert read(archive) == {"file.json": b"1"}
    reasons = {where.removeprefix(f"{archive}/")[:12]: why for where, why in left_out(archive).items()}
    assert sorted(reasons) == [
        "../up.json",
        "a" * 12,
        "device.json",
        "file.json/be",
        "holes.json",
        "link.json",
        "n" * 12,
    ]
    assert reasons["holes.json"] == "a file with holes; archive it without --sparse."
    assert reasons["link.json"] == "a link or a device, which are never unpacked."


def test_an_archive_that_is_cut_off(tmp_path: Path) -> None:
    archive = pack(tmp_path / "runs.tgz", {"a.json": bytes(range(256)) * 400})
    archive.write_bytes(archive.read_bytes()[:-40])
    with pytest.raises(TraceError, match="cannot be unpacked"):
        read(archive)
