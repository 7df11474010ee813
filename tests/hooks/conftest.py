"""A place for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hooks.place import Place
from tests.workshop import Workshop


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A repository without hooks of anybody's."""
    found = Place.made(Workshop.apart(tmp_path))
    for sample in found.folder.iterdir():
        sample.unlink()
    return found


@pytest.fixture
def guarded(place: Place) -> Place:
    """One with Proofstone's."""
    place.install_forked()
    return place
