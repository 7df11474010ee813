"""Evidence: its layers, and how sure one may be. The confidence of each case is what the code itself says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from generators.page import table
from proofstone.agents.roles.models.gate import TaskState
from proofstone.check.models import CheckKind, CheckLine, MutantResult, MutantStatus, TestStrength
from proofstone.check.rules.confidence import CheckGrounds, rate_check
from proofstone.check.rules.outcome import ACCEPTABLE_RULES, LAYER_TITLES, EvidenceLayer
from proofstone.common.models import (
    Acceptance,
    AcceptanceMethod,
    Assurance,
    Confidence,
    ConfidenceReason,
    Outcome,
    Severity,
    Verdict,
)
from proofstone.gate.models import RunOutcome, TaskReport
from proofstone.pipeline.models.run import FinalChecks, GateSummary, KnownIssue
from proofstone.pipeline.rules import reviews as rating
from proofstone.pipeline.rules.reviews import ConfidenceGrounds

ASKS: Mapping[EvidenceLayer, str] = {
    EvidenceLayer.FROZEN_TREE: "is what was checked what there is?",
    EvidenceLayer.PROTECTED_FILES: "does it pass by the tests and settings of the base, too?",
    EvidenceLayer.TEST_IDENTITY: "did every test run that ran before, and has the runner itself said so?",
    EvidenceLayer.CANARY: "would a test that must fail be seen to fail?",
    EvidenceLayer.SENSITIVITY: "do the tests that count fail without the change?",
    EvidenceLayer.STATIC_SCAN: "does the code know that it is being tested?",
    EvidenceLayer.SANDBOX: "can a check reach anything but the tree, or anything outlive it?",
    EvidenceLayer.REVIEW: "what do others say who see it with fresh eyes?",
    EvidenceLayer.HELD_OUT: "does it hold for what its author never saw?",
}
_SURE = FinalChecks(tree="t", passed=True, confidence=Confidence.HIGH)


def layers() -> str:
    return table(("layer", "", "asks"), [(layer, LAYER_TITLES[layer], ASKS[layer]) for layer in EvidenceLayer])


def acceptable() -> str:
    return ", ".join(f"`{rule}`" for rule in sorted(ACCEPTABLE_RULES)) + "\n"


_WEAK_TESTS = TestStrength(
    mutants=(
        MutantResult(
            path="a.py", line=1, operator="boundary", before="a < b", after="a <= b", status=MutantStatus.SURVIVED
        ),
    )
)


def of_a_check() -> str:
    tests = CheckLine(
        name="tests:pytest",
        kind=CheckKind.TESTS,
        tier=2,
        verdict=Verdict.PASS,
        baseline=Verdict.PASS,
        duration_ms=1,
        reused=False,
        required=True,
        decides=True,
        reason="",
        command="pytest",
        assurance=Assurance.BUBBLEWRAP,
        tests=1,
        seq=None,
        artifact=None,
    )
    sure = CheckGrounds(Outcome.PASSED, "", [tests], failing_without=["test_a"])
    plain = tests.model_copy(update={"assurance": Assurance.PLAIN})
    missing = tests.model_copy(update={"kind": CheckKind.LINT, "verdict": Verdict.UNVERIFIABLE})
    accepted = Acceptance(rule="hard-exit", reason="w", accepted_by="ann", method=AcceptanceMethod.INTERACTIVE)
    cases = {
        "there was nothing to check": replace(sure, outcome=Outcome.NOTHING_TO_CHECK),
        "it did not pass": replace(sure, outcome=Outcome.FAILED),
        "it could not be verified": replace(sure, outcome=Outcome.UNVERIFIABLE),
        "a person must decide": replace(sure, outcome=Outcome.NEEDS_DECISION),
        "it passed in a weaker sandbox": replace(sure, checks=[plain]),
        "it passed, and a check that the project has could not run": replace(sure, checks=[tests, missing]),
        "it passed, and a layer could not say anything": replace(sure, gaps=[ConfidenceReason(reason="no canary")]),
        "it passed, and a person accepted a finding": replace(sure, accepted=[accepted]),
        "it passed, and files were added to its scope": replace(sure, amended=["auth.py"]),
        "it passed, and no test was seen to fail without the change": replace(sure, failing_without=[]),
        "it passed, and its tests notice too few mistakes in the changed lines": replace(
            sure, strength=_WEAK_TESTS, strength_threshold=80
        ),
        "none of that": sure,
    }
    return table(
        ("a check", "confidence"), [(case, f"**{rate_check(it).confidence or 'none'}**") for case, it in cases.items()]
    )


def of_a_run() -> str:
    weak = _SURE.model_copy(update={"confidence": Confidence.MEDIUM})
    failed = _SURE.model_copy(update={"passed": False, "reason": "a test fails"})
    code, design = "review code/security, round 2", "review design/security, round 2"
    cases = {
        "a loop came to its bound": ConfidenceGrounds(_SURE, exhausted=("three plans failed",)),
        "the checks on the merged tree did not pass": ConfidenceGrounds(failed),
        "a critical finding about the code is open": ConfidenceGrounds(_SURE, open=(_issue(Severity.CRITICAL, code),)),
        "a person set the gate aside for a task": ConfidenceGrounds(_SURE, (_gate(TaskState.SKIPPED, None),)),
        "a task passed with low confidence": ConfidenceGrounds(_SURE, (_gate(TaskState.APPROVED, Confidence.LOW),)),
        "a task passed with medium confidence": ConfidenceGrounds(
            _SURE, (_gate(TaskState.APPROVED, Confidence.MEDIUM),)
        ),
        "the checks on the merged tree leave something unproven": ConfidenceGrounds(weak),
        "a major finding about the code is open": ConfidenceGrounds(_SURE, open=(_issue(Severity.MAJOR, code),)),
        "a critical finding about the design was left open": ConfidenceGrounds(
            _SURE, open=(_issue(Severity.CRITICAL, design),)
        ),
        "a minor finding is open": ConfidenceGrounds(_SURE, open=(_issue(Severity.MINOR, code),)),
        "none of that": ConfidenceGrounds(_SURE, (_gate(TaskState.APPROVED, Confidence.HIGH),)),
    }
    rows = [(case, f"**{rating.rate_pipeline_run(it).confidence}**") for case, it in cases.items()]
    return table(("a run", "confidence"), rows)


def _gate(state: TaskState, confidence: Confidence | None) -> GateSummary:
    task = TaskReport(id="1", name="a", state=state, attempts=1, confidence=confidence, commit=None, failures=())
    return GateSummary(iteration=1, run_id="r", outcome=RunOutcome.PASSED, reason="", tasks=(task,), tip="c")


def _issue(severity: Severity, source: str) -> KnownIssue:
    return KnownIssue(severity=severity, title="it", source=source)
