"""Authentication codes: who could have written a row. Pure.

A code is the HMAC-SHA256 of what is authenticated under the key of the ledger. Whoever cannot read the key cannot write
a row that verifies, even if they can write to the file. Each kind of thing has a prefix of its own, so that a code of
one cannot be used for another.
"""

from __future__ import annotations

import hmac
from enum import StrEnum
from typing import Final

KEY_BYTES: Final = 32


class AuthenticationLevel(StrEnum):
    """Who can write a row that verifies."""

    NONE = "none"
    """There is no key here: rows are chained, and anybody who can write the file can add to the chain."""
    KEY_FILE = "same-user key file"
    KEYRING = "kernel keyring"
    SEPARATE_ACCOUNT = "separate account (daemon)"

    @property
    def limits(self) -> str:
        """What this level does not protect from, in one sentence."""
        return _LIMITS[self]


_LIMITS: Final = {
    AuthenticationLevel.NONE: "no key is readable here, so nothing shows who wrote the rows",
    AuthenticationLevel.KEY_FILE: (
        "an unsandboxed process of your own account can read the key and forge rows; "
        "`proofstone ledger init --daemon` gives the key to another account"
    ),
    AuthenticationLevel.KEYRING: (
        "an unsandboxed process of your own account that shares the keyring can use the key and forge rows; "
        "`proofstone ledger init --daemon` gives the key to another account"
    ),
    AuthenticationLevel.SEPARATE_ACCOUNT: (
        "a process of your own account cannot change, remove or backdate a row; it can still ask the daemon to add one"
    ),
}


def row_code(key: bytes, digest: str) -> str:
    """The code of a row. `digest` is the hash of its chain entry, which covers the row and everything before it."""
    return _code(key, "row", digest)


def checkpoint_code(key: bytes, ledger_id: str, seq: int, digest: str) -> str:
    """The code of a verified checkpoint: that the chain was verified up to here."""
    return _code(key, "checkpoint", f"{ledger_id}\n{seq}\n{digest}")


def is_code(expected: str, found: str) -> bool:
    """Whether the two codes are equal, compared in constant time."""
    return hmac.compare_digest(expected.encode(), found.encode("utf-8", "surrogateescape"))


def _code(key: bytes, kind: str, text: str) -> str:
    return hmac.digest(key, f"proofstone {kind}\n{text}".encode("utf-8", "surrogatepass"), "sha256").hex()
