"""Commands that criteria name, and who has judged a criterion: as tables."""

from __future__ import annotations

import pytest

from proofstone.agents.roles.models.gate import ArchitectDecision, ArchitectVerdict, TaskState
from proofstone.agents.roles.models.pipeline import ReviewFocus
from proofstone.check.models import CheckKind
from proofstone.common.models import Severity, Verdict
from proofstone.gate.models import CriteriaJudgement, CriterionLink, CriterionStatus
from proofstone.gate.rules.criterion_commands import find_criterion_commands, is_shown_by_commands
from proofstone.gate.rules.judgements import (
    find_new_amendments,
    find_rejected,
    find_unjudged,
    list_added_files,
    list_criterion_results,
    rate_requirements,
)
from proofstone.gate.rules.pass_rule import build_evidence
from proofstone.pipeline.rules.reviews import ReviewerAnswer, ReviewRound
from proofstone.supervision.models.context import ContextRequirement
from proofstone.supervision.rules.amendments import Amendment, explain_amendment_refusal, explain_sensitive_files
from tests.gate.records import COMMIT, RULES, SUCCESS, check_report, evidence, line, plan, record, task
from tests.pipeline.talk import finding, review
from tests.rows import each_row

PROSE = "it is easy to read"
HUMAN = ArchitectVerdict(verdict=ArchitectDecision.APPROVED, by="human (ann)")


@each_row(
    ("criterion", "commands", "alone"),
    [
        ("`pytest -q tests` passes", ("pytest -q tests",), True),
        ("$ make check", ("make check",), True),
        ("`$ make check` passes", ("make check",), True),
        ("`go vet ./...` and `go test ./...` pass", ("go vet ./...", "go test ./..."), True),
        ("`python3 -m shop` prints 3", ("python3 -m shop",), False),
        ("the total is right (shown by `python3 check.py`)", ("python3 check.py",), False),
        ("`python3 -m shop --bad` fails", (), False),
        ("`python3 -m shop --bad` exits with 2", (), False),
        ("`make release` is documented", (), False),
        ("`total()` returns 0", (), False),
        ("`pytest` passes", ("pytest",), True),
        ("`python3` is on the PATH", (), False),
        ("`python3` passes", (), False),
        ("`shop/cart.py` exists", (), False),
        ("`echo done` passes", (), False),
        (PROSE, (), False),
    ],
)
def test_which_commands_a_criterion_names(criterion: str, commands: tuple[str, ...], alone: bool) -> None:
    assert (find_criterion_commands(criterion), is_shown_by_commands(criterion)) == (commands, alone)


@each_row(
    ("changed", "counts"),
    [
        ({"baseline": Verdict.FAIL}, True),
        ({"baseline": None}, True),
        ({"baseline": Verdict.PASS}, False),
        ({"baseline": Verdict.PASS, "depends_on_change": True}, True),
        ({"baseline": Verdict.PASS, "tests": 3}, True),
        ({"kind": CheckKind.READINESS, "name": "readiness-secrets"}, False),
        ({"kind": CheckKind.SIZE, "name": "size"}, False),
    ],
)
def test_what_counts_as_a_signal(changed: dict[str, object], counts: bool) -> None:
    report = check_report(checks=(line(command="pytest -q", **changed),))
    built = build_evidence(task(1), SUCCESS, report, present=(), touched=(), large=False)
    assert bool(built.passing) is counts


def test_a_suite_is_no_signal_of_its_own_beside_the_discovered_one() -> None:
    discovered = line(name="tests:pytest", kind=CheckKind.TESTS, baseline=Verdict.PASS, tests=3)
    subset = line(command="pytest -q", baseline=Verdict.PASS, tests=1)
    report = check_report(checks=(discovered, subset))
    built = build_evidence(task(1), SUCCESS, report, present=(), touched=(), large=False)
    assert built.passing == ("tests:pytest",) and built.verify[0].passes_on_base


def test_a_check_that_failed_on_this_tree_before_is_no_signal() -> None:
    report = check_report(checks=(line(command="pytest -q", baseline=Verdict.FAIL),))
    built = build_evidence(
        task(1), SUCCESS, report, present=(), touched=(), large=False, unstable={"verify": "flaky", "gone": "flaky"}
    )
    assert (built.passing, built.unstable) == ((), ("flaky",))


@each_row(
    ("check", "verdicts", "word", "status"),
    [
        ("verify", (RULES,), None, CriterionStatus.SHOWN),
        (None, (RULES,), None, CriterionStatus.UNJUDGED),
        (None, (RULES, HUMAN), None, CriterionStatus.JUDGED),
        (None, (RULES,), True, CriterionStatus.JUDGED),
        (None, (RULES,), False, CriterionStatus.UNMET),
        (None, (RULES, HUMAN), False, CriterionStatus.UNMET),
    ],
)
def test_who_judges_a_criterion(
    check: str | None, verdicts: tuple[ArchitectVerdict, ...], word: bool | None, status: CriterionStatus
) -> None:
    links = (CriterionLink(criterion=PROSE, check=check),)
    passed = record(
        state=TaskState.APPROVED, evidence=evidence(criteria=links), verdicts=verdicts, commit=COMMIT, attempt=1
    )
    words = () if word is None else (_word(word, ("task-01", PROSE)),)
    (result,) = list_criterion_results(task(1, done=(PROSE,)), passed, words)
    assert result.status is status
    assert bool(find_unjudged([result])) is (status is CriterionStatus.UNJUDGED)
    assert bool(find_rejected([result], words)) is (status is CriterionStatus.UNMET)


def _word(holds: bool, *criteria: tuple[str, str]) -> CriteriaJudgement:
    return CriteriaJudgement(judged_by="ann", holds=holds, criteria=criteria)


def test_a_requirement_goes_to_every_unfinished_task_that_it_concerns() -> None:
    tasks = plan(task(1), task(2), task(3))
    done = record(id="task-01", state=TaskState.APPROVED, commit=COMMIT)
    records = {"task-01": done, "task-02": record(id="task-02"), "task-03": record(id="task-03")}
    everybody = ContextRequirement(number=1, text="limit the rate")
    one_file = ContextRequirement(number=2, text="say it", files=("f3.py", "more.py"), by="ann")
    new = find_new_amendments(
        tasks, records, (everybody, one_file), (Amendment(task="task-02", requirement="x", number=1),)
    )
    assert [(item.task, item.number, item.files) for item in new] == [
        ("task-03", 1, ()),
        ("task-03", 2, ("more.py",)),
    ]
    assert [(file.path, file.added_by) for file in list_added_files("task-03", new)] == [("more.py", "ann")]
    (orphan,) = rate_requirements((everybody,), (), (), ())
    assert not orphan.is_met and find_unjudged((), (orphan,)) == (("", "limit the rate"),)
    (settled,) = rate_requirements((everybody,), (), (), (_word(True, ("", "limit the rate")),))
    assert settled.is_met


def test_a_file_has_one_owner_among_the_tasks_that_may_be_at_work_at_once() -> None:
    """A task may add its own files again, and those of tasks that it waits for or that wait for it."""
    tasks = plan(task(1), task(2, depends_on=("task-01",)), task(3, depends_on=("task-02",)), task(4))

    def refusal(*files: str) -> str:
        return explain_amendment_refusal(tasks, Amendment(task="task-02", files=files, requirement="", number=1))

    assert [refusal(f"f{number}.py") for number in (1, 2, 3)] == ["", "", ""]
    assert refusal("new.py") == ""
    assert refusal("f1.py", "f4.py") == "f4.py belongs to task-04 (Task 4)"
    assert refusal("src/*.py") == "src/*.py is not the path of a single file"


@each_row(
    ("path", "named", "refused"),
    [
        ("shop/other.py", (), False),
        ("shop/auth.py", (), True),
        (".github/workflows/ci.yml", (), True),
        ("tests/test_more.py", (), True),
        ("shop/auth.py", ("shop/auth.py",), False),
    ],
)
def test_which_files_only_a_person_may_add(path: str, named: tuple[str, ...], refused: bool) -> None:
    assert bool(explain_sensitive_files((path,), named)) is refused


@pytest.mark.parametrize(
    ("resolved", "again", "open"),
    [((), False, True), (("it ROUNDS  twice",), False, False), (("It rounds twice",), True, True)],
)
def test_a_critical_of_the_design_is_open_until_somebody_says_otherwise(
    resolved: tuple[str, ...], again: bool, open: bool
) -> None:
    findings = (finding(Severity.MAJOR, "It rounds twice"),) if again else ()
    output = review("approve", *findings).model_copy(update={"resolved": resolved})
    answers = (ReviewerAnswer(ReviewFocus.CORRECTNESS, output),)
    assert bool(ReviewRound("code", 1, answers, carried=("It rounds twice",)).unresolved) is open
