"""An accepted tree goes onto a tip that has moved, or the conflict is named with both sides; no program runs for it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from proofstone.git.checkout import restore_base_files
from proofstone.git.commit import publish_commit
from proofstone.git.merge import CleanMerge, MergeConflict, merge_trees
from proofstone.git.snapshot import Snapshot, compare_trees
from tests.gate.place import Place
from tests.workshop import Workshop


def merged(place: Place, tip: str, tree: str, base: str | None = None) -> CleanMerge | tuple[MergeConflict, ...]:
    return merge_trees(place.store, base_commit=base or place.head, tip=tip, tree=tree)


def without(place: Place, path: str, of: str | None = None) -> str:
    """The tree with a file removed: as in the empty tree."""
    tree = of or place.tree
    git = place.store.git()
    empty = git.run_line("mktree")
    entries = tuple(compare_trees(git, empty, tree))
    return restore_base_files(place.store, Snapshot(tree, empty, entries, ()), {path.encode()})


def test_a_base_that_did_not_move_gives_the_tree_itself(place: Place) -> None:
    tree = place.tree_with({"a.txt": "changed\n"})
    assert merged(place, place.head, tree) == CleanMerge(tree)
    same_files = place.commit_of(place.tree)
    assert merged(place, same_files, tree) == CleanMerge(tree)


def test_a_tree_that_changes_nothing_gives_the_tips(place: Place) -> None:
    moved = place.tree_with({"b.txt": "moved\n"})
    assert merged(place, place.commit_of(moved), place.tree) == CleanMerge(moved)


def test_changes_of_different_files_and_lines_come_together(place: Place) -> None:
    tip = place.commit_of(place.tree_with({"b.txt": "theirs\n", "a.txt": "ONE\ntwo\nthree\nfour\nfive\n"}))
    base = place.commit_of(place.tree_with({"a.txt": "one\ntwo\nthree\nfour\nfive\n"}))
    tree = place.tree_with({"a.txt": "one\ntwo\nthree\nfour\nFIVE\n", "new.txt": "new\n"})
    found = merged(place, tip, tree, base)
    assert isinstance(found, CleanMerge)
    listed = place.listed(found.tree)
    assert listed["a.txt"] == "ONE\ntwo\nthree\nfour\nFIVE\n"
    assert (listed["b.txt"], listed["new.txt"]) == ("theirs\n", "new\n")


def test_a_tip_of_the_persons_own_repository_will_do(place: Place) -> None:
    base = place.head
    tree = place.tree_with({"a.txt": "task\n"})
    place.workshop.write(place.root, {"b.txt": "person\n"})
    tip = place.workshop.commit(place.root)
    found = merged(place, tip, tree, base)
    assert isinstance(found, CleanMerge)
    assert place.listed(found.tree)["a.txt"] == "task\n"
    assert place.listed(found.tree)["b.txt"] == "person\n"


def test_the_base_is_the_one_named_even_if_the_tip_does_not_build_on_it(place: Place) -> None:
    """A branch that was rewritten: git alone would look for another base, and bring back what the base had removed."""
    base = place.commit_of(place.tree_with({"a.txt": "base\n"}))
    tree = place.tree_with({"a.txt": "base\n", "new.txt": "new\n"})
    tip = place.commit_of(place.tree_with({"b.txt": "elsewhere\n"}))
    found = merged(place, tip, tree, base)
    assert isinstance(found, CleanMerge)
    assert place.listed(found.tree)["a.txt"] == "one\ntwo\nthree\n"
    assert place.listed(found.tree)["new.txt"] == "new\n"


def test_a_conflict_names_the_path_and_shows_both_sides(place: Place) -> None:
    tip = place.commit_of(place.tree_with({"a.txt": "one\nours\nthree\n", "b.txt": "fine\n"}))
    found = merged(place, tip, place.tree_with({"a.txt": "one\ntheirs\nthree\n"}))
    assert found == (MergeConflict("a.txt", "one\nours\nthree\n", "one\ntheirs\nthree\n", "content"),)


def test_a_file_removed_on_one_side_and_edited_on_the_other_is_not_lost(place: Place) -> None:
    tip = place.commit_of(without(place, "a.txt"))
    found = merged(place, tip, place.tree_with({"a.txt": "edited\n"}))
    assert found == (MergeConflict("a.txt", "(removed)", "edited\n", "modify/delete"),)


def test_two_new_files_of_one_name_are_a_conflict(place: Place) -> None:
    tip = place.commit_of(place.tree_with({"new.txt": "ours\n"}))
    found = merged(place, tip, place.tree_with({"new.txt": "theirs\n"}))
    assert found == (MergeConflict("new.txt", "ours\n", "theirs\n", "add/add"),)


def test_a_file_where_the_other_side_has_a_folder_is_called_by_its_own_name(place: Place) -> None:
    tip = place.commit_of(place.tree_with({"thing/inner.txt": "ours\n"}))
    found = merged(place, tip, place.tree_with({"thing": "theirs\n"}))
    assert isinstance(found, tuple)
    assert [(c.path, c.kind, c.theirs) for c in found] == [("thing", "file/directory", "theirs\n")]


def test_what_is_shown_is_where_the_sides_differ_and_bounded(place: Place) -> None:
    lines = [f"line {number}\n" for number in range(2000)]

    def edited(word: str) -> str:
        return "".join([*lines[:1000], f"{word}\n", *lines[1001:]])

    base = place.commit_of(place.tree_with({"long.txt": "".join(lines)}))
    tip = place.commit_of(place.tree_with({"long.txt": edited("ours")}))
    found = merged(place, tip, place.tree_with({"long.txt": edited("theirs")}), base)
    assert isinstance(found, tuple)
    around = "line 997\nline 998\nline 999\n{}\nline 1001\nline 1002\nline 1003\n"
    assert (found[0].ours, found[0].theirs) == (around.format("ours"), around.format("theirs"))
    wide = merged(place, tip, place.tree_with({"long.txt": "x" * 100_000}), base)
    assert isinstance(wide, tuple)
    assert wide[0].theirs.endswith("characters more)")
    assert len(wide[0].theirs) < 5000


def test_binary_files_are_not_printed(place: Place) -> None:
    base = place.commit_of(place.tree_with({"x.bin": "\0base"}))
    tip = place.commit_of(place.tree_with({"x.bin": "\0ours"}))
    found = merged(place, tip, place.tree_with({"x.bin": "\0theirs"}), base)
    assert isinstance(found, tuple)
    assert (found[0].ours, found[0].theirs) == ("(binary, 5 bytes)", "(binary, 7 bytes)")


def test_a_file_that_moved_on_one_side_is_not_guessed_at(place: Place) -> None:
    """The change would land in a file that its task has not named."""
    text = place.listed(place.tree)["a.txt"]
    tip = place.commit_of(without(place, "a.txt", place.tree_with({"moved.txt": text})))
    edited = place.tree_with({"a.txt": f"{text}four\n"})
    found = merged(place, tip, edited)
    assert found == (MergeConflict("moved.txt", text, f"{text}four\n", "rename"),)
    moved = place.store.git().run_line("rev-parse", f"{tip}^{{tree}}")
    turned = merged(place, place.commit_of(edited), moved)
    assert turned == (MergeConflict("moved.txt", f"{text}four\n", text, "rename"),)


@pytest.mark.parametrize("where", ["repository", "home"])
def test_no_merge_driver_runs(workshop: Workshop, where: str) -> None:
    ran = workshop.folder / "ran"
    place = Place(workshop, workshop.repo({"a.txt": "one\n", ".gitattributes": "* merge=own\n"}))
    scope = "--local" if where == "repository" else "--global"
    place.git("config", scope, "merge.own.driver", f"touch {ran}; true")
    tip = place.commit_of(place.tree_with({"a.txt": "ours\n"}))
    found = merged(place, tip, place.tree_with({"a.txt": "theirs\n"}))
    assert isinstance(found, tuple)
    assert not ran.exists()


def test_the_bases_own_attributes_decide_between_the_built_in_ways(workshop: Workshop) -> None:
    files = {"log.md": "log\n", "lock": "0\na\nb\nc\nd\n", ".gitattributes": "log.md merge=union\nlock -merge\n"}
    place = Place(workshop, workshop.repo(files))
    tip = place.commit_of(place.tree_with({"log.md": "log\nours\n", "lock": "1\na\nb\nc\nd\n"}))
    union = merged(place, tip, place.tree_with({"log.md": "log\ntheirs\n"}))
    assert isinstance(union, CleanMerge)
    assert place.listed(union.tree)["log.md"] == "log\nours\ntheirs\n"
    # The attributes that the change itself brings do not count: with them the lines would come together.
    edited = place.tree_with({"lock": "0\na\nb\nc\n1\n", ".gitattributes": "lock merge=union\n"})
    found = merged(place, tip, edited)
    assert isinstance(found, tuple)
    assert [conflict.path for conflict in found] == ["lock"]


def test_merging_leaves_the_persons_repository_alone(place: Place) -> None:
    head, tree = place.head, place.tree_with({"a.txt": "theirs\n"})
    tip = place.commit_of(place.tree_with({"b.txt": "ours\n"}))
    before = {path: path.stat().st_mtime_ns for path in Path(place.root).rglob("*")}
    merge_trees(place.store, base_commit=head, tip=tip, tree=tree)
    assert {path: path.stat().st_mtime_ns for path in Path(place.root).rglob("*")} == before


def test_merges_run_at_once(place: Place) -> None:
    head, tip = place.head, place.commit_of(place.tree_with({"b.txt": "ours\n"}))
    trees = [place.tree_with({"a.txt": f"{number}\n"}) for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda tree: merge_trees(place.store, base_commit=head, tip=tip, tree=tree), trees))
    for number, one in enumerate(found):
        assert isinstance(one, CleanMerge)
        assert place.listed(one.tree)["a.txt"] == f"{number}\n"


def test_a_merged_tree_can_be_committed_and_published(place: Place) -> None:
    base = place.head
    first = place.commit_of(place.tree_with({"b.txt": "first\n"}))
    publish_commit(place.store, "proofstone/work", first, expected=None)
    found = merged(place, first, place.tree_with({"a.txt": "second\n"}), base)
    assert isinstance(found, CleanMerge)
    publish_commit(place.store, "proofstone/work", place.commit_of(found.tree, first), expected=first)
    assert place.git("show", "proofstone/work:a.txt") == "second"
    assert place.git("show", "proofstone/work:b.txt") == "first"
