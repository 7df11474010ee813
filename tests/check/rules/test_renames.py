from __future__ import annotations

from proofstone.check.models import CheckKind, CheckResult, TestReport, TestResult, TestStatus
from proofstone.check.rules.compare import apply_renames
from proofstone.common.models import Diagnostic, Phase, Verdict
from tests.rows import each_row

RENAMES = {"tests/test_a.py": "tests/unit/test_a.py", "src/a.py": "src/b.py"}


def result(tests: list[TestResult], complaints: list[Diagnostic]) -> CheckResult:
    report = TestReport(runner="pytest", results=tuple(tests), complete=True)
    return CheckResult(
        name="c", kind=CheckKind.TESTS, tier=2, tool="t", command="c", phase=Phase.BASELINE, tree="a" * 40,
        verdict=Verdict.PASS, report=report, diagnostics=tuple(complaints),
    )  # fmt: skip


@each_row(
    ("path", "id", "expected"),
    [
        ("tests/test_a.py", "tests/test_a.py::test_x", "tests/unit/test_a.py::test_x"),
        ("tests/test_a.py", "tests/test_a.py > suite > x", "tests/unit/test_a.py > suite > x"),
        ("tests/test_a.py", "tests/test_a.py", "tests/unit/test_a.py"),
        ("tests/test_a.py", "tests.test_a.Case.test_x", "tests.test_a.Case.test_x"),
        ("tests/test_a.pyx", "tests/test_a.pyx::test_x", "tests/test_a.pyx::test_x"),
        (None, "tests/test_a.py::test_x", "tests/test_a.py::test_x"),
    ],
)
def test_ids_follow_their_file(path: str | None, id: str, expected: str) -> None:
    found = apply_renames(result([TestResult(id=id, status=TestStatus.PASSED, path=path)], []), RENAMES)
    assert found.report and found.report.results[0].id == expected


def test_complaints_follow_their_file() -> None:
    found = apply_renames(result([], [Diagnostic(path="src/a.py", line=1), Diagnostic(path="src/c.py")]), RENAMES)
    assert [one.path for one in found.diagnostics] == ["src/b.py", "src/c.py"]
