"""Where `proofstone check` is started, and in what state the repository is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.needs import needs
from tests.workshop import Workshop, assert_failed, assert_passed, assert_refused

HELLO = {"hello.txt": "hello\n", "deep/er/file.txt": "x\n"}
GREP = ("--verify", "grep -q hello hello.txt")


def changed(workshop: Workshop, name: str = "project") -> Path:
    root = workshop.repo(HELLO, name)
    workshop.write(root, {"hello.txt": "hello again\n"})
    return root


def no_state(workshop: Workshop) -> bool:
    return not workshop.proofstone_home.exists() or not (workshop.proofstone_home / "ledger").exists()


def test_outside_a_repository_it_says_so(workshop: Workshop) -> None:
    place = workshop.folder / "nowhere"
    place.mkdir()
    assert_refused(workshop.check(place), "not inside a git repository", "git init")
    assert no_state(workshop)


def test_a_repository_without_a_commit_is_told_to_make_one(workshop: Workshop) -> None:
    root = workshop.folder / "empty"
    root.mkdir()
    workshop.git(root, "init", "--quiet")
    assert_refused(workshop.check(root, *GREP), "no commit yet", "git commit")
    workshop.write(root, HELLO)
    workshop.git(root, "add", "--all")
    assert_refused(workshop.check(root, "--staged", *GREP), "no commit yet", "git commit")


def test_a_bare_repository_has_nothing_to_check(workshop: Workshop) -> None:
    changed(workshop)
    workshop.git(workshop.folder, "clone", "--quiet", "--bare", "project", "bare.git")
    assert_refused(workshop.check(workshop.folder / "bare.git"), "no work tree", "clone")
    assert_refused(workshop.check(workshop.folder / "project" / ".git"), "no work tree")


@pytest.mark.parametrize("name", ["missing", "file.txt", "missing/deep", ""])
def test_repo_must_name_a_directory(workshop: Workshop, name: str) -> None:
    workshop.write(workshop.folder, {"file.txt": "x"})
    run = workshop.check(workshop.folder, "--repo", name)
    assert_refused(run, "not inside a git repository" if name == "" else "there is no such directory")


@pytest.mark.ci
def test_repo_names_a_repository_from_anywhere(workshop: Workshop) -> None:
    root = changed(workshop)
    assert_passed(workshop.check(workshop.folder, "--repo", str(root), *GREP))


@pytest.mark.ci
def test_a_subdirectory_means_the_whole_repository(workshop: Workshop) -> None:
    root = changed(workshop)
    run = workshop.check(root / "deep" / "er", *GREP)
    assert_passed(run)
    assert run.report.changed == ("hello.txt",)


@pytest.mark.ci
def test_a_detached_head_is_a_base_like_any_other(workshop: Workshop) -> None:
    root = changed(workshop)
    workshop.git(root, "checkout", "--quiet", "--detach")
    assert_passed(workshop.check(root, *GREP))


def test_a_linked_worktree_is_checked_by_itself(workshop: Workshop) -> None:
    root = changed(workshop)
    workshop.git(root, "worktree", "add", "--quiet", "-b", "side", "../side")
    side = workshop.folder / "side"
    workshop.write(side, {"hello.txt": "hello from the side\n"})
    assert_passed(workshop.check(side, "--verify", "grep -q side hello.txt"))
    assert_failed(workshop.check(root, "--verify", "grep -q side hello.txt"))


def test_a_merge_with_conflicts_is_not_passed(workshop: Workshop) -> None:
    root = workshop.repo(HELLO)
    workshop.git(root, "checkout", "--quiet", "-b", "other")
    workshop.write(root, {"hello.txt": "hello from other\n"})
    workshop.commit(root)
    workshop.git(root, "checkout", "--quiet", "main")
    workshop.write(root, {"hello.txt": "hello from main\n"})
    workshop.commit(root)
    assert workshop.run(root, "git", "merge", "other").returncode == 1
    run = workshop.check(root, *GREP)
    assert_failed(run, "conflict-markers")
    staged = workshop.check(root, "--staged", *GREP)
    assert_refused(staged, "conflict")


def test_a_submodule_is_filled_and_its_commit_is_the_change(workshop: Workshop) -> None:
    library = workshop.repo({"lib.txt": "one\n"}, "library")
    root = workshop.repo(HELLO)
    workshop.git(root, "submodule", "--quiet", "add", str(library), "lib")
    workshop.commit(root)
    workshop.write(root / "lib", {"lib.txt": "two\n"})
    workshop.commit(root / "lib")
    run = workshop.check(root, "--verify", "grep -q two lib/lib.txt")
    assert_passed(run)
    assert run.report.changed == ("lib",)
    assert_failed(workshop.check(root, "--verify", "grep -q one lib/lib.txt"))


def test_a_repository_on_a_path_with_odd_characters(workshop: Workshop) -> None:
    root = changed(workshop, "a project: with 'odd' \"names\", äöü")
    assert_passed(workshop.check(root, *GREP))


def test_a_repository_on_a_path_that_is_no_text(workshop: Workshop) -> None:
    root = changed(workshop, os.fsdecode(b"caf\xe9"))
    assert_passed(workshop.check(root, *GREP))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository away")
def test_a_repository_of_another_user_is_refused_with_the_remedy(workshop: Workshop) -> None:
    root = changed(workshop)
    for path in (root, *root.rglob("*")):
        os.chown(path, 12345, 12345)
    assert_refused(workshop.check(root, *GREP), "safe.directory")
    workshop.git(workshop.folder, "config", "--global", "--add", "safe.directory", str(root))
    assert_passed(workshop.check(root, *GREP))


@needs("setpriv")
@pytest.mark.skipif(os.geteuid() != 0, reason="as another user the permissions hold anyway, and rmtree could not clean")
def test_a_read_only_repository_is_checked_and_only_the_anchor_is_missing(workshop: Workshop) -> None:
    root = changed(workshop)
    places = [root, *(path for path in root.rglob("*") if path.is_dir())]
    for place in places:
        place.chmod(0o555)
    try:
        run = workshop.check(root, *GREP, wrap=ORDINARY)
    finally:
        for place in places:
            place.chmod(0o755)
    assert_passed(run)
    assert any("could not be anchored" in note for note in run.report.notes)


ORDINARY = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
"""Permissions hold for whoever is started so, also for root."""


@needs("setpriv")
@pytest.mark.skipif(os.geteuid() != 0, reason="dropping capabilities is root's")
def test_an_unreadable_file_is_named_with_what_to_do(workshop: Workshop) -> None:
    root = changed(workshop)
    workshop.write(root, {"secret.txt": "x\n"})
    (root / "secret.txt").chmod(0)
    run = workshop.check(root, *GREP, wrap=ORDINARY)
    assert_refused(run, "secret.txt", "readable")
    workshop.write(root, {".gitignore": "secret.txt\n"})
    assert_passed(workshop.check(root, *GREP, wrap=ORDINARY))


def test_a_corrupt_repository_is_refused(workshop: Workshop) -> None:
    root = changed(workshop)
    shutil.rmtree(root / ".git" / "objects")
    (root / ".git" / "objects").mkdir()
    run = workshop.check(root, *GREP)
    assert run.exit == 2, run.stderr
    assert "Traceback" not in run.stderr


def test_two_checks_at_once_in_one_repository_both_finish(workshop: Workshop) -> None:
    root = changed(workshop)
    both = [workshop.start(root, "check", "--json", "--no-cache", *GREP) for _ in range(2)]
    ends = [(*run.communicate(), run.returncode) for run in both]
    assert [code for _, _, code in ends] == [0, 0], ends
    verified = workshop.proofstone(root, "ledger", "verify")
    assert verified.returncode == 0, verified.stdout
    assert workshop.leftovers == []


@pytest.mark.ci
def test_four_checks_at_once_share_two_slots_and_all_finish(workshop: Workshop) -> None:
    roots = []
    for number in range(4):
        root = workshop.repo({**HELLO, "proofstone.toml": "[limits]\nslots = 2\n"}, f"project-{number}")
        workshop.write(root, {"hello.txt": f"hello {number}\n"})
        roots.append(root)
    running = [workshop.start(root, "check", "--json", "--verify", f"sleep 0.2; {GREP[1]}") for root in roots]
    ends = [(*run.communicate(), run.returncode) for run in running]
    assert [code for _, _, code in ends] == [0, 0, 0, 0], ends
    assert workshop.leftovers == []
