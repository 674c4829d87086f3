"""What is installed and under which name: messages that say how to install, the wheel, another package of our name."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

import prefixguard
from prefixguard import distribution
from prefixguard.distribution import DISTRIBUTION, install_command
from prefixguard.errors import missing_extra

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = set(PROJECT["project"]["optional-dependencies"])
SOURCES = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "prefixguard").rglob("*.py"))}


def run(program: list[str], folder: Path, *path: Path) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, with these folders before all else on its path."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), "COLUMNS": "200"}
    return subprocess.run([sys.executable, *program], cwd=folder, env=env, capture_output=True, text=True)


def test_the_name_is_ours() -> None:
    assert PROJECT["project"]["name"] == DISTRIBUTION == prefixguard.__distribution__ == "prefixguard-monitor"
    assert PROJECT["project"]["scripts"] == {"prefixguard": "prefixguard.__main__:main"}
    assert prefixguard.__version__ == distribution.VERSION


def test_extras_name_this_package() -> None:
    wanted = [one for extra in PROJECT["project"]["optional-dependencies"].values() for one in extra]
    assert [one for one in wanted if one.startswith("prefixguard")] == [
        one for one in wanted if one.startswith(f"{DISTRIBUTION}[")
    ]
    boosted = PROJECT["project"]["optional-dependencies"]["gbdt"]
    assert not any(one.startswith("torch") for one in boosted)


def test_how_to_install_from_a_clone_and_from_the_index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert install_command("train") == f'pip install -e "{ROOT}[train]"'
    assert install_command() == f'pip install -e "{ROOT}"'
    monkeypatch.setattr(distribution, "_PROJECT", tmp_path / "pyproject.toml")
    record = SimpleNamespace(read_text=lambda name: None)  # from the index: pip writes down no other place
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: record)
    assert install_command("train") == 'pip install "prefixguard-monitor[train]"'
    assert install_command() == 'pip install "prefixguard-monitor"'
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "somebody-elses"\n')
    assert install_command("llm") == 'pip install "prefixguard-monitor[llm]"', "the project of whoever uses it"


@pytest.mark.parametrize(
    ("recorded", "said"),
    [
        (None, "prefixguard-monitor[llm]"),
        ("not JSON", "prefixguard-monitor[llm]"),
        ('{"dir_info": {}}', "prefixguard-monitor[llm]"),
        ('{"url": "file:///a/clone", "dir_info": {}}', "prefixguard-monitor[llm] @ file:///a/clone"),
        ('{"url": "https://a/b.whl", "archive_info": {}}', "prefixguard-monitor[llm] @ https://a/b.whl"),
        (
            '{"url": "https://a/b", "vcs_info": {"vcs": "git", "commit_id": "c"}}',
            "prefixguard-monitor[llm] @ git+https://a/b",
        ),
    ],
)
def test_how_to_install_again_from_where_it_came(
    recorded: str | None, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As pip recorded it (PEP 610): the index need not have this release."""
    monkeypatch.setattr(distribution, "_PROJECT", tmp_path / "pyproject.toml")
    record = SimpleNamespace(read_text=lambda name: recorded)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: record)
    assert install_command("llm") == f'pip install "{said}"'


def test_the_sentence() -> None:
    exc = ModuleNotFoundError("No module named 'lightgbm.basic'", name="lightgbm.basic")
    said = str(missing_extra("training", "gbdt", exc, or_else="walk"))
    assert said == f"training needs lightgbm. Install it with: {install_command('gbdt')}. Or: walk"


def test_one_function_makes_all_sentences_that_say_pip_install() -> None:
    saying = [str(path.relative_to(ROOT)) for path, text in SOURCES.items() if "pip install" in text]
    others = [f"prefixguard/factory/environments/{name}.py" for name in ("opening", "tau2")]  # elsewhere
    assert saying == ["prefixguard/distribution.py", *others]
    made = [path for path, text in SOURCES.items() if re.search(r"\bMissingExtraError\(", text)]
    assert [path.name for path in made] == ["errors.py"], "errors.missing_extra makes them all"


def test_messages_name_extras_that_there_are() -> None:
    calls = [
        found
        for text in SOURCES.values()
        for found in re.findall(r'missing_extra\(\s*f?"[^"]*",\s*"([\w-]+)"|install_command\([\'"](\w+)[\'"]\)', text)
    ]
    named = {one or other for one, other in calls}
    assert named >= {"gbdt", "automata", "data", "llm", "train"} and named <= EXTRAS


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "constraints.txt", "docs/cli.md"])
def test_documents_never_install_the_other_package(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    for line in re.findall(r"pip install [^`\n]*", text):
        for extra in re.findall(r"\[([\w,]+)\]", line):
            assert set(extra.split(",")) <= EXTRAS, line
        assert not re.search(r"\bprefixguard(?!-monitor)\b", line.partition("#")[0]), line


# Another package with our import name: both lie in one folder, and whichever came last owns `__init__`.


@pytest.fixture
def overlaid(tmp_path: Path) -> Path:
    """A folder as pip leaves it when a stand-in for the other package is installed over ours."""
    package = tmp_path / "site" / "prefixguard"
    package.mkdir(parents=True)
    for entry in (ROOT / "prefixguard").iterdir():
        if entry.name != "__pycache__":
            (package / entry.name).symlink_to(entry)
    (package / "__init__.py").unlink()
    (package / "guard.py").write_text("class PrefixGuard: pass\n")
    (package / "__init__.py").write_text('from .guard import PrefixGuard\n\n__version__ = "0.2.1"\n')
    return tmp_path / "site"


def refused(said: str) -> bool:
    return "this is not the prefixguard of prefixguard-monitor" in said and (
        f"install this one again: pip uninstall -y prefixguard prefixguard-monitor; {install_command()}" in said
    )


@pytest.mark.parametrize("state", ["installed over ours", "uninstalled from under ours"])
def test_the_command_says_which_package_it_met(overlaid: Path, tmp_path: Path, state: str) -> None:
    if state.startswith("uninstalled"):
        (overlaid / "prefixguard" / "__init__.py").unlink()
    packages = Path(sysconfig.get_path("purelib"))
    for program in (["-m", "prefixguard", "adapters"], ["-c", "from prefixguard.__main__ import main; main()"]):
        # -S: without the clone that these tests are installed from
        done = run(["-S", *program], tmp_path, overlaid, packages)
        assert done.returncode == 2 and done.stdout == ""
        assert done.stderr.startswith("Error: ") and done.stderr.count("\n") == 1 and refused(done.stderr)
        assert str(overlaid / "prefixguard") in done.stderr or state.startswith("uninstalled")


def test_no_room_runs_inside_the_other_package(overlaid: Path, tmp_path: Path) -> None:
    program = (
        "import importlib, sys\n"
        "for room in sys.argv[1:]:\n"
        "    try: importlib.import_module(f'prefixguard.{room}')\n"
        "    except ImportError as exc: print(room, exc)\n"
    )
    rooms = sorted({path.stem for path in (ROOT / "prefixguard").glob("[a-z]*") if path.suffix in ("", ".py")})
    done = run(["-c", program, *rooms], tmp_path, overlaid)
    assert [line.split()[0] for line in done.stdout.splitlines() if refused(line)] == rooms, done.stderr


# Where the shipped adapters are found.


def hostile(folder: Path) -> Path:
    """A folder that a person may well work in: it has a `stepview_adapters` of its own, and that is broken."""
    own = folder / "work" / "stepview_adapters"
    own.mkdir(parents=True)
    (own / "__init__.py").write_text("raise SystemExit('shadowed')\n")
    (own / "tau2.json").write_text("{not an adapter")
    return folder / "work"


def test_a_folder_called_stepview_adapters_shadows_nothing(tmp_path: Path) -> None:
    work = hostile(tmp_path)
    done = run(["-m", "prefixguard", "info", "tau2"], work, work, ROOT)
    assert done.returncode == 0 and "Runs of tau2-bench" in done.stderr, done.stderr


# The wheel.


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sdist as `pip install` from an index would."""
    pytest.importorskip("hatchling", reason="hatchling builds the wheel: pip install hatchling")
    folder = tmp_path_factory.mktemp("dist")

    def build(target: str, source: Path) -> Path:
        program = f"from hatchling.build import build_{target} as b; print(b({str(folder)!r}))"
        done = run(["-c", program], source)
        assert done.returncode == 0, done.stderr
        return folder / done.stdout.splitlines()[-1]

    with tarfile.open(build("sdist", ROOT)) as archive:
        archive.extractall(folder, filter="data")
    (source,) = (path for path in folder.iterdir() if path.is_dir())
    return build("wheel", source)


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith(".dist-info/METADATA"))).decode()
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"prefixguard", f"prefixguard_monitor-{prefixguard.__version__}.dist-info"}
    shipped = {f"prefixguard/stepview_adapters/{name}.json" for name in prefixguard.list_adapters()}
    ours = {path.relative_to(ROOT).as_posix() for path in (ROOT / "prefixguard").rglob("*") if path.is_file()}
    ours = {name for name in ours if "__pycache__" not in name}
    assert {name for name in names if name.startswith("prefixguard/")} == ours | shipped, "no golden samples, no tests"
    assert f"Name: {DISTRIBUTION}\n" in metadata
    assert wheel.stat().st_size < 2_000_000, "1.3 MB when this was written"


@pytest.mark.slow
def test_the_wheel_works_alone_in_any_folder(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    work = hostile(tmp_path)
    program = (
        "import json, prefixguard, sys; from prefixguard.distribution import install_command as how\n"
        "adapters = [prefixguard.load_adapter(name) for name in prefixguard.list_adapters()]\n"
        "print(json.dumps([prefixguard.__file__, how('train'), [a.sha256 for a in adapters]]))\n"
    )
    done = run(["-c", program], work, work, tmp_path / "site")
    hashes = [prefixguard.load_adapter(name).sha256 for name in prefixguard.list_adapters()]
    assert str(tmp_path / "site") in done.stdout and all(one in done.stdout for one in hashes), done.stderr
    assert 'pip install \\"prefixguard-monitor[train]\\"' in done.stdout
    done = run(["-m", "prefixguard", "--version"], work, work, tmp_path / "site")
    assert done.stdout == f"prefixguard {prefixguard.__version__}\n", done.stderr
