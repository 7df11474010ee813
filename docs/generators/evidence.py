"""Evidence: its layers, and how sure one may be. The confidence of each case is what the code itself says of it."""

from __future__ import annotations

from collections.abc import Mapping

from generators.page import table
from proofstone.agents.roles.models.gate import TaskState
from proofstone.check.rules.outcome import ACCEPTABLE_RULES, LAYER_TITLES, EvidenceLayer, rate_check_confidence
from proofstone.common.models import Assurance, Confidence, Outcome, Severity
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


def of_a_check() -> str:
    passed, strong = Outcome.PASSED, Assurance.BUBBLEWRAP
    cases = {
        "it did not pass": rate_check_confidence(Outcome.FAILED, "a test fails", strong, (), (), sensitive=True),
        "it could not be verified": rate_check_confidence(
            Outcome.UNVERIFIABLE, "no tool", strong, (), (), sensitive=True
        ),
        "it passed in a weaker sandbox": rate_check_confidence(passed, "", Assurance.LANDLOCK, (), (), sensitive=True),
        "it passed, and a layer could not say anything": rate_check_confidence(
            passed, "", strong, ("no canary",), (), sensitive=True
        ),
        "it passed, and no test was seen to fail without the change": rate_check_confidence(
            passed, "", strong, (), (), sensitive=False
        ),
        "it passed in the strongest sandbox, and a test was seen to fail without the change": rate_check_confidence(
            passed, "", strong, (), (), sensitive=True
        ),
    }
    return table(("a check", "confidence"), [(case, f"**{level}**") for case, (level, _) in cases.items()])


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
    return table(
        ("a run", "confidence"), [(case, f"**{rating.rate_confidence(it)[0]}**") for case, it in cases.items()]
    )


def _gate(state: TaskState, confidence: Confidence | None) -> GateSummary:
    task = TaskReport(id="1", name="a", state=state, attempts=1, confidence=confidence, commit=None, failures=())
    return GateSummary(iteration=1, run_id="r", outcome=RunOutcome.PASSED, reason="", tasks=(task,), tip="c")


def _issue(severity: Severity, source: str) -> KnownIssue:
    return KnownIssue(severity=severity, title="it", source=source)
