"""A desk of its own for each test; and the executors' benches, for commands in the sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.executors.conftest import bench, facts, place, plain, strong
from tests.tools.desk import Desk

__all__ = ["bench", "facts", "place", "plain", "strong"]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)
