"""`proofstone init`, from nothing to a first verdict and back."""

from __future__ import annotations

import json
from pathlib import Path

from tests.needs import needs
from tests.terminal import run_in_terminal
from tests.workshop import Workshop

SUMS = "def total(items):\n    return sum(items)\n"
TEST = "from sums import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
PACKAGE = json.dumps({"name": "x", "version": "1.0.0", "scripts": {"test": "node --test"}})
NODE_TEST = "const {test} = require('node:test');\ntest('adds', () => require('node:assert').equal(1 + 1, 2));\n"


def test_a_python_project_is_set_up_at_a_terminal_and_taken_back(tmp_path: Path) -> None:
    workshop = Workshop.apart(tmp_path)
    root = workshop.repo({"pytest.ini": "[pytest]\n", "sums.py": SUMS, "tests/test_sums.py": TEST})
    (root / "requirements.txt").write_text("")
    workshop.commit(root)
    workshop.git(root, "remote", "add", "origin", "https://github.example/o/r.git")
    typed = {
        "write proofstone.toml?": "n\n",
        "write .gitignore?": "\n",
        "write .github/workflows/proofstone.yml?": "y\n",
        "install the git hooks?": "yes\n",
    }
    session = run_in_terminal(workshop, root, "init", "--no-color", typed=typed)
    assert session.exit == 0, session.screen
    assert "checks that your files name: tests:pytest" in session.screen
    assert "PASSED" in session.screen and "confidence medium" in session.screen, "the first verdict"
    assert workshop.git(root, "status", "--porcelain", "-uall").split() == [
        *("??", ".github/workflows/proofstone.yml"),
        *("??", ".gitignore"),
    ]
    assert (root / ".git/hooks/pre-commit").exists()

    (root / ".gitignore").write_text("__pycache__/\nmine\n")
    done = workshop.proofstone(root, "init", "--remove", "--json")
    assert json.loads(done.stdout) == {
        "restored": [],
        "removed": [".github/workflows/proofstone.yml"],
        "kept": [".gitignore"],
        "git_hook": True,
    }
    assert not (root / ".github").exists() and not (root / ".git/hooks/pre-commit").exists()
    assert "nothing to do" in workshop.proofstone(root, "init", "--remove").stdout


@needs("node")
def test_a_node_project_is_set_up_without_questions(tmp_path: Path) -> None:
    workshop = Workshop.apart(tmp_path)
    root = workshop.repo({"package.json": PACKAGE, "test/a.test.js": NODE_TEST, ".gitlab-ci.yml": "a: {script: b}\n"})
    shown = workshop.proofstone(root, "init", "--dry-run", "--json")
    assert {file["path"] for file in json.loads(shown.stdout)["files"]} == {".gitignore", ".gitlab/proofstone.yml"}
    assert workshop.git(root, "status", "--porcelain") == "", "nothing was written"
    done = workshop.proofstone(root, "init", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["written"][:2] == [".gitignore", ".gitlab/proofstone.yml"]
    assert document["first_check"]["outcome"] == "passed"
    assert any("include" in text for text in document["left_to_do"])
    again = json.loads(workshop.proofstone(root, "init", "--yes", "--json", "--no-check").stdout)
    assert [name for name in again["written"] if not name.startswith("git hooks")] == []


@needs("npm")
def test_the_commit_that_introduces_the_settings_goes_through_the_hook(tmp_path: Path) -> None:
    """The base names no set-up. Its own lock file asks for the commands that the new settings name."""
    workshop = Workshop.apart(tmp_path)
    lock = {"name": "x", "version": "1.0.0", "lockfileVersion": 3, "packages": {"": {"name": "x", "version": "1.0.0"}}}
    files = {"package.json": PACKAGE, "package-lock.json": json.dumps(lock), "test/a.test.js": NODE_TEST}
    root = workshop.repo(files)
    questions = ("write proofstone.toml?", "write .gitignore?", "install the git hooks?", "grant it")
    session = run_in_terminal(workshop, root, "init", "--no-color", typed=dict.fromkeys(questions, "y\n"))
    assert session.exit == 0, session.screen
    assert "npm ci" in session.screen and "PASSED" in session.screen
    workshop.git(root, "add", "--all")
    workshop.git(root, "commit", "--quiet", "--message", "Set up")

    workshop.write(root, {"proofstone.toml": '[environment]\nsetup = ["npm ci", "npm rebuild"]\n'})
    workshop.git(root, "checkout", "--quiet", "HEAD~1", "--", ".")
    report = workshop.check(root, "--base", "HEAD~1").report
    assert [finding.rule for finding in report.findings] == ["weakened-settings"], "the base's files do not ask for it"


def test_without_a_terminal_nothing_is_written_and_the_way_is_named(tmp_path: Path) -> None:
    workshop = Workshop.apart(tmp_path)
    root = workshop.repo({"a.py": "", "requirements.txt": "x\n"})
    done = workshop.proofstone(root, "init")
    assert done.returncode == 2 and "--dry-run" in done.stderr
    assert workshop.proofstone(root, "init", "--yes", "--remove").returncode == 2
    (root / ".git/proofstone-init.json").write_text("{")
    done = workshop.proofstone(root, "init", "--remove")
    assert done.returncode == 2 and "proofstone-init.json" in done.stderr
    (root / ".git/proofstone-init.json").unlink()
    (tmp_path / "elsewhere").mkdir()
    (root / ".github").symlink_to(tmp_path / "elsewhere")
    workshop.git(root, "remote", "add", "origin", "https://github.example/o/r.git")
    done = workshop.proofstone(root, "init", "--yes", "--no-check")
    assert done.returncode == 2 and "symbolic link" in done.stderr
    assert list((tmp_path / "elsewhere").iterdir()) == []
