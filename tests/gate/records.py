"""Values for tests of the gate's rules: everything passes unless a test says otherwise."""

from __future__ import annotations

from proofstone.agents.roles.models.gate import (
    ArchitectDecision,
    ArchitectVerdict,
    AttemptFailure,
    ExecutorResult,
    ExecutorStatus,
    FailureType,
)
from proofstone.check.models import CheckKind, CheckLine, CheckReport
from proofstone.common.models import Confidence, Verdict
from proofstone.gate.models import AttemptChecked, CriterionLink, Evidence, TaskRecord, VerifyRun
from proofstone.plans.models import Plan, PlanTask

TREE = "a" * 40
BASE = "b" * 40
COMMIT = "c" * 40
SUCCESS = ExecutorResult(status=ExecutorStatus.SUCCESS)
RULES = ArchitectVerdict(verdict=ArchitectDecision.APPROVED, confidence=Confidence.HIGH, by="rules")
REJECTED = ArchitectVerdict(verdict=ArchitectDecision.REJECTED, feedback="not what was asked", by="rules")


def evidence(**changed: object) -> Evidence:
    sound: dict[str, object] = {
        "tree": TREE,
        "base_commit": BASE,
        "claim": SUCCESS,
        "verify": (VerifyRun(command="pytest -q", exit_code=0, verdict=Verdict.PASS),),
        "passing": ("verify", "syntax"),
        "large": False,
        "failing": (),
        "regressions": (),
        "undeclared": (),
        "changed": ("shop.py",),
        "criteria": (CriterionLink(criterion="all tests pass", check="verify"),),
        "confidence": Confidence.HIGH,
    }
    return Evidence.model_validate({**sound, **changed})


def checked(**changed: object) -> AttemptChecked:
    return AttemptChecked(evidence=evidence(**changed), commit=COMMIT, rules=RULES)


def failure(type: FailureType, attempt: int = 1) -> AttemptFailure:
    return AttemptFailure(attempt=attempt, type=type, error="it did not work")


def record(**changed: object) -> TaskRecord:
    return TaskRecord.model_validate({"id": "task-01", **changed})


def task(number: int, **changed: object) -> PlanTask:
    sound: dict[str, object] = {
        "id": f"task-{number:02}",
        "name": f"Task {number}",
        "files": (f"f{number}.py",),
        "verify": ("pytest -q",),
        "done": ("all tests pass",),
    }
    return PlanTask.model_validate({**sound, **changed})


def plan(*tasks: PlanTask, **changed: object) -> Plan:
    return Plan.model_validate({"path": "PLAN.md", "title": "A plan", "tasks": tasks, **changed})


def line(**changed: object) -> CheckLine:
    sound: dict[str, object] = {
        "name": "verify",
        "kind": CheckKind.VERIFY,
        "tier": 2,
        "verdict": Verdict.PASS,
        "baseline": None,
        "duration_ms": 1,
        "reused": False,
        "required": True,
        "decides": True,
        "reason": "",
        "command": "",
        "assurance": None,
        "tests": None,
        "seq": 1,
        "artifact": None,
        "exit_code": 0,
    }
    return CheckLine.model_validate({**sound, **changed})


def check_report(**changed: object) -> CheckReport:
    sound: dict[str, object] = {
        "run_id": "r",
        "tree": TREE,
        "frozen": TREE,
        "base": BASE,
        "base_commit": BASE,
        "outcome": "passed",
        "reason": "",
        "confidence": Confidence.HIGH,
        "assurance": "bubblewrap",
        "ledger": "",
        **dict.fromkeys(("checks", "findings", "regressions", "fixed", "standing", "edited", "sensitive", "flaky"), ()),
        **dict.fromkeys(("unverifiable_tests", "changed", "notes"), ()),
    }
    return CheckReport.model_validate({**sound, **changed})
