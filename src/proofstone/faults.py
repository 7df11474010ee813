"""Named fault points: the places where a crash must cost nothing.

Each boundary between two durable effects calls `fault_point` with its name. With `PROOFSTONE_FAULT=<name>` in the
environment, the process kills itself there with SIGKILL; with `<name>:3`, it does so the third time it reaches that
point. With `PROOFSTONE_FAULT_TRACE=<file>`, the process appends a line with its process id and the name of every point
that it passes, so that the crash tests can try each of them. Without these variables the call costs two dictionary
lookups.
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


_pass_counts: Counter[str] = Counter()
_pass_counts_lock = threading.Lock()


def fault_point(name: FaultPoint) -> None:
    """Kill this process if the environment names this fault point."""
    if trace := os.environ.get("PROOFSTONE_FAULT_TRACE"):
        _append_to_trace(trace, name)
    target, _, count = os.environ.get("PROOFSTONE_FAULT", "").partition(":")
    if target != name:
        return
    with _pass_counts_lock:  # Agents that run in parallel reach a point at the same time.
        _pass_counts[name] += 1
        if _pass_counts[name] >= int(count or 1):
            os.kill(os.getpid(), signal.SIGKILL)


def _append_to_trace(trace: str, name: FaultPoint) -> None:
    """Append the name in a single write, so that lines of several processes do not mix."""
    file = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, f"{os.getpid()} {name}\n".encode())
    finally:
        os.close(file)
