"""A ledger in a temporary directory, opened as often as a test likes and closed after it."""

from __future__ import annotations

from tests.ledger.conftest import home, ledger, open_ledger, path

__all__ = ["home", "ledger", "open_ledger", "path"]
