"""Named fault points: the places where a crash must cost nothing.

Each boundary between two durable effects calls `fault_point` with its name. With `PROOFSTONE_FAULT=<name>` in the
environment the process kills itself there with SIGKILL, with `<name>:3` when it comes there for the third time. With
`PROOFSTONE_FAULT_TRACE=<file>` it writes there which points it passes, a line each after its process id, so that the
crash
tests can walk through all that a run passes, one by one. Without the variables the call is two dictionary look-ups.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from typing import Final, Literal, get_args

FaultPoint = Literal[
    "ledger.before-insert",
    "ledger.before-commit",
    "ledger.after-commit",
    "artifact.before-rename",
    "artifact.after-rename",
    "snapshot.before-tree",
    "snapshot.after-tree",
    "checkout.before-publish",
    "checkout.after-publish",
    "check.before-record",
    "check.after-record",
    "cache.before-publish",
    "key.before-publish",
    "checkpoint.before-publish",
    "anchor.before-ref",
    "anchor.after-ref",
    "anchor.before-file",
    "anchor.after-file",
    "daemon.before-location",
    "daemon.after-location",
    "commit.before-objects",
    "commit.before-ref",
    "commit.after-ref",
    "gate.started",
    "gate.before-event",
    "gate.after-event",
    "gate.before-execute",
    "gate.after-execute",
    "gate.after-freeze",
    "gate.before-check",
    "gate.after-check",
    "gate.before-publish",
    "gate.after-publish",
    "page.before-rename",
    "agent.before-turn",
    "agent.after-turn",
    "agent.before-tool",
    "agent.after-tool",
    "step.before-record",
    "step.after-record",
]

FAULT_POINTS: Final[tuple[str, ...]] = get_args(FaultPoint)


_passed: Counter[str] = Counter()
_counting = threading.Lock()


def fault_point(name: FaultPoint) -> None:
    """Die here if the environment asks for it."""
    if trace := os.environ.get("PROOFSTONE_FAULT_TRACE"):
        _note(trace, name)
    wanted, _, count = os.environ.get("PROOFSTONE_FAULT", "").partition(":")
    if wanted != name:
        return
    with _counting:  # agents who work side by side come here side by side
        _passed[name] += 1
        if _passed[name] >= int(count or 1):
            os.kill(os.getpid(), signal.SIGKILL)


def _note(trace: str, name: FaultPoint) -> None:
    """One write to the end of the file: whoever else notes there does not come between."""
    file = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, f"{os.getpid()} {name}\n".encode())
    finally:
        os.close(file)
