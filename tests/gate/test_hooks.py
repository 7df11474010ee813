"""The person's hooks and signing are found by git's own rules, whatever Proofstone's git is told to leave out."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofstone.git.pending_commit import CommitHooks, find_commit_hooks, signs_commits
from tests.gate.place import Place


def put(folder: Path, *names: str, mode: int = 0o755) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(mode)


def test_samples_and_files_that_may_not_run_are_no_hooks(place: Place) -> None:
    folder = place.root / ".git" / "hooks"
    put(folder, "pre-commit.sample", "notes")
    put(folder, "pre-commit", mode=0o644)
    assert find_commit_hooks(place.repository) == CommitHooks((), (), folder)


def test_hooks_that_decide_are_told_from_those_that_only_follow(place: Place) -> None:
    folder = place.root / ".git" / "hooks"
    put(folder, "post-commit", "commit-msg", "pre-commit", "prepare-commit-msg", "reference-transaction", "pre-push")
    found = find_commit_hooks(place.repository)
    assert found.runnable == ("pre-commit", "prepare-commit-msg", "commit-msg")
    assert found.ignored == ("post-commit", "reference-transaction")
    assert found.folder == folder


@pytest.mark.parametrize(
    ("setting", "folder"),
    [(".husky", "{root}/.husky"), ("./.config/../.husky", "{root}/.husky"), ("~/hooks", "{home}/hooks")],
)
def test_a_configured_folder_is_found_as_git_finds_it(place: Place, setting: str, folder: str) -> None:
    place.git("config", "core.hooksPath", setting)
    wanted = Path(folder.format(root=place.root, home=place.workshop.home))
    put(wanted, "pre-commit")
    put(place.root / ".git" / "hooks", "commit-msg")
    assert find_commit_hooks(place.repository) == CommitHooks(("pre-commit",), (), wanted)


def test_a_folder_set_for_all_repositories_counts_and_the_nearer_one_wins(place: Place) -> None:
    put(place.workshop.home / "all", "commit-msg")
    put(place.root / "own", "pre-commit")
    place.git("config", "--global", "core.hooksPath", str(place.workshop.home / "all"))
    assert find_commit_hooks(place.repository).runnable == ("commit-msg",)
    place.git("config", "core.hooksPath", "own")
    assert find_commit_hooks(place.repository).runnable == ("pre-commit",)


def test_a_folder_that_is_not_there_has_no_hooks(place: Place) -> None:
    place.git("config", "core.hooksPath", "nowhere")
    assert find_commit_hooks(place.repository) == CommitHooks((), (), None)


def test_a_linked_worktree_has_the_hooks_of_its_repository(place: Place) -> None:
    put(place.root / ".git" / "hooks", "pre-commit")
    place.git("worktree", "add", "--quiet", "--detach", str(place.workshop.folder / "linked"))
    linked = Place(place.workshop, place.workshop.folder / "linked")
    assert find_commit_hooks(linked.repository) == CommitHooks(("pre-commit",), (), place.root / ".git" / "hooks")


@pytest.mark.parametrize(
    ("value", "wanted"), [(None, False), ("true", True), ("yes", True), ("1", True), ("false", False), ("off", False)]
)
def test_whether_commits_are_signed_is_what_git_makes_of_the_setting(
    place: Place, value: str | None, wanted: bool
) -> None:
    if value is not None:
        place.git("config", "commit.gpgSign", value)
    assert signs_commits(place.repository) is wanted
