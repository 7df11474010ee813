"""A branch that somebody stands on moves with index and files, or not at all; and nothing of theirs is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from proofstone.errors import RepositoryError
from proofstone.git.commit import BranchMovedError, CheckedOutError, publish_commit
from proofstone.git.snapshot import write_index_entries
from tests.gate.place import Place

PUBLISH = """
import sys
from pathlib import Path
from proofstone.git.commit import publish_commit
from proofstone.git.repository import open_repository
from proofstone.git.store import open_store
root, home, branch, commit, expected = sys.argv[1:]
publish_commit(open_store(open_repository(Path(root)), Path(home)), branch, commit, expected=expected or None)
"""


def rich_change(place: Place) -> str:
    """Edited, added, removed, and a file that becomes a folder."""
    git = place.store.git(index=place.store.folder / "index.test")
    tree = place.tree_with({"a.txt": "changed\n", "new/er.txt": "new\n", "tool.sh": "run\n"})
    git.run("read-tree", tree)
    blob = git.run_line("rev-parse", f"{tree}:tool.sh")
    write_index_entries(git, [("0", blob, b"b.txt"), ("100755", blob, b"b.txt/inner")])
    return git.run_line("write-tree")


def standing(place: Place, root: Path | None = None) -> tuple[str, str, dict[str, bytes]]:
    """Index, status and files of a work tree."""
    root = root or place.root
    files = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file() and ".git" not in p.parts}
    git = place.workshop.git
    return git(root, "ls-files", "--stage"), git(root, "status", "--porcelain", "--ignored"), files


def test_index_and_files_come_along(place: Place) -> None:
    commit = place.commit_of(rich_change(place))
    (place.root / "untracked.txt").write_text("mine\n")
    publish_commit(place.store, "main", commit, expected=place.head)
    assert place.head == commit
    assert place.git("status", "--porcelain") == "?? untracked.txt"
    assert (place.root / "b.txt" / "inner").read_text() == "run\n"
    assert (place.root / "b.txt" / "inner").stat().st_mode & 0o100
    assert place.git("reflog", "-1", "--format=%gs", "HEAD") == "proofstone: Change"
    place.workshop.write(place.root, {"a.txt": "next\n"})
    place.git("commit", "--quiet", "--all", "--message", "Next")
    assert place.git("show", "--stat", "--format=", "HEAD").splitlines()[0].split()[0] == "a.txt"


def test_a_linked_worktree_comes_along_and_the_main_one_stays(place: Place) -> None:
    linked = place.workshop.folder / "linked"
    place.git("worktree", "add", "--quiet", "-b", "side", str(linked))
    before = standing(place)
    commit = place.commit_of(rich_change(place))
    publish_commit(place.store, "side", commit, expected=place.head)
    assert place.workshop.git(linked, "status", "--porcelain") == ""
    assert (linked / "a.txt").read_text() == "changed\n"
    assert standing(place) == before


def test_a_linked_worktree_whose_folder_is_gone_is_no_hindrance(place: Place) -> None:
    linked = place.workshop.folder / "linked"
    place.git("worktree", "add", "--quiet", "-b", "side", str(linked))
    place.workshop.run(place.root, "rm", "-r", str(linked))
    commit = place.commit_of(rich_change(place))
    publish_commit(place.store, "side", commit, expected=place.head)
    assert place.git("rev-parse", "side") == commit


def edited(place: Place) -> None:
    (place.root / "a.txt").write_text("my own edit\n")


def edited_elsewhere(place: Place) -> None:
    (place.root / "src" / "run.sh").write_text("my own edit\n")


def edited_with_the_same_size(place: Place) -> None:
    (place.root / "a.txt").write_text("ONE\ntwo\nthree\n")


def removed(place: Place) -> None:
    (place.root / "src" / "run.sh").unlink()


def staged(place: Place) -> None:
    edited(place)
    place.git("add", "a.txt")


def staged_and_then_the_very_change(place: Place) -> None:
    """The file is what the commit has, but what is staged would be lost."""
    staged(place)
    (place.root / "a.txt").write_text("changed\n")


def assumed_unchanged(place: Place) -> None:
    place.git("update-index", "--assume-unchanged", "a.txt")
    edited(place)


def left_out_but_there(place: Place) -> None:
    place.git("update-index", "--skip-worktree", "a.txt")
    edited(place)


def untracked_in_the_way(place: Place) -> None:
    (place.root / "new").mkdir()
    (place.root / "new" / "er.txt").write_text("my own\n")


def ignored_in_the_way(place: Place) -> None:
    (place.root / ".git" / "info" / "exclude").write_text("tool.sh\n")
    (place.root / "tool.sh").write_text("my own\n")


def file_where_a_folder_comes(place: Place) -> None:
    (place.root / "new").write_text("my own\n")


def folder_where_a_file_comes(place: Place) -> None:
    (place.root / ".git" / "info" / "exclude").write_text("*.keep\n")
    (place.root / "tool.sh").mkdir()
    (place.root / "tool.sh" / "x.keep").write_text("my own\n")


def link_where_a_folder_comes(place: Place) -> None:
    (place.workshop.folder / "away").mkdir()
    (place.root / "new").symlink_to(place.workshop.folder / "away")


def locked(place: Place) -> None:
    (place.root / ".git" / "index.lock").write_text("")


HINDRANCES: tuple[tuple[Callable[[Place], None], str], ...] = (
    (edited, "a.txt"),
    (edited_elsewhere, "src/run.sh"),
    (edited_with_the_same_size, "a.txt"),
    (removed, "src/run.sh"),
    (staged, "a.txt"),
    (staged_and_then_the_very_change, "a.txt"),
    (assumed_unchanged, "a.txt"),
    (left_out_but_there, "a.txt"),
    (untracked_in_the_way, "new/er.txt"),
    (ignored_in_the_way, "tool.sh"),
    (file_where_a_folder_comes, "new/er.txt"),
    (folder_where_a_file_comes, "tool.sh"),
    (link_where_a_folder_comes, "new/er.txt"),
    (locked, "index.lock"),
)


@pytest.mark.few(5)
@pytest.mark.parametrize(("hinder", "named"), HINDRANCES, ids=lambda value: getattr(value, "__name__", ""))
def test_what_could_be_lost_is_named_and_left_alone(place: Place, hinder: Callable[[Place], None], named: str) -> None:
    commit, head = place.commit_of(rich_change(place)), place.head
    hinder(place)
    before = standing(place)
    with pytest.raises(CheckedOutError, match=named):
        publish_commit(place.store, "main", commit, expected=head)
    assert place.head == head
    assert standing(place) == before
    assert list(place.store.folder.glob("index.standing-*")) == []


def test_a_sparse_checkout_stays_sparse(place: Place) -> None:
    place.git("sparse-checkout", "set", "--no-cone", "/src/")
    commit = place.commit_of(place.tree_with({"a.txt": "changed\n", "src/run.sh": "changed\n"}))
    publish_commit(place.store, "main", commit, expected=place.head)
    assert place.git("status", "--porcelain") == ""
    assert (place.root / "src" / "run.sh").read_text() == "changed\n"
    assert not (place.root / "a.txt").exists()


def test_if_the_branch_cannot_be_moved_the_work_trees_are_put_back(place: Place) -> None:
    commit, head = place.commit_of(rich_change(place)), place.head
    before = standing(place)
    (place.root / ".git" / "refs" / "heads" / "main.lock").write_text("")
    with pytest.raises(RepositoryError, match="update-ref"):
        publish_commit(place.store, "main", commit, expected=head)
    assert place.head == head
    assert standing(place) == before


def test_of_two_work_trees_neither_moves_if_one_cannot(place: Place) -> None:
    commit, head = place.commit_of(rich_change(place)), place.head
    linked = place.workshop.folder / "linked"
    place.git("worktree", "add", "--quiet", "--force", str(linked), "main")
    (linked / "a.txt").write_text("my own edit\n")
    before = standing(place), standing(place, linked)
    with pytest.raises(CheckedOutError, match="linked"):
        publish_commit(place.store, "main", commit, expected=head)
    assert place.head == head
    assert (standing(place), standing(place, linked)) == before


def killed_at(place: Place, point: str, commit: str, expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PUBLISH, str(place.root), str(place.workshop.proofstone_home), "main", commit, expected],
        env={**place.workshop.environment, "PROOFSTONE_FAULT": point},
        capture_output=True,
        text=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize("point", ["commit.before-objects", "commit.before-ref", "commit.after-ref"])
def test_killed_at_any_boundary_publishing_again_ends_it(place: Place, point: str) -> None:
    commit, head = place.commit_of(rich_change(place)), place.head
    killed_at(place, point, commit, head)
    assert place.head == (commit if point == "commit.after-ref" else head)
    publish_commit(place.store, "main", commit, expected=head)
    assert place.head == commit
    assert place.git("status", "--porcelain") == ""
    assert place.git("log", "--format=%s") == "Change\nWork"


def test_killed_while_files_were_written_publishing_again_ends_it(place: Place) -> None:
    """The index is the old one, and of the files some are old and some are new."""
    tree = rich_change(place)
    commit, head = place.commit_of(tree), place.head
    (place.root / "a.txt").write_text("changed\n")
    (place.root / "b.txt").unlink()
    (place.root / "tool.sh").write_text("run\n")
    publish_commit(place.store, "main", commit, expected=head)
    assert place.head == commit
    assert place.git("status", "--porcelain") == ""
    assert (place.root / "b.txt" / "inner").exists()


def test_after_a_crash_an_edit_of_the_person_is_still_safe(place: Place) -> None:
    commit, head = place.commit_of(rich_change(place)), place.head
    killed_at(place, "commit.before-ref", commit, head)
    (place.root / "new" / "er.txt").write_text("my own edit\n")
    with pytest.raises(CheckedOutError, match=r"new/er\.txt"):
        publish_commit(place.store, "main", commit, expected=head)
    assert (place.root / "new" / "er.txt").read_text() == "my own edit\n"
    assert place.head == head


def test_a_commit_made_after_a_crash_is_a_branch_that_moved(place: Place) -> None:
    """What the crash left staged was committed by the person: their commit stands."""
    commit, head = place.commit_of(rich_change(place)), place.head
    killed_at(place, "commit.before-ref", commit, head)
    place.git("commit", "--quiet", "--message", "Mine")
    mine = place.head
    with pytest.raises(BranchMovedError):
        publish_commit(place.store, "main", commit, expected=head)
    assert place.head == mine
    assert place.git("status", "--porcelain") == ""
