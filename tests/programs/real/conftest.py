"""Where the real programs are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.executors.conftest import place
from tests.programs.real.installed import installed

__all__ = ["place"]


@pytest.fixture
def program(pytestconfig: pytest.Config) -> Callable[[str], Path]:
    return lambda name: installed(name, pytestconfig)
