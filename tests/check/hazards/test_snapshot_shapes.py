"""Unusual repositories: sparse, filtered, with submodules, linked, and at odd places."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workshop import Workshop

FILES = {"a/one.txt": "1\n", "b/two.txt": "2\n", "c/d/three.txt": "3\n", "top.txt": "t\n"}


@pytest.mark.parametrize("pattern", [("--cone", "a"), ("--no-cone", "/a/", "/top.txt")])
def test_a_sparse_checkout_loses_no_file(workshop: Workshop, pattern: tuple[str, ...]) -> None:
    root = workshop.repo(FILES)
    workshop.git(root, "sparse-checkout", "set", *pattern)
    assert not (root / "b").exists()
    workshop.write(root, {"a/one.txt": "11\n"})
    done = workshop.check(root, "--verify", "grep -h . a/one.txt b/two.txt c/d/three.txt top.txt")
    assert done.report.changed == ("a/one.txt",), done.stderr
    assert set(workshop.tree(done.report.tree)) == set(FILES)
    assert done.output("verify").split() == ["11", "2", "3", "t"]


def test_a_file_made_where_a_sparse_checkout_left_one_out_goes_in(workshop: Workshop) -> None:
    root = workshop.repo(FILES)
    workshop.git(root, "sparse-checkout", "set", "--cone", "a")
    workshop.write(root, {"b/two.txt": "22\n", "b/new.txt": "n\n"})
    done = workshop.check(root, "--verify", "test -d .")
    assert set(done.report.changed) == {"b/two.txt", "b/new.txt"}, done.stderr


def _partial_clone(workshop: Workshop) -> tuple[Path, str]:
    first = workshop.repo(FILES, "first")
    old = workshop.git(first, "rev-parse", "HEAD")
    workshop.write(first, {"b/two.txt": "22\n", "new.txt": "n\n"})
    workshop.commit(first)
    origin = workshop.folder / "origin.git"
    workshop.git(workshop.folder, "clone", "--quiet", "--bare", str(first), str(origin))
    workshop.git(origin, "config", "uploadpack.allowFilter", "true")
    workshop.git(origin, "config", "uploadpack.allowAnySHA1InWant", "true")
    clone = workshop.folder / "clone"
    workshop.git(workshop.folder, "clone", "--quiet", "--filter=blob:none", f"file://{origin}", str(clone))
    return clone, old


def test_a_partial_clone_fetches_what_the_base_needs(workshop: Workshop) -> None:
    clone, old = _partial_clone(workshop)
    missing = workshop.git(clone, "rev-list", "--objects", "--missing=print", old)
    assert "?" in missing, "the clone has everything, so this shows nothing"
    workshop.write(clone, {"top.txt": "tt\n"})
    done = workshop.check(clone, "--base", old, "--verify", "grep -h . b/two.txt")
    assert set(done.report.changed) == {"b/two.txt", "new.txt", "top.txt"}, done.stderr
    assert done.check("verify").baseline == "pass" and done.output("verify") == "22\n"


def test_a_partial_clone_whose_remote_is_gone_says_so(workshop: Workshop) -> None:
    clone, old = _partial_clone(workshop)
    (workshop.folder / "origin.git").rename(workshop.folder / "gone.git")
    done = workshop.check(clone, "--base", old, "--verify", "test -d .")
    assert done.exit == 2 and "fetch" in done.stderr and "Traceback" not in done.stderr


def _with_submodule(workshop: Workshop) -> tuple[Path, Path]:
    """A project with a submodule that has one of its own."""
    inner = workshop.repo({"inner.txt": "inner\n"}, "inner-origin")
    library = workshop.repo({"lib.txt": "v1\n"}, "library-origin")
    workshop.git(library, "submodule", "--quiet", "add", str(inner), "inner")
    workshop.commit(library)
    root = workshop.repo({"a.txt": "a\n"})
    workshop.git(root, "submodule", "--quiet", "add", str(library), "lib")
    workshop.git(root, "submodule", "--quiet", "update", "--init", "--recursive")
    workshop.commit(root)
    return root, library


def test_submodules_are_filled_at_their_recorded_commits_nested_ones_too(workshop: Workshop) -> None:
    root, _ = _with_submodule(workshop)
    workshop.write(root, {"a.txt": "b\n"})
    done = workshop.check(root, "--verify", "grep -h . lib/lib.txt lib/inner/inner.txt")
    assert done.output("verify").split() == ["v1", "inner"], done.stderr
    assert done.report.changed == ("a.txt",) and done.exit == 0


def test_a_submodule_at_another_commit_is_a_change_and_each_tree_sees_its_own(workshop: Workshop) -> None:
    root, library = _with_submodule(workshop)
    workshop.write(library, {"lib.txt": "v2\n"})
    second = workshop.commit(library)
    workshop.git(root / "lib", "fetch", "--quiet")
    workshop.git(root / "lib", "checkout", "--quiet", second)
    done = workshop.check(root, "--verify", "grep v2 lib/lib.txt")
    assert done.report.changed == ("lib",), done.stderr
    assert workshop.tree(done.report.tree)["lib"] == second
    assert done.exit == 0 and done.check("verify").baseline == "fail"


def test_a_dirty_submodule_is_named_and_checked_as_committed(workshop: Workshop) -> None:
    root, _ = _with_submodule(workshop)
    workshop.write(root, {"lib/lib.txt": "uncommitted\n", "a.txt": "b\n"})
    done = workshop.check(root, "--verify", "grep -h . lib/lib.txt")
    assert done.output("verify") == "v1\n", done.stderr
    assert [f.path for f in done.report.findings if f.rule == "submodule-dirty"] == ["lib"]


def test_a_submodule_that_is_not_initialised_is_empty_here_as_there_and_said(workshop: Workshop) -> None:
    root, _ = _with_submodule(workshop)
    workshop.git(root, "submodule", "--quiet", "deinit", "--force", "lib")
    workshop.write(root, {"a.txt": "b\n"})
    done = workshop.check(root, "--verify", 'test -d lib && test -z "$(ls lib)"')
    assert done.exit == 0, done.stderr
    assert done.report.changed == ("a.txt",)
    assert any("lib" in note and "not initialised" in note for note in done.report.notes)


def test_a_submodule_whose_recorded_commit_is_missing_is_an_error_with_the_cure(workshop: Workshop) -> None:
    root, library = _with_submodule(workshop)
    workshop.write(library, {"lib.txt": "v2\n"})
    second = workshop.commit(library)
    workshop.git(root, "update-index", "--cacheinfo", f"160000,{second},lib")
    workshop.git(root, "commit", "--quiet", "--message", "Points to what is not here")
    workshop.write(root, {"a.txt": "b\n"})
    done = workshop.check(root, "--verify", "test -d .")
    assert done.exit == 2 and "git submodule update" in done.stderr


def test_a_linked_worktree_is_checked_as_it_stands(workshop: Workshop) -> None:
    root = workshop.repo({"a.txt": "a\n"})
    linked = workshop.folder / "linked"
    workshop.git(root, "worktree", "add", "--quiet", "-b", "side", str(linked))
    workshop.write(linked, {"a.txt": "side\n"})
    done = workshop.check(linked, "--verify", "cat a.txt && git rev-parse --abbrev-ref HEAD && git status --short")
    assert done.exit == 0, done.stderr
    assert done.output("verify").split() == ["side", "side", "M", "a.txt"]
    assert (root / "a.txt").read_text() == "a\n"


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "name", ["with space", "new\nline", "grün 木", "co:lon", "com,ma", "quo'te\"$(id)", "back\\slash"]
)
def test_a_repository_at_an_odd_path_is_checked_at_that_path(workshop: Workshop, name: str) -> None:
    root = workshop.repo({"a.txt": "a\n", "odd/" + name.replace("\n", " "): "x\n"}, name)
    workshop.write(root, {"a.txt": "b\n"})
    done = workshop.check(root, "--verify", "pwd && cat a.txt && git ls-files | wc -l")
    assert done.exit == 0, done.stderr
    assert done.output("verify") == f"{root}\nb\n2\n"


def test_a_work_tree_path_that_is_not_utf_8_is_frozen_and_named(workshop: Workshop) -> None:
    root = workshop.repo({"a.txt": "a\n"})
    Path(bytes(root).decode() + "/odd\udcff.txt").write_text("x\n")
    done = workshop.check(root, "--verify", "ls | wc -l && test -d .")
    assert done.report.changed == ("odd\\xff.txt",), done.stderr
    assert done.output("verify") == "2\n"


def test_the_default_state_folder_below_home_works_and_no_check_sees_it(real_place: Workshop) -> None:
    default = Workshop(real_place.folder, state=Path("home/.local/state/proofstone"))
    default.environment.pop("PROOFSTONE_HOME")
    root = default.repo({"a.txt": "a\n"})
    default.write(root, {"a.txt": "b\n"})
    done = default.check(root, "--verify", "cd ~/.local/state/proofstone && ls -A && test -d .")
    assert done.exit == 0, done.stderr
    assert (default.proofstone_home / "ledger" / "ledger.db").is_file()
    assert done.output("verify") == ""
