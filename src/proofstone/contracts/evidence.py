"""Rows of the ledger, as the engine hands them over. The ledger adds sequence number, time and hashes."""

from __future__ import annotations

from pydantic import Field

from proofstone.contracts.base import Contract
from proofstone.contracts.verdict import Assurance, Phase, ReviewVerdict, Severity, Verdict

SNIPPET_LIMIT = 500


class CheckRow(Contract):
    """One row of `checks`: if the row is not there, the check did not happen."""

    run_id: str
    task_id: str
    phase: Phase
    check_name: str
    tool: str
    command: str | None = None
    exit_code: int | None = None
    output_snippet: str = Field(default="", max_length=SNIPPET_LIMIT)
    state: Verdict
    verdict: ReviewVerdict | None = None
    severity: Severity | None = None
    round: int = 1
    attempt: int = 1
    tree: str | None = None
    tier: int | None = None
    assurance: Assurance | None = None
    duration_ms: int | None = None
    artifact: str | None = None
    reused_from: int | None = None
    result_digest: str | None = None
    """Digest of the whole result as it may be kept for reuse; None where none is."""

    @property
    def passed(self) -> bool:
        return self.state is Verdict.PASS


def snippet(text: str) -> str:
    """Head and tail of `text`, within what a row may hold: a cut middle never hides how a check ended."""
    if len(text) <= SNIPPET_LIMIT:
        return text
    mark = "\n[…]\n"
    head = (SNIPPET_LIMIT - len(mark)) // 3
    tail = SNIPPET_LIMIT - len(mark) - head
    return text[:head] + mark + text[-tail:]
