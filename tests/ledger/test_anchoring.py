"""Anchors against a ledger: what is wrong is named, and what is in order raises nothing."""

from __future__ import annotations

from proofstone.ledger.rules.anchors import Anchor, AnchorFault, StoredAnchor, compare_anchors, describe_fault
from tests.rows import each_row

HASHES = {seq: f"{seq:064x}" for seq in range(11)}
HEAD = Anchor(ledger_id="here", seq=10, hash=HASHES[10])


def anchor(seq: int, ledger: str = "here", digest: str = "") -> Anchor:
    return Anchor(ledger_id=ledger, seq=seq, hash=digest or f"{seq:064x}")


def kept(one: Anchor) -> StoredAnchor:
    return StoredAnchor(anchor=one, repository="/repo/.git", identity="1:2")


@each_row(
    ("in_repository", "in_home", "own", "faults"),
    [
        ([], [], None, []),
        ([anchor(10)], [], None, []),
        ([anchor(4)], [anchor(9)], anchor(9), []),
        ([anchor(9)], [anchor(4)], anchor(4), []),
        ([anchor(3, "elsewhere"), anchor(4)], [anchor(4)], anchor(4), []),
        ([], [anchor(9)], None, []),
        ([anchor(11)], [], None, [AnchorFault.REWOUND]),
        ([], [anchor(12)], None, [AnchorFault.REWOUND]),
        ([anchor(7, digest="f" * 64)], [], None, [AnchorFault.REWRITTEN]),
        ([], [anchor(7, digest="f" * 64)], None, [AnchorFault.REWRITTEN]),
        ([], [anchor(9)], anchor(9), [AnchorFault.MISSING]),
        ([anchor(3, "elsewhere")], [anchor(9)], anchor(9), [AnchorFault.MISSING]),
        ([anchor(3, "elsewhere")], [], None, [AnchorFault.FOREIGN]),
        ([], [anchor(30, "before")], None, [AnchorFault.REPLACED]),
        (
            [anchor(30, "before")],
            [anchor(30, "before")],
            anchor(30, "before"),
            [AnchorFault.REPLACED, AnchorFault.FOREIGN],
        ),
    ],
)
def test_faults(
    in_repository: list[Anchor], in_home: list[Anchor], own: Anchor | None, faults: list[AnchorFault]
) -> None:
    found = compare_anchors(in_repository, [kept(one) for one in in_home], kept(own) if own else None, HEAD, HASHES.get)
    assert [one.fault for one in found] == faults


def test_a_foreign_ledger_is_named_and_every_fault_is_explained() -> None:
    (found,) = compare_anchors([anchor(3, "of-the-laptop")], [], None, HEAD, HASHES.get)
    assert "of-the-laptop" in found.detail
    assert all(describe_fault(fault) for fault in AnchorFault)
