"""A program that appends and says what was acknowledged: the crash tests kill it and break its system calls.

`python -m tests.ledger.writer HOME APPENDS ROWS`: each append is one artifact and ROWS checks that name it. A line
`ack SEQ SEQ …` is written after `append` returned; it goes out by writev, so that broken calls of write,
pwrite and fsync are those of the ledger and the artifacts. An error of ours makes the exit code 2.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from proofstone.errors import LedgerError
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.connection import artifacts_path, ledger_path
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.testing.ledger_conformance import build_check_row


def say(descriptor: int, line: str) -> None:
    os.writev(descriptor, [f"{line}\n".encode()])


def main(home: Path, appends: int, rows: int) -> int:
    store = ArtifactStore(artifacts_path(home))
    failed = 0
    try:
        with SqliteLedger(ledger_path(home)) as ledger:
            say(1, "ready")
            for number in range(appends):
                try:
                    ref = store.put(f"{os.getpid()} {number}\n".encode() * 1000)
                    row = build_check_row(run_id=str(os.getpid())).model_copy(update={"artifact": ref.hash})
                    seqs = ledger.append(*[row] * rows)
                except LedgerError as error:
                    failed = 2
                    say(2, error.message)
                    continue
                say(1, f"ack {' '.join(map(str, seqs))}")
    except LedgerError as error:
        say(2, error.message)
        return 2
    return failed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
