"""What follows a failed attempt. Pure; the table is design and documentation at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from proofstone.contracts.gate import Failure, FailureType, TaskState
from proofstone.contracts.gate_record import TaskRecord

MAX_ATTEMPTS: Final = 3
"""Per task, in all."""
MAX_MOVES: Final = 100
"""How often one attempt may be overtaken by other commits, and be checked again for that."""
HALT_FAILURES: Final = 3
"""Tasks of one wave that failed: the run halts."""
HALT_MISMATCHES: Final = 3
"""Different tasks in which the executor's claim contradicts what the engine saw: the run halts."""


class Policy(NamedTuple):
    retries: int
    delays: bool
    then: str
    """What the next attempt is told to do differently."""


POLICY: Final[Mapping[FailureType, Policy]] = {
    FailureType.EXECUTION_FAILURE: Policy(2, False, "put right what stopped the last attempt"),
    FailureType.VERIFY_FAILURE: Policy(2, False, "make the failing checks pass by mending the work, not the checks"),
    FailureType.ARCHITECT_REJECTION: Policy(1, False, "do what the reviewer asks for"),
    FailureType.TIMEOUT: Policy(1, True, "finish what was begun; the deadline is the longest there is"),
    FailureType.MALFORMED: Policy(2, False, "write a result of the documented form, or none and an exit code"),
    FailureType.BLOCKED: Policy(0, False, ""),
}


def may_retry(record: TaskRecord) -> bool:
    """Whether the gate itself tries again, after the last failure on record."""
    if record.state is not TaskState.FAILED or not record.failures:
        return False
    last = record.failures[-1].type
    of_its_kind = sum(failure.type is last for failure in record.failures)
    return record.attempt < MAX_ATTEMPTS + record.extra_attempts and of_its_kind <= (
        POLICY[last].retries + record.extra_attempts
    )


def starts_clean(attempt: int) -> bool:
    """The second attempt goes on from what the first left; every later one starts from the base."""
    return attempt != 2


def directive(failures: Sequence[Failure]) -> str:
    return POLICY[failures[-1].type].then if failures else ""


def delays(failures: Sequence[Failure]) -> bool:
    """Whether the next attempt waits a while; how long is a setting."""
    return bool(failures) and POLICY[failures[-1].type].delays


def escalation(record: TaskRecord) -> str:
    """Why a person is asked, in words; empty while the gate can go on by itself."""
    if record.state is TaskState.BLOCKED:
        return f"it says that it is blocked: {record.blocked_by}"
    if record.state is not TaskState.FAILED or may_retry(record):
        return ""
    kinds = [failure.type for failure in record.failures]
    if kinds.count(FailureType.TIMEOUT) > POLICY[FailureType.TIMEOUT].retries:
        return "it ran out of time twice"
    if kinds.count(FailureType.ARCHITECT_REJECTION) > POLICY[FailureType.ARCHITECT_REJECTION].retries:
        return "it was rejected twice"
    return f"it failed {len(kinds)} times"
