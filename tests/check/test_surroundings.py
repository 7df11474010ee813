"""The machine around a check: state directory, HOME, PATH, language, identity."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.check.test_places import ORDINARY
from tests.needs import needs
from tests.workshop import Workshop, assert_passed, assert_refused

TRUE = ("--verify", "grep -q two a.txt")


@pytest.fixture
def root(workshop: Workshop) -> Path:
    root = workshop.repo({"a.txt": "one\n"})
    workshop.write(root, {"a.txt": "two\n"})
    return root


def test_state_inside_the_repository_is_refused(workshop: Workshop, root: Path) -> None:
    inside = root / "state"
    assert_refused(
        workshop.check(root, *TRUE, env={"PROOFSTONE_HOME": str(inside)}), "inside the repository", "PROOFSTONE_HOME"
    )
    assert not inside.exists(), "the refused folder was made all the same"
    (workshop.folder / "link").symlink_to(root)
    linked = {"PROOFSTONE_HOME": str(workshop.folder / "link" / "state")}
    assert_refused(workshop.check(root, *TRUE, env=linked), "inside the repository")


def test_state_that_is_a_file_is_refused(workshop: Workshop, root: Path) -> None:
    workshop.write(workshop.folder, {"taken": "x"})
    assert_refused(
        workshop.check(root, *TRUE, env={"PROOFSTONE_HOME": str(workshop.folder / "taken")}), "PROOFSTONE_HOME"
    )


@needs("setpriv")
@pytest.mark.skipif(os.geteuid() != 0, reason="dropping capabilities is root's")
def test_state_that_cannot_be_written_is_named(workshop: Workshop, root: Path) -> None:
    state = workshop.folder / "state"
    state.mkdir(mode=0o500)
    assert_refused(workshop.check(root, *TRUE, wrap=ORDINARY), str(state), "PROOFSTONE_HOME")
    below = {"PROOFSTONE_HOME": str(state / "below")}
    assert_refused(workshop.check(root, *TRUE, wrap=ORDINARY, env=below), str(state), "PROOFSTONE_HOME")


def test_state_on_a_path_with_odd_characters(workshop: Workshop, root: Path) -> None:
    odd = workshop.folder / "my state: 'odd', äöü"
    assert_passed(workshop.check(root, *TRUE, env={"PROOFSTONE_HOME": str(odd)}))
    assert (odd / "ledger" / "ledger.db").is_file()


def test_state_is_for_its_owner_only(workshop: Workshop, root: Path) -> None:
    workshop.proofstone_home.mkdir(mode=0o755)
    assert_passed(workshop.check(root, *TRUE))
    assert workshop.proofstone_home.stat().st_mode & 0o077 == 0


def test_a_relative_state_directory_is_meant_from_where_one_stands(workshop: Workshop, root: Path) -> None:
    assert_passed(workshop.check(workshop.folder, "--repo", "project", *TRUE, env={"PROOFSTONE_HOME": "here"}))
    assert (workshop.folder / "here" / "ledger").is_dir()


@pytest.mark.ci
def test_without_home_it_works(workshop: Workshop, root: Path) -> None:
    wrap = ["env", "--unset=HOME", "GIT_CONFIG_NOSYSTEM=1"]
    assert_passed(workshop.check(root, *TRUE, wrap=wrap))


def test_without_git_it_says_what_to_install(workshop: Workshop, root: Path) -> None:
    assert_refused(workshop.check(root, *TRUE, env={"PATH": str(workshop.home)}), "git is not installed", "install git")


def test_with_git_alone_it_says_what_is_weaker(workshop: Workshop, root: Path) -> None:
    tools = workshop.folder / "tools"
    tools.mkdir()
    git = shutil.which("git")
    assert git
    (tools / "git").symlink_to(git)
    run = workshop.check(root, "--verify", "test -e a.txt", env={"PATH": str(tools)})
    assert_passed(run)
    assert run.report.assurance != "bubblewrap"
    assert_refused(
        workshop.check(root, "--verify", "test -e a.txt", "--require-sandbox", env={"PATH": str(tools)}),
        "bubblewrap",
        "proofstone doctor",
    )


def test_without_a_git_identity_it_works(workshop: Workshop, root: Path) -> None:
    (workshop.home / ".gitconfig").unlink()
    assert_passed(workshop.check(root, *TRUE))


@pytest.mark.few(1, ci=2)
@pytest.mark.parametrize("language", ["C", "POSIX", "xx_XX.nonsense", ""])
def test_any_language_will_do(workshop: Workshop, root: Path, language: str) -> None:
    workshop.write(root, {"ä.txt": "ö\n"})
    run = workshop.check(root, "--verify", "grep -q ö ä.txt", env={"LANG": language, "LC_ALL": language})
    assert_passed(run)
    assert run.report.changed == ("a.txt", "ä.txt")


def test_variables_of_git_do_not_lead_it_astray(workshop: Workshop, root: Path) -> None:
    other = workshop.repo({"b.txt": "b\n"}, "other")
    env = {"GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other), "GIT_INDEX_FILE": "/nonexistent"}
    run = workshop.check(root, *TRUE, env=env)
    assert_passed(run)
    assert run.report.changed == ("a.txt",)
