"""The ledger's head, written where the ledger is not: the ref `refs/assay/ledger` of the repository.

A chain alone does not show that its tail was cut. The ref points to a blob, so no history shows it and no push
takes it along unless asked.
"""

from __future__ import annotations

from assay.adapters.git.program import GitFailedError
from assay.adapters.git.repository import Repository
from assay.faults import fault_point

REF = "refs/assay/ledger"


def write_anchor(repository: Repository, anchor: bytes) -> str | None:
    """Point the ref to this anchor; why it could not be done, if it could not."""
    try:
        blob = repository.git.run("hash-object", "-w", "--stdin", stdin=anchor).stdout.decode("ascii").strip()
        fault_point("anchor.before-ref")
        repository.git.run("update-ref", "--no-deref", REF, blob)
        fault_point("anchor.after-ref")
    except GitFailedError as error:
        return error.message
    return None


def read_anchor(repository: Repository) -> bytes | None:
    """What the ref says; None if there is none."""
    done = repository.git.run("cat-file", "blob", REF, accept=range(256))
    return done.stdout if done.returncode == 0 else None
