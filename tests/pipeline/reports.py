"""Runs of the pipeline to look at, one for each way in which they can end."""

from __future__ import annotations

from collections.abc import Sequence

from proofstone.agents.roles.models.gate import AttemptFailure, FailureType, TaskState
from proofstone.agents.roles.models.pipeline import ReviewFocus, ReviewScope
from proofstone.common.models import BudgetUsage, Confidence, ConfidenceReason, Lane, ReviewVerdict, Severity
from proofstone.gate.models import RunOutcome, TaskReport
from proofstone.pipeline.models.run import (
    ApprovalEntry,
    ApprovalOption,
    ApprovalRequest,
    BlastRadius,
    FinalChecks,
    GateSummary,
    KnownIssue,
    PipelineRunConfig,
    PlanGateSummary,
    ReviewerVerdict,
    RunMode,
    RunReport,
)

RUN = "20260226T143000Z-abc123"
REQUEST = "greet people by their name"
BRANCH = "proofstone/greet-people-by-their-name"
BASE, COMMIT, TREE = "b" * 40, "c" * 40, "a" * 40
HOSTILE = "\x1b[2J[red]one\ntwo\r"
SHOWN = "\\x1b[2J[red]one two"
"""As it is seen in one line."""

QUESTION = ApprovalRequest(
    gate_id="gate-post-planning",
    pipeline_step="4a",
    question="Review and approve?",
    context="2 tasks.\n1. 🔴 auth",
    options=(
        ApprovalOption(id="approve", label="Approve", description="Begin.", is_default=True),
        ApprovalOption(id="revise", label="Revise", description="Plan anew."),
    ),
)
CHECKS = FinalChecks(tree=TREE, passed=True, confidence=Confidence.HIGH)
BROKEN = FinalChecks(tree=TREE, passed=False, reason="2 tests fail", regressions=("tests/test_a.py::one",))


def setup(**said: object) -> PipelineRunConfig:
    body: dict[str, object] = {
        "version": "1",
        "repository": "/srv/shop",
        "request": REQUEST,
        "slug": "greet-people-by-their-name",
        "base_commit": BASE,
        "branch": BRANCH,
        "lane": Lane.STANDARD,
        "lane_reason": "no files are named",
        "agents": {"researcher:impact": ("api:small",), "planner": ("api:large", "cli:claude")},
        **said,
    }
    return PipelineRunConfig.model_validate(body)


def entry(
    option: str = "approve", *, auto: bool = True, said: str = "", gate: str = "gate-post-planning"
) -> ApprovalEntry:
    return ApprovalEntry(
        gate_id=gate,
        timestamp="2026-02-26T14:31:00Z",
        mode=RunMode.AUTONOMOUS if auto else RunMode.INTERACTIVE,
        selected_option=option,
        auto_selected=auto,
        user_response_raw=said,
    )


def task(state: TaskState = TaskState.APPROVED, name: str = "Greeting", error: str = "") -> TaskReport:
    failed = (AttemptFailure(attempt=1, type=FailureType.VERIFY_FAILURE, error=error),) if error else ()
    return TaskReport(
        id="task-01",
        name=name,
        state=state,
        attempts=2,
        confidence=Confidence.HIGH if state is TaskState.APPROVED else None,
        commit=COMMIT if state is TaskState.APPROVED else None,
        failures=failed,
    )


def gate(iteration: int, outcome: RunOutcome, *tasks: TaskReport, reason: str = "") -> GateSummary:
    run_id = f"{RUN}-g{iteration}"
    return GateSummary(iteration=iteration, run_id=run_id, outcome=outcome, reason=reason, tasks=tasks, tip=COMMIT)


def reviewed(focus: ReviewFocus, verdict: ReviewVerdict | None, round: int = 1, **found: int) -> ReviewerVerdict:
    scope: ReviewScope = "code"
    findings = {Severity(severity): count for severity, count in found.items()}
    model = "gpt" if verdict else ""
    return ReviewerVerdict(scope=scope, focus=focus, round=round, verdict=verdict, findings=findings, model=model)


def plan_gates(reason: str = "nothing stands") -> Sequence[PlanGateSummary]:
    return (PlanGateSummary(iteration=1, run_id=f"{RUN}-p1", verdict="PROCEED", reason=reason),)


def report(outcome: RunOutcome, reason: str = "", **said: object) -> RunReport:
    body: dict[str, object] = {
        "run_id": RUN,
        "request": REQUEST,
        "repository": "/srv/shop",
        "outcome": outcome,
        "reason": reason,
        "lane": Lane.STANDARD,
        "lane_reason": "no files are named",
        "branch": BRANCH,
        "base_commit": BASE,
        "dispatches": 26,
        "spent": BudgetUsage(requests=30, input_tokens=3_000, usd=0.05),
        "elapsed_ms": 41_000,
        "directory": f"/srv/shop/.proofstone/{RUN}",
        **said,
    }
    return RunReport.model_validate(body)


def passed() -> RunReport:
    words = (
        reviewed(ReviewFocus.SECURITY, ReviewVerdict.APPROVE),
        reviewed(ReviewFocus.CORRECTNESS, ReviewVerdict.NEEDS_REVISION, critical=1, minor=2),
        reviewed(ReviewFocus.ARCHITECTURE, None),
        reviewed(ReviewFocus.SECURITY, ReviewVerdict.APPROVE, round=2),
    )
    issues = (
        KnownIssue(severity=Severity.MINOR, title="a long name", source="review code/architecture, round 2"),
        KnownIssue(severity=Severity.MAJOR, title="no limit", where=("a.py:3", "b.py"), source="plan gate C3"),
    )
    return report(
        RunOutcome.PASSED,
        confidence=Confidence.MEDIUM,
        reasons=(ConfidenceReason(reason="left open by a review: no limit", remedy="set one"),),
        commit=COMMIT,
        tree=TREE,
        rollback=f"git revert --no-edit {COMMIT}",
        plan_gates=plan_gates(),
        gates=(
            gate(1, RunOutcome.FAILED, task(TaskState.FAILED, error="2 tests fail"), reason="task-01 failed"),
            gate(2, RunOutcome.PASSED, task()),
        ),
        final=CHECKS,
        reviews=words,
        single_model=True,
        known_issues=issues,
        approvals=(entry(), entry("revise", auto=False, said="smaller", gate="gate-post-planning-2")),
        changed=(BlastRadius(path="greeting.py", change="modified", risk="🔴"),),
        bundle=f"/srv/shop/.proofstone/{RUN}/evidence-bundle.md",
        notes=("there is no sandbox",),
    )


def waiting() -> RunReport:
    return report(
        RunOutcome.NEEDS_HUMAN, QUESTION.question, waiting=QUESTION, next_step=f"proofstone approve {RUN} … OPTION"
    )


def failed() -> RunReport:
    return report(
        RunOutcome.FAILED, "abandoned after 3 iterations", confidence=Confidence.LOW, final=BROKEN, next_step="think"
    )
