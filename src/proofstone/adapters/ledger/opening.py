"""Opening the ledger of a state directory, whoever keeps it."""

from __future__ import annotations

import os
from pathlib import Path

from proofstone.adapters.ledger import Ledger
from proofstone.adapters.ledger.daemon_client import DaemonLedger
from proofstone.adapters.ledger.keys import key_path, read_key
from proofstone.adapters.ledger.location import daemon_location, own_ledger_path
from proofstone.adapters.ledger.sqlite import Mode, SqliteLedger
from proofstone.core.authentication import AuthenticationLevel


def authentication_level(home: Path) -> AuthenticationLevel:
    """Who can write a row that verifies, as the state directory is set up."""
    location = daemon_location(home)
    if location is not None and location.account_uid != os.getuid():
        return AuthenticationLevel.SEPARATE_ACCOUNT
    if location is not None:
        return AuthenticationLevel.KEY_FILE
    key = read_key(key_path(own_ledger_path(home)))
    return AuthenticationLevel.NONE if key is None else key.level


def open_ledger(home: Path, mode: Mode) -> Ledger:
    location = daemon_location(home)
    if location is None:
        return SqliteLedger(own_ledger_path(home), mode)
    return DaemonLedger(location, writable=mode != "read")
