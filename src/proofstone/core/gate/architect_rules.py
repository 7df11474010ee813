"""The architect that is made of rules. It always speaks, and it speaks from evidence only.

| looks at      | rejects when                          | is concerned when                                       |
|---------------|---------------------------------------|---------------------------------------------------------|
| files         | nothing was changed                   | a declared file was not touched                         |
| evidence      | the verify command was not seen to pass | a check is flaky or something caps the confidence      |
| done criteria |                                       | only words can show that a criterion is met             |
| side effects  |                                       | files were deleted, or made executable                  |
| suppressions  |                                       | a finding that informs was made                         |
| claims        |                                       | the executor's claim is contradicted by what was seen   |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from proofstone.contracts.finding import Finding
from proofstone.contracts.gate import ArchitectDecision, ArchitectVerdict, Recommendation
from proofstone.contracts.gate_record import Evidence
from proofstone.contracts.plan import PlanTask
from proofstone.contracts.verdict import Confidence, Severity, Verdict
from proofstone.core.scope import covers

NAME: Final = "rules"
_MOST: Final = 20


def review(
    task: PlanTask, evidence: Evidence, findings: Sequence[Finding], *, deleted: Sequence[str] = ()
) -> ArchitectVerdict:
    wrong = _wrong(evidence)
    concerns = tuple(_concerns(task, evidence, findings, deleted))[:_MOST]
    if wrong:
        return ArchitectVerdict(
            verdict=ArchitectDecision.REJECTED,
            confidence=Confidence.HIGH,
            concerns=concerns,
            recommendation=Recommendation.RETRY,
            feedback="; ".join(wrong),
            by=NAME,
        )
    return ArchitectVerdict(
        verdict=ArchitectDecision.APPROVED,
        confidence=Confidence.MEDIUM if concerns else Confidence.HIGH,
        findings=tuple(_met(evidence)),
        concerns=concerns,
        recommendation=Recommendation.COMMIT,
        by=NAME,
    )


def _wrong(evidence: Evidence) -> list[str]:
    wrong = []
    if not evidence.changed:
        wrong.append("nothing was changed, so there is nothing to commit")
    if not any(run.verdict is Verdict.PASS for run in evidence.verify):
        wrong.append("the verify command was not seen to pass")
    return wrong


def _met(evidence: Evidence) -> list[str]:
    return [
        f"{link.criterion}: shown by {link.check}" if link.check else f"{link.criterion}: nothing speaks against it"
        for link in evidence.criteria
    ]


def _concerns(task: PlanTask, evidence: Evidence, findings: Sequence[Finding], deleted: Sequence[str]) -> list[str]:
    concerns = [*evidence.mismatches]
    concerns += [f"{path} was changed as well, on the executor's request" for path in evidence.granted]
    concerns += [
        f"{pattern} is declared but was not touched"
        for pattern in task.files
        if not any(covers(pattern, path) for path in evidence.changed)
    ]
    concerns += [f"no check shows that: {link.criterion}" for link in evidence.criteria if link.is_prose]
    concerns += [f"{path} was deleted" for path in deleted]
    concerns += [f"`{run.command}` is flaky" for run in evidence.verify if run.flaky]
    concerns += [_told(finding) for finding in findings if finding.severity is Severity.MINOR]
    return list(dict.fromkeys(concerns))


def _told(finding: Finding) -> str:
    where = f" in {finding.path}{f':{finding.line}' if finding.line else ''}" if finding.path else ""
    return f"{finding.rule}{where}: {finding.detail}"
