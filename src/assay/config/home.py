"""Where Assay keeps its state: ledger, artifacts, private git directories, keys, locks, crash reports."""

from __future__ import annotations

import os
from pathlib import Path

from assay.errors import ConfigError


def assay_home() -> Path:
    """`$ASSAY_HOME`, else `$XDG_STATE_HOME/assay`, else `~/.local/state/assay`. Absolute; not created here."""
    if chosen := os.environ.get("ASSAY_HOME"):
        return Path(chosen).absolute()
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if state.is_absolute():  # the XDG rules say to ignore a relative one
        return state / "assay"
    try:
        return Path.home() / ".local" / "state" / "assay"
    except RuntimeError as error:
        raise ConfigError(
            "there is no home directory to keep Assay's state in",
            hint="set ASSAY_HOME to an absolute path that only you can read",
        ) from error
