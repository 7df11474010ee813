"""Where Proofstone keeps its state: ledger, artifacts, private git directories, keys, locks, crash reports."""

from __future__ import annotations

import os
from pathlib import Path

from proofstone.errors import ConfigError


def proofstone_home() -> Path:
    """`$PROOFSTONE_HOME`, else `$XDG_STATE_HOME/proofstone`, else `~/.local/state/proofstone`. Absolute; not created
    here."""
    if chosen := os.environ.get("PROOFSTONE_HOME"):
        return Path(chosen).absolute()
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if state.is_absolute():  # the XDG rules say to ignore a relative one
        return state / "proofstone"
    try:
        return Path.home() / ".local" / "state" / "proofstone"
    except RuntimeError as error:
        raise ConfigError(
            "there is no home directory to keep Proofstone's state in",
            hint="set PROOFSTONE_HOME to an absolute path that only you can read",
        ) from error
