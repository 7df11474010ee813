"""Reports of the control loop, one for each way in which it can end."""

from __future__ import annotations

from proofstone.agents.roles.models.solve_messages import (
    Criterion,
    CriterionMode,
    CriterionVerdict,
    DirectiveName,
    FailureClass,
    FinalResult,
    FinalStatus,
    Gradient,
    Loss,
    OutcomeStatus,
    PlanDirective,
    SubTask,
    SubTaskOutcome,
    TaskSpec,
)
from proofstone.common.models import BudgetUsage, ChangedPath, ChangeKind
from proofstone.solve.models import SolveReport, SolveRound

RUN = "20260226T143000Z-abc123"
GOAL = "make the greeting polite"
HOSTILE = "\x1b[2J[red]<script>one\ntwo`` ```| # *x*\r"
SHOWN = "\\x1b[2J[red]<script>one two`` ```| # *x*"
"""As it is seen in one line."""


def loss(distance: float, blame: float = 0.5, spent: float = 0.0) -> Loss:
    total = 0.6 * distance + 0.3 * (1 - spent) * blame + 0.4 * spent
    return Loss(D=distance, P=blame, Omega=spent, L=total)


def subtask(number: int = 1, intent: str = "write the greeting", sequence: int = 1) -> SubTask:
    seen = Criterion(criterion="the test passes", mode=CriterionMode.VERIFIABLE, command="pytest -q")
    return SubTask(
        subtask_id=f"t-s{number}",
        parent_task_id="t",
        intent=intent,
        success_criteria=(seen, Criterion(criterion="it is polite")),
        sequence=sequence,
    )


def failed(criterion: str = "the test passes", evidence: str = "exit 1", **more: object) -> CriterionVerdict:
    body: dict[str, object] = {"mode": CriterionMode.VERIFIABLE, "failure_class": FailureClass.LOGICAL, **more}
    return CriterionVerdict(criterion=criterion, verdict="fail", evidence=evidence, **body)


def outcome(number: int = 1, *verdicts: CriterionVerdict, reason: str | None = None) -> SubTaskOutcome:
    """It matched, unless something is said against it."""
    status = OutcomeStatus.FAILED if verdicts or reason else OutcomeStatus.MATCHED
    return SubTaskOutcome(
        subtask_id=f"t-s{number}",
        parent_task_id="t",
        status=status,
        criteria_verdicts=verdicts,
        failure_reason=reason,
    )


def directive(
    name: DirectiveName, now: Loss, grad_l: float = 0.0, gradient: Gradient = Gradient.PLATEAU, **more: object
) -> PlanDirective:
    return PlanDirective(
        task_id="t",
        loss=now,
        gradient=gradient,
        directive=name,
        budget_pressure=now.Omega,
        grad_l=grad_l,
        **{"rationale": f"so it is {name}", **more},
    )


def round(
    number: int,
    decided: PlanDirective,
    *outcomes: SubTaskOutcome,
    subtasks: tuple[SubTask, ...] | None = None,
    nabla: float = 0.0,
) -> SolveRound:
    planned = (subtask(),) if subtasks is None else subtasks
    return SolveRound(
        number=number,
        directive=decided,
        nabla=nabla,
        elapsed_ms=12_340 * number,
        subtasks=planned,
        outcomes=outcomes,
    )


FIRST = round(1, directive(DirectiveName.REFINE, loss(1.0, 1.0)), outcome(1, failed()))
SECOND = round(
    2,
    directive(DirectiveName.BREAK_SYMMETRY, loss(0.5, 1.0, 0.2), -0.28, Gradient.IMPROVING, blocked_tools=("grep",)),
    outcome(),
    outcome(2, failed("it says please", "it says hey", mode=CriterionMode.PLAUSIBLE), failed()),
    subtasks=(subtask(), subtask(2, "say please", 2), subtask(3, "sign it", 3)),
    nabla=-0.3,
)


def report(**said: object) -> SolveReport:
    body: dict[str, object] = {
        "run_id": RUN,
        "repository": "/srv/shop",
        "task": TaskSpec(task_id="t", intent="a polite greeting", raw_input=GOAL),
        "policy": "patient",
        "elapsed_ms": 41_000,
        "agents": {"planner": "api:large", "executor": "api:small"},
        "dispatches": 7,
        "spent": BudgetUsage(requests=12, input_tokens=3_000, usd=0.05),
        **said,
    }
    return SolveReport.model_validate(body)


def result(status: FinalStatus = FinalStatus.ACCEPTED, **said: object) -> FinalResult:
    distance = 0.0 if status is FinalStatus.ACCEPTED else 0.5
    body: dict[str, object] = {"summary": "it says please now", "output": "Hello, please.\nThank you.", **said}
    return FinalResult(task_id="t", status=status, loss=loss(distance), grad_l=0.0, replans=1, **body)


def accepted(**said: object) -> SolveReport:
    last = round(2, directive(DirectiveName.ACCEPT, loss(0.0, 0.5, 0.25), -0.55, Gradient.IMPROVING), outcome())
    body: dict[str, object] = {
        "result": result(),
        "rounds": (FIRST, last),
        "changed": (
            ChangedPath(path="greeting.py", kind=ChangeKind.MODIFIED, mode="100644"),
            ChangedPath(path="old.py", kind=ChangeKind.DELETED, mode="000000"),
            ChangedPath(path="new.py", kind=ChangeKind.ADDED, mode="100644"),
        ),
        "patch": "/srv/state/solve/my run.patch",
        "remembered": 2,
        **said,
    }
    return report(**body)


def partial(**said: object) -> SolveReport:
    last = SECOND.model_copy(
        update={
            "number": 3,
            "directive": directive(DirectiveName.ABANDON, loss(0.5, 1.0, 0.85), 0.02, rationale="the budget is spent"),
        }
    )
    body: dict[str, object] = {
        "result": result(
            FinalStatus.PARTIAL,
            output=None,
            summary="half of it",
            partial=("the greeting is written",),
            next_moves=("say please yourself", "try another model"),
        ),
        "rounds": (FIRST, SECOND, last),
        "rejected": ("round 2: it repeats the plan before it",),
        "notes": ("there is no sandbox",),
        **said,
    }
    return report(**body)


def waiting() -> SolveReport:
    return report(question="Which greeting?", next_step=f'proofstone solve --resume {RUN} --answer "…"')


def hostile() -> SolveReport:
    """Whatever an agent, a person or a repository can write, written by somebody who means harm."""
    spec = TaskSpec(task_id="t", intent=HOSTILE, raw_input=HOSTILE, clarification=HOSTILE)
    bad = outcome(1, failed(HOSTILE, HOSTILE))
    decided = directive(DirectiveName.ABANDON, loss(1.0), rationale=HOSTILE, blocked_tools=(HOSTILE,))
    return report(
        task=spec,
        result=result(
            FinalStatus.ABANDONED, summary=HOSTILE, output=HOSTILE, partial=(HOSTILE,), next_moves=(HOSTILE,)
        ),
        rounds=(round(1, decided, bad, subtasks=(subtask(1, HOSTILE),)),),
        rejected=(HOSTILE,),
        notes=(HOSTILE,),
        changed=(ChangedPath(path=HOSTILE, kind=ChangeKind.ADDED, mode="100644"),),
        patch="/srv/state/a.patch",
        agents={"planner": HOSTILE},
        next_step=HOSTILE,
    )
