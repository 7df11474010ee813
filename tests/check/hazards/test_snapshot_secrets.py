"""What must stay out of the tree, what may not be hidden from it, and a repository that wants to run things."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from proofstone.git.repository import open_repository
from proofstone.git.snapshot import take_snapshot
from proofstone.git.store import open_store
from tests.workshop import Workshop

SECRET = "TOKEN=do-not-copy-me\n"


def test_an_ignored_secret_beside_the_change_is_neither_in_the_tree_nor_seen_by_a_check(real_place: Workshop) -> None:
    root = real_place.repo({".gitignore": ".env\nnode_modules/\n", "a.txt": "a\n"})
    real_place.write(root, {"a.txt": "b\n", ".env": SECRET, "node_modules/x.js": "x"})
    done = real_place.check(root, "--verify", "cat .env; grep -rs do-not-copy-me . ; test ! -e .env")
    assert done.exit == 0, done.stderr
    assert set(real_place.tree(done.report.tree)) == {".gitignore", "a.txt"}
    assert "do-not-copy-me" not in done.output("verify")


@pytest.mark.parametrize("ignored_by", [".gitignore", ".git/info/exclude", "excludes file"])
def test_a_change_cannot_un_ignore_a_secret(workshop: Workshop, ignored_by: str) -> None:
    root = workshop.repo({".gitignore": ".env\n" if ignored_by == ".gitignore" else "", "a.txt": "a\n"})
    if ignored_by == ".git/info/exclude":
        workshop.write(root, {".git/info/exclude": ".env\n"})
    if ignored_by == "excludes file":
        workshop.write(workshop.home, {".config/git/ignore": ".env\n"})
    workshop.write(root, {".gitignore": "!.env\n", ".env": SECRET})
    done = workshop.check(root, "--verify", "test ! -e .env")
    assert done.exit == 0, done.stderr
    assert ".env" not in workshop.tree(done.report.tree)


def test_the_content_of_an_ignored_secret_is_nowhere_in_proofstones_state(workshop: Workshop) -> None:
    root = workshop.repo({".gitignore": ".env\n", "a.txt": "a\n"})
    workshop.write(root, {"a.txt": "b\n", ".env": SECRET})
    assert workshop.check(root, "--verify", "test -d .").exit == 0
    secret = workshop.run(root, "git", "hash-object", ".env").stdout.strip()
    asked = workshop.run(workshop.private_git, "git", "cat-file", "-e", secret)
    assert asked.returncode != 0


@pytest.mark.parametrize("mark", ["--skip-worktree", "--assume-unchanged"])
def test_a_mark_in_the_index_does_not_hide_a_changed_file(workshop: Workshop, mark: str) -> None:
    root = workshop.repo({"a.txt": "a\n", "b.txt": "b\n"})
    workshop.git(root, "update-index", mark, "a.txt")
    workshop.write(root, {"a.txt": "hidden change\n"})
    assert workshop.git(root, "status", "--short") == ""
    done = workshop.check(root, "--verify", "grep -h . a.txt")
    assert done.report.changed == ("a.txt",), done.stderr
    assert done.output("verify") == "hidden change\n"


@pytest.mark.few(1)
@pytest.mark.parametrize("mark", ["--skip-worktree", "--assume-unchanged"])
def test_a_mark_does_not_hide_a_second_change_from_the_kept_index(workshop: Workshop, mark: str) -> None:
    root = workshop.repo({"a.txt": "a\n", "b.txt": "b\n"})
    workshop.git(root, "update-index", mark, "a.txt")
    workshop.check(root, "--verify", "test -d .")
    for text in ("1\n", "2\n"):
        workshop.write(root, {"a.txt": text})
        done = workshop.check(root, "--verify", "grep -h . a.txt")
        assert done.output("verify") == text, done.stderr


def test_a_tracked_file_that_ignore_rules_cover_goes_in(workshop: Workshop) -> None:
    root = workshop.repo({"a.txt": "a\n"})
    workshop.write(root, {".gitignore": "*.log\n", "kept.log": "1\n"})
    workshop.git(root, "add", "--force", "kept.log", ".gitignore")
    workshop.git(root, "commit", "--quiet", "--message", "A log on purpose")
    workshop.write(root, {"kept.log": "2\n", "other.log": "3\n"})
    done = workshop.check(root, "--verify", "test -d .")
    assert done.report.changed == ("kept.log",), done.stderr


def _trap(workshop: Workshop, sprung: Path) -> str:
    """A program that leaves a mark when it is run."""
    program = workshop.folder / "trap"
    program.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{sprung}'\ncat\n")
    program.chmod(0o755)
    return str(program)


def test_a_hostile_configuration_runs_nothing_and_changes_nothing(workshop: Workshop) -> None:
    root, sprung = workshop.repo({"a.txt": "a\n", "b.txt": "b\n"}), workshop.folder / "sprung"
    trap = _trap(workshop, sprung)
    hooks = workshop.folder / "hooks"
    hooks.mkdir()
    for hook in ("post-index-change", "post-checkout", "reference-transaction", "pre-commit", "post-commit"):
        (hooks / hook).symlink_to(trap)
        (root / ".git" / "hooks" / hook).unlink(missing_ok=True)
        (root / ".git" / "hooks" / hook).symlink_to(trap)
    settings = {
        "core.fsmonitor": trap, "core.hooksPath": str(hooks), "diff.external": trap, "core.pager": trap,
        "core.editor": trap, "core.sshCommand": trap, "credential.helper": trap, "core.gitProxy": trap,
        "diff.own.textconv": trap, "diff.own.command": trap, "merge.own.driver": trap, "gpg.program": trap,
        "core.alternateRefsCommand": trap, "alias.ls-tree": f"!{trap}", "core.worktree": str(root),
        "trace2.eventTarget": str(sprung), "uploadpack.packObjectsHook": trap,
    }  # fmt: skip
    workshop.write(root, {".gitattributes": "*.txt diff=own merge=own\n"})
    workshop.commit(root)
    with (root / ".git" / "config").open("a") as config:
        for name, value in settings.items():
            section, _, key = name.rpartition(".")
            head, _, sub = section.partition(".")
            config.write(f'[{head}{f" {chr(34)}{sub}{chr(34)}" if sub else ""}]\n\t{key} = "{value}"\n')
    workshop.write(root, {"a.txt": "changed\n"})
    sprung.unlink(missing_ok=True)
    done = workshop.check(root, "--verify", "grep -h . a.txt b.txt")
    assert done.exit == 0, done.stderr
    assert done.report.changed == ("a.txt",)
    assert done.output("verify").split() == ["changed", "b"]
    assert not sprung.exists(), sprung.read_text()


def test_replace_refs_lie_to_nobody(workshop: Workshop) -> None:
    root = workshop.repo({"a.txt": "real\n", "b.txt": "b\n"})
    real, fake = (
        workshop.git(root, "rev-parse", "HEAD:a.txt"),
        workshop.run(root, "sh", "-c", "echo fake | git hash-object -w --stdin"),
    )
    workshop.git(root, "replace", real, fake.stdout.strip())
    workshop.write(root, {"b.txt": "c\n"})
    done = workshop.check(root, "--verify", "cat a.txt && git cat-file blob HEAD:a.txt")
    assert done.report.changed == ("b.txt",), done.stderr
    assert done.output("verify").split() == ["real", "real"]


def test_a_symlink_out_of_the_repository_and_a_nested_repository_are_refused(workshop: Workshop) -> None:
    root = workshop.repo({"a.txt": "a\n"})
    (root / "out").symlink_to("/etc")
    workshop.repo({"x.txt": "x\n"}, "project/nested")
    done = workshop.check(root, "--verify", "test -d .")
    assert done.exit == 1, done.stderr
    assert {f.rule for f in done.report.findings} >= {"symlink-escape", "nested-repository"}


def test_the_persons_index_and_work_tree_are_left_byte_for_byte(workshop: Workshop) -> None:
    root = workshop.repo({"a.txt": "a\n", "b.txt": "b\n"})
    workshop.write(root, {"a.txt": "staged\n"})
    workshop.git(root, "add", "a.txt")
    workshop.write(root, {"a.txt": "unstaged\n", "new.txt": "n\n"})

    def state() -> dict[str, bytes]:
        files = (path for path in root.rglob("*") if path.is_file())
        kept = {str(path.relative_to(root)): path.read_bytes() for path in files}
        return {name: data for name, data in kept.items() if "/objects/" not in name and "refs/proofstone" not in name}

    before = state()
    assert workshop.check(root, "--verify", "touch new2.txt; echo x > a.txt; rm b.txt").exit == 0
    assert state() == before


def test_a_change_within_the_second_of_the_last_snapshot_is_seen(workshop: Workshop) -> None:
    """Git compares whole seconds: the kept index must keep its time, or a file of the same size looks unchanged."""
    root = workshop.repo({"a.txt": "a\n"})
    store = open_store(open_repository(root), workshop.proofstone_home)
    base = workshop.git(root, "rev-parse", "HEAD^{tree}")
    time.sleep(1 - time.time() % 1)
    workshop.write(root, {"a.txt": "a\n"})
    assert take_snapshot(store, base).tree == base
    workshop.write(root, {"a.txt": "1\n"})
    time.sleep(1.1 - time.time() % 1)
    assert take_snapshot(store, base).tree != base
