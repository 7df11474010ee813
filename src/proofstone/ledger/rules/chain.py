"""The hash chain: how rows are bound to each other, and how a break is found. Pure.

Rules:
- There is one chain over all tables. Entry n binds the hash of entry n-1, its own sequence number, its table and
  the hash of its payload. The payload itself is not in the chain's hash, so a leaked secret can later be blanked
  without breaking what follows.
- A payload is hashed as canonical JSON: sorted keys, no spaces, ASCII only. Lone surrogates become `\\udXXX`
  escapes; a float is written as the shortest text that reads back as the same float; NaN and infinity are refused.
- The first entry's `prev_hash` is derived from the ledger's id, so entries of another ledger do not fit.
- A chain cannot see that its tail was cut or that all of it was hashed anew: anchors do that.

Authentication codes: who could have written a row. Pure.

A code is the HMAC-SHA256 of what is authenticated under the key of the ledger. Whoever cannot read the key cannot write
a row that verifies, even if they can write to the file. Each kind of thing has a prefix of its own, so that a code of
one cannot be used for another.
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
"""What a column can hold."""
Payload: TypeAlias = Mapping[str, Scalar]
"""All columns of a row that the ledger did not compute from the chain itself."""


@dataclass(frozen=True, slots=True)
class Link:
    """One entry of the chain."""

    seq: int
    table: str
    payload_hash: str
    prev_hash: str
    hash: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One sequence number as it is stored: in the chain, and in the data table that the chain names."""

    link: Link | None
    """None when a row stands in a data table without its place in the chain."""
    row: Link | None
    """The same five values as the data table has them; None when the row is not there."""
    payload: Payload | None
    """The row's columns; None when the row is not there."""
    code: str | None = None
    """The authentication code that is stored with the entry."""
    unreadable: bool = False
    """The row stands in a part of the file that cannot be read, which is a break of its own."""


@dataclass(frozen=True, slots=True)
class Break:
    """Something that is wrong. `seq` is None when it is not about one row."""

    seq: int | None
    reason: str


_NOTHING_WITHIN: Final = frozenset((str, int, float, bool, type(None)))
_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical_json(value: JsonValue | Payload) -> str:
    """The one text of a JSON value."""
    _demand_string_keys(value)
    try:
        return _ENCODER.encode(value)
    except ValueError as error:
        raise LedgerError(
            f"cannot be recorded: {error}", hint="record a finite number, or null where there is none"
        ) from error


def payload_hash(payload: Payload) -> str:
    return _digest(_ENCODER.encode(payload))  # flat, with columns as keys: nothing that could be refused


def genesis(ledger_id: str) -> str:
    """What the first entry of a ledger has as its `prev_hash`."""
    return _digest(f"proofstone ledger\n{ledger_id}")


def link_hash(prev_hash: str, seq: int, table: str, payload: str) -> str:
    """`payload` is a payload's hash. Hashes have one length and tables no line break: the text has one reading."""
    return _digest(f"{prev_hash}\n{seq}\n{table}\n{payload}")


def next_link(prev_hash: str, seq: int, table: str, payload: Payload) -> Link:
    digest = payload_hash(payload)
    return Link(seq, table, digest, prev_hash, link_hash(prev_hash, seq, table, digest))


def first_break(ledger_id: str, entries: Iterable[Entry]) -> Break | None:
    """Walk the entries in order of their sequence numbers; None when all of them hold."""
    return next(find_breaks(Position(0, genesis(ledger_id)), entries), None)


class Position(NamedTuple):
    """A place in the chain: the number and the hash of its last entry, for an empty chain 0 and the genesis value."""

    seq: int
    hash: str


def find_breaks(
    start: Position, entries: Iterable[Entry | Break], *, is_authentic: Callable[[Entry], bool] | None = None
) -> Iterator[Break]:
    """Walk the entries that follow `start` in order, and yield everything that is wrong.

    One bad entry does not make those after it bad: the walk goes on with the hash that it states or the one that it
    should have had, whichever its successor names. A `Break` among the entries is a part of the file that could not be
    read; the entries after it are taken from where they begin.
    """
    seq, accepted = start.seq, frozenset((start.hash,))
    for entry in entries:
        if isinstance(entry, Break):
            yield entry
            accepted = frozenset()
            continue
        link = entry.link
        if link is None:
            yield _orphan(entry.row)
            continue
        if accepted and link.seq != seq + 1:
            yield Break(seq + 1, f"entry {seq + 1} is missing from the chain: the next one is {link.seq}")
            accepted = frozenset()
        reason = _reason(accepted or frozenset((link.prev_hash,)), link, entry)
        if reason is None and is_authentic is not None and not is_authentic(entry):
            reason = "its authentication code is not of this ledger's key: Proofstone did not write it, or the "
            "key was changed"
        if reason is not None:
            yield Break(link.seq, reason)
        seq, accepted = link.seq, frozenset((link.hash,))
        if reason is not None:
            accepted |= {link_hash(link.prev_hash, link.seq, link.table, link.payload_hash)}


def earliest(*breaks: Break | None) -> Break | None:
    """The break with the lowest sequence number; one that is about no row comes last."""
    return next(iter(in_row_order(item for item in breaks if item is not None)), None)


def in_row_order(breaks: Iterable[Break]) -> tuple[Break, ...]:
    """Sorted by sequence number; those about no row come last."""
    return tuple(sorted(breaks, key=lambda item: (item.seq is None, item.seq or 0)))


def _reason(accepted: frozenset[str], link: Link, entry: Entry) -> str | None:
    if link.prev_hash not in accepted:
        return "prev_hash is not the hash of the entry before"
    if link.hash != link_hash(link.prev_hash, link.seq, link.table, link.payload_hash):
        return "the entry's hash does not follow from its contents"
    if entry.unreadable:
        return None
    if entry.row is None or entry.payload is None:
        return f"the chain names a row of {link.table} that is not there"
    if entry.row != link:
        return f"the row in {link.table} and the chain disagree about its hashes"
    if payload_hash(entry.payload) != link.payload_hash:
        return f"the row in {link.table} was changed after it was written"
    return None


def _orphan(row: Link | None) -> Break:
    if row is None:
        return Break(None, "an entry without a chain link and without a row")
    return Break(row.seq, f"a row of {row.table} has no place in the chain")


def _demand_string_keys(value: object) -> None:
    """`json` would write the keys 1 and "1" alike."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise LedgerError(f"cannot be recorded: the key {key!r} is not text", hint="use text as keys")
            if type(item) not in _NOTHING_WITHIN:
                _demand_string_keys(item)
    elif isinstance(value, list | tuple):
        for item in value:
            if type(item) not in _NOTHING_WITHIN:
                _demand_string_keys(item)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


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
