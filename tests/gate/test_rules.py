"""Rules of the gate, table by table: what passes, what is tried again, what starts, what becomes of a run."""

from __future__ import annotations

from typing import Any

import pytest

from proofstone.agents.roles.models.gate import (
    ArchitectVerdict,
    ExecutorResult,
    ExecutorStatus,
    FailureReason,
    FailureType,
    Recommendation,
    TaskState,
    VerificationClaim,
)
from proofstone.check.models import CheckKind
from proofstone.check.rules.file_requests import grant_files
from proofstone.common.globs import may_overlap
from proofstone.common.models import Confidence, Verdict
from proofstone.common.text import slugify
from proofstone.gate.models import CriterionLink, MustHaveResult, RunOutcome, TaskRecord, VerifyRun
from proofstone.gate.rules.assignment import build_assignment
from proofstone.gate.rules.criteria import check_must_haves, link_criteria
from proofstone.gate.rules.pages import name_state_page, name_summary_page
from proofstone.gate.rules.pass_rule import (
    explain_bad_reason,
    find_mismatches,
    find_security_blockers,
    find_unmet,
    rate_task_confidence,
)
from proofstone.gate.rules.questions import build_task_message
from proofstone.gate.rules.state_machine import (
    RETRY_POLICIES,
    can_retry,
    decide_run_outcome,
    explain_escalation,
    find_halt_reason,
    find_startable,
    needs_delay,
    starts_clean,
)
from proofstone.plans.models import KeyLink, MustHaves, RequiredArtifact
from tests.gate.records import (
    COMMIT,
    REJECTED,
    RULES,
    SUCCESS,
    check_report,
    evidence,
    failure,
    line,
    plan,
    record,
    task,
)
from tests.rows import each_row

S = TaskState
ASKS = RULES.model_copy(update={"recommendation": Recommendation.MANUAL_REVIEW, "feedback": "look at this"})


@each_row(
    ("changed", "verdicts", "condition"),
    [
        ({"claim": ExecutorResult(status=ExecutorStatus.FAILURE, error="x")}, (RULES,), "executor"),
        ({"claim": SUCCESS.model_copy(update={"done_criteria_met": False})}, (RULES,), "executor"),
        ({"verify": ()}, (RULES,), "verify"),
        ({"verify": (VerifyRun(command="x", exit_code=1, verdict=Verdict.FAIL),)}, (RULES,), "verify"),
        # A test that stood failing in the base excuses a check, but never the verify command.
        ({"verify": (VerifyRun(command="x", exit_code=1, verdict=Verdict.PASS),)}, (RULES,), "verify"),
        ({"verify": (VerifyRun(command="x", exit_code=None, verdict=Verdict.UNVERIFIABLE),)}, (RULES,), "verify"),
        ({"verify": (VerifyRun(command="x", exit_code=1, verdict=Verdict.FAIL, flaky=True),)}, (RULES,), "verify"),
        ({"passing": ("verify",)}, (RULES,), "signals"),
        ({"passing": ("verify", "verify")}, (RULES,), "signals"),
        ({"large": True}, (RULES,), "signals"),
        ({"failing": (FailureReason(check="lint:ruff", detail="x"),)}, (RULES,), "lint:ruff"),
        ({"regressions": ("test_a",)}, (RULES,), "regression"),
        ({"undeclared": ("other.py",)}, (RULES,), "scope"),
        ({"criteria": ()}, (RULES,), "done"),
        ({}, (), "architect"),
        ({}, (REJECTED,), "architect"),
        ({}, (RULES, REJECTED), "architect"),
        ({}, (RULES, ASKS), "architect"),
    ],
)
@pytest.mark.seed("gate", "three-steps")
def test_each_condition_alone_keeps_a_task_from_passing(
    changed: dict[str, Any], verdicts: tuple[ArchitectVerdict, ...], condition: str
) -> None:
    assert find_unmet(evidence(), (RULES,)) == ()
    assert [reason.check for reason in find_unmet(evidence(**changed), verdicts)] == [condition]


@pytest.mark.seed("gate", "flaky")
def test_a_flaky_verify_command_passes_where_the_plan_allows_it_with_less_confidence() -> None:
    flaky = VerifyRun(command="x", exit_code=1, verdict=Verdict.PASS, flaky=True)
    allowed = evidence(verify=(flaky,), flaky_allowed=True)
    assert find_unmet(allowed, (RULES,)) == ()
    assert rate_task_confidence(allowed, (RULES,)).confidence is Confidence.MEDIUM
    assert rate_task_confidence(evidence(), (RULES,)).confidence is Confidence.HIGH


def test_a_criterion_that_only_words_meet_caps_the_confidence() -> None:
    prose = evidence(criteria=(CriterionLink(criterion="it is elegant"),))
    assert find_unmet(prose, (RULES,)) == ()
    assert rate_task_confidence(prose, (RULES,)).confidence is Confidence.MEDIUM


@each_row(
    ("kind", "retries", "pause"),
    [
        (FailureType.EXECUTION_FAILURE, 2, 0),
        (FailureType.VERIFY_FAILURE, 2, 0),
        (FailureType.ARCHITECT_REJECTION, 1, 0),
        (FailureType.TIMEOUT, 1, 30),
        (FailureType.MALFORMED, 2, 0),
        (FailureType.BLOCKED, 0, 0),
    ],
)
@pytest.mark.seed("gate", "retry-policy")
def test_how_often_each_failure_is_tried_again(kind: FailureType, retries: int, pause: int) -> None:
    def after(count: int) -> TaskRecord:
        return record(
            state=S.FAILED, attempt=count, failures=tuple(failure(kind, number + 1) for number in range(count))
        )

    assert [can_retry(after(count)) for count in (1, 2, 3)] == [retries >= 1, retries >= 2, False]
    assert needs_delay((failure(kind),)) is bool(pause)
    assert RETRY_POLICIES[kind].retries == retries
    assert explain_escalation(after(retries + 1))
    assert not retries or not explain_escalation(after(1))


@pytest.mark.seed("gate", "retry-policy")
def test_three_attempts_in_all_whatever_failed() -> None:
    mixed = (FailureType.TIMEOUT, FailureType.MALFORMED, FailureType.VERIFY_FAILURE)
    failures = tuple(failure(kind, number + 1) for number, kind in enumerate(mixed))
    assert can_retry(record(state=S.FAILED, attempt=2, failures=failures[:2]))
    assert not can_retry(record(state=S.FAILED, attempt=3, failures=failures))


def test_the_second_attempt_goes_on_and_later_ones_start_clean() -> None:
    assert [starts_clean(attempt) for attempt in (1, 2, 3, 4)] == [True, False, True, True]


PLAN = plan(
    task(1),
    task(2, files=("f1.py", "f2.py")),
    task(3, depends_on=("task-01",), wave=2),
    task(4),
    task(5, type="checkpoint:decision", files=()),
)


PLAN_IDS = tuple(one.id for one in PLAN.tasks)


def fresh(**states: TaskRecord) -> dict[str, TaskRecord]:
    records = {one.id: record(id=one.id, checkpoint=one.type.is_checkpoint) for one in PLAN.tasks}
    return records | {id.replace("_", "-"): value for id, value in states.items()}


def test_what_may_start_depends_on_order_files_and_slots() -> None:
    done = record(id="task-01", state=S.APPROVED, commit=COMMIT)
    assert find_startable(PLAN, fresh(), (), (), 4) == ["task-01", "task-04"], "files of task 2 overlap those of task 1"
    assert find_startable(PLAN, fresh(), (), (), 1) == ["task-01"]
    assert find_startable(PLAN, fresh(), ("task-09",), (), 1) == []
    assert find_startable(PLAN, fresh(task_01=done), (), (), 4) == ["task-02", "task-03", "task-04"]
    assert find_startable(PLAN, fresh(task_01=done), (), ("task-02",), 4) == ["task-03", "task-04"]
    unpublished = record(id="task-01", state=S.APPROVED)
    assert "task-03" not in find_startable(PLAN, fresh(task_01=unpublished), (), (), 4)


@each_row(
    ("some", "others", "meet"),
    [
        (("a.py",), ("a.py",), True),
        (("a.py",), ("b.py",), False),
        (("src",), ("src/a.py",), True),
        (("src/*.py",), ("src/a.py",), True),
        (("src/*.py",), ("src/*.md",), True),  # in doubt, yes
        (("src/*.py",), ("docs/*.md",), False),
        (("src/**/x.py",), ("src/a",), True),
        (("**/*.py",), ("docs/*.md",), True),
    ],
)
def test_which_declared_files_overlap(some: tuple[str, ...], others: tuple[str, ...], meet: bool) -> None:
    assert may_overlap(some, others) is may_overlap(others, some) is meet


def failed(id: str, kind: FailureType = FailureType.VERIFY_FAILURE, *reasons: FailureReason) -> TaskRecord:
    failures = tuple(failure(kind, number).model_copy(update={"reasons": reasons}) for number in (1, 2, 3))
    return record(id=id, state=S.FAILED, attempt=3, failures=failures)


@pytest.mark.seed("gate", "systemic-halt")
def test_what_becomes_of_a_run() -> None:
    passed = {id: record(id=id, state=S.APPROVED, commit=COMMIT) for id in fresh()}
    assert decide_run_outcome(PLAN, passed, (), recent=PLAN_IDS) == (RunOutcome.PASSED, "")
    assert decide_run_outcome(PLAN, passed, (), recent=PLAN_IDS, budget="spent")[0] is RunOutcome.BUDGET_EXHAUSTED
    assert (
        decide_run_outcome(PLAN, passed | {"task-01": failed("task-01")}, (), recent=PLAN_IDS)[0] is RunOutcome.FAILED
    )
    assert decide_run_outcome(PLAN, fresh(), (), recent=PLAN_IDS)[0] is RunOutcome.NEEDS_HUMAN
    missing = MustHaveResult(what="artifact: a.py", holds=False, detail="there is no such file")
    assert decide_run_outcome(PLAN, passed, (missing,), recent=PLAN_IDS) == (
        RunOutcome.FAILED,
        "artifact: a.py: there is no such file",
    )
    unjudged = MustHaveResult(what="truth: it is fast", holds=None)
    assert decide_run_outcome(PLAN, passed, (unjudged,), recent=PLAN_IDS)[0] is RunOutcome.PASSED
    three = {id: failed(id) for id in ("task-01", "task-02", "task-04")}
    assert decide_run_outcome(PLAN, passed | three, (), recent=PLAN_IDS) == (
        RunOutcome.HALTED,
        "3 tasks of wave 1 failed",
    )
    assert not find_halt_reason(
        PLAN, passed | {id: failed(id) for id in ("task-01", "task-02", "task-03")}, PLAN_IDS
    ), "two waves"


@pytest.mark.seed("gate", "claim-mismatch-halts")
def test_wrong_claims_in_three_tasks_halt_the_run() -> None:
    lie = FailureReason(check="claim-mismatch", detail="x")
    records = fresh(task_01=failed("task-01", FailureType.VERIFY_FAILURE, lie))
    records["task-02"] = record(id="task-02", state=S.APPROVED, commit=COMMIT, evidence=evidence(mismatches=("x",)))
    assert not find_halt_reason(PLAN, records, PLAN_IDS)
    records["task-04"] = record(id="task-04", state=S.REVIEWING, evidence=evidence(mismatches=("x",)))
    assert "task-01, task-02, task-04" in find_halt_reason(PLAN, records, PLAN_IDS)
    assert not find_halt_reason(PLAN, records, ("task-01", "task-02")), "a person has seen the third"


@each_row(
    ("claim", "wrong"),
    [
        ({}, ""),
        (
            {"verification": VerificationClaim(command="x", exit_code=0)},
            "exit code 0; when Proofstone ran it, `x` ended with 1",
        ),
        ({"verification": VerificationClaim(command="x", exit_code=2)}, ""),
        ({"verification": VerificationClaim(command="x", exit_code=None)}, ""),
        ({"files_modified": ("a.py",)}, ""),
        ({"files_modified": ("./a.py",)}, ""),
        ({"files_modified": ("a.py", "b.py")}, "changed b.py, which it did not"),
        ({"files_modified": ()}, "changed a.py, which it does not report"),
        ({"verification": VerificationClaim(command="other", exit_code=0)}, "`other` ended with exit code 0; when"),
    ],
)
@pytest.mark.seed("gate", "verify-is-truth")
def test_only_a_specific_claim_can_be_contradicted(claim: dict[str, Any], wrong: str) -> None:
    run = VerifyRun(command="x", exit_code=1, verdict=Verdict.FAIL)
    found = list(find_mismatches(SUCCESS.model_copy(update=claim), (run,), ("a.py",), continued=False))
    assert len(found) == bool(wrong)
    assert wrong in "".join(found)


@pytest.mark.seed("gate", "retry-prompt")
def test_a_retry_is_told_what_went_wrong_before_it_is_told_the_task() -> None:
    reason = FailureReason(check="tests:pytest", detail="1 test now fails that did not fail before")
    before = record(
        attempt=2,
        failures=(failure(FailureType.VERIFY_FAILURE).model_copy(update={"reasons": (reason,)}),),
    )
    one = task(1, action="Mend the rounding.")
    told = build_assignment(plan(one), one, before, (), run_id="r", base_commit="b", seconds=300)
    assert (
        told.prompt.index("attempt 2 of 3")
        < told.prompt.index("1 test now fails")
        < told.prompt.index("Mend the rounding")
    )
    assert told.previous_failures == before.failures
    assert told.learnings == ("attempt 1: it did not work",)
    assert "mending the work" in told.directive


def test_what_people_decided_is_told_to_everybody_after_them() -> None:
    one, choice = task(1), task(2, name="Which currency", type="checkpoint:decision")
    decided = record(id="task-02", checkpoint=True, state=S.APPROVED, note="EUR, please")
    told = build_assignment(
        plan(one, choice), one, record(attempt=1), (decided,), run_id="r", base_commit="b", seconds=None
    )
    assert "EUR, please" in told.prompt and "Which currency" in told.prompt


def test_a_persons_note_is_told_also_where_nothing_failed() -> None:
    one = task(1)
    told = build_assignment(
        plan(one), one, record(attempt=2, note="use UTC"), (), run_id="r", base_commit="b", seconds=None
    )
    assert "use UTC" in told.prompt and told.directive == "use UTC"


def test_held_out_commands_are_never_told() -> None:
    one = task(1, heldout=("python secret.py",))
    told = build_assignment(plan(one), one, record(attempt=1), (), run_id="r", base_commit="b", seconds=None)
    assert "secret" not in told.model_dump_json()


@each_row(
    ("name", "changed", "subject"),
    [
        ("Task 3: Create PlannerId", ("src/p.ts",), "feat(03-01): Create PlannerId"),
        ("Fix the rounding", ("cart.py",), "fix(03-01): Fix the rounding"),
        ("Describe it", ("README.md", "docs/a.rst"), "docs(03-01): Describe it"),
        ("Cover the edge", ("tests/test_a.py",), "test(03-01): Cover the edge"),
        ("refactor: one parser", ("a.py",), "refactor(03-01): one parser"),
    ],
)
def test_the_commit_says_what_it_is_and_what_it_belongs_to(name: str, changed: tuple[str, ...], subject: str) -> None:
    text = build_task_message(plan(task(1), phase="03", plan="01"), task(1, name=name), changed, run_id="run-1")
    assert text.splitlines()[0] == subject
    assert f"Task: {name}" in text and "Plan: A plan" in text
    assert text.rstrip().splitlines()[-2:] == ["Proofstone-Run: run-1", "Proofstone-Task: task-01"]


def test_a_long_name_is_cut_in_the_subject_and_whole_in_the_text() -> None:
    name = "A very long name that goes on and on " * 4
    text = build_task_message(plan(task(1)), task(1, name=name), ("a.py",), run_id="r")
    assert len(text.splitlines()[0]) <= 72
    assert " ".join(name.split()) in text


@each_row(
    ("category", "reason", "refusal"),
    [
        ("verify-unavailable", "The payment sandbox of the bank is down until Monday", ""),
        ("time-pressure", "tests take too long", "too short"),
        ("time-pressure", "looks good to me", "too short"),
        ("time-pressure", "The release is due today, Ada verifies it on Monday", ""),
        ("false-negative", "I am sure that the work is right", "does not name what is wrong"),
        ("false-negative", "test_total compares floats exactly; the sum is right", ""),
        (None, "", "too short"),
    ],
)
def test_what_is_a_reason_to_skip(category: str | None, reason: str, refusal: str) -> None:
    failed = failure(FailureType.VERIFY_FAILURE).model_copy(
        update={"reasons": (FailureReason(check="regression", detail="tests/test_cart.py::test_total fails now"),)}
    )
    found = explain_bad_reason(reason, category, record(state=S.FAILED, attempt=1, failures=(failed,)))
    assert refusal in found and bool(found) is bool(refusal)


def test_a_reason_to_skip_cannot_contradict_what_was_observed() -> None:
    reviewed = record(state=S.REVIEWING, attempt=1, evidence=evidence())
    assert "was available" in explain_bad_reason("The sandbox of the bank is down", "verify-unavailable", reviewed)
    assert "no check has failed" in explain_bad_reason("verify is wrong about this one", "false-negative", reviewed)


def test_a_finding_about_security_cannot_be_overridden_until_another_attempt_is_without_it() -> None:
    """Only the last attempt counts: what was put right since blocks nothing."""
    leak = FailureReason(check="readiness-secrets", verdict=Verdict.FAIL, detail="a key in shop.py")
    size = FailureReason(check="size", verdict=Verdict.FAIL, detail="too large")
    first = failure(FailureType.VERIFY_FAILURE).model_copy(update={"reasons": (leak, size)})
    second = failure(FailureType.VERIFY_FAILURE, 2).model_copy(update={"reasons": (size,)})
    assert find_security_blockers(record()) == ()
    assert find_security_blockers(record(failures=(first,))) == ("a key in shop.py",)
    assert find_security_blockers(record(failures=(first, second))) == ()


def test_must_haves_are_looked_at_in_the_tree() -> None:
    files = {"a.ts": "export class Foo {}\nimport { b } from './b'\n", "b.py": "def go():\n    pass\n"}
    wanted = MustHaves(
        truths=("users can log in",),
        artifacts=(
            RequiredArtifact(path="a.ts", exports=("Foo",), contains="class"),
            RequiredArtifact(path="a.ts", exports=("Bar",)),
            RequiredArtifact(path="b.py", exports=("go",), min_lines=3),
            RequiredArtifact(path="c.py"),
        ),
        key_links=(
            KeyLink.model_validate({"from": "a.ts", "to": "src/b.ts"}),
            KeyLink.model_validate({"from": "a.ts", "to": "x", "pattern": r"import.*'\./b'"}),
            KeyLink.model_validate({"from": "a.ts", "to": "x", "pattern": "fetch"}),
            KeyLink.model_validate({"from": "a.ts", "to": "x", "pattern": "("}),
        ),
    )
    found = check_must_haves(wanted, files.get)
    assert [one.holds for one in found] == [True, False, False, False, True, True, False, False, None]
    assert "Bar" in found[1].detail and "2 lines" in found[2].detail and "regular expression" in found[7].detail


@pytest.mark.parametrize(
    ("plan_name", "summary"),
    [("PLAN.md", "SUMMARY.md"), ("03-01-PLAN.md", "03-01-SUMMARY.md"), ("feature.md", "SUMMARY.md")],
)
def test_a_plan_has_pages_of_its_own(plan_name: str, summary: str) -> None:
    assert name_summary_page(plan_name) == summary
    assert name_state_page(plan_name) == summary.replace("SUMMARY", "STATE")


@pytest.mark.parametrize(
    ("text", "short"),
    [("03-Sequential Execution", "03-sequential-execution"), ("Ärger über Öl", "arger-uber-ol"), ("計画", "plan")],
)
def test_names_of_branches_are_plain(text: str, short: str) -> None:
    assert slugify(text) == short


@each_row(
    ("asked", "declared", "given"),
    [
        ("uv.lock", ("pyproject.toml",), True),
        ("uv.lock", ("src",), False),
        ("web/package-lock.json", ("web/package.json",), True),
        ("web/package-lock.json", ("package.json",), False),
        ("shop/__init__.py", ("shop/cart.py",), True),
        ("shop/__init__.py", ("tests/test_cart.py",), False),
        ("web/__snapshots__/a.test.js.snap", ("web/a.test.js",), True),
        ("web/__snapshots__/a.test.js.snap", ("web/a.js",), False),
        ("web/__snapshots__/payload.js", ("web/a.test.js",), False),
        ("conftest.py", ("shop/cart.py",), False),
        ("../uv.lock", ("../pyproject.toml",), False),
        ("*/__init__.py", ("*/a.py",), False),
    ],
)
def test_which_further_files_are_granted(asked: str, declared: tuple[str, ...], given: bool) -> None:
    assert grant_files((asked,), declared) == ((asked,) if given else ())


@each_row(
    ("criterion", "shown"),
    [
        ("All tests pass", "tests:pytest"),
        ("all 5 tests pass.", "tests:pytest"),
        ("`pytest -q` exits 0", "verify"),
        ("The verify command passes", "verify"),
        ("test_rounding passes", "tests:pytest"),
        ("cart.py exists", "frozen-tree"),
        ("The login form makes sense to colour-blind users", None),
        ("Payment tests pass against the real bank", None),
        ("Email verification passes for expired tokens", None),
        ("pytest -q is used in CI", None),
        ("The build passes", None),
    ],
)
def test_a_criterion_is_linked_only_where_words_leave_no_doubt(criterion: str, shown: str | None) -> None:
    lines = [
        line(name="verify", kind=CheckKind.VERIFY, command="pytest -q"),
        line(name="tests:pytest", kind=CheckKind.TESTS, command="python -m pytest", tests=5),
    ]
    report = check_report(checks=lines, fixed=("tests/test_cart.py::test_rounding",))
    (found,) = link_criteria(task(1, done=(criterion,)), report, ("cart.py",))
    assert found.check == shown
