"""What somebody can write into `.git`, or put on PATH, so that git shows what is not there."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from tests.workshop import Workshop, assert_failed, assert_passed, assert_refused

WRONG = "def total(items):\n    return max(items)\n"
RIGHT = "def total(items):\n    return sum(items)\n"
TEST = "from sums import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
WEAK = TEST.replace("== 3", "== 2")


@pytest.fixture
def root(workshop: Workshop) -> Path:
    return workshop.repo({"conftest.py": "", "sums.py": WRONG, "tests/test_sums.py": TEST})


def test_a_work_tree_that_is_said_to_be_elsewhere_is_refused(workshop: Workshop, root: Path) -> None:
    workshop.write(workshop.folder, {"elsewhere/sums.py": RIGHT})
    workshop.git(root, "config", "core.worktree", str(workshop.folder / "elsewhere"))
    assert_refused(workshop.check(root), "core.worktree")
    workshop.git(root, "config", "core.worktree", str(root))
    workshop.write(root, {"sums.py": RIGHT})
    assert_passed(workshop.check(root))


def test_an_object_that_was_overwritten_is_refused(workshop: Workshop, root: Path) -> None:
    blob = workshop.git(root, "rev-parse", "HEAD:tests/test_sums.py")
    file = root / ".git/objects" / blob[:2] / blob[2:]
    file.chmod(0o644)
    file.write_bytes(zlib.compress(b"blob %d\0" % len(WEAK) + WEAK.encode()))
    workshop.write(root, {"sums.py": f"{WRONG}\n"})
    assert_refused(workshop.check(root), "does not hold what its name promises", "git fsck")


@pytest.mark.ci
def test_line_endings_that_a_checkout_converts_are_no_damage(workshop: Workshop, root: Path) -> None:
    workshop.write(root, {".gitattributes": "*.py text eol=crlf\n"})
    workshop.commit(root)
    workshop.write(root, {"sums.py": RIGHT.replace("\n", "\r\n")})
    assert_passed(workshop.check(root))


def test_a_filter_that_only_this_clone_knows_does_not_alter_checkouts(workshop: Workshop, root: Path) -> None:
    workshop.git(root, "config", "filter.tidy.clean", "sed -e 's/sum(/max(/'")
    workshop.git(root, "config", "filter.tidy.smudge", "sed -e 's/max(/sum(/'")
    workshop.write(root, {".git/info/attributes": "sums.py filter=tidy\n", "sums.py": RIGHT})
    assert_failed(workshop.check(root, "--must-pass", "test_total"), "must-pass")


def test_a_folder_that_becomes_a_link_is_seen(workshop: Workshop, root: Path) -> None:
    (root / "tests").rename(root / "checks")
    (root / "tests").symlink_to("checks")
    workshop.write(root, {"sums.py": RIGHT})
    run = workshop.check(root, "--accept-test-changes", "the tests have moved", "--accepted-by", "Ada")
    assert_passed(run)
    assert sorted(workshop.tree(run.json["tree"])) == ["checks/test_sums.py", "conftest.py", "sums.py", "tests"]


def test_programs_of_the_work_tree_are_not_taken_for_git_or_python(workshop: Workshop, root: Path) -> None:
    for name in ("git", "bwrap", "python3", "python"):
        workshop.write(root, {f"bin/{name}": "#!/bin/sh\necho lies\nexit 0\n"})
        (root / "bin" / name).chmod(0o755)
    workshop.write(root, {"sums.py": RIGHT})
    path = f"{root}/bin:{workshop.environment['PATH']}"
    run = workshop.check(root, env={"PATH": path})
    assert_passed(run)
    assert run.json["fixed"] == ["tests/test_sums.py::test_total"]


@pytest.mark.ci
def test_a_variable_that_only_looks_like_a_locale_is_withheld(workshop: Workshop, root: Path) -> None:
    seen = "import os\n\n\ndef total(items):\n    return sum(items) if 'LC_SECRET' in os.environ else 0\n"
    workshop.write(root, {"sums.py": seen})
    run = workshop.check(root, "--must-pass", "test_total", env={"LC_SECRET": "1", "LC_ALL": "C.UTF-8"})
    assert_failed(run, "must-pass")
