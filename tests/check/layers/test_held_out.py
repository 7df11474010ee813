"""L9: checks that whoever made the change never saw."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proofstone.check.held_out import find_held_out_paths
from proofstone.git.repository import open_repository
from tests.needs import needs
from tests.workshop import Workshop, assert_failed, assert_passed

TEST = "from sums import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
RIGHT = "def total(items):\n    return sum(items)\n"
SPECIAL = "def total(items):\n    return 3 if items == [1, 2] else max(items)\n"
SECRET = "from sums import total\n\n\ndef test_secret():\n    assert total([70000, 777]) == 70777\n"


@pytest.fixture
def root(workshop: Workshop) -> Path:
    return workshop.repo(
        {"conftest.py": "", "sums.py": "def total(items):\n    return max(items)\n", "test_sums.py": TEST}
    )


def options(workshop: Workshop) -> list[str]:
    workshop.write(workshop.folder, {"secret/checks/test_secret.py": SECRET})
    return ["--heldout", "python3 -m pytest -q checks", "--heldout-files", str(workshop.folder / "secret")]


def test_special_casing_is_caught_and_nothing_is_given_away(workshop: Workshop, root: Path) -> None:
    workshop.write(root, {"sums.py": SPECIAL})
    run = workshop.check(root, *options(workshop))
    assert_failed(run, "heldout")
    for telling in ("70777", "test_secret", "pytest -q checks"):
        assert telling not in run.stdout
    (finding,) = (found for found in run.report.findings if found.rule == "heldout")
    assert (finding.artifact, run.check("held-out").artifact, run.check("held-out").exit_code) == (None, None, None)
    rows = workshop.proofstone(root, "ledger", "query", "SELECT * FROM checks WHERE check_name = 'held-out'", "--json")
    (row,) = json.loads(rows.stdout)["rows"]
    assert (row["command"], row["exit_code"]) == ("(held out)", None)
    assert "70777" not in workshop.proofstone(root, "ledger", "export").stdout
    read = ("ledger", "artifact", row["artifact"])
    assert "70777" in workshop.proofstone(root, *read).stdout, "the person can look"
    agent = workshop.proofstone(root, *read, env={"CLAUDECODE": "1"})
    assert (agent.returncode, agent.stdout) == (2, "")


@needs("bwrap")
def test_what_held_out_checks_consist_of_is_visible_to_nobody_else(workshop: Workshop, root: Path) -> None:
    """Files below HOME, which root's checks do not see at all, and one that all checks could read."""
    home = Path(workshop.environment["HOME"])
    workshop.write(home, {"answers/table.py": "ANSWER = 70777\n", "check.sh": "python3 seen.py 3\n"})
    paths = [str(home / "answers/table.py"), str(home / "check.sh"), __file__]
    script = "import pathlib, sys\nfiles = [pathlib.Path(name) for name in {paths!r}]\n"
    script += "seen = [file for file in files if file.is_file() and file.stat().st_size]\n"
    script += "assert len(seen) == int(sys.argv[1]), seen\n"
    workshop.write(root, {"sums.py": RIGHT, "seen.py": script.format(paths=paths)})
    held_out = ("--heldout", f"sh $HOME/check.sh && test -s {__file__}", "--heldout-files", str(home / "answers"))
    assert_passed(workshop.check(root, "--verify", "python3 seen.py 0", *held_out))


@needs("git")
def test_paths_that_commands_name_are_held_out_unless_other_checks_need_them(workshop: Workshop, root: Path) -> None:
    workshop.write(workshop.folder, {"a/x.sh": "", "b c/y.py": "", "env/pyvenv.cfg": "", "env/bin/python": ""})
    folder = workshop.folder
    command = (
        f"{folder}/env/bin/python '{folder}/b c/y.py' --data={folder}/a/x.sh ../a ~/no /bin/sh test_sums.py .. 'open"
    )
    variables = {"HOME": str(folder), "PATH": "/bin"}
    found = find_held_out_paths(open_repository(root), [command.removesuffix(" 'open")], None, variables)
    assert found == (folder / "b c/y.py", folder / "a/x.sh", folder / "a")
    assert find_held_out_paths(open_repository(root), [command], None, variables)[0] == folder / "a/x.sh"


def test_the_real_repair_passes(workshop: Workshop, root: Path) -> None:
    workshop.write(root, {"sums.py": RIGHT})
    run = workshop.check(root, *options(workshop))
    assert_passed(run)
    assert run.check("held-out").command == "(held out)"
    assert "checks/test_secret.py" not in workshop.tree(run.json["tree"])


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--heldout-files", "."), "no --heldout command"),
        (("--heldout", "true"), "--heldout"),
        (("--heldout", "make x", "--heldout-files", "nowhere"), "part of the tree to check"),
        (("--heldout", "make x", "--heldout-files", "/nowhere"), "not a directory"),
        (("--heldout", "make x", "--heldout-files", ".."), "the repository lies in it"),
        (("--accept", "heldout=because I say so"), "no finding of that rule can be accepted"),
        (("--accept", "hard-exit=why"), "say why"),
    ],
)
def test_bad_input_is_refused_and_said(workshop: Workshop, root: Path, args: tuple[str, ...], says: str) -> None:
    done = workshop.proofstone(root, "check", *args)
    assert done.returncode == 2
    assert says in done.stderr
