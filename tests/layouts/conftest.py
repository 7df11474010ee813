"""Every test here has a workshop: a state directory and a HOME of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workshop import Workshop


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop.apart(tmp_path)
