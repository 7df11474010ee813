"""The task gate: what may follow what, and what follows a failed attempt."""

from __future__ import annotations

from collections.abc import Mapping

from generators.page import mermaid, table
from proofstone.agents.roles.models.gate import FailureType
from proofstone.config.settings import GateSettings
from proofstone.gate.rules.state_machine import (
    HALT_FAILURES,
    HALT_MISMATCHES,
    MAX_ATTEMPTS,
    RETRY_POLICIES,
    TRANSITIONS,
    draw_state_diagram,
)

PERSONS = frozenset(("overridden", "confirmed", "asked"))
"""Events that are a person's word, or wait for one."""
WHEN: Mapping[FailureType, str] = {
    FailureType.EXECUTION_FAILURE: "the executor says so, or crashes",
    FailureType.VERIFY_FAILURE: (
        "a verify command or a required check fails, or the work conflicts with what was committed meanwhile"
    ),
    FailureType.ARCHITECT_REJECTION: "a rule or an architect rejects",
    FailureType.TIMEOUT: "a deadline passed; the next attempt has the longest there is",
    FailureType.MALFORMED: "the result is not of the form above",
    FailureType.BLOCKED: "the executor says that it is blocked",
}


def states() -> str:
    return mermaid(draw_state_diagram())


def course() -> str:
    """The table without a person's words."""
    rows = [(start, kind, end) for (start, kind), end in TRANSITIONS.items() if kind not in PERSONS]
    drawn = [f"    {start} --> {end}: {kind}" for start, kind, end in rows]
    first, last = rows[0][0], next(end for _, kind, end in rows if kind == "committed")
    return mermaid("\n".join(["stateDiagram-v2", f"    [*] --> {first}", *drawn, f"    {last} --> [*]"]))


def retries() -> str:
    pause = f"{GateSettings().retry_delay_seconds} s"
    rows = [
        (
            f"`{kind}`",
            WHEN[kind],
            _times(policy.retries),
            _after(policy.retries, pause if policy.is_delayed else "at once"),
        )
        for kind, policy in RETRY_POLICIES.items()
    ]
    return table(("failure", "when", "tried again", "after"), rows)


def told() -> str:
    """What the next attempt is told, by what went wrong with the last."""
    rows = [(f"`{kind}`", policy.directive) for kind, policy in RETRY_POLICIES.items() if policy.directive]
    return table(("what went wrong", "the next attempt is told to"), rows)


def bounds() -> str:
    rows = [
        ("attempts of a task", MAX_ATTEMPTS),
        ("tasks of one wave that fail, before the run halts", HALT_FAILURES),
        ("tasks in which an executor's claim was not true, before it halts", HALT_MISMATCHES),
    ]
    return table(("bound", ""), rows)


def _times(retries: int) -> str:
    return f"{retries} time{'s' if retries > 1 else ''}" if retries else "never"


def _after(retries: int, pause: str) -> str:
    return pause if retries else "–"
