"""Decide what an open dispute does to the outcome of a check, and describe disputes.

An agent, or anybody else, may dispute a test, the rule of a finding or a requirement. A dispute changes no verdict. It
puts the claim to a person, and until that person has decided, the disputed tree neither passes nor fails for the
disputed reason:

| first match                                                        | outcome        |
|--------------------------------------------------------------------|----------------|
| nothing is disputed, or a required check is unverifiable           | as it was      |
| the check failed, and a reason for that is not disputed            | failed         |
| otherwise: it passed, or failed only for what is disputed          | needs-decision |

A person accepts a dispute (the disputed thing is wrong), rejects it (it is right), or amends it (something else
applies). Only an accepted dispute has an effect on later checks of the same tree: the findings about its subject that a
person may accept are accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from proofstone.check.models import CheckLine
from proofstone.check.rules.acceptance import is_about, is_serious, list_disputed_rules
from proofstone.common.models import (
    Acceptance,
    AcceptanceMethod,
    Finding,
    FrozenModel,
    Outcome,
    Verdict,
    VerdictDispute,
)


class DisputeDecision(StrEnum):
    """What a person decides about a dispute."""

    ACCEPT = "accept"
    REJECT = "reject"
    AMEND = "amend"


class RecordedDispute(FrozenModel):
    """A dispute in the ledger, with the decision about it if there is one."""

    id: str
    tree: str
    """The tree of the work tree when the dispute was raised."""
    repository: str
    subject: str
    claim: str
    raised_by: str = ""
    raised_at: str = ""
    run: str = ""
    """The check that it is about, if there was one."""
    evidence: str = ""
    """The artifact of a file that shows it; empty if there is none."""
    decision: DisputeDecision | None = None
    reason: str = ""
    """The words of the person who decided."""
    decided_by: str = ""
    method: AcceptanceMethod | None = None

    @property
    def is_open(self) -> bool:
        return self.decision is None

    def to_verdict(self) -> VerdictDispute:
        """Return the dispute as a report shows it."""
        return VerdictDispute(id=self.id, subject=self.subject, claim=self.claim, raised_by=self.raised_by)


def apply_disputes(
    outcome: Outcome,
    reason: str,
    checks: Sequence[CheckLine],
    findings: Sequence[Finding],
    disputes: Sequence[VerdictDispute],
) -> tuple[Outcome, str]:
    """Return the outcome while these disputes are open, and the reason for it."""
    if not disputes or outcome is Outcome.UNVERIFIABLE:
        return outcome, reason
    if outcome is Outcome.FAILED and not _is_all_disputed(checks, findings, disputes):
        return outcome, reason
    return Outcome.NEEDS_DECISION, describe_disputes(disputes)


def _is_all_disputed(
    checks: Sequence[CheckLine], findings: Sequence[Finding], disputes: Sequence[VerdictDispute]
) -> bool:
    """Return whether every reason for which the check failed is disputed."""
    optional = {check.name for check in checks if not check.decides}
    serious = [finding for finding in findings if is_serious(finding) and finding.check not in optional]
    explained = {finding.check for finding in serious}
    unexplained = [
        check.name
        for check in checks
        if check.verdict is Verdict.FAIL and check.decides and check.name not in explained
    ]
    subjects = [dispute.subject for dispute in disputes]
    return all(any(is_about(finding, subject) for subject in subjects) for finding in serious) and all(
        name in subjects for name in unexplained
    )


def accept_by_decisions(disputes: Iterable[RecordedDispute]) -> tuple[Acceptance, ...]:
    """Return what persons accepted by agreeing with disputes of a tree."""
    return tuple(
        Acceptance(
            rule=rule,
            reason=dispute.reason,
            accepted_by=dispute.decided_by,
            method=dispute.method or AcceptanceMethod.APPROVER,
            subject=dispute.subject,
        )
        for dispute in disputes
        if dispute.decision is DisputeDecision.ACCEPT
        for rule in list_disputed_rules(dispute.subject)
    )


def describe_dispute(dispute: VerdictDispute) -> str:
    """Describe a dispute on one line."""
    by = f" by {' '.join(dispute.raised_by.split())}" if dispute.raised_by else ""
    return f"{' '.join(dispute.subject.split())} is disputed{by}: {' '.join(dispute.claim.split())}"


def describe_disputes(disputes: Sequence[VerdictDispute]) -> str:
    """Describe all disputes on one line."""
    return "; ".join(map(describe_dispute, disputes))
