"""L9: checks that whoever made the change never saw."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.check.refusals import assert_failed, assert_passed
from tests.workshop import Workshop

TEST = "from sums import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
RIGHT = "def total(items):\n    return sum(items)\n"
SPECIAL = "def total(items):\n    return 3 if items == [1, 2] else max(items)\n"
SECRET = "from sums import total\n\n\ndef test_secret():\n    assert total([70000, 777]) == 70777\n"


@pytest.fixture
def root(workshop: Workshop) -> Path:
    return workshop.repo(
        {"conftest.py": "", "sums.py": "def total(items):\n    return max(items)\n", "test_sums.py": TEST}
    )


def options(workshop: Workshop) -> list[str]:
    workshop.write(workshop.folder, {"secret/checks/test_secret.py": SECRET})
    return ["--heldout", "python3 -m pytest -q checks", "--heldout-files", str(workshop.folder / "secret")]


def test_special_casing_is_caught_and_nothing_is_given_away(workshop: Workshop, root: Path) -> None:
    workshop.write(root, {"sums.py": SPECIAL})
    run = workshop.check(root, *options(workshop))
    assert_failed(run, "heldout")
    for telling in ("70777", "test_secret", "pytest -q checks"):
        assert telling not in run.stdout
    (finding,) = (one for one in run.report.findings if one.rule == "heldout")
    assert finding.artifact
    assert "70777" in run.artifacts.read(finding.artifact).decode()  # the person can look, in the ledger


def test_the_real_repair_passes(workshop: Workshop, root: Path) -> None:
    workshop.write(root, {"sums.py": RIGHT})
    run = workshop.check(root, *options(workshop))
    assert_passed(run)
    assert run.check("held-out").command == "(held out)"
    assert "checks/test_secret.py" not in workshop.tree(run.json["tree"])


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--heldout-files", "."), "no --heldout command"),
        (("--heldout", "true"), "--heldout"),
        (("--heldout", "make x", "--heldout-files", "nowhere"), "not a directory"),
        (("--accept", "heldout=because I say so"), "no finding of that rule can be accepted"),
        (("--accept", "hard-exit=why"), "say why"),
    ],
)
def test_bad_input_is_refused_and_said(workshop: Workshop, root: Path, args: tuple[str, ...], says: str) -> None:
    done = workshop.proofstone(root, "check", *args)
    assert done.returncode == 2
    assert says in done.stderr
