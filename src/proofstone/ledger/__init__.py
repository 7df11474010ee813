"""The ledger: rows are appended, never changed, and each row is bound to all rows before it.

Every implementation keeps these rules (`proofstone.testing.ledger_conformance` tests them):
- The rows of one `append` are written together or not at all, in the given order, without a gap in their sequence
  numbers.
- When `append` has returned, the rows survive a crash of the machine. Rows that are not `durable` survive a crash of
  the process at once, and a crash of the machine as soon as a later durable append has returned. A row never survives
  without the rows before it.
- Several processes may append at once: they wait for each other and build one chain.
- The ledger stamps the time, which is for display only. The order is given by the sequence numbers.
- Every row carries an authentication code of the ledger's key. Nobody can write a row that verifies without reading the
  key, and nothing is appended after a row without a valid code.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from proofstone.common.models import FrozenModel
from proofstone.ledger.rules.anchors import Anchor
from proofstone.ledger.rules.chain import AuthenticationLevel, ChainBreak, Scalar, sort_breaks
from proofstone.ledger.schema import TABLES, LedgerRow, RowT, StoredRow, table_of

__all__ = [
    "Anchor",
    "LastRowCondition",
    "Ledger",
    "LedgerRow",
    "StoredRow",
    "Verification",
    "read_all_rows",
    "read_rows",
]

_PAGE = 1000


@dataclass(frozen=True)
class Verification:
    """The result of verifying a ledger."""

    head: Anchor
    problems: tuple[ChainBreak, ...] = ()
    """The problems, in the order of their rows; problems that concern no row come last."""
    start: int = 0
    """Rows up to this one were verified earlier and not again."""
    unlisted: int = 0
    """The number of problems beyond the listed ones."""
    level: AuthenticationLevel = AuthenticationLevel.NONE
    """Who is able to write a row that verifies."""

    @property
    def problem(self) -> ChainBreak | None:
        """The first problem."""
        return self.problems[0] if self.problems else None

    @property
    def ok(self) -> bool:
        return not self.problems

    def with_problems(self, more: Iterable[ChainBreak]) -> Verification:
        return replace(self, problems=sort_breaks((*self.problems, *more)))


@dataclass(frozen=True)
class LastRowCondition:
    """A condition of an append: the last row of a kind whose columns equal `where` is still the row `seq`."""

    kind: type[FrozenModel]
    where: Mapping[str, Scalar]
    seq: int = 0
    """0 means that there is no such row."""


class Ledger(Protocol):
    def append(
        self, *rows: LedgerRow, provided: Sequence[LastRowCondition] = (), durable: bool = True
    ) -> tuple[int, ...]:
        """Write the rows in one transaction and return their sequence numbers.

        If one of the conditions in `provided` does not hold within that transaction, nothing is written and the result
        is empty. Without `durable`, the call does not wait for the disk; this is for rows that nothing depends on, such
        as the start of a step.

        Raises LedgerBusyError when other writers held the ledger for too long, and LedgerError when the ledger cannot
        be written. In both cases none of the rows is written.
        """

    def read(
        self, kind: type[RowT], /, *, after: int = 0, limit: int | None = None, newest: bool = False, **where: Scalar
    ) -> list[StoredRow[RowT]]:
        """Return the rows of one kind with `seq > after` whose columns equal `where` (None means null), in order; with
        `newest`, the newest first.
        """

    def head(self) -> Anchor:
        """Return the last entry of the chain; for an empty chain, `seq` 0 and the genesis hash."""

    def hash_at(self, seq: int) -> str | None:
        """Return the hash of an entry, the genesis hash for 0, or None if there is no such entry."""

    def is_authentic(self, stored: StoredRow[Any]) -> bool:
        """Return whether the ledger holds exactly this row at its position, written with the ledger's key."""

    def verify(self, anchors: Sequence[Anchor] = (), *, since: Anchor | None = None) -> Verification:
        """Verify everything, or everything after a checkpoint. Problems are returned and not raised."""

    def checkpoint(self) -> Anchor | None:
        """Return the position up to which the ledger was verified, if an authentic checkpoint exists."""

    def record_checkpoint(self, anchor: Anchor) -> str:
        """Record that the ledger was verified up to here. Return the reason if that fails, otherwise an empty
        string.
        """

    def close(self) -> None: ...


def read_rows(
    ledger: Ledger, kind: type[RowT], upto: int, *, after: int = 0, **where: Scalar
) -> Iterator[StoredRow[RowT]]:
    """Yield the rows of one kind up to a sequence number, without holding all of them in memory."""
    while page := ledger.read(kind, after=after, limit=_PAGE, newest=False, **where):
        for stored in page:
            if stored.seq > upto:
                return
            yield stored
        after = page[-1].seq


def read_all_rows(ledger: Ledger, run_id: str | None = None, *, after: int = 0) -> Iterator[StoredRow[FrozenModel]]:
    """Yield the current rows of all tables in the order of the chain; with `run_id`, only the rows of that run."""
    upto = ledger.head().seq
    if run_id is None:
        streams = [read_rows(ledger, kind, upto, after=after) for kind in TABLES]
    else:
        kinds = [kind for kind in TABLES if "run_id" in table_of(kind).columns]
        streams = [read_rows(ledger, kind, upto, run_id=run_id) for kind in kinds]
    return heapq.merge(*streams, key=lambda stored: stored.seq)
