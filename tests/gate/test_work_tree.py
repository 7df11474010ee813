"""A task's private work tree works like any other for its executor, and nothing the executor's git says is believed."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from proofstone.errors import RepositoryError
from proofstone.git.repository import open_repository
from proofstone.git.store import open_store
from proofstone.git.work_tree import (
    WorkTree,
    WorkTreeMissingError,
    create_work_tree,
    freeze_work_tree,
    open_work_tree,
    remove_work_tree,
)
from proofstone.machine.files import read_alternates
from tests.gate.place import Place
from tests.workshop import Workshop


def in_tree(place: Place, work_tree: WorkTree, *args: str) -> str:
    return place.workshop.git(work_tree.files, *args)


# What the executor can do in it


def test_a_new_work_tree_is_clean_and_knows_the_history(place: Place) -> None:
    place.git("tag", "v1")
    made = place.work_tree()
    assert in_tree(place, made, "status", "--porcelain", "--branch") == "## main"
    assert in_tree(place, made, "rev-parse", "HEAD") == place.head == made.base_commit
    assert in_tree(place, made, "log", "--format=%s") == "Work"
    assert in_tree(place, made, "describe", "--tags") == "v1"
    assert stat.S_IMODE(made.folder.stat().st_mode) == 0o700


def test_diff_commit_stash_and_gc_work_inside(place: Place) -> None:
    made = place.work_tree()
    (made.files / "a.txt").write_text("edited\n")
    assert "+edited" in in_tree(place, made, "diff")
    in_tree(place, made, "stash")
    assert in_tree(place, made, "status", "--porcelain") == ""
    in_tree(place, made, "stash", "pop")
    in_tree(place, made, "commit", "--quiet", "--all", "--message", "Own")
    in_tree(place, made, "gc", "--quiet")
    assert in_tree(place, made, "log", "--format=%s") == "Own\nWork"
    assert place.git("log", "--format=%s", "--all") == "Work", "the person's repository does not see it"


def test_somebody_to_commit_as_is_there_even_if_the_person_has_set_nobody(workshop: Workshop) -> None:
    root = workshop.repo({"a": "a\n"})
    (workshop.home / ".gitconfig").write_text("")
    place = Place(workshop, root)
    made = place.work_tree()
    (made.files / "a").write_text("b\n")
    in_tree(place, made, "-c", "user.useConfigOnly=true", "commit", "--quiet", "--all", "--message", "Own")
    assert in_tree(place, made, "log", "-1", "--format=%an") == "Executor"


def test_a_second_attempt_goes_on_where_the_first_ended(place: Place) -> None:
    tree = place.tree_with({"a.txt": "half done\n", "new.txt": "new\n"})
    made = place.work_tree(tree)
    assert in_tree(place, made, "status", "--porcelain") == " M a.txt\n?? new.txt"
    assert place.frozen(made).tree == tree


def test_a_sandboxed_one_borrows_from_where_the_sandbox_shows_the_stores(place: Place) -> None:
    made = place.work_tree(sandboxed=True)
    borrowed = read_alternates(made.files / ".git" / "objects")
    assert borrowed == [bind.at for bind in made.objects] != []
    assert [bind.source for bind in made.objects] == [*place.repository.object_dirs]
    assert not any(bind.writable for bind in made.objects)
    (made.files / "a.txt").write_text("edited\n")
    assert [entry.path for entry in place.frozen(made).entries] == [b"a.txt"]


def test_one_that_survived_is_opened_as_it_was_left(place: Place) -> None:
    made = place.work_tree()
    (made.files / "a.txt").write_text("by hand\n")
    again = open_work_tree(place.store, made.folder)
    assert again == made
    assert place.listed(place.frozen(again).tree)["a.txt"] == "by hand\n"


def test_a_new_one_takes_the_place_of_an_old_one(place: Place) -> None:
    (place.work_tree().files / "left.txt").write_text("left\n")
    made = place.work_tree()
    assert not (made.files / "left.txt").exists()
    assert [path.name for path in made.folder.parent.iterdir()] == ["task"]


def test_a_new_one_takes_the_place_although_a_killed_run_left_an_older_one(place: Place) -> None:
    made = place.work_tree()
    left = made.folder.with_name(f"{made.folder.name}.old")
    left.mkdir()
    (left / "half").write_text("removed")
    again = place.work_tree()
    assert in_tree(place, again, "status", "--porcelain") == ""
    assert not left.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"base_commit": 1}', "[" * 5000])
def test_one_that_does_not_say_what_it_was_made_from_is_named(place: Place, text: str) -> None:
    made = place.work_tree()
    note = made.folder / "work-tree.json"
    note.write_text(text)
    with pytest.raises(WorkTreeMissingError, match=r"work-tree\.json: it does not say"):
        open_work_tree(place.store, made.folder)


def test_a_removed_one_leaves_nothing(place: Place) -> None:
    made = place.work_tree()
    (made.files / "closed").mkdir(mode=0o500)
    made.folder.with_name("task.old").mkdir()
    remove_work_tree(made.folder)
    remove_work_tree(made.folder)
    assert list(made.folder.parent.iterdir()) == []
    assert open_work_tree(place.store, made.folder) is None


def test_committed_bytecode_is_not_taken_for_removed(workshop: Workshop) -> None:
    place = Place(workshop, workshop.repo({"m.py": "x = 1\n", "__pycache__/m.cpython-311.pyc": b"\0\1"}))
    made = place.work_tree()
    assert place.frozen(made).entries == ()
    assert in_tree(place, made, "status", "--porcelain") == ""


# What is frozen


def test_the_frozen_tree_is_what_the_files_are(place: Place) -> None:
    made = place.work_tree()
    (made.files / "a.txt").write_text("edited\n")
    (made.files / "b.txt").unlink()
    (made.files / "deep" / "er").mkdir(parents=True)
    (made.files / "deep" / "er" / "new.txt").write_text("new\n")
    (made.files / "src" / "run.sh").chmod(0o755)
    (made.files / "noise.log").write_text("ignored\n")
    frozen = place.frozen(made)
    assert {(e.path.decode(), e.kind.value, e.mode) for e in frozen.entries} == {
        ("a.txt", "modified", "100644"),
        ("b.txt", "deleted", "000000"),
        ("deep/er/new.txt", "added", "100644"),
        ("src/run.sh", "modified", "100755"),
    }
    assert place.listed(frozen.tree)["a.txt"] == "edited\n"
    assert frozen.findings == ()


def test_files_and_folders_can_change_places(place: Place) -> None:
    made = place.work_tree()
    shutil.rmtree(made.files / "src")
    (made.files / "src").write_text("a file now\n")
    (made.files / "b.txt").unlink()
    (made.files / "b.txt").mkdir()
    (made.files / "b.txt" / "inner").write_text("a folder now\n")
    assert set(place.listed(place.frozen(made).tree)) == {".gitignore", "a.txt", "b.txt/inner", "src"}


def own_commit(place: Place, made: WorkTree) -> None:
    in_tree(place, made, "add", "--all")
    in_tree(place, made, "commit", "--quiet", "--allow-empty", "--message", "Own")


def own_reset(place: Place, made: WorkTree) -> None:
    own_commit(place, made)
    in_tree(place, made, "update-ref", "HEAD", "HEAD~1")
    in_tree(place, made, "read-tree", "--empty")


def skip_worktree(place: Place, made: WorkTree) -> None:
    in_tree(place, made, "update-index", "--skip-worktree", "a.txt")


def assume_unchanged(place: Place, made: WorkTree) -> None:
    in_tree(place, made, "update-index", "--assume-unchanged", "a.txt")


def info_exclude(place: Place, made: WorkTree) -> None:
    (made.files / ".git" / "info" / "exclude").write_text("*\n")


def excludes_file(place: Place, made: WorkTree) -> None:
    hidden = made.folder.parent / "hidden"
    hidden.write_text("*\n")
    in_tree(place, made, "config", "core.excludesFile", str(hidden))


def info_attributes(place: Place, made: WorkTree) -> None:
    (made.files / ".git" / "info" / "attributes").write_text("* filter=lie eol=crlf ident\n")
    in_tree(place, made, "config", "filter.lie.clean", "echo lie")
    in_tree(place, made, "config", "filter.lie.required", "true")


def work_tree_setting(place: Place, made: WorkTree) -> None:
    in_tree(place, made, "config", "core.worktree", "/")


def a_program_for_everything(place: Place, made: WorkTree) -> None:
    program = made.files / ".git" / "program"
    program.write_text(f"#!/bin/sh\ntouch {made.folder.parent}/ran\n")
    program.chmod(0o755)
    for name in ("core.fsmonitor", "diff.external", "core.pager", "core.sshCommand", "core.editor"):
        in_tree(place, made, "config", name, str(program))
    in_tree(place, made, "config", "core.hooksPath", str(program.parent))


def replace_ref(place: Place, made: WorkTree) -> None:
    blob = in_tree(place, made, "rev-parse", "HEAD:b.txt")
    lie = in_tree(place, made, "hash-object", "-w", "a.txt")
    in_tree(place, made, "replace", blob, lie)


def git_removed(place: Place, made: WorkTree) -> None:
    shutil.rmtree(made.files / ".git")


def git_as_file(place: Place, made: WorkTree) -> None:
    git_removed(place, made)
    (made.files / ".git").write_text(f"gitdir: {place.root}/.git\n")


def git_as_link(place: Place, made: WorkTree) -> None:
    git_removed(place, made)
    (made.files / ".git").symlink_to(place.root / ".git")


def another_git(place: Place, made: WorkTree) -> None:
    git_removed(place, made)
    in_tree(place, made, "init", "--quiet")
    own_commit(place, made)


LIES: tuple[Callable[[Place, WorkTree], None], ...] = (
    own_commit,
    own_reset,
    skip_worktree,
    assume_unchanged,
    info_exclude,
    excludes_file,
    info_attributes,
    work_tree_setting,
    a_program_for_everything,
    replace_ref,
    git_removed,
    git_as_file,
    git_as_link,
    another_git,
)


@pytest.mark.few(8)
@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
@pytest.mark.parametrize("before", [True, False], ids=["before-the-edit", "after-it"])
def test_nothing_in_the_executors_git_changes_what_is_frozen(
    place: Place, lie: Callable[[Place, WorkTree], None], before: bool
) -> None:
    made = place.work_tree()
    if before:
        lie(place, made)
    (made.files / "a.txt").write_text("$Id$ edited\n")
    (made.files / "new.txt").write_text("new\n")
    if not before:
        lie(place, made)
    frozen = place.frozen(made)
    assert frozen.tree == place.tree_with({"a.txt": "$Id$ edited\n", "new.txt": "new\n"})
    assert frozen.findings == ()
    assert not (made.folder.parent / "ran").exists()


def test_an_edit_of_the_same_size_and_time_is_seen(place: Place) -> None:
    made = place.work_tree()
    file = made.files / "a.txt"
    before = file.stat()
    file.write_text("one\nTWO\nthree\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert place.listed(place.frozen(made).tree)["a.txt"] == "one\nTWO\nthree\n"
    file.write_text("one\ntwo\nTHREE\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert place.listed(place.frozen(made).tree)["a.txt"] == "one\ntwo\nTHREE\n"


def test_a_file_that_the_base_ignores_stays_out_however_it_was_added(place: Place) -> None:
    made = place.work_tree()
    (made.files / ".gitignore").write_text("!secret.log\n")
    (made.files / "secret.log").write_text("token\n")
    in_tree(place, made, "add", "--force", "secret.log")
    assert "secret.log" not in place.listed(place.frozen(made).tree)


def test_what_the_person_ignores_for_themselves_is_ignored(place: Place) -> None:
    (place.root / ".git" / "info" / "exclude").write_text("mine.txt\n")
    (place.root / "personal").write_text("also-mine.txt\n")
    place.git("config", "core.excludesFile", str(place.root / "personal"))
    made = place.work_tree()
    for name in ("mine.txt", "also-mine.txt", "theirs.txt"):
        (made.files / name).write_text("x\n")
    assert in_tree(place, made, "status", "--porcelain").splitlines() == ["?? also-mine.txt", "?? theirs.txt"]
    assert [entry.path for entry in place.frozen(made).entries] == [b"theirs.txt"]


def test_a_nested_repository_is_a_finding(place: Place) -> None:
    made = place.work_tree()
    (made.files / "vendor").mkdir()
    place.workshop.git(made.files / "vendor", "init", "--quiet")
    (made.files / "vendor" / "x.txt").write_text("x\n")
    place.workshop.commit(made.files / "vendor")
    frozen = place.frozen(made)
    assert [finding.rule for finding in frozen.findings] == ["nested-repository"]
    assert frozen.tree == place.tree


@pytest.mark.parametrize(
    ("target", "rules"),
    [
        ("/etc/passwd", ["symlink-escape"]),
        ("../../outside", ["symlink-escape"]),
        ("a.txt", []),
        ("{root}/a.txt", []),
        ("{files}/a.txt", ["symlink-escape"]),
    ],
)
def test_a_link_that_leaves_the_repository_is_a_finding(place: Place, target: str, rules: list[str]) -> None:
    """The files will stand at the repository's path, so an absolute link into the work tree leads out of it."""
    made = place.work_tree()
    (made.files / "link").symlink_to(target.format(root=place.root, files=made.files))
    frozen = place.frozen(made)
    assert [finding.rule for finding in frozen.findings] == rules
    assert [entry.mode for entry in frozen.entries] == ["120000"]


@pytest.mark.parametrize("instead", ["nothing", "link"])
def test_a_work_tree_that_is_gone_is_named(place: Place, instead: str) -> None:
    made = place.work_tree()
    shutil.rmtree(made.files)
    if instead == "link":
        made.files.symlink_to(place.root)
    with pytest.raises(WorkTreeMissingError, match="gone"):
        place.frozen(made)


def test_what_git_cannot_take_in_is_an_error_and_no_tree(place: Place) -> None:
    made = place.work_tree()
    (made.files / "a.txt").unlink()
    os.mkfifo(made.files / "a.txt")
    with pytest.raises(RepositoryError):
        place.frozen(made)


# Conversions


def test_line_endings_are_the_bases_and_not_the_executors(workshop: Workshop) -> None:
    files: dict[str, str | bytes] = {
        "w.txt": "one\ntwo\n",
        "raw.txt": b"one\r\n",
        ".gitattributes": "w.txt text eol=crlf\nraw.txt -text\n",
    }
    place = Place(workshop, workshop.repo(files))
    made = place.work_tree()
    assert (made.files / "w.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert place.frozen(made).entries == ()
    (made.files / "w.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    (made.files / ".gitattributes").write_text("* -text\n")
    assert place.listed(place.frozen(made).tree)["w.txt"] == "one\ntwo\nthree\n"


def test_the_persons_own_setting_for_line_endings_counts(workshop: Workshop) -> None:
    root = workshop.repo({"w.txt": "one\n"})
    workshop.git(root, "config", "core.autocrlf", "true")
    place = Place(workshop, root)
    made = place.work_tree()
    assert (made.files / "w.txt").read_bytes() == b"one\r\n"
    assert in_tree(place, made, "status", "--porcelain") == ""
    (made.files / "w.txt").write_bytes(b"one\r\ntwo\r\n")
    assert place.listed(place.frozen(made).tree)["w.txt"] == "one\ntwo\n"


@pytest.fixture
def filtered(workshop: Workshop) -> Place:
    """A filter that the person has configured: letters turned around."""
    root = workshop.folder / "project"
    root.mkdir()
    workshop.git(root, "init", "--quiet")
    for name in ("clean", "smudge"):
        workshop.git(root, "config", f"filter.turn.{name}", "rev")
    workshop.write(root, {".gitattributes": "*.turned filter=turn\n", "x.turned": "abc\n"})
    workshop.commit(root)
    assert workshop.git(root, "cat-file", "blob", "HEAD:x.turned") == "cba"
    return Place(workshop, root)


def test_a_filter_of_the_person_runs_as_they_configured_it(filtered: Place) -> None:
    made = filtered.work_tree()
    assert (made.files / "x.turned").read_text() == "abc\n"
    assert filtered.frozen(made).entries == ()
    in_tree(filtered, made, "config", "filter.turn.clean", "echo lie")
    (made.files / "x.turned").write_text("abcd\n")
    assert filtered.listed(filtered.frozen(made).tree)["x.turned"] == "dcba\n"


def test_a_filter_that_the_executor_could_supply_is_refused(filtered: Place) -> None:
    filtered.git("config", "filter.later.clean", "tools/later.sh")
    made = filtered.work_tree()
    (made.files / "tools").mkdir()
    (made.files / "tools" / "later.sh").write_text(f"#!/bin/sh\ntouch {made.folder.parent}/ran\n")
    (made.files / "tools" / "later.sh").chmod(0o755)
    (made.files / ".gitattributes").write_text("* filter=later\n")
    with pytest.raises(RepositoryError, match=r"filter\.later\.clean"):
        filtered.frozen(made)
    assert not (made.folder.parent / "ran").exists()


# Shapes of repositories


@pytest.fixture
def with_submodule(place: Place) -> Place:
    inner = place.workshop.repo({"inner.txt": "inner\n"}, "inner")
    place.git("submodule", "--quiet", "add", str(inner), "sub")
    place.workshop.commit(place.root, "Submodule")
    return place


def test_a_submodule_is_filled_and_stays_at_its_commit(with_submodule: Place) -> None:
    made = with_submodule.work_tree()
    assert (made.files / "sub" / "inner.txt").read_text() == "inner\n"
    frozen = with_submodule.frozen(made)
    assert frozen.entries == ()
    assert frozen.findings == ()


def edit(folder: Path) -> None:
    (folder / "inner.txt").write_text("edited\n")


def add(folder: Path) -> None:
    (folder / "more.txt").write_text("more\n")


def take_away(folder: Path) -> None:
    shutil.rmtree(folder)


def put_a_file(folder: Path) -> None:
    take_away(folder)
    folder.write_text("no folder\n")


def put_a_link(folder: Path) -> None:
    take_away(folder)
    folder.symlink_to("/")


@pytest.mark.parametrize("change", [edit, add, take_away, put_a_file, put_a_link])
def test_what_was_done_in_a_submodule_is_said_and_left_out(
    with_submodule: Place, change: Callable[[Path], None]
) -> None:
    made = with_submodule.work_tree()
    change(made.files / "sub")
    frozen = with_submodule.frozen(made)
    assert frozen.entries == ()
    assert [(f.rule, f.path) for f in frozen.findings] == [("submodule-dirty", "sub")]


def test_a_repository_put_into_a_submodule_does_not_move_it(with_submodule: Place) -> None:
    made = with_submodule.work_tree()
    with_submodule.workshop.git(made.files / "sub", "init", "--quiet")
    with_submodule.workshop.commit(made.files / "sub", "A commit that only the executor has")
    frozen = with_submodule.frozen(made)
    assert frozen.entries == ()
    assert [f.rule for f in frozen.findings] == ["submodule-dirty"]


def test_a_sparse_checkout_of_the_person_does_not_make_the_work_tree_sparse(place: Place) -> None:
    place.git("sparse-checkout", "set", "--no-cone", "/a.txt")
    assert not (place.root / "b.txt").exists()
    made = place.work_tree()
    assert (made.files / "b.txt").exists()
    (made.files / "b.txt").unlink()
    assert [entry.path for entry in place.frozen(made).entries] == [b"b.txt"]


def test_a_partial_clone_fetches_what_the_work_tree_needs(place: Place) -> None:
    place.git("config", "uploadpack.allowFilter", "true")
    place.git("config", "uploadpack.allowAnySHA1InWant", "true")
    clone = place.workshop.folder / "clone"
    source = f"file://{place.root}"
    place.git("clone", "--quiet", "--no-checkout", "--filter=blob:none", source, str(clone))
    partial = Place(place.workshop, clone)
    assert partial.git("cat-file", "--batch-check", "--batch-all-objects").count(" blob ") == 0
    made = partial.work_tree()
    assert (made.files / "a.txt").read_text() == "one\ntwo\nthree\n"
    (made.files / "a.txt").write_text("edited\n")
    frozen = partial.frozen(made)
    assert [entry.path for entry in frozen.entries] == [b"a.txt"]
    again = partial.work_tree(frozen.tree)
    assert (again.files / "a.txt").read_text() == "edited\n", "a tree that the clone itself does not have"


def test_sha256_repositories_and_linked_worktrees_work(workshop: Workshop) -> None:
    root = workshop.folder / "long"
    root.mkdir()
    workshop.git(root, "init", "--quiet", "--object-format=sha256")
    workshop.write(root, {"a.txt": "a\n"})
    workshop.commit(root)
    workshop.git(root, "worktree", "add", "--quiet", "--detach", str(workshop.folder / "linked"))
    place = Place(workshop, workshop.folder / "linked")
    made = place.work_tree()
    assert in_tree(place, made, "status", "--porcelain", "--branch") == "## HEAD (no branch)"
    (made.files / "a.txt").write_text("b\n")
    assert place.frozen(made).tree == place.tree_with({"a.txt": "b\n"})


def test_several_work_trees_are_frozen_at_once(place: Place) -> None:
    made = [
        create_work_tree(
            place.store, place.workshop.folder / f"task-{n}", base_commit=place.head, tree=place.tree, sandboxed=False
        )
        for n in range(6)
    ]
    for number, work_tree in enumerate(made):
        (work_tree.files / "a.txt").write_text(f"{number}\n")
    with ThreadPoolExecutor(6) as pool:
        trees = [found.tree for found in pool.map(place.frozen, made)]
    assert trees == [place.tree_with({"a.txt": f"{number}\n"}) for number in range(6)]


def test_the_persons_repository_is_not_touched(place: Place) -> None:
    store = open_store(open_repository(place.root), place.workshop.proofstone_home)
    before = {path: path.stat().st_mtime_ns for path in place.root.rglob("*")}
    made = create_work_tree(
        store, place.workshop.folder / "task", base_commit=place.head, tree=place.tree, sandboxed=False
    )
    (made.files / "a.txt").write_text("edited\n")
    freeze_work_tree(store, made, place.tree)
    remove_work_tree(made.folder)
    assert {path: path.stat().st_mtime_ns for path in place.root.rglob("*")} == before
