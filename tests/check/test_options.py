"""Options: what they mean, and what is said when they mean nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.workshop import Workshop, assert_failed, assert_passed, assert_refused

TRUE = ("--verify", "test -e a.txt")
PYTEST = {
    "pyproject.toml": "[tool.pytest.ini_options]\n",
    "test_sums.py": "def test_total():\n    assert 1 + 1 == 2\n",
}


@pytest.fixture
def root(workshop: Workshop) -> Path:
    root = workshop.repo({"a.txt": "one\n"})
    workshop.git(root, "tag", "first")
    workshop.git(root, "tag", "--annotate", "--message", "First", "noted")
    workshop.write(root, {"a.txt": "two\n"})
    workshop.commit(root)
    workshop.write(root, {"b/c.txt": "three\n"})
    return root


@pytest.mark.few(1, ci=2)
@pytest.mark.parametrize("base", ["first", "noted", "HEAD~1", "main~1", "HEAD^"])
def test_a_base_may_be_anything_that_names_a_commit(workshop: Workshop, root: Path, base: str) -> None:
    run = workshop.check(root, "--base", base, *TRUE)
    assert_passed(run)
    assert "b/c.txt" in run.report.changed
    assert run.report.base_commit == workshop.git(root, "rev-parse", f"{base}^{{commit}}")


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "base", ["nosuch", "first..HEAD", "HEAD^@", "a.txt", "HEAD:a.txt", "HEAD^{tree}", "0" * 40, " "]
)
def test_a_base_that_names_no_commit_is_refused(workshop: Workshop, root: Path, base: str) -> None:
    assert_refused(workshop.check(root, "--base", base, *TRUE), "--base", "git log --oneline")


@pytest.mark.parametrize("base", ["-x", "--all", "--output=pwned"])
def test_a_base_cannot_be_an_option_of_git(workshop: Workshop, root: Path, base: str) -> None:
    assert_refused(workshop.check(root, f"--base={base}", *TRUE), "does not start with a dash")
    assert not (root / "pwned").exists()


@pytest.mark.parametrize("command", ["", "   ", "\n"])
def test_an_empty_command_is_refused(workshop: Workshop, root: Path, command: str) -> None:
    assert_refused(workshop.check(root, "--verify", command), "--verify", "pytest -q")


def test_a_command_that_is_no_text_is_refused(workshop: Workshop, root: Path) -> None:
    assert_refused(workshop.check(root, "--verify", os.fsdecode(b"grep -q caf\xe9 a.txt")), "--verify", "UTF-8")


def test_an_unknown_option_says_where_help_is(workshop: Workshop, root: Path) -> None:
    assert_refused(workshop.check(root, "--verfy", "true"), "--verfy", "--help")


def test_every_command_must_pass(workshop: Workshop, root: Path) -> None:
    assert_passed(workshop.check(root, "--verify", "test -e a.txt", "--verify", "test -e b/c.txt"))
    run = workshop.check(root, "--verify", "test -e a.txt", "--verify", "test -e b", "--verify", "test -e c")
    assert_failed(run)
    assert [line.verdict for line in run.report.checks if line.kind == "verify"] == ["pass", "pass", "fail"]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("globs", "outside"),
    [
        (["b/c.txt"], []),
        (["b"], []),
        (["./b/"], []),
        (["**/*.txt"], []),
        (["*.txt", "b/*"], []),
        (["*.txt"], ["b/c.txt"]),
        (["*"], []),
        (["b/c.tx"], ["b/c.txt"]),
        (["a.txt"], ["b/c.txt"]),
    ],
)
def test_files_outside_the_declared_ones_are_findings(
    workshop: Workshop, root: Path, globs: list[str], outside: list[str]
) -> None:
    run = workshop.check(root, *(word for glob in globs for word in ("--files", glob)), *TRUE)
    assert [f.path for f in run.report.findings if f.rule == "undeclared-file"] == outside
    assert run.exit == (1 if outside else 0)


def test_a_test_that_must_pass_and_is_not_there_is_named_with_its_nearest(workshop: Workshop) -> None:
    root = workshop.repo(PYTEST)
    workshop.write(root, {"note.txt": "x\n"})
    assert_passed(workshop.check(root, "--must-pass", "test_total"))
    run = workshop.check(root, "--must-pass", "test_totals")
    assert_failed(run, "must-pass")
    (finding,) = run.report.findings
    assert finding.detail == "test_totals: was not executed"
    assert finding.fix == "the nearest test is test_sums.py::test_total"


def test_a_test_that_must_pass_and_is_skipped_fails(workshop: Workshop) -> None:
    root = workshop.repo(PYTEST)
    skipped = "import pytest\n\n\n@pytest.mark.skip\ndef test_new():\n    assert False\n"
    workshop.write(root, {"test_new.py": skipped})
    assert_failed(workshop.check(root, "--must-pass", "test_new.py::test_new"), "must-pass")


def test_a_reason_must_be_a_reason(workshop: Workshop, root: Path) -> None:
    assert_refused(workshop.check(root, "--accept-test-changes", "ok", *TRUE), "say why")
