"""The hash chain that binds rows to each other, and the authentication codes of rows. Pure.

Rules:
- There is one chain over all tables. Entry n binds the hash of entry n-1, its own sequence number, its table and the
  hash of its payload. The payload itself is not in the chain's hash, so a leaked secret can later be blanked without
  breaking what follows.
- A payload is hashed as canonical JSON: sorted keys, no spaces, ASCII only. Lone surrogates become `\\udXXX` escapes;
  a float is written as the shortest text that reads back as the same float; NaN and infinity are refused.
- The first entry's `prev_hash` is derived from the ledger's id, so entries of another ledger do not fit.
- A chain cannot show that its tail was cut off or that all of it was hashed again: anchors do that.
- An authentication code is an HMAC-SHA256 under the key of the ledger. Nobody can write a row that verifies without
  reading the key, even with write access to the file. Rows and checkpoints use different prefixes, so that a code of
  one cannot be used for the other.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Final, NamedTuple, TypeAlias

from pydantic import JsonValue

from proofstone.errors import LedgerError

Scalar: TypeAlias = str | int | None
"""The values that a column can hold."""
RowPayload: TypeAlias = Mapping[str, Scalar]
"""All columns of a row, except those computed from the chain itself."""


@dataclass(frozen=True, slots=True)
class ChainLink:
    """An entry of the chain."""

    seq: int
    table: str
    payload_hash: str
    prev_hash: str
    hash: str


@dataclass(frozen=True, slots=True)
class ChainEntry:
    """A sequence number as it is stored: in the chain, and in the data table that the chain names."""

    link: ChainLink | None
    """None if a data table has a row that is not in the chain."""
    row: ChainLink | None
    """The same five values in the data table; None if there is no row."""
    payload: RowPayload | None
    """The columns of the row; None if there is no row."""
    code: str | None = None
    """The authentication code that is stored with the entry."""
    is_unreadable: bool = False
    """Whether the row is in a part of the file that cannot be read, which is a break of its own."""


@dataclass(frozen=True, slots=True)
class ChainBreak:
    """A problem of the ledger. `seq` is None if it does not concern one row."""

    seq: int | None
    reason: str


_LEAF_TYPES: Final = frozenset((str, int, float, bool, type(None)))
_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical_json(value: JsonValue | RowPayload) -> str:
    """Return the canonical text of a JSON value."""
    _demand_string_keys(value)
    try:
        return _ENCODER.encode(value)
    except ValueError as error:
        raise LedgerError(
            f"cannot be recorded: {error}", hint="record a finite number, or null where there is none"
        ) from error


def payload_hash(payload: RowPayload) -> str:
    return _digest(_ENCODER.encode(payload))  # flat, with columns as keys: it cannot be refused


def genesis_hash(ledger_id: str) -> str:
    """Return the `prev_hash` of the first entry of a ledger."""
    return _digest(f"proofstone ledger\n{ledger_id}")


def link_hash(prev_hash: str, seq: int, table: str, payload: str) -> str:
    """Hash an entry. `payload` is the hash of a payload. Hashes have one length and tables no line break, so the text
    is unambiguous.
    """
    return _digest(f"{prev_hash}\n{seq}\n{table}\n{payload}")


def next_link(prev_hash: str, seq: int, table: str, payload: RowPayload) -> ChainLink:
    digest = payload_hash(payload)
    return ChainLink(seq, table, digest, prev_hash, link_hash(prev_hash, seq, table, digest))


def find_first_break(ledger_id: str, entries: Iterable[ChainEntry]) -> ChainBreak | None:
    """Return the first break of the entries, in order of their sequence numbers; None if all of them hold."""
    return next(find_breaks(ChainPosition(0, genesis_hash(ledger_id)), entries), None)


class ChainPosition(NamedTuple):
    """A position in the chain: the number and the hash of its last entry; for an empty chain, 0 and the genesis
    hash.
    """

    seq: int
    hash: str


def find_breaks(
    start: ChainPosition,
    entries: Iterable[ChainEntry | ChainBreak],
    *,
    is_authentic: Callable[[ChainEntry], bool] | None = None,
) -> Iterator[ChainBreak]:
    """Walk the entries that follow `start` in order, and yield every problem.

    A bad entry does not make the entries after it bad: the walk goes on with its stated hash or with its correct hash,
    whichever the next entry names. A `ChainBreak` among the entries is a part of the file that cannot be read; the walk
    accepts the first entry after it.
    """
    seq, accepted = start.seq, frozenset((start.hash,))
    for entry in entries:
        if isinstance(entry, ChainBreak):
            yield entry
            accepted = frozenset()
            continue
        link = entry.link
        if link is None:
            yield _orphan_break(entry.row)
            continue
        if accepted and link.seq != seq + 1:
            yield ChainBreak(seq + 1, f"entry {seq + 1} is missing from the chain: the next one is {link.seq}")
            accepted = frozenset()
        reason = _find_reason(accepted or frozenset((link.prev_hash,)), link, entry)
        if reason is None and is_authentic is not None and not is_authentic(entry):
            reason = (
                "its authentication code is not of this ledger's key: "
                "Proofstone did not write it, or the key was changed"
            )
        if reason is not None:
            yield ChainBreak(link.seq, reason)
        seq, accepted = link.seq, frozenset((link.hash,))
        if reason is not None:
            accepted |= {link_hash(link.prev_hash, link.seq, link.table, link.payload_hash)}


def sort_breaks(breaks: Iterable[ChainBreak]) -> tuple[ChainBreak, ...]:
    """Sort breaks by sequence number; breaks that concern no row come last."""
    return tuple(sorted(breaks, key=lambda problem: (problem.seq is None, problem.seq or 0)))


def _find_reason(accepted: frozenset[str], link: ChainLink, entry: ChainEntry) -> str | None:
    if link.prev_hash not in accepted:
        return "prev_hash is not the hash of the previous entry"
    if link.hash != link_hash(link.prev_hash, link.seq, link.table, link.payload_hash):
        return "the entry's hash does not follow from its contents"
    if entry.is_unreadable:
        return None
    if entry.row is None or entry.payload is None:
        return f"the chain names a row of {link.table} that does not exist"
    if entry.row != link:
        return f"the row in {link.table} and the chain disagree about its hashes"
    if payload_hash(entry.payload) != link.payload_hash:
        return f"the row in {link.table} was changed after it was written"
    return None


def _orphan_break(row: ChainLink | None) -> ChainBreak:
    if row is None:
        return ChainBreak(None, "an entry without a chain link and without a row")
    return ChainBreak(row.seq, f"a row of {row.table} has no place in the chain")


def _demand_string_keys(value: object) -> None:
    """Refuse keys that are not text: `json` would write the keys 1 and "1" alike."""
    if isinstance(value, dict):
        for key, element in value.items():
            if not isinstance(key, str):
                raise LedgerError(f"cannot be recorded: the key {key!r} is not text", hint="use text as keys")
            if type(element) not in _LEAF_TYPES:
                _demand_string_keys(element)
    elif isinstance(value, list | tuple):
        for element in value:
            if type(element) not in _LEAF_TYPES:
                _demand_string_keys(element)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


KEY_BYTES: Final = 32


class AuthenticationLevel(StrEnum):
    """Who is able to write a row that verifies."""

    NONE = "none"
    """There is no key: rows are chained, and anyone who can write the file can append to the chain."""
    KEY_FILE = "same-user key file"
    KEYRING = "kernel keyring"
    SEPARATE_ACCOUNT = "separate account (daemon)"

    @property
    def limits(self) -> str:
        """The limits of this level's protection, in one sentence."""
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
    """Return the code of a row. `digest` is the hash of its chain entry, which covers the row and everything
    before it.
    """
    return _compute_code(key, "row", digest)


def checkpoint_code(key: bytes, ledger_id: str, seq: int, digest: str) -> str:
    """Return the code of a checkpoint, which confirms that the chain was verified up to there."""
    return _compute_code(key, "checkpoint", f"{ledger_id}\n{seq}\n{digest}")


def codes_match(expected: str, actual: str) -> bool:
    """Return whether the two codes are equal, compared in constant time."""
    return hmac.compare_digest(expected.encode(), actual.encode("utf-8", "surrogateescape"))


def _compute_code(key: bytes, kind: str, text: str) -> str:
    return hmac.digest(key, f"proofstone {kind}\n{text}".encode("utf-8", "surrogatepass"), "sha256").hex()
