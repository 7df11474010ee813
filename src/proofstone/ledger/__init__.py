"""The ledger: rows are added, never changed, and each is bound to all before it.

Rules, for every implementation (`proofstone.testing.ledger_conformance` holds them to it):
- the rows of one `append` are all there or none is, in the order given, without a gap in their sequence numbers;
- when `append` has returned, the rows survive a crash of the machine; those that need not be `durable` survive a crash
  of the process at once, and one of the machine when a later append does: what survives is never without what was
  before it;
- several processes may append at once: they wait for each other and make one chain;
- the ledger stamps the time. It is for display: order is by sequence number;
- every row carries a code of the ledger's key: whoever cannot read the key cannot write a row that verifies, and
  nothing is added after a row without a valid code.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from proofstone.common.models import Contract
from proofstone.ledger.rules.anchors import Anchor
from proofstone.ledger.rules.chain import AuthenticationLevel, Break, Scalar, in_row_order
from proofstone.ledger.schema import TABLES, R, Row, Stored, table_of

__all__ = ["Anchor", "Last", "Ledger", "Row", "Stored", "Verification", "in_order", "rows_of"]

_PAGE = 1000


@dataclass(frozen=True)
class Verification:
    """What a walk over the ledger found."""

    head: Anchor
    problems: tuple[Break, ...] = ()
    """What is wrong, in order of the rows; what is about no row comes last."""
    start: int = 0
    """Rows up to this one had been verified before and were not looked at again."""
    unlisted: int = 0
    """How many problems there are beside those that are listed."""
    level: AuthenticationLevel = AuthenticationLevel.NONE
    """Who can write a row that verifies."""

    @property
    def problem(self) -> Break | None:
        """The first thing that is wrong."""
        return self.problems[0] if self.problems else None

    @property
    def ok(self) -> bool:
        return not self.problems

    def with_problems(self, more: Iterable[Break]) -> Verification:
        return replace(self, problems=in_row_order((*self.problems, *more)))


@dataclass(frozen=True)
class Last:
    """A condition of an append: the last row of a kind whose columns equal `where` is still this one."""

    kind: type[Contract]
    where: Mapping[str, Scalar]
    seq: int = 0
    """0: there is none."""


class Ledger(Protocol):
    def append(self, *rows: Row, provided: Sequence[Last] = (), durable: bool = True) -> tuple[int, ...]:
        """Write the rows in one transaction; their sequence numbers, once they are durable. If one of the conditions
        does not hold, looked at in that transaction, nothing is written and there are no numbers. Not `durable`: the
        disk is not waited for, for rows that nothing rests on, such as that something has begun.

        Raises LedgerBusyError when other writers held the ledger for too long, LedgerError when it cannot be
        written. None of the rows counts then.
        """

    def read(
        self, kind: type[R], /, *, after: int = 0, limit: int | None = None, newest: bool = False, **where: Scalar
    ) -> list[Stored[R]]:
        """Rows of one kind with `seq > after` whose columns equal `where` (None: is null), in order; the newest first
        if that is asked for."""

    def head(self) -> Anchor:
        """Where the chain stands; `seq` 0 and the genesis value while it is empty."""

    def hash_at(self, seq: int) -> str | None:
        """The hash of an entry, for 0 the genesis value; None if there is no such entry."""

    def is_authentic(self, stored: Stored[Any]) -> bool:
        """Whether the row is what the ledger holds at its place, and was written with the ledger's key."""

    def verify(self, anchors: Sequence[Anchor] = (), *, since: Anchor | None = None) -> Verification:
        """Recompute everything, or everything after a checkpoint. What is wrong is a result, not an error."""

    def checkpoint(self) -> Anchor | None:
        """Up to where the ledger was verified, if that is on record and the record is authentic."""

    def keep_checkpoint(self, anchor: Anchor) -> str:
        """Put on record that the ledger was verified up to here; why that could not be done, if it could not."""

    def close(self) -> None: ...


def rows_of(ledger: Ledger, kind: type[R], upto: int, *, after: int = 0, **where: Scalar) -> Iterator[Stored[R]]:
    """Rows of one kind up to a sequence number, without holding them all in memory."""
    while page := ledger.read(kind, after=after, limit=_PAGE, newest=False, **where):
        for stored in page:
            if stored.seq > upto:
                return
            yield stored
        after = page[-1].seq


def in_order(ledger: Ledger, run_id: str | None = None, *, after: int = 0) -> Iterator[Stored[Contract]]:
    """All rows, of all tables, in the order of the chain, as of now; with `run_id` those that belong to a run."""
    upto = ledger.head().seq
    if run_id is None:
        streams = [rows_of(ledger, kind, upto, after=after) for kind in TABLES]
    else:
        kinds = [kind for kind in TABLES if "run_id" in table_of(kind).columns]
        streams = [rows_of(ledger, kind, upto, run_id=run_id) for kind in kinds]
    return heapq.merge(*streams, key=lambda stored: stored.seq)
