"""What `proofstone check` says at the end, for people and programs."""

from __future__ import annotations

from proofstone.contracts.base import Contract
from proofstone.contracts.check import CheckKind
from proofstone.contracts.finding import Finding
from proofstone.contracts.verdict import Assurance, Confidence, Outcome, Verdict


class CheckLine(Contract):
    """One check of the cascade, judged."""

    name: str
    kind: CheckKind
    tier: int
    verdict: Verdict
    baseline: Verdict | None
    """What the same check gave on the base tree; None when it was not run there."""
    duration_ms: int
    reused: bool
    """The result came from an earlier run on the same tree."""
    required: bool
    decides: bool
    reason: str
    command: str
    assurance: Assurance | None
    tests: int | None
    """Tests that were executed; None for checks that are not tests."""
    seq: int | None
    """Row of the ledger that holds it."""
    artifact: str | None
    exit_code: int | None = None
    """None where nothing was run, or the engine ended it."""


class CheckReport(Contract):
    run_id: str
    tree: str
    """What was checked: the frozen tree, with undeclared protected files as they are in the base."""
    frozen: str
    """The work tree as it was found."""
    base: str
    """The base tree."""
    base_commit: str
    outcome: Outcome
    reason: str
    """Why the outcome is not `passed`, in one line."""
    confidence: Confidence
    caps: tuple[str, ...]
    """Why the confidence is not high: what would raise it."""
    assurance: Assurance
    """The weakest level at which a check ran."""
    checks: tuple[CheckLine, ...]
    findings: tuple[Finding, ...]
    regressions: tuple[str, ...]
    fixed: tuple[str, ...]
    """Tests that failed on the base and pass now."""
    standing: tuple[str, ...]
    """Failures that stood in the baseline and are not held against the change."""
    edited: tuple[str, ...]
    """Tests that pass as the change left them and fail as they stood on the base."""
    sensitive: tuple[str, ...]
    """Tests that were seen to fail without the change's source."""
    flaky: tuple[str, ...]
    unverifiable_tests: tuple[str, ...]
    """Tests that cannot be told from what the sandbox or a missing service does to them."""
    changed: tuple[str, ...]
    notes: tuple[str, ...]
    ledger: str
