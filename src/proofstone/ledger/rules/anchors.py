"""Anchors: where a ledger's chain stood at a moment, kept outside of it, and whether the ledger still agrees. Pure.

A chain alone does not show that its tail was cut, that all of it was hashed anew, or that the whole file was replaced.
An anchor does: the ledger must still hold an entry with that number and that hash. Every run leaves one in the
repository (a ref) and one in the state directory (a file), and compares them with the ledger before it writes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pydantic import Field

from proofstone.common.models import Contract
from proofstone.ledger.models import Sha256
from proofstone.ledger.rules.chain import canonical_json

HashAt = Callable[[int], str | None]
"""The hash of an entry by its number, for 0 the genesis value; None if there is no such entry."""


class Anchor(Contract):
    ledger_id: str = Field(min_length=1)
    seq: int = Field(ge=0)
    hash: Sha256

    def to_bytes(self) -> bytes:
        return canonical_json(self.model_dump()).encode() + b"\n"


class KeptAnchor(Contract):
    """An anchor as the state directory keeps it: with the repository in which its twin was written."""

    anchor: Anchor
    repository: str = Field(min_length=1)
    """The path of the repository's git directory; one that is no text is written as `bytes:` with escapes."""
    identity: str = ""
    """Device and inode of that directory: a new clone at the same path is another repository."""


class AnchorFault(StrEnum):
    """What can be wrong between a ledger and its anchors."""

    REWOUND = "rewound"
    """The ledger ends before an anchored entry."""
    REWRITTEN = "rewritten"
    """The entry with the anchored number has another hash."""
    REPLACED = "replaced"
    """This state directory kept anchors of another ledger."""
    MISSING = "missing"
    """The repository had an anchor, which is gone."""
    FOREIGN = "foreign"
    """The repository is anchored to a ledger that is not the one here."""


@dataclass(frozen=True)
class AnchorFinding:
    fault: AnchorFault
    detail: str


def compare_anchors(
    in_repository: Sequence[Anchor], kept: Iterable[KeptAnchor], own: KeptAnchor | None, head: Anchor, hash_at: HashAt
) -> tuple[AnchorFinding, ...]:
    """What is wrong before a run writes to this ledger for a repository; nothing, if every anchor holds.

    `in_repository` is what the repository's ref says, `kept` the last anchor that the state directory has of each
    repository, `own` the one of them that is of this very repository.
    """
    ours = [anchor for anchor in in_repository if anchor.ledger_id == head.ledger_id]
    findings = [
        found for anchor in ours if (found := _check(anchor, "refs/proofstone/ledger in the repository", head, hash_at))
    ]
    for item in kept:
        if item.anchor.ledger_id != head.ledger_id:
            findings.append(_replaced(item, head))
        elif found := _check(item.anchor, f"the state directory, for {item.repository},", head, hash_at):
            findings.append(found)
    if not ours and own is not None and own.anchor.ledger_id == head.ledger_id:
        findings.append(_missing(own, in_repository))
    elif not ours and in_repository:
        findings.append(_foreign(in_repository, head))
    return tuple(dict.fromkeys(findings))


def describe_fault(fault: AnchorFault) -> str:
    """What it may mean."""
    return {
        AnchorFault.REWOUND: "the ledger was restored from an older copy, or rows were cut off its end",
        AnchorFault.REWRITTEN: "rows were written anew after they had been anchored, or two copies went separate ways",
        AnchorFault.REPLACED: "the ledger's file was removed or exchanged, and a new one was begun in its place",
        AnchorFault.MISSING: "somebody removed the ref, or the repository was restored from a copy without it",
        AnchorFault.FOREIGN: "its evidence is in another PROOFSTONE_HOME: of another machine or account, or "
        "removed since",
    }[fault]


def newest(anchors: Iterable[Anchor]) -> Anchor | None:
    return max(anchors, key=lambda anchor: anchor.seq, default=None)


def _check(anchor: Anchor, where: str, head: Anchor, hash_at: HashAt) -> AnchorFinding | None:
    if anchor.seq > head.seq:
        return AnchorFinding(
            AnchorFault.REWOUND,
            f"{where} saw the ledger at row {anchor.seq}; it ends at row {head.seq} now",
        )
    if hash_at(anchor.seq) != anchor.hash:
        return AnchorFinding(
            AnchorFault.REWRITTEN,
            f"{where} saw row {anchor.seq} with the hash {anchor.hash[:12]}…, which is not in the ledger now",
        )
    return None


def _replaced(one: KeptAnchor, head: Anchor) -> AnchorFinding:
    return AnchorFinding(
        AnchorFault.REPLACED,
        f"the state directory has held the ledger {one.anchor.ledger_id}, up to row {one.anchor.seq} or later; the "
        f"ledger there now is {head.ledger_id} with {head.seq} rows",
    )


def _missing(own: KeptAnchor, others: Sequence[Anchor]) -> AnchorFinding:
    instead = f"; it names the ledger {others[0].ledger_id} instead" if others else ""
    return AnchorFinding(
        AnchorFault.MISSING,
        f"refs/proofstone/ledger in the repository no longer names row {own.anchor.seq} of this ledger, as it "
        f"did{instead}",
    )


def _foreign(anchors: Sequence[Anchor], head: Anchor) -> AnchorFinding:
    last = anchors[-1]
    return AnchorFinding(
        AnchorFault.FOREIGN,
        f"the repository is anchored to row {last.seq} of the ledger {last.ledger_id}, which is not here; "
        f"the ledger here is {head.ledger_id} with {head.seq} rows",
    )
