"""The folder of Proofstone's state: ledger, artifacts, private git directories, keys, locks, crash reports."""

from __future__ import annotations

import os
from pathlib import Path

from proofstone.errors import ConfigError


def find_proofstone_home() -> Path:
    """Return the absolute path of the state folder, without creating it.

    It is `$PROOFSTONE_HOME`, else `$XDG_STATE_HOME/proofstone`, else `~/.local/state/proofstone`.
    """
    if chosen := os.environ.get("PROOFSTONE_HOME"):
        return Path(chosen).absolute()
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if state.is_absolute():  # the XDG specification says to ignore a relative path
        return state / "proofstone"
    try:
        return Path.home() / ".local" / "state" / "proofstone"
    except RuntimeError as error:
        raise ConfigError(
            "there is no home directory for Proofstone's state",
            hint="set PROOFSTONE_HOME to an absolute path that only you can read",
        ) from error
