"""What git says of objects is asked once, and what can become something else each time."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from proofstone.git.objects import list_tree
from proofstone.git.program import CACHE_KEY_BYTES, AnswerCache, Git, GitCommandError, is_object_id
from proofstone.git.snapshot import compare_trees
from tests.rows import each_row


class Asked:
    def __init__(self, size: int) -> None:
        self.times = 0
        self._size = size

    def __call__(self) -> bytes:
        self.times += 1
        return b"x" * self._size


def test_the_oldest_answers_make_room() -> None:
    kept = AnswerCache(most=2 * CACHE_KEY_BYTES + 10)
    first, second, third = Asked(4), Asked(4), Asked(4)
    for name, ask in (("a", first), ("b", second), ("a", first), ("c", third), ("a", first), ("b", second)):
        assert kept.lookup(name, ask) == b"xxxx"
    assert (first.times, second.times, third.times) == (1, 2, 1), "b was the oldest when c came"


def test_an_answer_that_is_too_long_to_be_kept_is_given_all_the_same() -> None:
    kept, long = AnswerCache(most=CACHE_KEY_BYTES + 10), Asked(11)
    assert len(kept.lookup("a", long)) == len(kept.lookup("a", long)) == 11
    assert long.times == 2
    assert kept.lookup("b", Asked(10)) == kept.lookup("b", Asked(3)), "nothing is counted that is not kept"


def test_a_question_that_fails_is_asked_again() -> None:
    def fails() -> bytes:
        raise GitCommandError(["rev-parse"], 128, "bad object")

    kept = AnswerCache()
    with pytest.raises(GitCommandError):
        kept.lookup("a", fails)
    assert kept.lookup("a", Asked(1)) == b"x"


@each_row(
    ("word", "fixed"),
    [
        ("a" * 40, True),
        ("0" * 64, True),
        ("a" * 40 + "^{tree}", True),
        ("a" * 39, False),
        ("a" * 40 + "^", False),
        ("HEAD", False),
        ("main^{tree}", False),
        ("A" * 40, False),
        ("a" * 40 + "\n", False),
    ],
)
def test_only_whole_ids_name_something_for_good(word: str, fixed: bool) -> None:
    assert is_object_id(word) is fixed


def test_a_branch_that_moves_is_followed_and_an_id_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = Git(tmp_path, variables={"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b", "GIT_AUTHOR_NAME": "a"})
    git.run("init", "-q", "-b", "main")
    (tmp_path / "a").write_text("1")
    git.run("add", "a")
    one = git.run_line("write-tree")
    (tmp_path / "b").write_text("2")
    git.run("add", "b")
    two = git.run_line("write-tree")
    commits = [
        git.run_line("-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", "-m", "c", tree) for tree in (one, two)
    ]
    for commit, tree in zip(commits, (one, two), strict=True):
        git.run("update-ref", "refs/heads/main", commit)
        assert git.find_tree("main") == git.find_tree(commit) == tree
    assert [held.path for held in list_tree(git, two)] == [b"a", b"b"]
    assert [entry.path for entry in compare_trees(git, one, two)] == [b"b"]

    def never(*_: object, **__: object) -> subprocess.CompletedProcess[bytes]:
        raise AssertionError("git was asked again")

    monkeypatch.setattr(subprocess, "run", never)
    assert git.find_tree(commits[0]) == one
    assert [held.path for held in list_tree(git, two)] == [b"a", b"b"]
    assert [entry.path for entry in compare_trees(git, one, two)] == [b"b"]
    with pytest.raises(AssertionError, match="asked again"):
        git.find_tree("main")
