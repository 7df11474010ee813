"""File names that only git and the kernel find ordinary."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.workshop import Workshop, assert_failed, assert_passed

NAMES = {
    "spaces": b"two words.py",
    "newline": b"two\nlines.py",
    "quotes": b'it\'s "quoted".py',
    "tab": b"a\ttab.py",
    "leading dash": b"-rf.py",
    "glob": b"[a-z]*.py",
    "backslash": b"back\\slash.py",
    "colon": b":(top)magic.py",
    "unicode": "päth-日本.py".encode(),
    "not utf-8": b"caf\xe9.py",
    "escape": b"\x1b[31mred.py",
    "dollar": b"$(touch pwned).py",
}
# pytest's own cache cannot hold names that are no text.
PYTEST = "[tool.pytest.ini_options]\npython_files = ['*.py']\naddopts = '-p no:cacheprovider'\n"
TEST = "def test_it():\n    assert {value}\n"


def put(root: Path, name: bytes, content: str) -> None:
    with open(os.path.join(os.fsencode(root), name), "w") as file:  # noqa: PTH118, PTH123  bytes
        file.write(content)


_ORDINARY = ("newline", "not utf-8")
SAMPLE = [
    pytest.param(name, id=what, marks=[] if what in _ORDINARY else [pytest.mark.sweep]) for what, name in NAMES.items()
]
"""Where each name costs several runs: the worst of them, and all in the sweep."""


@pytest.mark.few(1, ci=2)
@pytest.mark.parametrize("name", SAMPLE)
def test_a_changed_file_of_any_name_is_frozen_whole(workshop: Workshop, name: bytes) -> None:
    root = workshop.repo({"a.txt": "a\n"})
    put(root, name, "value = 1\n")
    run = workshop.check(root, "--verify", "cat ./*.py | grep -q 'value = 1'")
    assert_passed(run)
    assert len(run.report.changed) == 1
    workshop.commit(root)
    os.unlink(os.path.join(os.fsencode(root), name))  # noqa: PTH108, PTH118  bytes
    gone = workshop.check(root, "--verify", 'test -z "$(ls | grep py)"')
    assert_passed(gone)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", SAMPLE)
def test_a_linter_is_told_the_right_file_whatever_its_name(workshop: Workshop, name: bytes) -> None:
    root = workshop.repo({"pyproject.toml": "[tool.ruff.lint]\nselect = ['F']\n", "a.txt": "a\n"})
    put(root, name, "import os\n")
    run = workshop.check(root, "--verify", "test -d .")
    assert_failed(run, "ruff F401")
    put(root, name, "value = 1\n")
    assert_passed(workshop.check(root, "--verify", "test -d ."))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", SAMPLE)
def test_a_test_file_of_any_name_can_fail_and_pass(workshop: Workshop, name: bytes) -> None:
    root = workshop.repo({"pyproject.toml": PYTEST})
    put(root, name, TEST.format(value=True))
    workshop.commit(root)
    workshop.write(root, {"note.txt": "x\n"})
    good = workshop.check(root)
    assert_passed(good)
    put(root, name, TEST.format(value=False))
    bad = workshop.check(root)
    assert_failed(bad, "regression")
    assert len(bad.report.regressions) == 1


def test_the_person_sees_names_without_their_power_over_the_terminal(workshop: Workshop) -> None:
    root = workshop.repo({"a.txt": "a\n"})
    put(root, NAMES["escape"], "def (\n")
    run = workshop.proofstone(root, "check", "--verify", "test -d .")
    assert run.returncode == 1
    assert "\x1b" not in run.stdout + run.stderr


def test_a_symlink_loop_is_taken_as_it_is(workshop: Workshop) -> None:
    root = workshop.repo({"a.txt": "a\n"})
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")
    (root / "self").mkdir()
    (root / "self" / "again").symlink_to("../self")
    run = workshop.check(root, "--verify", "test -L one && test -L two && test -L self/again")
    assert_passed(run)
    assert run.report.changed == ("one", "self/again", "two")


def test_a_fifo_and_a_socket_are_no_part_of_the_tree(workshop: Workshop) -> None:
    root = workshop.repo({"a.txt": "a\n"})
    workshop.write(root, {"a.txt": "b\n"})
    os.mkfifo(root / "pipe")
    before = Path.cwd()
    os.chdir(root)
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("door")
            run = workshop.check(root, "--verify", "test ! -e pipe && test ! -e door")
    finally:
        os.chdir(before)
    assert_passed(run)
    assert run.report.changed == ("a.txt",)


def test_a_fifo_in_place_of_a_tracked_file_counts_as_its_deletion(workshop: Workshop) -> None:
    root = workshop.repo({"a.txt": "a\n", "b.txt": "b\n"})
    (root / "b.txt").unlink()
    os.mkfifo(root / "b.txt")
    run = workshop.check(root, "--verify", "test ! -e b.txt")
    assert run.exit in (0, 2), run.stderr
    if run.exit == 2:
        assert "b.txt" in run.stderr
