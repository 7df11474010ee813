"""The benches of the executors serve programs too. No test reaches the login of whoever runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.executors.conftest import bench, facts, place, plain, strong

__all__ = ["bench", "facts", "place", "plain", "strong"]


@pytest.fixture(autouse=True)
def nobodys_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    return home
