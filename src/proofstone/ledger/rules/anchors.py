"""Anchors: the position of a ledger's chain at one moment, and whether the ledger still agrees with it. Pure.

A chain alone cannot show that its tail was cut off, that all of it was hashed again, or that the whole file was
replaced. An anchor can: the ledger must still hold an entry with that number and that hash. Every run leaves an anchor
in the repository (a ref) and one in the state directory (a file), and compares them with the ledger before it writes
anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pydantic import Field

from proofstone.common.models import FrozenModel
from proofstone.ledger.models import Sha256
from proofstone.ledger.rules.chain import canonical_json

HashAt = Callable[[int], str | None]
"""A function that returns the hash of an entry, the genesis hash for 0, or None if there is no such entry."""


class Anchor(FrozenModel):
    ledger_id: str = Field(min_length=1)
    seq: int = Field(ge=0)
    hash: Sha256

    def to_bytes(self) -> bytes:
        return canonical_json(self.model_dump()).encode() + b"\n"


class StoredAnchor(FrozenModel):
    """An anchor in the state directory, with the repository that holds the same anchor."""

    anchor: Anchor
    repository: str = Field(min_length=1)
    """The path of the repository's git directory; a path that is not valid UTF-8 is written as `bytes:` with
    escapes.
    """
    identity: str = ""
    """The device and inode of that directory: a new clone at the same path is another repository."""


class AnchorFault(StrEnum):
    """The possible contradictions between a ledger and its anchors."""

    REWOUND = "rewound"
    """The ledger ends before an anchored entry."""
    REWRITTEN = "rewritten"
    """The entry with the anchored number has another hash."""
    REPLACED = "replaced"
    """The state directory holds anchors of another ledger."""
    MISSING = "missing"
    """The repository had an anchor that is gone."""
    FOREIGN = "foreign"
    """The repository is anchored to another ledger."""


@dataclass(frozen=True)
class AnchorFinding:
    fault: AnchorFault
    detail: str


def compare_anchors(
    in_repository: Sequence[Anchor],
    kept: Iterable[StoredAnchor],
    own: StoredAnchor | None,
    head: Anchor,
    hash_at: HashAt,
) -> tuple[AnchorFinding, ...]:
    """Return the contradictions between this ledger and the anchors, to be checked before a run writes for a
    repository.

    `in_repository` are the anchors in the repository's ref, `kept` the last anchor of each repository in the state
    directory, and `own` the one of them that belongs to exactly this repository.
    """
    ours = [anchor for anchor in in_repository if anchor.ledger_id == head.ledger_id]
    findings = [
        finding
        for anchor in ours
        if (finding := _check_anchor(anchor, "refs/proofstone/ledger in the repository", head, hash_at))
    ]
    for stored in kept:
        if stored.anchor.ledger_id != head.ledger_id:
            findings.append(_replaced_finding(stored, head))
        elif finding := _check_anchor(stored.anchor, f"the state directory, for {stored.repository},", head, hash_at):
            findings.append(finding)
    if not ours and own is not None and own.anchor.ledger_id == head.ledger_id:
        findings.append(_missing_finding(own, in_repository))
    elif not ours and in_repository:
        findings.append(_foreign_finding(in_repository, head))
    return tuple(dict.fromkeys(findings))


def describe_fault(fault: AnchorFault) -> str:
    """Return what may have caused the fault."""
    return {
        AnchorFault.REWOUND: "the ledger was restored from an older copy, or rows were cut off its end",
        AnchorFault.REWRITTEN: "rows were rewritten after they had been anchored, or two copies diverged",
        AnchorFault.REPLACED: "the ledger's file was removed or replaced, and a new ledger was started in its place",
        AnchorFault.MISSING: "somebody removed the ref, or the repository was restored from a copy without it",
        AnchorFault.FOREIGN: "its evidence is in another PROOFSTONE_HOME (another machine or account), or was removed",
    }[fault]


def _check_anchor(anchor: Anchor, where: str, head: Anchor, hash_at: HashAt) -> AnchorFinding | None:
    if anchor.seq > head.seq:
        return AnchorFinding(
            AnchorFault.REWOUND,
            f"{where} recorded the ledger at row {anchor.seq}; it now ends at row {head.seq}",
        )
    if hash_at(anchor.seq) != anchor.hash:
        return AnchorFinding(
            AnchorFault.REWRITTEN,
            f"{where} recorded row {anchor.seq} with the hash {anchor.hash[:12]}…, which is no longer in the ledger",
        )
    return None


def _replaced_finding(stored: StoredAnchor, head: Anchor) -> AnchorFinding:
    return AnchorFinding(
        AnchorFault.REPLACED,
        f"the state directory held the ledger {stored.anchor.ledger_id} up to row {stored.anchor.seq} or later; its "
        f"ledger is now {head.ledger_id} with {head.seq} rows",
    )


def _missing_finding(own: StoredAnchor, others: Sequence[Anchor]) -> AnchorFinding:
    instead = f"; it names the ledger {others[0].ledger_id} instead" if others else ""
    return AnchorFinding(
        AnchorFault.MISSING,
        f"refs/proofstone/ledger in the repository no longer names row {own.anchor.seq} of this ledger{instead}",
    )


def _foreign_finding(anchors: Sequence[Anchor], head: Anchor) -> AnchorFinding:
    last = anchors[-1]
    return AnchorFinding(
        AnchorFault.FOREIGN,
        f"the repository is anchored to row {last.seq} of the ledger {last.ledger_id}, which is not here; "
        f"the ledger here is {head.ledger_id} with {head.seq} rows",
    )
