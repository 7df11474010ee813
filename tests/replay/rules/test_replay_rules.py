"""What the gate would have done with a commit, who checks which, and what is said once."""

from __future__ import annotations

from proofstone.check.models import CheckKind, CheckLine, CheckReport
from proofstone.common.models import Assurance, Confidence, Finding, Outcome, Severity, Verdict
from proofstone.documents.html import write_html
from proofstone.replay.models import HistoryCommit, ReplayCause, ReplayedCommit, ReplayReport, ReplayVerdict
from proofstone.replay.rules.replay_page import build_replay_page, find_replay_tone
from proofstone.replay.rules.summary import describe_counts, describe_verdict, group_causes
from proofstone.replay.rules.verdicts import build_unverifiable, judge_replayed
from proofstone.replay.rules.work_queue import WorkQueue
from tests.rows import each_row

ROOT = "/srv/shop"


def commit(number: int) -> HistoryCommit:
    return HistoryCommit(
        commit=f"{number:040x}", parent=f"{number - 1:040x}", tree="a" * 40, subject=f"Work <{number}>"
    )


def finding(rule: str, detail: str = "something", check: str | None = "tests:pytest") -> Finding:
    return Finding(layer="L3", rule=rule, severity=Severity.CRITICAL, detail=detail, fix="mend it", check=check)


def line(verdict: Verdict, reason: str = "", name: str = "tests:pytest") -> CheckLine:
    return CheckLine(
        name=name,
        kind=CheckKind.TESTS,
        tier=2,
        verdict=verdict,
        baseline=Verdict.PASS,
        duration_ms=1,
        reused=False,
        required=True,
        decides=True,
        reason=reason,
        command="pytest",
        assurance=next(iter(Assurance)),
        tests=1,
        seq=1,
        artifact=None,
    )


def report(outcome: Outcome, findings: tuple[Finding, ...] = (), lines: tuple[CheckLine, ...] = ()) -> CheckReport:
    return CheckReport(
        run_id="r",
        tree="a" * 40,
        frozen="a" * 40,
        base="b" * 40,
        base_commit="c" * 40,
        outcome=outcome,
        reason="because",
        confidence=Confidence.HIGH,
        assurance=next(iter(Assurance)),
        checks=lines,
        findings=findings,
        regressions=(),
        fixed=(),
        standing=(),
        edited=(),
        sensitive=(),
        flaky=(),
        unverifiable_tests=(),
        changed=("shop.py",),
        notes=(),
        ledger="l",
    )


def judge(found: CheckReport, modules: frozenset[str] = frozenset({"shop"})) -> ReplayedCommit:
    return judge_replayed(commit(2), found, modules=modules, root=ROOT, seconds=1.0)


@each_row(
    ("outcome", "rules", "verdict"),
    [
        (Outcome.PASSED, (), ReplayVerdict.PASSED),
        (Outcome.FAILED, ("edited-expectation",), ReplayVerdict.ASKED),
        (Outcome.FAILED, ("edited-expectation", "test-vanished"), ReplayVerdict.ASKED),
        (Outcome.FAILED, ("regression",), ReplayVerdict.REFUSED),
        (Outcome.FAILED, ("regression", "edited-expectation"), ReplayVerdict.REFUSED),
        (Outcome.FAILED, (), ReplayVerdict.REFUSED),
        (Outcome.UNVERIFIABLE, (), ReplayVerdict.UNVERIFIABLE),
        (Outcome.NOTHING_TO_CHECK, (), ReplayVerdict.UNCHANGED),
        (Outcome.NEEDS_DECISION, (), ReplayVerdict.ASKED),
    ],
)
def test_what_the_gate_would_have_done(outcome: Outcome, rules: tuple[str, ...], verdict: ReplayVerdict) -> None:
    assert judge(report(outcome, tuple(map(finding, rules)))).verdict is verdict


def test_a_check_that_fails_without_an_acceptable_finding_refuses() -> None:
    lines = (line(Verdict.FAIL), line(Verdict.FAIL, name="lint:ruff"))
    assert judge(report(Outcome.FAILED, (finding("test-vanished"),), lines)).verdict is ReplayVerdict.REFUSED
    assert judge(report(Outcome.FAILED, (finding("test-vanished"),), lines[:1])).verdict is ReplayVerdict.ASKED


@each_row(
    ("detail", "missing"),
    [
        ("x cannot be loaded\nModuleNotFoundError: No module named 'attr'", "attr is not installed"),
        ("ModuleNotFoundError: No module named 'attr.validators'", "attr.validators is not installed"),
        ("ModuleNotFoundError: No module named 'shop.cart'", ""),
        ("Error: Cannot find module 'lodash'", "lodash is not installed"),
        ("Error: Cannot find module './cart'", ""),
        (f"Error: Cannot find module '{ROOT}/cart.js'", ""),
        (
            "ImportError: cannot import name 'Mapping' from 'collections' (/usr/lib/python3.11/collections.py)",
            "collections as it is installed has no Mapping",
        ),
        (f"ImportError: cannot import name 'total' from 'shop' ({ROOT}/shop.py)", ""),
        ("SyntaxError: invalid syntax", ""),
    ],
)
def test_what_the_machine_lacks_is_not_held_against_a_commit(detail: str, missing: str) -> None:
    found = judge(report(Outcome.FAILED, (finding("unloadable-tests", detail),)))
    assert found.verdict is (ReplayVerdict.UNVERIFIABLE if missing else ReplayVerdict.REFUSED)
    assert [cause.reason for cause in found.causes] == ([missing] if missing else [])


def test_a_missing_module_excuses_no_other_finding() -> None:
    missing = finding("unloadable-tests", "No module named 'attr'")
    assert judge(report(Outcome.FAILED, (missing, finding("regression")))).verdict is ReplayVerdict.REFUSED
    quoted = finding("regression", "No module named 'attr'")
    assert judge(report(Outcome.FAILED, (quoted,))).verdict is ReplayVerdict.REFUSED


def test_a_cause_that_many_commits_share_is_named_once() -> None:
    causes = [f"tests:pytest: {count} tests did not run in {count} s: no module attr" for count in (7, 1200)]
    done = [build_unverifiable(commit(number), cause, "install it", 1.0) for number, cause in enumerate(causes, 1)]
    done.append(build_unverifiable(commit(3), "another", "", 1.0))
    shared = group_causes(done)
    assert [(len(cause.commits), cause.reason) for cause in shared] == [(2, causes[0]), (1, "another")]
    assert [describe_verdict(replayed, shared) for replayed in done] == ["cause 1", "cause 1", "cause 2"]


def test_the_page_has_every_commit_and_what_was_found() -> None:
    done = (
        judge(report(Outcome.PASSED)),
        judge(report(Outcome.FAILED, (finding("edited-expectation", "5 became <9>"),))).model_copy(
            update={"commit": commit(3)}
        ),
        build_unverifiable(commit(4), "no module attr", "install it", 1.0),
    )
    whole = ReplayReport(
        run_id="r", repository=ROOT, selection="all", settings="HEAD's", sandbox="x", jobs=2, commits=done, known=1
    )
    assert describe_counts(whole) == [
        "1 commit would have passed (confidence: 1 high)",
        "1 commit would have been put to a person",
        "1 commit could not be verified with what is installed here",
    ]
    page = write_html(build_replay_page(whole), find_replay_tone(whole))
    for text in (
        "Work &lt;2&gt;",
        "Work &lt;3&gt;",
        "5 became &lt;9&gt;",
        "no module attr",
        "install it",
        "1 commit known",
    ):
        assert text in page
    assert find_replay_tone(whole) == "unsure"


def test_each_worker_takes_neighbours_and_then_helps_the_busiest() -> None:
    queue = WorkQueue.divide(range(6), 2)
    assert [queue.take(0) for _ in range(4)] == [0, 1, 2, 4]
    assert [queue.take(1) for _ in range(3)] == [3, 5, None] or [queue.take(0), queue.take(1)] == [None, None]


def test_every_item_is_taken_once() -> None:
    for workers in (1, 2, 3, 7):
        queue = WorkQueue.divide(range(5), workers)
        order = [queue.take(number % workers) for number in range(40)]
        assert sorted(item for item in order if item is not None) == list(range(5))


def test_causes_of_a_check_are_those_of_its_required_lines() -> None:
    lines = (line(Verdict.UNVERIFIABLE, "pytest is not installed"), line(Verdict.PASS, name="lint:ruff"))
    assert judge(report(Outcome.UNVERIFIABLE, (), lines)).causes == (
        ReplayCause(reason="tests:pytest: pytest is not installed"),
    )
