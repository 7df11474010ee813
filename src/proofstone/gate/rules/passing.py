"""The PASS rule of the task gate, in one place. Pure.

A task passes if and only if every row holds:

| condition         | holds when                                                                              |
|-------------------|-----------------------------------------------------------------------------------------|
| executor          | it says success, and not that a done criterion is unmet                                  |
| verify            | there is a verify command, the engine ran it, and it exited 0                            |
| signals           | at least 2 distinct checks passed (3 for a large task), trivial ones not counted         |
| required-checks   | no required check failed or is unverifiable, and no finding refuses                      |
| regression        | nothing that passed on the base fails now                                                |
| scope             | every changed file is declared                                                           |
| architect         | the last word of every architect is APPROVED, and none asks for a person                 |
| done              | every done criterion is linked to a check or to an architect's word                      |

From the report of a whole check to what the gate asks for. Pure.

The architect that is made of rules. It always speaks, and it speaks from evidence only.

| looks at      | rejects when                          | is concerned when                                       |
|---------------|---------------------------------------|---------------------------------------------------------|
| files         | nothing was changed                   | a declared file was not touched                         |
| evidence      | the verify command was not seen to pass | a check is flaky or something caps the confidence      |
| done criteria |                                       | only words can show that a criterion is met             |
| side effects  |                                       | files were deleted, or made executable                  |
| suppressions  |                                       | a finding that informs was made                         |
| claims        |                                       | the executor's claim is contradicted by what was seen   |

What a person may say to set the gate aside, and what they may not. Pure.

A skip or a force is never a pass: what it covers is not committed by Proofstone, and says so wherever it is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from proofstone.agents.roles.models.gate import (
    ArchitectDecision,
    ArchitectVerdict,
    ExecutorResult,
    ExecutorStatus,
    FailureType,
    Reason,
    Recommendation,
)
from proofstone.check.models import CheckKind, CheckLine, CheckReport
from proofstone.common.globs import matches, undeclared
from proofstone.common.models import Confidence, Finding, Outcome, Severity, Verdict
from proofstone.gate.models import Evidence, TaskRecord, VerifyRun
from proofstone.gate.rules.criteria import link
from proofstone.plans.models import PlanTask

SIGNALS: Final = 2
SIGNALS_LARGE: Final = 3


def unmet(evidence: Evidence, verdicts: Sequence[ArchitectVerdict]) -> tuple[Reason, ...]:
    """What keeps the task from passing; nothing, if it passes."""
    return (*unmet_by_checks(evidence), *unmet_by_architects(evidence, verdicts))


def unmet_by_checks(evidence: Evidence) -> tuple[Reason, ...]:
    """The rows that need no architect."""
    found: list[Reason] = []
    if evidence.claim.status is not ExecutorStatus.SUCCESS or evidence.claim.done_criteria_met is False:
        found.append(_missing("executor", "the executor does not say that it succeeded"))
    if not evidence.verify:
        found.append(_missing("verify", "no verify command was run"))
    found += [_verify_reason(run) for run in evidence.verify if not _holds(run, evidence)]
    needed = SIGNALS_LARGE if evidence.large else SIGNALS
    if len(set(evidence.passing)) < needed:
        passed = ", ".join(sorted(set(evidence.passing))) or "none"
        detail = (
            f"{len(set(evidence.passing))} of the {needed} passing checks that are needed ({passed}); "
            "give <verify> a further command on a line of its own, or the project a test suite"
        )
        found.append(_missing("signals", detail))
    found += evidence.failing
    found += [_missing("regression", f"{test} passed on the base and fails now") for test in evidence.regressions]
    found += [_missing("scope", f"{path} was changed but is not among <files>") for path in evidence.undeclared]
    return tuple(found)


def unmet_by_architects(evidence: Evidence, verdicts: Sequence[ArchitectVerdict]) -> tuple[Reason, ...]:
    if not verdicts:
        return (_missing("architect", "no architect has spoken"),)
    found = [_rejection(verdict) for verdict in verdicts if verdict.verdict is not ArchitectDecision.APPROVED]
    found += [
        _missing("architect", f"{verdict.by or 'the architect'} asks for a person: {verdict.feedback}".rstrip(": "))
        for verdict in verdicts
        if verdict.verdict is ArchitectDecision.APPROVED and verdict.recommendation is not Recommendation.COMMIT
    ]
    if not evidence.criteria:
        found.append(_missing("done", "there is no done criterion"))
    return tuple(found)


def confidence(evidence: Evidence, verdicts: Sequence[ArchitectVerdict]) -> Confidence:
    """Of a task that passed: what the checks allow, capped by criteria that only words meet, and by the architects."""
    levels = [evidence.confidence, *(verdict.confidence for verdict in verdicts)]
    if any(link.is_prose for link in evidence.criteria) or any(run.flaky for run in evidence.verify):
        levels.append(Confidence.MEDIUM)
    return Confidence.weakest(levels) or Confidence.LOW


def _holds(run: VerifyRun, evidence: Evidence) -> bool:
    if run.verdict is not Verdict.PASS:
        return False
    return run.exit_code == 0 or (run.flaky and evidence.flaky_allowed)


def _verify_reason(run: VerifyRun) -> Reason:
    if run.flaky:
        detail = f"`{run.command}` is flaky: it failed, then passed, on the same tree"
    elif run.exit_code is None:
        detail = f"`{run.command}` did not come to its own end"
    elif run.exit_code == 0:
        detail = f"`{run.command}` exits 0, but that is not believed: see the other reasons"
    else:
        detail = f"`{run.command}` ended with exit code {run.exit_code}"
    verdict = Verdict.UNVERIFIABLE if run.verdict is Verdict.UNVERIFIABLE else Verdict.FAIL
    return Reason(check="verify", layer="gate", verdict=verdict, detail=detail, artifact=run.artifact)


def _rejection(verdict: ArchitectVerdict) -> Reason:
    told = verdict.feedback or "; ".join((*verdict.concerns, *verdict.findings)) or "rejected without a word"
    return _missing("architect", f"{verdict.by or 'the architect'}: {told}")


def _missing(condition: str, detail: str) -> Reason:
    return Reason(check=condition, layer="gate", verdict=Verdict.FAIL, detail=detail)


_TRIVIAL: Final = (CheckKind.CONFLICT, CheckKind.SIZE)
_TOLD_BY_SCOPE: Final = "undeclared-file"


def evidence_of(
    task: PlanTask,
    claim: ExecutorResult,
    report: CheckReport,
    *,
    present: Sequence[str],
    touched: Sequence[str],
    large: bool,
    allowed: tuple[str, ...] = (),
    continued: bool = False,
) -> Evidence:
    """`present`: changed files that are there now; `touched`: all that the executor changed, put back or not;
    `allowed`: those beyond the declared ones that it asked for."""
    verify = tuple(_verify_runs(task, report))
    return Evidence(
        tree=report.tree,
        base_commit=report.base_commit,
        claim=claim,
        verify=verify,
        passing=tuple(line.name for line in report.checks if _counts(line)),
        large=large,
        failing=tuple(_failing(report, verify)),
        regressions=report.regressions,
        undeclared=undeclared(touched, (*task.files, *allowed)),
        changed=report.changed,
        criteria=link(task, report, present),
        flaky_allowed=task.flaky_allowed,
        confidence=report.confidence,
        caps=report.caps,
        granted=allowed,
        mismatches=tuple(mismatches(claim, verify, touched, continued=continued)),
    )


def mismatches(
    claim: ExecutorResult, verify: Sequence[VerifyRun], touched: Sequence[str], *, continued: bool
) -> Iterable[str]:
    """Specific claims, an exit code or a list of files, that the engine's own observation contradicts. An attempt that
    continued another's work need not list what that one changed."""
    said = claim.verification
    if said is not None and said.exit_code is not None:
        for run in verify:
            same = not said.command.strip() or said.command.strip() == run.command.strip() or len(verify) == 1
            if same and run.exit_code is not None and (said.exit_code == 0) != (run.exit_code == 0):
                claimed = f"`{said.command.strip() or run.command}` ended with exit code {said.exit_code}"
                yield f"it says that {claimed}; here `{run.command}` ended with {run.exit_code}"
                break
    if claim.files_modified is None:
        return
    listed = {path.removeprefix("./") for path in claim.files_modified}
    if invented := sorted(listed - set(touched)):
        yield f"it says that it changed {', '.join(invented[:5])}, which it did not"
    hidden = sorted(set(touched) - listed)
    if hidden and not continued:
        yield f"it changed {', '.join(hidden[:5])}, which it does not say"


def ran_out_of_time(report: CheckReport, task: PlanTask) -> str:
    """The verify command that did not end before its deadline, if that is so."""
    limits = {finding.check for finding in report.findings if finding.rule == "limit"}
    late = [line for line in _verify_lines(task, report) if line.name in limits and "not finished after" in line.reason]
    return late[0].command if late else ""


def failure_type(report: CheckReport, task: PlanTask) -> FailureType:
    return FailureType.TIMEOUT if ran_out_of_time(report, task) else FailureType.VERIFY_FAILURE


def _counts(line: CheckLine) -> bool:
    return line.verdict is Verdict.PASS and line.kind not in _TRIVIAL


def _verify_lines(task: PlanTask, report: CheckReport) -> list[CheckLine]:
    return [line for line in report.checks if line.kind is CheckKind.VERIFY and line.command in task.verify]


def _verify_runs(task: PlanTask, report: CheckReport) -> Iterable[VerifyRun]:
    for line in _verify_lines(task, report):
        flaky = line.name in report.flaky or any(
            finding.rule == "flaky" and finding.check == line.name for finding in report.findings
        )
        yield VerifyRun(
            command=line.command,
            exit_code=line.exit_code,
            verdict=line.verdict,
            flaky=flaky,
            artifact=line.artifact,
        )


def _failing(report: CheckReport, verify: Sequence[VerifyRun]) -> Iterable[Reason]:
    """What speaks against it beside the verify command's own exit code, which is a condition of its own."""
    told = {run.command for run in verify if run.exit_code != 0}
    found = False
    for line in report.checks:
        bad = line.verdict is Verdict.FAIL and line.decides
        unsure = line.verdict is Verdict.UNVERIFIABLE and line.required
        if bad or unsure:
            found = True
            if line.kind is CheckKind.VERIFY and line.command in told:
                continue
            detail = line.reason or line.verdict.value
            yield Reason(check=line.name, layer="cascade", verdict=line.verdict, detail=detail, artifact=line.artifact)
    for finding in report.findings:
        if finding.severity is not Severity.MINOR:
            found = True
            if finding.rule != _TOLD_BY_SCOPE:
                yield _as_reason(finding)
    if report.outcome is not Outcome.PASSED and not found:
        yield Reason(check="outcome", layer="cascade", detail=report.reason)


def _as_reason(finding: Finding) -> Reason:
    where = f"{finding.path}{f':{finding.line}' if finding.line else ''}: " if finding.path else ""
    return Reason(
        check=finding.rule,
        layer=finding.layer,
        verdict=Verdict.FAIL,
        detail=f"{where}{finding.detail}. {finding.fix}",
        artifact=finding.artifact,
    )


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
        if not any(matches(pattern, path) for path in evidence.changed)
    ]
    concerns += [f"no check shows that: {link.criterion}" for link in evidence.criteria if link.is_prose]
    concerns += [f"{path} was deleted" for path in deleted]
    concerns += [f"`{run.command}` is flaky" for run in evidence.verify if run.flaky]
    concerns += [_told(finding) for finding in findings if finding.severity is Severity.MINOR]
    return list(dict.fromkeys(concerns))


def _told(finding: Finding) -> str:
    where = f" in {finding.path}{f':{finding.line}' if finding.line else ''}" if finding.path else ""
    return f"{finding.rule}{where}: {finding.detail}"


CATEGORIES: Final = ("verify-unavailable", "false-negative", "time-pressure")
CONFIRMATION: Final = "OVERRIDE"
_SHORTEST_REASON: Final = 10
_NO_REASON: Final = (
    (re.compile(r"\btests?\b.*\b(take|takes|are|is)\b.*\b(too long|slow)\b", re.IGNORECASE), "that a test is slow"),
    (re.compile(r"\b(looks?|seems?) (good|fine|ok(ay)?)\b|\blgtm\b", re.IGNORECASE), "that it looks good"),
)
_SECURITY: Final = ("readiness-secrets", "symlink-escape", "nested-repository")


def refused_reason(reason: str) -> str:
    """Why this is no reason to skip a task, if it is none."""
    for pattern, what in _NO_REASON:
        if pattern.search(reason):
            return f"{what} is no reason: the gate is there for that"
    if len(reason.strip()) < _SHORTEST_REASON:
        return "the reason is too short to be understood later"
    return ""


def security_blockers(record: TaskRecord) -> tuple[str, ...]:
    """What was found about the last attempt that nobody can set aside."""
    last = record.failures[-1:] if record.failures else ()
    return tuple(reason.detail for failure in last for reason in failure.reasons if reason.check in _SECURITY)
