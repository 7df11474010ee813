"""The ledger: rows are added, never changed, and each is bound to all before it.

Rules, for every implementation (`assay.testing.ledger_conformance` holds them to it):
- the rows of one `append` are all there or none is, in the order given, without a gap in their sequence numbers;
- when `append` has returned, the rows survive a crash of the machine; those that need not be `durable` survive a crash
  of the process at once, and one of the machine when a later append does: what survives is never without what was
  before it;
- several processes may append at once: they wait for each other and make one chain;
- the ledger stamps the time. It is for display: order is by sequence number.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from assay.adapters.ledger.anchors import Anchor
from assay.adapters.ledger.tables import TABLES, R, Row, Stored, table_of
from assay.contracts.base import Contract
from assay.core.chain import Break, Scalar

__all__ = ["Anchor", "Last", "Ledger", "Row", "Stored", "Verification", "in_order", "rows_of"]

_PAGE = 1000


@dataclass(frozen=True)
class Verification:
    """What a walk over the whole ledger found."""

    head: Anchor
    problem: Break | None

    @property
    def ok(self) -> bool:
        return self.problem is None


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

    def verify(self, anchors: Sequence[Anchor] = ()) -> Verification:
        """Recompute everything. What is wrong is a result, not an error."""

    def close(self) -> None: ...


def rows_of(ledger: Ledger, kind: type[R], upto: int, **where: Scalar) -> Iterator[Stored[R]]:
    """Rows of one kind up to a sequence number, without holding them all in memory."""
    after = 0
    while page := ledger.read(kind, after=after, limit=_PAGE, newest=False, **where):
        for stored in page:
            if stored.seq > upto:
                return
            yield stored
        after = page[-1].seq


def in_order(ledger: Ledger, run_id: str | None = None) -> Iterator[Stored[Contract]]:
    """All rows, of all tables, in the order of the chain, as of now; with `run_id` those that belong to a run."""
    upto = ledger.head().seq
    if run_id is None:
        streams = [rows_of(ledger, kind, upto) for kind in TABLES]
    else:
        kinds = [kind for kind in TABLES if "run_id" in table_of(kind).columns]
        streams = [rows_of(ledger, kind, upto, run_id=run_id) for kind in kinds]
    return heapq.merge(*streams, key=lambda stored: stored.seq)
