"""Where the real programs are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.backends.programs.real.desk import installed


@pytest.fixture
def program(pytestconfig: pytest.Config) -> Callable[[str], Path]:
    return lambda name: installed(name, pytestconfig)
