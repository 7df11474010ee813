"""A workshop for each test, with slots of its own, and the change that the tests are about."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workshop import Workshop

SUMS = "def total(items):\n    return sum(items)\n"
TEST = "from sums import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop.apart(tmp_path)


@pytest.fixture
def root(workshop: Workshop) -> Path:
    """A change that alters what a test expects, and nothing else is wrong with it."""
    root = workshop.repo({"conftest.py": "", "sums.py": SUMS, "tests/test_sums.py": TEST})
    workshop.write(root, {"sums.py": SUMS.replace("sum(items)", "sum(items) + 1")})
    workshop.write(root, {"tests/test_sums.py": TEST.replace("== 3", "== 4")})
    return root
