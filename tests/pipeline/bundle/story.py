"""A run of the pipeline as the ledger would hold it, written by hand: one plan that failed and was replaced, one review
that asked for a revision, one person who was asked. Everything is on record but the work itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from pydantic import JsonValue

from proofstone.agents.models import Completion, CompletionStatus, DispatchKey, ToolResult, Turn
from proofstone.agents.roles.models.gate import AttemptFailure, FailureReason, FailureType, RetryDirection
from proofstone.agents.roles.models.pipeline import FindingCategory, PanelFinding, PanelOutput, ReviewFocus, ReviewScope
from proofstone.agents.roles.models.solve_messages import DirectiveName, Gradient, Loss
from proofstone.common.models import (
    Confidence,
    ConfidenceReason,
    FrozenModel,
    Lane,
    Phase,
    ReviewVerdict,
    Severity,
    Usage,
    Verdict,
    as_reason,
)
from proofstone.gate.models import (
    AttemptApproved,
    AttemptChecked,
    AttemptExecuted,
    AttemptFailed,
    AttemptStarted,
    GateSetup,
    RunOutcome,
    TaskCommitted,
    TaskEvent,
)
from proofstone.gate.rules.questions import GateResult
from proofstone.ledger.models import ApprovalRow, CheckRow, EventRow, MessageRow, OverrideRow, StepStatus, TelemetryRow
from proofstone.ledger.schema import LedgerRow
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.pipeline.models.run import (
    BlastRadius,
    FinalChecks,
    KnownIssue,
    PipelineRunConfig,
    ReviewerVerdict,
    RunReport,
)
from proofstone.plan_gate.models import PlanGateSetup
from tests.gate.records import RULES, SUCCESS, evidence

RUN = "20260131T120000Z-aaaaaa"
PLAN = "20260131T120100Z-bbbbbb"
FIRST = "20260131T120200Z-c1c1c1"
SECOND = "20260131T120300Z-c2c2c2"
BASE, TREE, TIP, COMMIT = "b" * 40, "a" * 40, "c" * 40, "d" * 40
REQUEST = "Totals with tax\n\nA cart knows its tax."
DONE = Completion(status=CompletionStatus.DONE, summary="done")


@dataclass(frozen=True)
class Words:
    """What agents and people said: tests put something hostile in its place."""

    request: str = REQUEST
    error: str = "`pytest -q` ended with exit code 1"
    title: str = "Rounding loses a cent"
    summary: str = "It holds."
    issue: str = "No test of a negative price"
    path: str = "shop/tax.py"
    person: str = "go on, but keep the old names"
    reason: str = "the payment sandbox is down"
    model: str = "openai:gpt-5"
    name: str = "Tax"
    snippet: str = "1 failed\nmore of it"
    command: str = "pytest -q"


PLAIN = Words()


def written(path: Path, words: Words = PLAIN, *, upto: str = "end") -> SqliteLedger:
    """The ledger with the run in it; `upto` "report" leaves out how it ended."""
    seconds = count()
    start = datetime(2026, 1, 31, 12, tzinfo=UTC)
    ledger = SqliteLedger(path, clock=lambda: start + timedelta(seconds=next(seconds)))
    for rows in (_beginning(words), _first_gate(words), _replanned(words), _second_gate(words), _reviews(words)):
        for row in rows:
            ledger.append(row)
    if upto == "end":
        ledger.append(*_end(words))
    return ledger


def panel(scope: ReviewScope, focus: ReviewFocus, round: int, *findings: PanelFinding, summary: str) -> PanelOutput:
    verdict = ReviewVerdict.NEEDS_REVISION if findings else ReviewVerdict.APPROVE
    return PanelOutput(
        completion=DONE,
        review_focus=focus,
        scope=scope,
        round=round,
        verdict=verdict,
        confidence=Confidence.HIGH,
        findings=findings,
        summary=summary,
    )


def found(title: str, severity: Severity = Severity.MAJOR) -> PanelFinding:
    return PanelFinding(
        title=title,
        severity=severity,
        category=FindingCategory.CORRECTNESS,
        description="It is a cent short.",
        affected=("shop/tax.py:3",),
        recommendation="Round once.",
        evidence="round(a) + round(b)",
    )


def direction(loss: float, directive: DirectiveName) -> RetryDirection:
    return RetryDirection(
        directive=directive,
        gradient=Gradient.PLATEAU,
        loss=Loss(D=loss, P=1.0, Omega=0.1, L=loss),
        nabla=0.0,
        grad_l=0.0,
        rationale="nothing has changed",
    )


def _event(run_id: str, type: str, payload: Mapping[str, JsonValue], task_id: str | None = None) -> EventRow:
    return EventRow(run_id=run_id, task_id=task_id, type=type, payload=payload)


def _dumped(value: FrozenModel) -> dict[str, JsonValue]:
    body: dict[str, JsonValue] = value.model_dump(mode="json")
    return body


def _task(run_id: str, id: str, *events: TaskEvent) -> list[LedgerRow]:
    return [_event(run_id, f"task.{one.kind}", {"event": _dumped(one), "state": "-"}, id) for one in events]


def _said(run_id: str, role: str, words: Words, *, focus: str | None = None) -> list[LedgerRow]:
    """One dispatch: it looks at a file once, and answers."""
    occasion = DispatchKey(run_id=run_id, role=role, step=role, focus=focus)
    turn = Turn(text="ok", model=words.model, usage=Usage(requests=1, input_tokens=900, output_tokens=100, usd=0.02))
    parts: list[tuple[str, dict[str, JsonValue]]] = [
        ("Dispatch", {"occasion": _dumped(occasion)}),
        ("Turn", {"turn": _dumped(turn), "seconds": 1.5}),
        ("ToolResult", {"result": _dumped(ToolResult(call_id="1", name="read", text="x")), "seconds": 0.5}),
        ("Turn", {"turn": _dumped(turn), "seconds": 1.0}),
    ]
    return [
        MessageRow(
            message_id=f"{occasion.id}#{number}",
            run_id=run_id,
            sender="engine" if type in ("Dispatch", "ToolResult") else occasion.agent,
            recipient=occasion.agent if type in ("Dispatch", "ToolResult") else "engine",
            type=type,
            payload={"dispatch": occasion.id, "task": None, **payload},
        )
        for number, (type, payload) in enumerate(parts)
    ]


def _step(run_id: str, step: str, agent: str, status: StepStatus = StepStatus.DONE) -> list[LedgerRow]:
    row = TelemetryRow(run_id=run_id, step=step, agent=agent, started_at="2026-01-31T12:00:01.000+00:00")
    ended = row.model_copy(update={"completed_at": "2026-01-31T12:00:03.500+00:00", "status": status})
    return [row, ended]


def _check(run_id: str, task: str, name: str, phase: Phase, state: Verdict, words: Words, **more: object) -> CheckRow:
    body: dict[str, object] = {
        "run_id": run_id,
        "task_id": task,
        "phase": phase,
        "check_name": name,
        "tool": "pytest",
        "command": words.command,
        "exit_code": 0 if state is Verdict.PASS else 1,
        "output_snippet": words.snippet,
        "state": state,
        "tree": TREE,
        "tier": 2,
    }
    return CheckRow.model_validate({**body, **more})


def _gate_setup(words: Words) -> GateSetup:
    return GateSetup.model_validate(
        {
            "version": "1",
            "repository": "/repo",
            "plan_path": "/repo/.proofstone/plan.md",
            "plan_artifact": "0" * 64,
            "base_commit": BASE,
            "branch": "hidden",
            "executor": "script:agents.yaml",
            "architect": "rules",
            "slots": 4,
            "minutes": 60,
            "hooks": "refuse",
            "sign": False,
            "author_name": "T",
            "author_email": "t@example.org",
            "sandbox": "bubblewrap",
            "parent": RUN,
        }
    )


def _beginning(words: Words) -> Sequence[LedgerRow]:
    setup = PipelineRunConfig(
        version="1",
        repository="/repo",
        request=words.request,
        slug="totals-with-tax",
        base_commit=BASE,
        branch="proofstone/totals-with-tax",
        lane=Lane.STANDARD,
        lane_reason="no file was named",
        agents={"planner": ("script:agents.yaml", "api:openai:gpt-5"), "executor": ("script:agents.yaml",)},
    )
    plan = PlanGateSetup(
        version="1", repository="/repo", plan_path="p", plan_artifact="0" * 64, base_commit=BASE, parent=RUN
    )
    approval = ApprovalRow(
        run_id=RUN,
        gate="gate-post-planning",
        option="approve",
        decided_by="ada",
        reason=words.person,
        payload={"mode": "interactive", "auto_selected": False},
    )
    return [
        _event(RUN, "run.started", _dumped(setup)),
        *_step(RUN, "plan/r1", "planner"),
        *_said(RUN, "planner", words),
        _event(RUN, "run.child", {"run_id": PLAN, "kind": "plan", "iteration": 1}),
        _event(PLAN, "run.started", _dumped(plan)),
        _event(PLAN, "run.finished", {"outcome": "passed", "reason": "PROCEED: nothing is open"}),
        approval,
    ]


def _first_gate(words: Words) -> Sequence[LedgerRow]:
    failure = AttemptFailure(
        attempt=1,
        type=FailureType.VERIFY_FAILURE,
        error=words.error,
        reasons=(
            FailureReason(check="regression", layer="gate", detail="test_total passed on the base and fails now"),
        ),
        direction=direction(0.9, DirectiveName.CHANGE_APPROACH),
    )
    over = {"action": "skip", "reason": words.reason, "category": "verify-unavailable", "by": "ada", "at": "now"}
    return [
        _event(RUN, "run.child", {"run_id": FIRST, "kind": "gate", "iteration": 1}),
        _event(FIRST, "run.started", _dumped(_gate_setup(words))),
        *_task(
            FIRST,
            "task-01",
            AttemptStarted(attempt=1, base_commit=BASE, tree=TREE),
            AttemptExecuted(claim=SUCCESS, tree=TREE),
        ),
        _check(FIRST, "task-01", "tests", Phase.BASELINE, Verdict.PASS, words),
        _check(FIRST, "task-01", "tests", Phase.AFTER, Verdict.FAIL, words),
        *_task(FIRST, "task-01", AttemptFailed(failure=failure, tree=TREE, claim=SUCCESS)),
        OverrideRow(
            run_id=FIRST,
            task_id="task-02",
            action="skip",
            category="verify-unavailable",
            reason=words.reason,
            decided_by="ada",
            payload={"override": dict[str, JsonValue](over)},
        ),
        _event(FIRST, "run.finished", {"outcome": "failed", "reason": "failed: task-01"}),
    ]


def _replanned(words: Words) -> Sequence[LedgerRow]:
    said = direction(0.8, DirectiveName.REFINE)
    return [_event(RUN, "pipeline.note", {"kind": "direction", "text": "another plan", "data": _dumped(said)})]


def _second_gate(words: Words) -> Sequence[LedgerRow]:
    seen = evidence(
        base_commit=BASE, tree=TREE, changed=(words.path,), reasons=(as_reason("no test fails without the change"),)
    )
    done: tuple[TaskEvent, ...] = (
        AttemptChecked(evidence=seen, commit=TIP, rules=RULES),
        AttemptApproved(verdicts=(RULES,)),
        TaskCommitted(commit=TIP, tree=TREE),
    )
    result = GateResult(
        task=words.name,
        task_id="task-01",
        attempts=1,
        executor=None,
        verify=(),
        architect=(),
        criteria=(),
        failures=(),
        outcome="PASSED",
        confidence=Confidence.HIGH,
        duration_ms=1,
        timestamp="",
        commit_sha=TIP,
    )
    return [
        _event(RUN, "run.child", {"run_id": SECOND, "kind": "gate", "iteration": 2}),
        _event(SECOND, "run.started", _dumped(_gate_setup(words))),
        *_step(SECOND, "task-01/execute", "script:agents.yaml"),
        *_said(SECOND, "executor", words),
        *_task(
            SECOND,
            "task-01",
            AttemptStarted(attempt=1, base_commit=BASE, tree=TREE),
            AttemptExecuted(claim=SUCCESS, tree=TREE),
        ),
        _check(SECOND, "task-01", "tests:must-fail", Phase.AFTER, Verdict.FAIL, words, tree="e" * 40),
        _check(SECOND, "task-01", "tests", Phase.BASELINE, Verdict.FAIL, words),
        _check(SECOND, "task-01", "tests", Phase.AFTER, Verdict.PASS, words),
        *_task(SECOND, "task-01", *done),
        _event(SECOND, "run.finished", {"outcome": "passed", "reason": ""}),
        _event(SECOND, "gate.result", _dumped(result), "task-01"),
        _check(RUN, "final", "tests", Phase.BASELINE, Verdict.PASS, words),
        _check(RUN, "final", "tests", Phase.AFTER, Verdict.PASS, words),
        _check(RUN, "final", "lint", Phase.AFTER, Verdict.UNVERIFIABLE, words),
    ]


def _reviews(words: Words) -> Sequence[LedgerRow]:
    rows: list[LedgerRow] = []
    for round in (1, 2):
        for focus in ReviewFocus:
            findings = (found(words.title),) if (round, focus) == (1, ReviewFocus.CORRECTNESS) else ()
            rows += _review(panel("code", focus, round, *findings, summary=words.summary), words)
    return rows


def _review(output: PanelOutput, words: Words) -> list[LedgerRow]:
    step = f"code-review/r{output.round}/reviewer/{output.review_focus}"
    payload: dict[str, JsonValue] = {
        "step": step,
        "asked": "0" * 64,
        "agent": f"reviewer:{output.review_focus}",
        "model": words.model,
        "output": _dumped(output),
    }
    row = _check(
        RUN,
        "totals-with-tax-code-review",
        f"review-code-{output.review_focus}",
        Phase.REVIEW,
        Verdict.FAIL if output.findings else Verdict.PASS,
        words,
        tool="review",
        command=None,
        exit_code=None,
        verdict=output.verdict,
        severity=Severity.MAJOR if output.findings else None,
        round=output.round,
    )
    return [_event(RUN, "pipeline.step", payload), row]


def _end(words: Words) -> Sequence[LedgerRow]:
    report = RunReport(
        run_id=RUN,
        request=words.request,
        repository="/repo",
        outcome=RunOutcome.PASSED,
        reason="",
        confidence=Confidence.MEDIUM,
        reasons=(ConfidenceReason(reason="lint could not be run", remedy="a linter that runs here"),),
        lane=Lane.STANDARD,
        lane_reason="no file was named",
        branch="proofstone/totals-with-tax",
        commit=COMMIT,
        tree=TREE,
        base_commit=BASE,
        final=FinalChecks(tree=TREE, passed=True, confidence=Confidence.MEDIUM),
        reviews=tuple(
            ReviewerVerdict(scope="code", focus=focus, round=round, verdict=ReviewVerdict.APPROVE)
            for round in (1, 2)
            for focus in ReviewFocus
        ),
        single_model=True,
        known_issues=(KnownIssue(severity=Severity.MINOR, title=words.issue, where=(words.path,), source="review"),),
        changed=(BlastRadius(path=words.path, change="modified", risk="🟡"),),
    )
    return [
        _event(RUN, "pipeline.report", {"report": _dumped(report)}),
        _event(RUN, "run.finished", {"outcome": "passed", "reason": ""}),
    ]
