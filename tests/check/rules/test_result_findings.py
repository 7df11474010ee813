"""One finding for each cause, and the tests that did not run are counted below it."""

from __future__ import annotations

from proofstone.check.models import (
    NEVER_RUN,
    CheckKind,
    CheckResult,
    ReportFormat,
    TestReport,
    TestResult,
    TestStatus,
)
from proofstone.check.rules.compare import compare_reports
from proofstone.check.rules.result_findings import (
    ComparedTests,
    RerunFindings,
    build_test_findings,
    describe_failures,
    merge_syntax_errors,
    separate_blocked,
)
from proofstone.common.models import Finding, Phase, Severity, Verdict
from tests.rows import each_row

P, F, E, SKIP = TestStatus.PASSED, TestStatus.FAILED, TestStatus.ERROR, TestStatus.SKIPPED
Row = tuple[str, TestStatus, str]
AFTER = CheckResult(
    name="tests:pytest",
    kind=CheckKind.TESTS,
    tier=2,
    tool="pytest",
    command="pytest",
    phase=Phase.AFTER,
    tree="a" * 40,
    verdict=Verdict.FAIL,
)


def report(*rows: Row, complete: bool = True) -> TestReport:
    results = tuple(
        TestResult(
            id=id,
            status=status,
            cause=cause if status.is_failure else "",
            message="" if status.is_failure else cause,
            path=id.partition("::")[0] if "::" in id or id.endswith(".py") else None,
        )
        for id, status, cause in rows
    )
    return TestReport(runner=ReportFormat.PYTEST, results=results, complete=complete)


def compared(before: TestReport, after: TestReport) -> ComparedTests:
    return separate_blocked(ComparedTests(AFTER, after, before, compare_reports(before, after), RerunFindings()))


def passing(*ids: str) -> TestReport:
    return report(*((id, P, "") for id in ids))


ROWS: list[tuple[str, TestReport, TestReport, list[tuple[str, str, int]]]] = [
    (
        "the same error is one finding",
        passing("a.py::x", "b.py::y"),
        report(("a.py::x", F, "KeyError: 'k'"), ("b.py::y", F, "KeyError: 'k'")),
        [("regression", "2 tests now fail that passed before, all with the same error: KeyError: 'k'", 2)],
    ),
    (
        "cases of one function are one finding",
        passing("a.py::x[1]", "a.py::x[2]"),
        report(("a.py::x[1]", F, "assert 1 == 2"), ("a.py::x[2]", F, "assert 2 == 3")),
        [("regression", "2 tests now fail that passed before, for instance: assert 1 == 2", 2)],
    ),
    (
        "a case joins those of its function with those of its error, and no others",
        passing("a.py::z", "a.py::x[1]", "b.py::y", "a.py::x[2]", "c.py::v", "c.py::w"),
        report(
            ("a.py::z", F, "KeyError: 'z'"),
            ("a.py::x[1]", F, "KeyError: 'a'"),
            ("b.py::y", F, "KeyError: 'b'"),
            ("a.py::x[2]", F, "KeyError: 'b'"),
            ("c.py::v", F, "KeyError: 'z'"),
            ("c.py::w", F, "KeyError: 'a'"),
        ),
        [
            ("regression", "2 tests now fail that passed before, all with the same error: KeyError: 'z'", 2),
            ("regression", "4 tests now fail that passed before, for instance: KeyError: 'a'", 4),
        ],
    ),
    (
        "an error that says nothing joins nothing",
        passing("a.py::x", "b.py::y"),
        report(("a.py::x", F, "AssertionError"), ("b.py::y", F, "AssertionError")),
        [
            ("regression", "a.py::x: passed on the base, fails now: AssertionError", 1),
            ("regression", "b.py::y: passed on the base, fails now: AssertionError", 1),
        ],
    ),
    (
        "a file that cannot be loaded, and its tests",
        passing("a.py::x", "a.py::y", "b.py::z"),
        report(("a.py", E, "SyntaxError: bad"), ("b.py::z", SKIP, NEVER_RUN)),
        [("unloadable-tests", "a.py cannot be loaded: SyntaxError: bad", 4)],
    ),
    (
        "a module of unittest",
        passing("test_a.T.test_x"),
        report(("test_a", E, "ModuleNotFoundError: No module named 'x'")),
        [("unloadable-tests", "test_a cannot be loaded: ModuleNotFoundError: No module named 'x'", 2)],
    ),
    (
        "a fixture of a class",
        passing("test_a.T.test_x"),
        report(("setUpClass (test_a.T)", E, "RuntimeError: no database")),
        [("unloadable-tests", "setUpClass (test_a.T) cannot be loaded: RuntimeError: no database", 2)],
    ),
    (
        "a test that fails because its subtest does",
        passing("pkg/TestA", "pkg/TestA/one"),
        report(("pkg/TestA", F, ""), ("pkg/TestA/one", F, "got 1")),
        [("regression", "pkg/TestA/one: passed on the base, fails now: got 1", 1)],
    ),
    (
        "tests of one file that are gone",
        passing("a.py::x", "a.py::y", "b.py::z"),
        passing("b.py::z"),
        [("test-vanished", "2 tests of a.py that ran on the base no longer exist", 2)],
    ),
    (
        "skipped before",
        report(("a.py::x", SKIP, "later")),
        report(("a.py::x", F, "assert 1 == 2")),
        [("regression", "a.py::x: was skipped on the base, fails now: assert 1 == 2", 1)],
    ),
    (
        "skipped for a reason of its own, beside a failure",
        passing("a.py::x", "b.py::y"),
        report(("a.py::x", F, "assert 1 == 2"), ("b.py::y", SKIP, "not today")),
        [
            ("regression", "a.py::x: passed on the base, fails now: assert 1 == 2", 1),
            ("test-skipped", "b.py::y: ran on the base and is skipped now", 1),
        ],
    ),
]


@each_row(("what", "before", "after", "findings"), ROWS)
def test_one_finding_for_each_cause(
    what: str, before: TestReport, after: TestReport, findings: list[tuple[str, str, int]]
) -> None:
    found = build_test_findings(compared(before, after))
    assert [(finding.rule, finding.headline, len(finding.tests)) for finding in found] == findings, what


def test_two_thousand_tests_make_few_findings_and_all_are_named() -> None:
    ids = [f"t{number}.py::test" for number in range(2000)]
    found = build_test_findings(compared(passing(*ids), report(*((id, F, f"error {id}") for id in ids))))
    assert len(found) == 21
    assert sorted(test for finding in found for test in finding.tests) == sorted(ids)
    assert "1,980 more tests" in found[-1].headline


def test_the_reason_counts_by_what_was_before() -> None:
    before = report(("a", P, ""), ("b", SKIP, ""), ("c", P, ""))
    after = report(("a", F, "x"), ("b", F, "y"), ("c", F, "z"), ("d", F, "w"))
    assert describe_failures(compared(before, after)) == (
        "2 tests now fail that passed before; 1 test now fails that was skipped before; 1 test is new and fails"
    )


def test_broken_syntax_and_the_tests_that_it_stopped_are_one_finding() -> None:
    syntax = Finding(
        layer="cascade", rule="syntax", severity=Severity.MAJOR, path="a.py", line=1, detail="bad", fix="f"
    )
    stopped = build_test_findings(
        compared(passing("t.py::x"), report(("t.py", E, 'SyntaxError: bad (File "/p/a.py", line 1)')))
    )
    (merged,) = merge_syntax_errors([syntax, *stopped])
    assert (merged.rule, merged.severity) == ("syntax", Severity.CRITICAL)
    assert merged.detail == "bad\n1 test that ran on the base did not run because of it"
    other = syntax.model_copy(update={"path": "other.py"})
    assert len(merge_syntax_errors([other, *stopped])) == 2
