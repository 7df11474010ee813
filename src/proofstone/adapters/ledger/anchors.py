"""Anchors: where a ledger's chain stood at a moment, kept outside of it.

A chain alone does not see that its tail was cut or that all of it was hashed anew. An anchor does: the ledger
must still hold an entry with that number and that hash. An anchor is one line of JSON; a file may hold many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pydantic import ValidationError

from proofstone.core.anchoring import Anchor
from proofstone.core.chain import Break
from proofstone.errors import InputError

__all__ = ["Anchor", "check_anchors", "read_anchors", "write_anchors"]


def write_anchors(anchors: Iterable[Anchor]) -> bytes:
    return b"".join(anchor.to_bytes() for anchor in anchors)


def read_anchors(data: bytes, *, source: str) -> tuple[Anchor, ...]:
    """`source` names where the bytes are from, for the message when a line is not an anchor."""
    anchors = []
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            anchors.append(Anchor.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "line"
            raise InputError(
                f"{source}, line {number}: not an anchor ({where}: {first['msg']})",
                hint='a line is {"hash":"<64 hex digits>","ledger_id":"…","seq":<number>}',
            ) from error
    return tuple(anchors)


def check_anchors(anchors: Sequence[Anchor], head: Anchor, hash_at: Callable[[int], str | None]) -> tuple[Break, ...]:
    """The anchors that the ledger no longer agrees with. `hash_at` gives an entry's hash, for 0 the start."""
    found, good = [], 0
    for anchor in sorted(anchors, key=lambda item: item.seq):
        if anchor.ledger_id != head.ledger_id:
            found.append(Break(1, f"anchor {anchor.seq} is of ledger {anchor.ledger_id}, this is {head.ledger_id}"))
        elif anchor.seq > head.seq:
            reason = f"cut after entry {head.seq}: an anchor saw the chain at entry {anchor.seq}"
            found.append(Break(head.seq + 1, reason))
        elif hash_at(anchor.seq) != anchor.hash:
            reason = f"not the entry that was anchored: entries {good + 1} to {anchor.seq} were written anew"
            found.append(Break(anchor.seq, reason))
        else:
            good = anchor.seq
    return tuple(found)
