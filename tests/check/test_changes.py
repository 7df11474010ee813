"""Changes that are no ordinary edit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workshop import Workshop, assert_failed, assert_passed, assert_refused

FILES = {"good.txt": "good\n", "run.sh": "#!/bin/sh\nexit 0\n"}


@pytest.fixture
def root(workshop: Workshop) -> Path:
    return workshop.repo(FILES)


def test_an_empty_change_never_passes_although_what_is_demanded_holds(workshop: Workshop, root: Path) -> None:
    run = workshop.check(root, "--verify", "grep -q good good.txt")
    assert (run.exit, run.report.outcome, run.report.confidence) == (0, "nothing-to-check", None)
    assert run.report.changed == ()
    assert run.report.tree == run.report.base
    assert "what you asked for holds, but nothing is proven about a change" in run.report.reason


def test_an_empty_change_does_not_pass_a_failing_command(workshop: Workshop, root: Path) -> None:
    assert_failed(workshop.check(root, "--verify", "grep -q bad good.txt"))


def test_a_change_that_only_deletes(workshop: Workshop, root: Path) -> None:
    (root / "good.txt").unlink()
    run = workshop.check(root, "--verify", "test ! -e good.txt")
    assert_passed(run)
    assert run.report.changed == ("good.txt",)
    assert_failed(workshop.check(root, "--verify", "test -e good.txt"))


def test_a_change_that_deletes_everything(workshop: Workshop, root: Path) -> None:
    (root / "good.txt").unlink()
    (root / "run.sh").unlink()
    assert_passed(workshop.check(root, "--verify", 'test -z "$(ls)"'))


def test_a_change_that_only_renames(workshop: Workshop, root: Path) -> None:
    workshop.git(root, "mv", "good.txt", "better.txt")
    run = workshop.check(root, "--verify", "test -e better.txt && test ! -e good.txt")
    assert_passed(run)
    assert run.report.changed == ("better.txt", "good.txt")


def test_a_change_of_mode_alone(workshop: Workshop, root: Path) -> None:
    (root / "run.sh").chmod(0o755)
    run = workshop.check(root, "--verify", "./run.sh")
    assert_passed(run)
    assert run.report.changed == ("run.sh",)
    (root / "run.sh").chmod(0o644)
    assert_failed(workshop.check(root, "--verify", "./run.sh"))


def test_a_file_that_becomes_a_folder_and_back(workshop: Workshop, root: Path) -> None:
    (root / "good.txt").unlink()
    workshop.write(root, {"good.txt/inside.txt": "x\n"})
    assert_passed(workshop.check(root, "--verify", "test -f good.txt/inside.txt"))


@pytest.mark.parametrize("content", [bytes(50 << 20), b"text\n" * (10 << 20)], ids=["binary", "text"])
def test_a_huge_file_is_a_finding(workshop: Workshop, root: Path, content: bytes) -> None:
    workshop.write(root, {"huge.bin": content})
    run = workshop.check(root, "--verify", "test -d .")
    assert_failed(run, "size")
    assert "huge.bin" in run.report.reason


def test_of_a_partial_commit_only_what_is_staged_counts(workshop: Workshop, root: Path) -> None:
    command = ("--verify", "grep -q good good.txt")
    workshop.write(root, {"good.txt": "good indeed\n"})
    workshop.git(root, "add", "good.txt")
    workshop.write(root, {"good.txt": "broken\n"})
    assert_passed(workshop.check(root, "--staged", *command))
    assert_failed(workshop.check(root, *command))
    workshop.git(root, "add", "good.txt")
    workshop.write(root, {"good.txt": "good again\n"})
    assert_failed(workshop.check(root, "--staged", *command))
    assert_passed(workshop.check(root, *command))


def test_an_untracked_file_is_not_staged(workshop: Workshop, root: Path) -> None:
    workshop.write(root, {"new.txt": "new\n"})
    assert_failed(workshop.check(root, "--staged", "--verify", "test -e new.txt"))
    assert_passed(workshop.check(root, "--verify", "test -e new.txt"))


def test_checking_leaves_index_and_work_tree_alone(workshop: Workshop, root: Path) -> None:
    workshop.write(root, {"good.txt": "good, staged\n", "new.txt": "x\n"})
    workshop.git(root, "add", "good.txt")
    index = (root / ".git" / "index").read_bytes()
    status = workshop.git(root, "status", "--porcelain")
    assert_passed(workshop.check(root, "--verify", "echo spoilt > good.txt; rm -rf new.txt .git; test -f good.txt"))
    assert (root / ".git" / "index").read_bytes() == index
    assert workshop.git(root, "status", "--porcelain") == status
    assert (root / "good.txt").read_text() == "good, staged\n"


def test_a_merge_without_a_result_cannot_be_staged(workshop: Workshop, root: Path) -> None:
    blob = workshop.git(root, "rev-parse", "HEAD:good.txt")
    (root / "stages").write_text(f"0 {'0' * 40}\tgood.txt\n100644 {blob} 1\tgood.txt\n100644 {blob} 2\tgood.txt\n")
    workshop.run(root, "sh", "-c", "git update-index --index-info < stages && rm stages")
    assert_refused(workshop.check(root, "--staged", "--verify", "test -d ."), "conflict")


def test_syntax_that_nobody_can_parse_is_not_said_to_be_right(workshop: Workshop) -> None:
    root = workshop.repo({"a.weird": "a\n"})
    workshop.write(root, {"a.weird": "b\n"})
    line = workshop.check(root, "--verify", "test -s a.weird").check("syntax")
    assert (line.verdict, line.required) == ("unverifiable", False)
    workshop.write(root, {"b.py": "b = 1\n"})
    assert workshop.check(root, "--verify", "test -s a.weird").check("syntax").verdict == "pass"
