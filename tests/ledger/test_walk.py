"""What is read of a damaged table comes to an end, whatever SQLite gives back."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import cast

from proofstone.ledger.verification import _DamagedRange, _scan_rows


class Circle:
    """A table of which the same row is given again and again, behind whatever position it is asked for."""

    def __init__(self, memory: sqlite3.Connection) -> None:
        self._memory = memory

    def execute(self, query: str, _arguments: tuple[int, ...]) -> sqlite3.Cursor:
        if query.endswith("LIMIT 1"):
            return self._memory.execute("SELECT 7")
        raise sqlite3.DatabaseError("database disk image is malformed")


def test_a_file_that_leads_in_a_circle_is_damaged_from_there_on() -> None:
    with closing(sqlite3.connect(":memory:")) as memory:
        found = list(_scan_rows(cast(sqlite3.Connection, Circle(memory)), "chain", "seq", 3))
    assert found == [
        _DamagedRange("chain", 4, 6, "database disk image is malformed"),
        _DamagedRange("chain", 7, None, "database disk image is malformed"),
    ]
