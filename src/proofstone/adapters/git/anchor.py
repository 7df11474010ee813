"""The ledger's head, written where the ledger is not: the ref `refs/proofstone/ledger` of the repository.

A chain alone does not show that its tail was cut. The ref points to a blob, so no history shows it and no push
takes it along unless asked. The blob has a line for each ledger that was used with the repository. It is replaced only
as it was read: whoever else wrote meanwhile is not overwritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proofstone.adapters.git.program import Git, GitFailedError
from proofstone.faults import fault_point

REF = "refs/proofstone/ledger"


@dataclass(frozen=True)
class AnchorBlob:
    """What the ref points to."""

    id: str
    """Object id of the blob; empty if there is no ref."""
    data: bytes


def read_anchor_blob(git: Git) -> AnchorBlob:
    """What the ref says. Raises GitFailedError if there is a ref and it cannot be read, or no repository."""
    found = git.out("for-each-ref", "--format=%(objectname)", REF).decode("ascii").strip()
    return AnchorBlob(found, git.out("cat-file", "blob", found)) if found else AnchorBlob("", b"")


def replace_anchor_blob(git: Git, before: AnchorBlob, lines: Sequence[bytes]) -> bool:
    """Point the ref to these lines if it still is what it was; whether it was."""
    blob = git.run("hash-object", "-w", "--stdin", stdin=b"".join(lines)).stdout.decode("ascii").strip()
    fault_point("anchor.before-ref")
    expected = before.id or "0" * len(blob)
    try:
        git.run("update-ref", "--no-deref", REF, blob, expected)
    except GitFailedError:
        if read_anchor_blob(git).id != before.id:
            return False
        raise
    fault_point("anchor.after-ref")
    return True
