"""Opening the ledger of a state directory, whoever keeps it."""

from __future__ import annotations

from pathlib import Path

from assay.adapters.ledger import Ledger
from assay.adapters.ledger.location import ledger_path
from assay.adapters.ledger.sqlite import Mode, SqliteLedger


def open_ledger(home: Path, mode: Mode) -> Ledger:
    return SqliteLedger(ledger_path(home), mode)
