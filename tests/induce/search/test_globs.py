"""Which files hold runs: globs that leave the files beside them and fit runs that are not there yet."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.induce.search.globs import narrow
from prefixguard.trace import glob_pattern


@pytest.mark.parametrize(
    ("holding", "others", "glob"),
    [
        (["a.json", "b.json"], [], "**/*.json"),
        (["x/a.json"], ["x/notes.md"], "**/*.json"),
        (["runs/a.json", "runs/b.json"], ["labels/a.json"], "**/runs/*.json"),
        (["r1/events.json", "r2/events.json"], ["r1/result.json", "r2/result.json"], "**/events.json"),
        (["a.traj.json", "b.traj.json"], ["summary.json"], "**/*.traj.json"),
        (["run-1", "run-2"], [], "**/*"),
        (["run_1.json", "run_12.json", "run_101.json"], ["summary.json"], "**/run_*.json"),
        (["run_10.json", "run_12.json"], ["summary.json"], "**/run_*.json"),
        (["run_1.json"], ["summary.json"], "**/run_*.json"),
        (["a/in.json", "a/out.json", "b/in.json", "b/out.json"], ["a/meta.json"], "**/{in.json,out.json}"),
        (["alpha.json", "beta.json"], ["gamma.json"], "**/{alpha.json,beta.json}"),
    ],
)
def test_the_glob_is_the_widest_that_leaves_the_others(holding: list[str], others: list[str], glob: str) -> None:
    assert narrow(holding, others) == glob


def test_where_no_glob_leaves_the_others_all_runs_are_taken() -> None:
    matches = glob_pattern([narrow([f"{c}.json" for c in "abcdef"], ["g.json"])])
    assert all(matches(f"{c}.json") for c in "abcdef")


names = st.lists(
    st.tuples(st.sampled_from(["", "x/", "x/y/", "{z},/"]), st.text("ab1.*?{},[]-_é", min_size=1, max_size=8)),
    min_size=1,
    max_size=8,
    unique=True,
)


@given(names, names)
def test_runs_are_always_taken_whatever_they_are_called(
    mine: list[tuple[str, str]], rest: list[tuple[str, str]]
) -> None:
    holding = ["".join(one) for one in mine]
    matches = glob_pattern([narrow(holding, ["".join(one) for one in rest])])
    assert all(map(matches, holding))


@given(names)
def test_the_order_of_files_does_not_matter(mine: list[tuple[str, str]]) -> None:
    holding = ["".join(one) for one in mine]
    assert narrow(holding, []) == narrow(holding[::-1], [])
