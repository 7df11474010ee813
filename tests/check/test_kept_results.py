"""A kept result is used only while everything that decided it is as it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.workshop import Workshop, assert_failed, assert_passed

FILES = {"a.py": "x = 1\n"}


@pytest.fixture
def root(workshop: Workshop) -> Path:
    root = workshop.repo(FILES)
    workshop.write(root, {"a.py": "x = 2\n"})
    return root


def program(path: Path, code: int) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\nexit {code}\n")
    path.chmod(0o755)


def test_a_program_on_path_that_changes_is_run_again(workshop: Workshop, root: Path) -> None:
    tool = workshop.folder / "bin" / "judge"
    program(tool, 0)
    path = {"PATH": f"{tool.parent}{os.pathsep}{workshop.environment['PATH']}"}
    assert_passed(workshop.check(root, "--verify", "judge a.py", env=path))
    assert workshop.check(root, "--verify", "judge a.py", env=path).check("verify").reused
    program(tool, 1)
    assert_failed(workshop.check(root, "--verify", "judge a.py", env=path))


@pytest.mark.ci
def test_a_submodule_that_is_filled_later_is_another_tree_to_check(workshop: Workshop, root: Path) -> None:
    library = workshop.repo({"v": "1\n"}, "library")
    workshop.git(root, "stash", "--quiet")
    workshop.git(root, "submodule", "--quiet", "add", str(library), "lib")
    workshop.commit(root)
    workshop.git(root, "submodule", "--quiet", "deinit", "--force", "lib")
    workshop.write(root, {"a.py": "x = 3\n"})
    assert_passed(workshop.check(root, "--verify", "test ! -e lib/v"))
    workshop.git(root, "submodule", "--quiet", "update", "--init")
    assert_failed(workshop.check(root, "--verify", "test ! -e lib/v"))


@pytest.mark.ci
def test_a_sparse_checkout_that_is_widened_hides_nothing(workshop: Workshop) -> None:
    root = workshop.repo({"a/m.py": "x = 1\n", "b/n.py": "y = 1\n"})
    workshop.git(root, "sparse-checkout", "set", "a")
    workshop.check(root)
    workshop.git(root, "sparse-checkout", "disable")
    workshop.write(root, {"b/n.py": "y = = 1\n"})
    run = workshop.check(root)
    assert run.json["changed"] == ["b/n.py"]
    assert run.check("syntax").verdict == "fail"


def test_a_failure_by_the_order_of_tests_stays_the_bases_own(workshop: Workshop) -> None:
    order = "seen = []\n\n\ndef test_a():\n    seen.append(1)\n\n\ndef test_b():\n    assert not seen\n"
    root = workshop.repo({"conftest.py": "", "m.py": "x = 1\n", "test_order.py": order})
    workshop.write(root, {"m.py": "x = 2\n"})
    for _ in range(2):
        run = workshop.check(root)
        assert_passed(run)
        assert run.report.standing == ("test_order.py::test_b",)


@pytest.mark.few(1, ci=2)
@pytest.mark.parametrize("extra", ["link", "submodule"])
def test_documentation_with_something_else_beside_it_is_not_only_documentation(workshop: Workshop, extra: str) -> None:
    root = workshop.repo({"README.md": "a\n", "code.py": "x = 1\n"})
    if extra == "link":
        (root / "link.py").symlink_to("code.py")
    else:
        workshop.git(root, "submodule", "--quiet", "add", str(workshop.repo({"v": "1\n"}, "library")), "lib")
    workshop.write(root, {"README.md": "b\n"})
    assert workshop.check(root).json["outcome"] == "unverifiable"


def test_a_large_file_of_many_changed_lines_is_looked_at_in_no_time(workshop: Workshop) -> None:
    before = "".join(f"row {number},same\n" for number in range(60_000))
    after = "".join(f"row {number},{'same' if number % 2 else 'new'}\n" for number in range(60_000))
    root = workshop.repo({"data.csv": before})
    workshop.write(root, {"data.csv": after})
    assert workshop.check(root, "--verify", "test -s data.csv").json["outcome"] == "passed"


@pytest.mark.few(1)
@pytest.mark.parametrize("home", ["/", "/nonexistent", "/tmp"])
def test_without_a_home_of_their_own_checks_get_a_private_one(workshop: Workshop, root: Path, home: str) -> None:
    command = 'touch "$HOME/written" && test -z "$(ls /run | grep -v proofstone)"'
    run = workshop.check(root, "--verify", command, env={"HOME": home})
    assert_passed(run)
    assert not Path(home, "written").exists()
