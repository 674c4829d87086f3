"""Finished work on disk: what comes back, what counts as not there, and what an interruption leaves."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from prefixguard.errors import OutputError
from prefixguard.store import Kept, Store

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FACTS = st.dictionaries(st.text(), PLAIN, max_size=4)
NUMBERS = arrays_of.arrays(
    st.sampled_from([np.float64, np.float32, np.int64, np.uint8, np.bool_]),
    arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)


@given(FACTS, st.dictionaries(st.text(), NUMBERS, max_size=3), FACTS)
def test_what_was_kept_comes_back_equal(tmp_path_factory: Any, facts: Any, arrays: Any, question: Any) -> None:
    """Facts, types, shapes and bytes; NaN inside of arrays too."""
    store = Store(tmp_path_factory.mktemp("kept"), {"common": 1})
    store.put(Kept(facts, arrays), "piece", question=question)
    found = store.get("piece", question=question)
    assert found is not None and found.facts == facts and list(found.arrays) == list(arrays)
    for name, array in arrays.items():
        back = found.arrays[name]
        assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())
        assert back.flags.writeable
    assert Store(store.folder, {"common": 2}).get("piece", question=question) is None
    assert store.get("another", question=question) is None and store.get("piece") is None


def test_other_questions_lie_beside_each_other(tmp_path: Path) -> None:
    for seed in (1, 2):
        Store(tmp_path, {"seed": seed}).put(Kept({"answer": seed * 10}), "fold", number=0)
    store = Store(tmp_path, {"seed": 2})
    store.put(Kept({"answer": 21}), "fold", number=0)  # replaces its own
    assert [Store(tmp_path, {"seed": s}).get("fold", number=0) for s in (1, 2)] == [
        Kept({"answer": 10}),
        Kept({"answer": 21}),
    ]
    assert sorted((asked["seed"], kept.facts["answer"]) for asked, kept in store.each("fold")) == [(1, 10), (2, 21)]
    store.put(Kept({"answer": 3}), "fold-of-old", number=0)
    assert list(store.each("reply")) == [] and len(list(store.each("fold"))) == 2


def test_numbers_without_a_value_are_facts_too(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(Kept({"best": -math.inf, "none": math.nan}), "epoch")
    found = store.get("epoch")
    assert found is not None and found.facts["best"] == -math.inf and math.isnan(found.facts["none"])


@given(st.data())
def test_damage_anywhere_is_absence(tmp_path_factory: Any, data: Any) -> None:
    """One byte changed, or cut off anywhere: not there, and never an error or another piece."""
    store = Store(tmp_path_factory.mktemp("kept"))
    store.put(Kept({"text": "said\n"}, {"x": np.arange(5.0)}), "piece", of="it")
    (path,) = store.folder.iterdir()  # type: ignore[union-attr]
    whole = path.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    flipped = whole[:place] + bytes([whole[place] ^ data.draw(st.integers(1, 255))]) + whole[place + 1 :]
    path.write_bytes(data.draw(st.sampled_from([flipped, whole[:place]])))
    assert store.get("piece", of="it") is None and list(store.each("piece")) == []
    store.put(Kept({"text": "again"}), "piece", of="it")
    assert store.get("piece", of="it") == Kept({"text": "again"})


def test_a_piece_under_another_name_is_not_taken_for_that(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(Kept({"n": 1}), "fold", number=1)
    (one,) = tmp_path.iterdir()
    store.put(Kept({"n": 2}), "fold", number=2)
    (two,) = set(tmp_path.iterdir()) - {one}
    two.write_bytes(one.read_bytes())
    assert store.get("fold", number=2) is None


def test_a_process_that_is_killed_leaves_whole_pieces_or_none(tmp_path: Path) -> None:
    """A writer that never stops is killed several times; whatever it left is whole, and is one of its pieces."""
    script = (
        "import sys, itertools, numpy as np\nfrom prefixguard.store import Kept, Store\n"
        "store = Store(sys.argv[1])\n"
        "for n in itertools.count(1):\n"
        "    store.put(Kept({'n': n}, {'x': np.full(200_000, n)}), 'piece')\n    print(n, flush=True)\n"
    )
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", script, tmp_path], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            last = [int(writer.stdout.readline()) for _ in range(4)][-1]
            writer.kill()
        found = Store(tmp_path).get("piece")
        assert found is not None and found.facts["n"] >= last and (found.arrays["x"] == found.facts["n"]).all()
    Store(tmp_path).clear()
    assert not tmp_path.exists()


def test_threads_that_write_the_same_leave_one_of_theirs(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def write(n: int) -> None:
        for _ in range(20):
            store.put(Kept({"n": n}, {"x": np.full(5000, n)}), "piece")

    writers = [threading.Thread(target=write, args=(n,)) for n in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = store.get("piece")
    assert found is not None and (found.arrays["x"] == found.facts["n"]).all()
    assert len(list(tmp_path.iterdir())) == 1, "nothing else is left behind"


def test_without_a_folder_nothing_is_kept() -> None:
    store = Store(None)
    store.put(Kept({}), "piece")
    assert store.get("piece") is None and list(store.each("piece")) == [] and store.outdated() == ""
    store.clear()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match=r"cannot be written \(Permission denied\)\. Name a folder with room"):
        Store(tmp_path / "kept").put(Kept({}), "piece")


def test_a_file_in_the_folders_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file")
    with pytest.raises(OutputError, match="Name a folder with room"):
        Store(tmp_path / "kept").put(Kept({}), "piece")


def test_what_cannot_be_plain_bytes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="x: object is no type of plain numbers"):
        Store(tmp_path).put(Kept({}, {"x": np.array([{}])}), "piece")
    assert list(tmp_path.iterdir()) == []


def test_what_older_releases_kept_is_said_and_never_read_or_removed(tmp_path: Path) -> None:
    (tmp_path / "folds").mkdir()
    (tmp_path / "folds" / "protocol.json").write_text("{}")
    store = Store(tmp_path)
    assert store.outdated() == (
        f"{tmp_path / 'folds' / 'protocol.json'}: kept by release 0.3 or older. It is not taken up, and can be removed."
    )
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "arrays.npz").write_bytes(b"")
    assert Store(tmp_path / "mine").outdated() == "", "a person's own files are not taken for ours"
    store.clear()
    assert (tmp_path / "folds" / "protocol.json").exists()
