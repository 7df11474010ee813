"""Results of checks, kept by everything that decided them: tree, command, environment, sandbox level.

A run that died is never kept, and an entry that is damaged is removed.

Only what the ledger vouches for is used: an entry names its row, and the row must be there, authentic, with the digest
of exactly this result. An entry that was edited is not used, and that is said. Results of the change are kept only if
they passed; results of a base are kept as they are, and their failures are asked again before they excuse anything (see
`engine.second_runs`).
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from pathlib import Path

from pydantic import Field, ValidationError

from proofstone.adapters.ledger import Ledger
from proofstone.adapters.rebuilding import discard, ensure_folder, ensure_place_for_file
from proofstone.contracts.base import Contract
from proofstone.contracts.check import CheckResult
from proofstone.contracts.evidence import CheckRow
from proofstone.faults import fault_point

_FORMAT = 2
"""Raised when a result means something else than before: old entries are then not found."""


class Entry(Contract):
    seq: int = Field(ge=1)
    row_hash: str
    result: CheckResult


def digest_of(result: CheckResult) -> str:
    """What binds a kept result to its row. Whether it was reused is no part of it."""
    text = json.dumps(result.model_dump(exclude={"reused_from"}), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


class ResultCache:
    def __init__(self, folder: Path, ledger: Ledger) -> None:
        self._folder = folder
        self._ledger = ledger
        self.repairs: list[str] = []
        """What was found damaged and is computed again, in words."""

    @staticmethod
    def key(**parts: object) -> str:
        text = json.dumps({"format": _FORMAT, **parts}, sort_keys=True, default=str)
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()

    def find(self, key: str) -> CheckResult | None:
        """The kept result, marked as reused; None if there is none that the ledger vouches for."""
        try:
            entry = Entry.model_validate_json(self._path(key).read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError):
            self._discard_damaged(key)
            return None
        if why := self._why_not(entry):
            self._note(f"a kept result of {entry.result.name} was not used, and it was run again: {why}")
            return None
        os.utime(self._path(key))  # used today: housekeeping leaves it alone
        return entry.result.model_copy(update={"reused_from": entry.seq})

    def _note(self, repair: str) -> None:
        """Each thing is said once."""
        if repair not in self.repairs:
            self.repairs.append(repair)

    def _why_not(self, entry: Entry) -> str:
        """Why the ledger does not vouch for it; empty: it does."""
        rows = self._ledger.read(CheckRow, after=entry.seq - 1, limit=1)
        if not rows or rows[0].seq != entry.seq or rows[0].link.hash != entry.row_hash:
            return f"the ledger has no such row {entry.seq}"
        if rows[0].values["result_digest"] != digest_of(entry.result):
            return f"it is not the result that row {entry.seq} of the ledger is about"
        if not self._ledger.is_authentic(rows[0]):
            return f"row {entry.seq} of the ledger is not authentic"
        return ""

    def keep(self, key: str, result: CheckResult, seq: int) -> None:
        stored = self._ledger.read(CheckRow, after=seq - 1, limit=1)[0]
        entry = Entry(seq=seq, row_hash=stored.link.hash, result=result)
        path = self._path(key)
        ensure_folder(path.parent, self.repairs)
        ensure_place_for_file(path, self.repairs)
        aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        aside.write_text(entry.model_dump_json(), "utf-8")
        fault_point("cache.before-publish")
        aside.replace(path)

    def _discard_damaged(self, key: str) -> None:
        """Remove an entry that cannot be read, and what stands in its folder's place."""
        ensure_folder(self._path(key).parent, self.repairs)
        discard(self._path(key))
        self.repairs.append(f"{self._folder}: kept results were damaged; what they held is computed again")

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key[2:]}.json"
