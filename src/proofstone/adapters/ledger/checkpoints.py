"""A verified checkpoint: up to which row a ledger was verified, kept outside of the database.

It carries a code of the ledger's key, so that nobody without the key can spare a ledger its verification. One that is
damaged, of another ledger or of another key counts as none: everything is verified then.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from pydantic import ValidationError

from proofstone.contracts.base import Contract
from proofstone.core.anchoring import Anchor
from proofstone.core.authentication import checkpoint_code, is_code
from proofstone.faults import fault_point


class Checkpoint(Contract):
    anchor: Anchor
    mac: str


def checkpoint_path(ledger: Path) -> Path:
    return ledger.parent / "checkpoint.json"


def read_checkpoint(path: Path, ledger_id: str, key: bytes) -> Anchor | None:
    try:
        found = Checkpoint.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    anchor = found.anchor
    good = anchor.ledger_id == ledger_id and is_code(_code(key, anchor), found.mac)
    return anchor if good else None


def write_checkpoint(path: Path, anchor: Anchor, key: bytes) -> str:
    """Why it could not be kept; empty: it was."""
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    text = Checkpoint(anchor=anchor, mac=_code(key, anchor)).model_dump_json()
    try:
        try:
            with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            fault_point("checkpoint.before-publish")
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""


def _code(key: bytes, anchor: Anchor) -> str:
    return checkpoint_code(key, anchor.ledger_id, anchor.seq, anchor.hash)
