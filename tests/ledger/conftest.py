"""A SQLite ledger in a temporary directory, opened as often as a test likes and closed after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proofstone.ledger.connection import ledger_path
from proofstone.ledger.sqlite import SqliteLedger


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def path(home: Path) -> Path:
    return ledger_path(home)


@pytest.fixture
def open_ledger(path: Path) -> Iterator[Callable[[], SqliteLedger]]:
    opened: list[SqliteLedger] = []

    def open_one() -> SqliteLedger:
        opened.append(SqliteLedger(path))
        return opened[-1]

    yield open_one
    for ledger in opened:
        ledger.close()


@pytest.fixture
def ledger(open_ledger: Callable[[], SqliteLedger]) -> SqliteLedger:
    return open_ledger()
