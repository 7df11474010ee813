"""Named fault points: the places where a crash must cost nothing.

Each boundary between two durable effects calls `fault_point` with its name. With `ASSAY_FAULT=<name>` in the
environment the process kills itself there with SIGKILL, with `<name>:3` when it comes there for the third time; the
crash tests walk through `FAULT_POINTS` one by one. Without the variable the call is a dictionary look-up.
"""

from __future__ import annotations

import os
import signal
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
    "anchor.before-ref",
    "anchor.after-ref",
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


_passed: dict[str, int] = {}


def fault_point(name: FaultPoint) -> None:
    """Die here if the environment asks for it."""
    wanted, _, count = os.environ.get("ASSAY_FAULT", "").partition(":")
    if wanted != name:
        return
    _passed[name] = _passed.get(name, 0) + 1
    if _passed[name] >= int(count or 1):
        os.kill(os.getpid(), signal.SIGKILL)
