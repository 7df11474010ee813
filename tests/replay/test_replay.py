"""`proofstone replay` on a repository with a history, as a person runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from proofstone.check.recording import find_recorded_checks
from proofstone.ledger.connection import ledger_path
from tests.workshop import Workshop

SHOP = "def total(prices):\n    return sum(prices)\n"
TEST = (
    "import unittest\n\nfrom shop import total\n\n\nclass Test(unittest.TestCase):\n"
    "    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n"
)


def build_history(workshop: Workshop) -> Path:
    root = workshop.repo({"shop.py": SHOP, "test_shop.py": TEST, ".gitignore": "__pycache__/\n"})
    extra = SHOP.replace("sum(prices)", "sum(prices) + 1")
    missing = "import unittest\n\nimport no_such_package\n" + TEST.split("\n", 1)[1]
    commit(workshop, root, "Honest", {"shop.py": SHOP.replace("sum(prices)", "sum(list(prices))")})
    commit(workshop, root, "Edited", {"shop.py": extra, "test_shop.py": TEST.replace(", 3", ", 4")})
    workshop.git(root, "switch", "--quiet", "--create", "side")
    commit(workshop, root, "Notes", {"notes.md": "Notes\n"})
    workshop.git(root, "switch", "--quiet", "main")
    workshop.git(root, "merge", "--quiet", "--no-ff", "side", "--message", "Merge side")
    commit(workshop, root, "Empty", {})
    commit(workshop, root, "Needs a package", {"test_more.py": missing})
    commit(workshop, root, "Broken", {"shop.py": SHOP.replace("sum(prices)", "0")})
    return root


def commit(workshop: Workshop, root: Path, message: str, files: Mapping[str, str]) -> None:
    workshop.write(root, files)
    workshop.commit(root, message)


def replay(workshop: Workshop, root: Path, *args: str) -> dict[str, Any]:
    done = workshop.proofstone(root, "replay", "--json", *args)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workshop, Path]:
    workshop = Workshop.apart(tmp_path_factory.mktemp("replay"))
    return workshop, build_history(workshop)


@pytest.fixture(scope="module")
def replayed(history: tuple[Workshop, Path]) -> Iterator[dict[str, Any]]:
    """The replay of everything, in a work tree with a change that must stay as it is."""
    workshop, root = history
    workshop.write(root, {"shop.py": "syntax error(", "new.txt": "new\n"})
    workshop.git(root, "add", "new.txt")
    state = (workshop.git(root, "status", "--porcelain"), workshop.git(root, "for-each-ref"))
    yield replay(workshop, root, "--html", str(workshop.folder / "page.html"))
    assert (workshop.git(root, "status", "--porcelain"), workshop.git(root, "for-each-ref")) == state


def test_each_commit_is_judged_as_its_check_would_have(replayed: dict[str, Any]) -> None:
    verdicts = {commit["commit"]["subject"]: commit["verdict"] for commit in replayed["commits"]}
    assert verdicts == {
        "Honest": "passed",
        "Edited": "asked",
        "Merge side": "passed",
        "Empty": "unchanged",
        "Needs a package": "unverifiable",
        "Broken": "refused",
    }
    by_subject = {commit["commit"]["subject"]: commit for commit in replayed["commits"]}
    assert by_subject["Edited"]["findings"][0]["rule"] == "edited-expectation"
    assert "no_such_package is not installed" in by_subject["Needs a package"]["causes"][0]["reason"]
    assert by_subject["Merge side"]["commit"]["is_merge"]
    assert replayed["known"] == 0


def test_a_replay_is_no_evidence_and_no_run_to_list(history: tuple[Workshop, Path], replayed: dict[str, Any]) -> None:
    workshop, root = history
    assert find_recorded_checks(ledger_path(workshop.proofstone_home), [str(root)]) == ()
    assert "no runs yet" in workshop.proofstone(root, "runs").stdout
    assert workshop.leftovers == []


def test_the_page_is_written(history: tuple[Workshop, Path], replayed: dict[str, Any]) -> None:
    page = (history[0].folder / "page.html").read_text()
    assert "6 commits" in page
    assert "no_such_package is not installed" in page


def test_what_was_replayed_is_not_checked_again(history: tuple[Workshop, Path], replayed: dict[str, Any]) -> None:
    workshop, root = history
    fewer = replay(workshop, root, "--last", "3")
    assert fewer["known"] == 3
    assert fewer["commits"] == replayed["commits"][-3:]
    merges = replay(workshop, root, "--merges")
    assert [commit["commit"]["subject"] for commit in merges["commits"]] == ["Merge side"]
    single = replay(workshop, root, "--range", "side^..side", "--verify", "grep -q Notes notes.md")
    assert [(commit["commit"]["subject"], commit["verdict"]) for commit in single["commits"]] == [("Notes", "passed")]
    assert single["known"] == 0, "another verify command is another question"


def test_a_killed_replay_goes_on_where_it_was(tmp_path: Path) -> None:
    workshop = Workshop.apart(tmp_path)
    root = workshop.repo({"a.txt": "1\n"})
    for number in "23":
        commit(workshop, root, f"Commit {number}", {"a.txt": f"{number}\n"})
    options = ("--jobs", "1", "--verify", "test -s a.txt")
    process = workshop.start(root, "replay", *options)
    assert process.stderr is not None
    first = process.stderr.readline()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert "Commit 2" in first
    resumed = replay(workshop, root, *options)
    assert resumed["known"] >= 1
    assert [found["commit"]["subject"] for found in resumed["commits"]] == ["Commit 2", "Commit 3"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--range", "nosuch..HEAD"), "there is no revision nosuch"),
        (("--range", "HEAD"), "is not a range"),
        (("--range", "main...side"), "is not a range"),
        (("--range=--all..HEAD",), "there is no revision --all"),
        (("--range", "HEAD..HEAD"), "there is no commit to replay"),
        (("--settings-at", "nosuch"), "--settings-at nosuch: there is no revision"),
        (("--settings-at", "HEAD", "--use-worktree-config"), "choose one"),
        (("--last", "0"), "--last"),
        (("--verify", " "), "--verify"),
    ],
)
def test_what_cannot_be_replayed_is_refused(
    history: tuple[Workshop, Path], args: tuple[str, ...], message: str
) -> None:
    workshop, root = history
    done: subprocess.CompletedProcess[str] = workshop.proofstone(root, "replay", *args)
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
