"""From the report of a whole check to what the gate asks for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from proofstone.contracts.check import CheckKind
from proofstone.contracts.finding import Finding
from proofstone.contracts.gate import ExecutorResult, FailureType, Reason
from proofstone.contracts.gate_record import Evidence, VerifyRun
from proofstone.contracts.plan import PlanTask
from proofstone.contracts.report import CheckLine, CheckReport
from proofstone.contracts.verdict import Outcome, Severity, Verdict
from proofstone.core.gate.criteria import link
from proofstone.core.scope import undeclared

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
