"""A check never moves what the person stands on: branch, index and work tree are as before."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workshop import Workshop

FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": (
        "import unittest\nfrom calc import add\n\n\nclass T(unittest.TestCase):\n"
        "    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n"
    ),
}


def standing(workshop: Workshop, root: Path) -> tuple[str, ...]:
    refs = workshop.git(root, "for-each-ref", "--format=%(refname) %(objectname)")
    kept = "\n".join(line for line in refs.splitlines() if not line.startswith("refs/proofstone/"))
    return (
        kept,
        workshop.git(root, "rev-parse", "HEAD"),
        workshop.git(root, "status", "--porcelain=v2", "--branch"),
        workshop.git(root, "diff"),
        workshop.git(root, "diff", "--cached"),
        workshop.git(root, "stash", "list"),
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("options", [(), ("--staged",)])
def test_branch_index_and_work_tree_are_left_alone(workshop: Workshop, options: tuple[str, ...]) -> None:
    root = workshop.repo(FILES)
    workshop.write(root, {"calc.py": FILES["calc.py"].replace("-", "+"), "new.txt": "new\n"})
    workshop.git(root, "add", "calc.py")
    before, index = standing(workshop, root), (root / ".git" / "index").read_bytes()
    run = workshop.check(root, *options)
    assert run.json["outcome"] == "passed"
    assert (root / ".git" / "index").read_bytes() == index
    assert standing(workshop, root) == before


def test_what_is_committed_next_is_the_change_and_not_its_reverse(workshop: Workshop) -> None:
    root = workshop.repo(FILES)
    workshop.write(root, {"calc.py": FILES["calc.py"].replace("-", "+")})
    run = workshop.check(root)
    workshop.git(root, "commit", "--quiet", "--all", "--message", "Mend")
    assert workshop.git(root, "rev-parse", "HEAD^{tree}") == run.json["tree"]
    assert workshop.git(root, "show", "HEAD:calc.py").endswith("return a + b")


def test_the_anchor_is_no_history(workshop: Workshop) -> None:
    root = workshop.repo(FILES)
    workshop.write(root, {"calc.py": FILES["calc.py"].replace("-", "+")})
    workshop.check(root)
    assert workshop.git(root, "cat-file", "-t", "refs/proofstone/ledger") == "blob"
    assert len(workshop.git(root, "log", "--all", "--oneline").splitlines()) == 1
