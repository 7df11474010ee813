"""The PASS rule of the task gate, the evidence for it, the architect made of rules, and the limits of overrides. Pure.

A task passes if and only if every row holds:

    | condition         | holds when                                                                             |
    |-------------------|----------------------------------------------------------------------------------------|
    | executor          | it reports success, and not that a done criterion is unmet                             |
    | verify            | there is a verify command, Proofstone ran it, and it exited with 0                     |
    | signals           | at least 2 distinct checks passed (3 for a large task); scans for conflict markers,    |
    |                   | size and readiness, and verify commands that pass on the base too, do not count        |
    | flaky             | no check that passes now failed on this very tree before                               |
    | required-checks   | no required check failed or is unverifiable, and no finding blocks                     |
    | regression        | nothing that passed on the base fails now                                              |
    | scope             | every changed file is declared                                                         |
    | architect         | the last verdict of every architect is APPROVED, and none asks for a person            |
    | done              | there is a done criterion, and every command that a criterion names exits with 0       |

A criterion that no check shows must be judged by an architect or a person. The rules never judge it: a task may pass
its gate without such a judgement, but its run does not (`judgements`).

The architect made of rules always gives a verdict, and judges the evidence only:

    | subject       | rejects if                            | has a concern if                                        |
    |---------------|---------------------------------------|---------------------------------------------------------|
    | files         | nothing was changed                   | a declared file was not touched; a file was added       |
    | evidence      | no verify command passed              | a check is flaky or something caps the confidence       |
    | done criteria |                                       | no check can show that a criterion is met               |
    | side effects  |                                       | files were deleted, or made executable                  |
    | suppressions  |                                       | there is an informational finding                       |
    | claims        |                                       | the executor's claim contradicts the observation        |

A skip or a force is never a pass: Proofstone does not commit the task, and every view of it says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Final

from proofstone.agents.roles.models.gate import (
    ArchitectDecision,
    ArchitectVerdict,
    ExecutorResult,
    ExecutorStatus,
    FailureReason,
    FailureType,
    Recommendation,
)
from proofstone.check.models import CheckKind, CheckLine, CheckReport
from proofstone.check.rules.confidence import describe_amended
from proofstone.check.rules.failure_text import find_missing_program
from proofstone.common.globs import find_undeclared, matches
from proofstone.common.models import (
    Confidence,
    ConfidenceRating,
    ConfidenceReason,
    Finding,
    Outcome,
    Severity,
    Verdict,
    rate_confidence,
)
from proofstone.gate.models import AddedFile, CriterionLink, Evidence, TaskRecord, VerifyRun
from proofstone.gate.rules.criteria import link_criteria
from proofstone.gate.rules.criterion_commands import find_criterion_commands, is_shown_by_commands
from proofstone.plans.models import PlanTask

MIN_SIGNALS: Final = 2
MIN_SIGNALS_LARGE: Final = 3
_MAX_REGRESSIONS: Final = 20
"""Regressions that are reasons of their own. The rest is counted, and the evidence has all."""


def find_unmet(evidence: Evidence, verdicts: Sequence[ArchitectVerdict]) -> tuple[FailureReason, ...]:
    """Return what keeps the task from passing; nothing if it passes."""
    return (*find_unmet_by_checks(evidence), *find_unmet_by_architects(evidence, verdicts))


def find_unmet_by_checks(evidence: Evidence) -> tuple[FailureReason, ...]:
    """Return the unmet conditions that need no architect."""
    reasons: list[FailureReason] = []
    if evidence.claim.status is not ExecutorStatus.SUCCESS or evidence.claim.done_criteria_met is False:
        reasons.append(_make_reason("executor", "the executor does not report success"))
    if not evidence.verify:
        reasons.append(_make_reason("verify", "no verify command was run"))
    reasons += [_make_verify_reason(run) for run in evidence.verify if not _is_met(run, evidence)]
    needed = MIN_SIGNALS_LARGE if evidence.large else MIN_SIGNALS
    if len(set(evidence.passing)) < needed:
        passed = ", ".join(sorted(set(evidence.passing))) or "none"
        detail = f"{len(set(evidence.passing))} of the {needed} required passing checks ({passed})"
        remedy = "add another command to <verify> on its own line, or add a test suite to the project"
        reasons.append(_make_reason("signals", detail).model_copy(update={"remedy": remedy}))
    reasons += evidence.failing
    reasons += [
        _make_reason("regression", f"{test} fails now and did not fail on the base")
        for test in evidence.regressions[:_MAX_REGRESSIONS]
    ]
    if len(evidence.regressions) > _MAX_REGRESSIONS:
        more = len(evidence.regressions) - _MAX_REGRESSIONS
        reasons.append(_make_reason("regression", f"{more} more tests fail now and did not fail on the base"))
    reasons += [_make_reason("scope", f"{path} was changed but is not among <files>") for path in evidence.undeclared]
    if not evidence.flaky_allowed:
        reasons += [_make_reason("flaky", detail) for detail in evidence.unstable]
    return tuple(reasons)


def find_unmet_by_architects(evidence: Evidence, verdicts: Sequence[ArchitectVerdict]) -> tuple[FailureReason, ...]:
    """Return the unmet conditions that depend on the architects."""
    if not verdicts:
        return (_make_reason("architect", "no architect gave a verdict"),)
    reasons = [_make_rejection(verdict) for verdict in verdicts if verdict.verdict is not ArchitectDecision.APPROVED]
    reasons += [
        _make_reason("architect", f"{verdict.by or 'the architect'} asks for a person: {verdict.feedback}".rstrip(": "))
        for verdict in verdicts
        if verdict.verdict is ArchitectDecision.APPROVED and verdict.recommendation is not Recommendation.COMMIT
    ]
    if not evidence.criteria:
        reasons.append(_make_reason("done", "there is no done criterion"))
    return tuple(reasons)


def rate_task_confidence(evidence: Evidence, verdicts: Sequence[ArchitectVerdict]) -> ConfidenceRating:
    """Return the confidence in a task that passed: that of its checks, lowered by prose criteria, commands that
    are flaky or prove nothing, added files and unsure architects."""
    reasons: dict[Confidence, list[ConfidenceReason]] = {level: [] for level in Confidence}
    if evidence.confidence is not Confidence.HIGH:
        unknown = ConfidenceReason(reason=f"the confidence in its checks is {evidence.confidence}")
        reasons[evidence.confidence] += evidence.reasons or (unknown,)
    reasons[Confidence.MEDIUM] += _list_task_reasons(evidence)
    for verdict in verdicts:
        if verdict.confidence is not Confidence.HIGH:
            verdict_reasons = _list_architect_reasons(verdict, reasons[Confidence.MEDIUM], _list_harmless(evidence))
            reasons[verdict.confidence] += verdict_reasons
    return rate_confidence(reasons[Confidence.LOW], reasons[Confidence.MEDIUM])


def _is_proven(evidence: Evidence) -> bool:
    """Return whether a verify command passes that does not pass on the base. The others then guard what was there."""
    return any(run.verdict is Verdict.PASS and not run.passes_on_base for run in evidence.verify)


def _list_harmless(evidence: Evidence) -> Set[str]:
    """Return concerns that are said and lower nothing: commands that pass on the base, beside one that does not."""
    return frozenset(_list_unproving(evidence)) if _is_proven(evidence) else frozenset()


def _list_unproving(evidence: Evidence) -> list[str]:
    return [
        f"`{run.command}` passes without the change as well: it proves nothing about this change"
        for run in evidence.verify
        if run.passes_on_base
    ]


def _list_task_reasons(evidence: Evidence) -> Iterator[ConfidenceReason]:
    for link in evidence.criteria:
        if link.is_prose:
            yield ConfidenceReason(
                reason=f"no check shows this: {link.criterion}", remedy="name a command in <verify> that shows it"
            )
    for run in evidence.verify:
        if run.flaky:
            yield ConfidenceReason(reason=f"`{run.command}` is flaky", remedy="make it pass every time")
        if run.passes_on_base and not _is_proven(evidence):
            yield ConfidenceReason(
                reason=f"`{run.command}` passes on the base too, so it proves nothing about this change",
                remedy="name a command in <verify> that fails without the change",
            )
    for detail in evidence.unstable:
        yield ConfidenceReason(reason=detail, remedy="make it pass every time")
    yield from map(describe_amended, evidence.granted)
    for added in evidence.added_files:
        yield ConfidenceReason(reason=describe_added_file(added), remedy="declare the file in the plan")


def _list_architect_reasons(
    verdict: ArchitectVerdict, known: Sequence[ConfidenceReason], harmless: Set[str]
) -> Iterator[ConfidenceReason]:
    """Yield the concerns of an architect who is not sure. A concern that is a reason already is not repeated."""
    by = verdict.by or "the architect"
    if not verdict.concerns:
        yield ConfidenceReason(reason=f"the confidence of {by} is {verdict.confidence}")
    for concern in verdict.concerns:
        if concern not in harmless and not any(_is_repeated(concern, reason.reason) for reason in known):
            is_untouched = concern.endswith(_UNTOUCHED)
            remedy = "declare only the files that the task changes" if is_untouched else "settle this concern"
            yield ConfidenceReason(reason=f"{by}: {concern}", remedy=remedy)


def _is_repeated(concern: str, reason: str) -> bool:
    """Return whether a concern says what a reason says: by its text, or about the same command."""
    commands = set(re.findall(r"`([^`]+)`", concern))
    return concern in reason or reason in concern or bool(commands & set(re.findall(r"`([^`]+)`", reason)))


def _is_met(run: VerifyRun, evidence: Evidence) -> bool:
    if run.verdict is not Verdict.PASS:
        return False
    return run.exit_code == 0 or (run.flaky and evidence.flaky_allowed)


def _make_verify_reason(run: VerifyRun) -> FailureReason:
    if run.flaky:
        detail = f"`{run.command}` is flaky: it failed, then passed, on the same tree"
    elif run.exit_code is None:
        detail = f"`{run.command}` did not finish"
    elif run.exit_code == 0:
        detail = f"`{run.command}` exited with 0, but that is not trusted: see the other reasons"
    else:
        detail = f"`{run.command}` ended with exit code {run.exit_code}"
    verdict = Verdict.UNVERIFIABLE if run.verdict is Verdict.UNVERIFIABLE else Verdict.FAIL
    return FailureReason(
        check="verify",
        layer="gate",
        verdict=verdict,
        detail=detail,
        artifact=run.artifact,
        failures=run.failures,
        output_tail=run.output_tail,
    )


def _make_rejection(verdict: ArchitectVerdict) -> FailureReason:
    text = verdict.feedback or "; ".join((*verdict.concerns, *verdict.findings)) or "rejected without a reason"
    return _make_reason("architect", f"{verdict.by or 'the architect'}: {text}")


def _make_reason(condition: str, detail: str) -> FailureReason:
    return FailureReason(check=condition, layer="gate", verdict=Verdict.FAIL, detail=detail)


_TRIVIAL: Final = (CheckKind.CONFLICT, CheckKind.SIZE, CheckKind.READINESS)
"""Scans that say nothing about whether the change does its work."""
_REPORTED_BY_SCOPE: Final = "undeclared-file"


def build_evidence(
    task: PlanTask,
    claim: ExecutorResult,
    report: CheckReport,
    *,
    present: Sequence[str],
    touched: Sequence[str],
    large: bool,
    allowed: tuple[str, ...] = (),
    added: tuple[AddedFile, ...] = (),
    unstable: Mapping[str, str] | None = None,
    continued: bool = False,
) -> Evidence:
    """Build the evidence from a check report.

    `present`: changed files that exist now; `touched`: all files that the executor changed, even if it restored them;
    `allowed`: undeclared files that it asked for and may change; `added`: files that were added to the task;
    `unstable`: by the name of a check, that it failed on this tree before.
    """
    verify = tuple(_list_verify_runs(task, report))
    now_passing = {line.name for line in report.checks if line.verdict is Verdict.PASS}
    doubtful = {name: detail for name, detail in (unstable or {}).items() if name in now_passing}
    return Evidence(
        tree=report.tree,
        base_commit=report.base_commit,
        claim=claim,
        verify=verify,
        passing=tuple(line.name for line in report.checks if _counts(line, report) and line.name not in doubtful),
        large=large,
        failing=tuple(_list_failing_checks(task, report, verify)),
        regressions=report.regressions,
        undeclared=find_undeclared(touched, (*task.files, *allowed)),
        changed=report.changed,
        criteria=_add_commands(link_criteria(task, report, present), report),
        flaky_allowed=task.flaky_allowed,
        confidence=report.confidence or Confidence.LOW,
        reasons=report.reasons,
        granted=allowed,
        accepted=report.accepted,
        added_files=added,
        unstable=tuple(doubtful.values()),
        mismatches=tuple(find_mismatches(claim, verify, touched, continued=continued)),
    )


def find_mismatches(
    claim: ExecutorResult, verify: Sequence[VerifyRun], touched: Sequence[str], *, continued: bool
) -> Iterable[str]:
    """Yield claims about an exit code or the changed files that contradict what Proofstone observed.

    An attempt that continued another one's work need not list what that one changed.
    """
    reported = claim.verification
    if reported is not None and reported.exit_code is not None:
        for run in verify:
            is_same_command = (
                not reported.command.strip() or reported.command.strip() == run.command.strip() or len(verify) == 1
            )
            if is_same_command and run.exit_code is not None and (reported.exit_code == 0) != (run.exit_code == 0):
                claimed = f"`{reported.command.strip() or run.command}` ended with exit code {reported.exit_code}"
                yield f"it says that {claimed}; when Proofstone ran it, `{run.command}` ended with {run.exit_code}"
                break
    if claim.files_modified is None:
        return
    listed = {path.removeprefix("./") for path in claim.files_modified}
    if invented := sorted(listed - set(touched)):
        yield f"it says that it changed {', '.join(invented[:5])}, which it did not"
    hidden = sorted(set(touched) - listed)
    if hidden and not continued:
        yield f"it changed {', '.join(hidden[:5])}, which it does not report"


def find_timed_out_command(report: CheckReport, task: PlanTask) -> str:
    """Return the verify command that did not end before its deadline, or ""."""
    limits = {finding.check for finding in report.findings if finding.rule == "limit"}
    late = [
        line for line in _find_verify_lines(task, report) if line.name in limits and "not finished after" in line.reason
    ]
    return late[0].command if late else ""


def find_missing_tool(verify: Sequence[VerifyRun]) -> str:
    """Return the program of this machine that a verify command needs and that was not found. What lies in the
    repository, an executor can still write.
    """
    programs = (find_missing_program(run.exit_code, run.output_tail) for run in verify)
    return next((program for program in programs if program and "/" not in program), "")


def classify_failure(report: CheckReport, task: PlanTask) -> FailureType:
    return FailureType.TIMEOUT if find_timed_out_command(report, task) else FailureType.VERIFY_FAILURE


def _counts(line: CheckLine, report: CheckReport) -> bool:
    return line.verdict is Verdict.PASS and line.kind not in _TRIVIAL and not _passes_on_base(line, report)


def _passes_on_base(line: CheckLine, report: CheckReport) -> bool:
    """Return whether a verify command proves nothing about the change, because it passes without it too.

    A command that runs the project's whole test suite takes the place of the check that discovery would have found,
    so it counts as that check does: tests that passed before and still pass guard what the change could break.
    """
    if line.kind is not CheckKind.VERIFY or line.verdict is not Verdict.PASS or line.baseline is not Verdict.PASS:
        return False
    is_suite = bool(line.tests) and not any(other.kind is CheckKind.TESTS and other.tests for other in report.checks)
    return not line.depends_on_change and not is_suite


def _add_commands(links: Sequence[CriterionLink], report: CheckReport) -> tuple[CriterionLink, ...]:
    """Return the links with the commands of their checks. A criterion that only says that its commands succeed is shown
    by them.
    """
    commands = {line.name: line.command for line in report.checks}
    passed = {line.command: line.name for line in report.checks if line.verdict is Verdict.PASS}
    linked = []
    for link in links:
        wanted, check = find_criterion_commands(link.criterion), link.check
        if check is None and is_shown_by_commands(link.criterion) and all(command in passed for command in wanted):
            check = passed[wanted[0]]
        linked.append(link.model_copy(update={"check": check, "command": commands.get(check or "", "")}))
    return tuple(linked)


def _find_verify_lines(task: PlanTask, report: CheckReport) -> list[CheckLine]:
    return [line for line in report.checks if line.kind is CheckKind.VERIFY and line.command in task.verify]


def _list_verify_runs(task: PlanTask, report: CheckReport) -> Iterable[VerifyRun]:
    for line in _find_verify_lines(task, report):
        flaky = line.name in report.flaky or any(
            finding.rule == "flaky" and finding.check == line.name for finding in report.findings
        )
        yield VerifyRun(
            command=line.command,
            exit_code=line.exit_code,
            verdict=line.verdict,
            flaky=flaky,
            artifact=line.artifact,
            output_tail=line.output_tail,
            failures=line.failures,
            duration_ms=line.duration_ms,
            passes_on_base=_passes_on_base(line, report),
        )


def _list_failing_checks(task: PlanTask, report: CheckReport, verify: Sequence[VerifyRun]) -> Iterable[FailureReason]:
    """Yield all reasons against the task besides the exit code of the verify command.

    The exit code is a condition of its own. A check that a criterion names fails in the name of that criterion.
    """
    reported_commands = {run.command for run in verify if run.exit_code != 0}
    criteria = {command: text for text in task.done for command in find_criterion_commands(text)}
    has_reason = False
    for line in report.checks:
        is_failed = line.verdict is Verdict.FAIL and line.decides
        is_unverified = line.verdict is Verdict.UNVERIFIABLE and line.required
        if is_failed or is_unverified:
            has_reason = True
            if line.kind is CheckKind.VERIFY and line.command in reported_commands:
                continue
            detail = line.reason or line.verdict.value
            name, layer = line.name, "cascade"
            if line.kind is CheckKind.VERIFY and line.command in criteria:
                name, layer = "done", "gate"
                detail = f"the criterion “{criteria[line.command]}” is not met: `{line.command}`: {detail}"
            yield FailureReason(
                check=name,
                layer=layer,
                verdict=line.verdict,
                detail=detail,
                artifact=line.artifact,
                failures=line.failures,
                output_tail=line.output_tail,
            )
    for finding in report.findings:
        if finding.severity is not Severity.MINOR:
            has_reason = True
            if finding.rule != _REPORTED_BY_SCOPE:
                yield _convert_finding(finding)
    if report.outcome is not Outcome.PASSED and not has_reason:
        yield FailureReason(check="outcome", layer="cascade", detail=report.reason)


_FIXES_FOR_EXECUTORS: Final[Mapping[str, str]] = {
    "flaky": "make it deterministic",
    "sandbox-failure": "",
    "protected-file": "undo the change to it",
}
"""What an executor can do about findings whose fix is advice for the plan's author or the project's owner."""


def _convert_finding(finding: Finding) -> FailureReason:
    where = f"{finding.path}{f':{finding.line}' if finding.line else ''}: " if finding.path else ""
    fix = _FIXES_FOR_EXECUTORS.get(finding.rule, finding.fix)
    return FailureReason(
        check=finding.rule,
        layer=finding.layer,
        verdict=Verdict.FAIL,
        detail=f"{where}{finding.detail}. {fix}" if fix else f"{where}{finding.detail}",
        remedy=finding.fix if fix != finding.fix else "",
        artifact=finding.artifact,
    )


RULES_ARCHITECT: Final = "rules"
_UNTOUCHED: Final = "is declared but was not touched"
_MAX_CONCERNS: Final = 20


def review_evidence(
    task: PlanTask, evidence: Evidence, findings: Sequence[Finding], *, deleted: Sequence[str] = ()
) -> ArchitectVerdict:
    """Return the verdict of the rules."""
    rejections = _list_rejections(evidence)
    concerns = tuple(_list_concerns(task, evidence, findings, deleted))[:_MAX_CONCERNS]
    if rejections:
        return ArchitectVerdict(
            verdict=ArchitectDecision.REJECTED,
            confidence=Confidence.HIGH,
            concerns=concerns,
            recommendation=Recommendation.RETRY,
            feedback="; ".join(rejections),
            by=RULES_ARCHITECT,
        )
    return ArchitectVerdict(
        verdict=ArchitectDecision.APPROVED,
        confidence=Confidence.MEDIUM if set(concerns) - _list_harmless(evidence) else Confidence.HIGH,
        findings=tuple(_list_met_criteria(evidence)),
        concerns=concerns,
        recommendation=Recommendation.COMMIT,
        by=RULES_ARCHITECT,
    )


def _list_rejections(evidence: Evidence) -> list[str]:
    rejections = []
    if not evidence.changed:
        rejections.append("nothing was changed, so there is nothing to commit")
    if not any(run.verdict is Verdict.PASS for run in evidence.verify):
        rejections.append("no verify command passed")
    return rejections


def _list_met_criteria(evidence: Evidence) -> list[str]:
    return [f"{link.criterion}: shown by {link.check}" for link in evidence.criteria if link.check]


def _list_concerns(
    task: PlanTask, evidence: Evidence, findings: Sequence[Finding], deleted: Sequence[str]
) -> list[str]:
    concerns = [*evidence.mismatches]
    concerns += [describe_amended(path).reason for path in evidence.granted]
    concerns += [describe_added_file(added) for added in evidence.added_files]
    concerns += [
        f"{pattern} {_UNTOUCHED}"
        for pattern in task.files
        if not any(matches(pattern, path) for path in evidence.changed)
    ]
    concerns += [f"no check shows this: {link.criterion}" for link in evidence.criteria if link.is_prose]
    concerns += [f"{path} was deleted" for path in deleted]
    concerns += [f"`{run.command}` is flaky" for run in evidence.verify if run.flaky]
    concerns += evidence.unstable
    concerns += _list_unproving(evidence)
    concerns += [_describe_finding(finding) for finding in findings if finding.severity is Severity.MINOR]
    return list(dict.fromkeys(concerns))


def describe_added_file(added: AddedFile) -> str:
    """Describe a file that was added to a task, with who added it and why."""
    reason = f": {added.reason}" if added.reason else ""
    return f"{added.path} is not among the plan's files; it was added while the task ran, by {added.added_by}{reason}"


def _describe_finding(finding: Finding) -> str:
    where = f" in {finding.path}{f':{finding.line}' if finding.line else ''}" if finding.path else ""
    return f"{finding.rule}{where}: {finding.detail}"


OVERRIDE_CATEGORIES: Final[Mapping[str, str]] = {
    "verify-unavailable": "what the verification needs and cannot reach, and until when",
    "false-negative": "which check or test is wrong, and why the work is right",
    "time-pressure": "what is due when, and who verifies the work later",
}
"""The kinds of reasons to skip a task, and what each reason must say."""
OVERRIDE_CONFIRMATION: Final = "OVERRIDE"
_MIN_REASON_LENGTH: Final = 24
_SECURITY: Final = ("readiness-secrets", "symlink-escape", "nested-repository")


def explain_bad_reason(reason: str, category: str | None, record: TaskRecord) -> str:
    """Explain why this is not a valid reason to set the gate aside; "" if it is valid.

    The reason must say what its category asks for, and must not contradict what the gate has observed.
    """
    wanted = OVERRIDE_CATEGORIES.get(category or "", "why the gate cannot be passed, and who answers for it")
    if len(reason.strip()) < _MIN_REASON_LENGTH:
        return f"it is too short to be understood later: say {wanted}"
    failed = record.failures[-1].reasons if record.failures else ()
    if (
        category == "verify-unavailable"
        and record.evidence
        and all(run.exit_code == 0 for run in record.evidence.verify)
    ):
        return "every verify command ran and passed, so the verification was available"
    if category == "false-negative" and not failed:
        return "no check has failed, so none can be wrong"
    if category == "false-negative" and not _names_failure(reason, failed):
        names = ", ".join(dict.fromkeys(failure.check for failure in failed))
        return f"it does not name what is wrong: say {wanted} ({names})"
    return ""


def _names_failure(reason: str, failed: Sequence[FailureReason]) -> bool:
    """Whether a reason names something that failed: a check, a rule, a test, a file, or a word of a command."""
    said = {word.lower() for word in re.findall(r"\w{5,}", reason)}
    texts = (f"{failure.check} {failure.detail} {' '.join(failure.failures)}" for failure in failed)
    return any(said & {word.lower() for word in re.findall(r"\w{5,}", text)} for text in texts)


def find_security_blockers(record: TaskRecord) -> tuple[str, ...]:
    """Return the findings about the last attempt that nobody can override."""
    last = record.failures[-1:] if record.failures else ()
    return tuple(reason.detail for failure in last for reason in failure.reasons if reason.check in _SECURITY)
