"""Evidence: its layers, and how sure one may be. The confidence of each case is what the code itself says of it."""

from __future__ import annotations

from collections.abc import Mapping

from generators.page import table
from proofstone.agents.roles.models.gate import TaskState
from proofstone.check.rules.outcome import ACCEPTABLE, TITLES, Layer, rate
from proofstone.common.models import Assurance, Confidence, Outcome, Severity
from proofstone.gate.models import RunOutcome, TaskReport
from proofstone.pipeline.models.run import FinalChecks, GateSummary, KnownIssue
from proofstone.pipeline.rules import reviews as rating
from proofstone.pipeline.rules.reviews import Grounds

ASKS: Mapping[Layer, str] = {
    Layer.FROZEN_TREE: "is what was checked what there is?",
    Layer.PROTECTED_FILES: "does it pass by the tests and settings of the base, too?",
    Layer.TEST_IDENTITY: "did every test run that ran before, and has the runner itself said so?",
    Layer.CANARY: "would a test that must fail be seen to fail?",
    Layer.SENSITIVITY: "do the tests that count fail without the change?",
    Layer.STATIC_SCAN: "does the code know that it is being tested?",
    Layer.SANDBOX: "can a check reach anything but the tree, or anything outlive it?",
    Layer.REVIEW: "what do others say who see it with fresh eyes?",
    Layer.HELD_OUT: "does it hold for what its author never saw?",
}
_SURE = FinalChecks(tree="t", passed=True, confidence=Confidence.HIGH)


def layers() -> str:
    return table(("layer", "", "asks"), [(layer, TITLES[layer], ASKS[layer]) for layer in Layer])


def acceptable() -> str:
    return ", ".join(f"`{rule}`" for rule in sorted(ACCEPTABLE)) + "\n"


def of_a_check() -> str:
    passed, strong = Outcome.PASSED, Assurance.BUBBLEWRAP
    cases = {
        "it did not pass": rate(Outcome.FAILED, "a test fails", strong, (), (), sensitive=True),
        "it could not be verified": rate(Outcome.UNVERIFIABLE, "no tool", strong, (), (), sensitive=True),
        "it passed in a weaker sandbox": rate(passed, "", Assurance.LANDLOCK, (), (), sensitive=True),
        "it passed, and a layer could not say anything": rate(passed, "", strong, ("no canary",), (), sensitive=True),
        "it passed, and no test was seen to fail without the change": rate(passed, "", strong, (), (), sensitive=False),
        "it passed in the strongest sandbox, and a test was seen to fail without the change": rate(
            passed, "", strong, (), (), sensitive=True
        ),
    }
    return table(("a check", "confidence"), [(case, f"**{level}**") for case, (level, _) in cases.items()])


def of_a_run() -> str:
    weak = _SURE.model_copy(update={"confidence": Confidence.MEDIUM})
    failed = _SURE.model_copy(update={"passed": False, "reason": "a test fails"})
    code, design = "review code/security, round 2", "review design/security, round 2"
    cases = {
        "a loop came to its bound": Grounds(_SURE, exhausted=("three plans failed",)),
        "the checks on the merged tree did not pass": Grounds(failed),
        "a critical finding about the code is open": Grounds(_SURE, open=(_issue(Severity.CRITICAL, code),)),
        "a person set the gate aside for a task": Grounds(_SURE, (_gate(TaskState.SKIPPED, None),)),
        "a task passed with low confidence": Grounds(_SURE, (_gate(TaskState.APPROVED, Confidence.LOW),)),
        "a task passed with medium confidence": Grounds(_SURE, (_gate(TaskState.APPROVED, Confidence.MEDIUM),)),
        "the checks on the merged tree leave something unproven": Grounds(weak),
        "a major finding about the code is open": Grounds(_SURE, open=(_issue(Severity.MAJOR, code),)),
        "a critical finding about the design was left open": Grounds(_SURE, open=(_issue(Severity.CRITICAL, design),)),
        "a minor finding is open": Grounds(_SURE, open=(_issue(Severity.MINOR, code),)),
        "none of that": Grounds(_SURE, (_gate(TaskState.APPROVED, Confidence.HIGH),)),
    }
    return table(("a run", "confidence"), [(case, f"**{rating.rate(it)[0]}**") for case, it in cases.items()])


def _gate(state: TaskState, confidence: Confidence | None) -> GateSummary:
    task = TaskReport(id="1", name="a", state=state, attempts=1, confidence=confidence, commit=None, failures=())
    return GateSummary(iteration=1, run_id="r", outcome=RunOutcome.PASSED, reason="", tasks=(task,), tip="c")


def _issue(severity: Severity, source: str) -> KnownIssue:
    return KnownIssue(severity=severity, title="it", source=source)
