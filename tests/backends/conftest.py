"""The benches of the executors serve backends too."""

from __future__ import annotations

from tests.executors.conftest import bench, facts, place, plain, strong

__all__ = ["bench", "facts", "place", "plain", "strong"]
