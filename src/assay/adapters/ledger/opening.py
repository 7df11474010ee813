"""Opening the ledger of a state directory, whoever keeps it."""

from __future__ import annotations

from pathlib import Path

from assay.adapters.ledger import Ledger
from assay.adapters.ledger.daemon_client import DaemonLedger
from assay.adapters.ledger.location import daemon_location, own_ledger_path
from assay.adapters.ledger.sqlite import Mode, SqliteLedger


def open_ledger(home: Path, mode: Mode) -> Ledger:
    location = daemon_location(home)
    if location is None:
        return SqliteLedger(own_ledger_path(home), mode)
    return DaemonLedger(location, writable=mode != "read")
