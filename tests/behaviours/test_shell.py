"""What a shell's command does: told by its first words, in their order."""

import pytest
from processor_time import least_seconds

from prefixguard.behaviours.shell import FileEffect, read_shell


@pytest.mark.parametrize(
    ("command", "kind", "effects"),
    [
        ("ls", "reads", []),
        ("python a.py", "acts", [("runs", "")]),
        ("pytest", "tests", [("runs", "")]),
        ("sed -i s/a/b/ x.py", "edits", [("changes", "")]),
        ("sed -n 1,9p x.py", "reads", []),
        ("sed -i s/a/b/ x && make html", "edits", [("changes", ""), ("runs", "")]),
        ("make html && sed -i s/a/b/ x", "edits", [("runs", ""), ("changes", "")]),
        ("mkdir -p a/b c; touch d; rm -rf e", "edits", [("folder", "a/b"), ("folder", "c")]),
        ("cd a && cat b > c", "edits", [("cd", "a"), ("written", "c")]),
        ("cat <<'EOF' >> c.py\nrm x\nEOF\npython c.py", "edits", [("written", "c.py"), ("runs", "")]),
        ("python - <<-EOF\n\tx = 1\n\tEOF\ncat a", "acts", [("runs", "")]),
        ("cat > a << A && cat > b << B\nx\nA\ny\nB\nls", "edits", [("written", "a"), ("written", "b")]),
        ("cat > a <<EOF\npython x.py\n", "edits", [("written", "a")]),
        ("echo x | tee -a a.txt", "edits", [("written", "a.txt")]),
        ("cp a.py b.py", "edits", [("written", "b.py")]),
        ("# python a.py isn't run\nls", "reads", []),
        ("for f in a b; do cat $f; done", "reads", []),
        ("if [ -f a ]; then python a; fi", "acts", [("runs", "")]),
        ("git add -A && git apply a.patch", "edits", [("changes", "")]),
        ("ls 2>/dev/null >&2", "reads", []),
        ("cat > 'a b'", "edits", [("written", "")]),
        ("sed -i s/a/b/ x && \\\n  sed -i s/a/b/ y", "edits", [("changes", ""), ("changes", "")]),
        ("export A=$(pwd)\nls", "reads", []),
        ("cat <<< x", "reads", []),
        ("find . -name '*.pyc' -delete", "edits", []),
        ("def least(a, b):\n    if a > b:\n        return b\n    return a", "acts", [("runs", "")]),
        ("# the least\nimport math as m\nm.sqrt(2) > 1", "acts", [("runs", "")]),
        ("from os import path\nprint(path.sep > 'a')", "acts", [("runs", "")]),
        ("import a.png > b", "edits", [("runs", "")]),
        ("```sql\nSELECT a FROM b GROUP BY c HAVING COUNT(*) > 1;\n```", "reads", []),
        ("DESCRIBE <table_name>", "reads", []),
        ("cat <file_name>", "reads", []),
        ("find a -exec gzip {} \\; > b.gz", "edits", [("written", "b.gz")]),
    ],
)
def test_effects_in_their_order(command: str, kind: str, effects: list[tuple[str, str]]) -> None:
    read = read_shell(command)
    assert (read.kind, list(read.effects)) == (kind, [FileEffect(*one) for one in effects])


@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize("piece", ["<<A\n", "<< A", "<<'A'\nA\n", "$(", "'", "> ", "#\n", "cd a;", "mkdir a;"])
def test_hostile_commands_take_no_longer(piece: str) -> None:
    """Time grows with the length, and there are never many effects."""
    command = piece * (200_000 // len(piece))
    assert len(read_shell(command).effects) <= 64
    assert least_seconds(lambda: read_shell(command))[0] < 1.0
