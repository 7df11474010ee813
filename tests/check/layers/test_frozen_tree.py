"""L1: a work tree that moves while it is checked."""

from __future__ import annotations

import pytest

from tests.waiting import PATIENCE
from tests.workshop import Workshop

TEST = "from sums import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
RIGHT = "def total(items):\n    return sum(items)\n"


@pytest.mark.few(1)
@pytest.mark.parametrize("what", ["sums.py", "new.py"])
def test_a_work_tree_that_changes_while_it_is_checked_does_not_pass(workshop: Workshop, what: str) -> None:
    root = workshop.repo({"conftest.py": "", "sums.py": RIGHT, "test_sums.py": TEST})
    workshop.write(root, {"sums.py": f"{RIGHT}\n# a note\n", "slow.sh": "sleep 3\n"})
    running = workshop.start(root, "check", "--json", "--verbose", "--verify", "sh slow.sh && grep -q note sums.py")
    assert running.stderr is not None
    for line in running.stderr:
        if line.startswith("running"):
            break
    workshop.write(root, {what: "print('swapped')\n"})
    stdout, stderr = running.communicate(timeout=PATIENCE)
    assert running.returncode == 1, stderr
    assert "work-tree-moved" in stdout
    assert what in stdout
