"""The disguise of a test run: which command becomes which, and what is said about a test that fails in it."""

from __future__ import annotations

import pytest

from proofstone.check.models import ReportFormat, TestReport, TestResult, TestStatus
from proofstone.check.rules.disguise import describe_suspicion, disguise_command, list_failing, list_passing

GO = ["-count=3", "-shuffle=20250711", "-exec", "sh {probes}/proofstone_disguise.sh"]
CARGO = ["--config", 'target."cfg(all())".runner=["sh", "{probes}/proofstone_disguise.sh"]']
COMMANDS = [
    (ReportFormat.GO, "go test -json ./...", ["go", "test", "-json", *GO, "./..."]),
    (ReportFormat.GO, "go test -run ^(?:TestA)$ -count=1 a/b", ["go", "test", "-run", "^(?:TestA)$", *GO, "a/b"]),
    (ReportFormat.CARGO, "cargo test --offline", ["cargo", "test", *CARGO, "--offline", "--", "--test-threads=1"]),
    (
        ReportFormat.CARGO,
        "cargo test -- --exact a::b",
        ["cargo", "test", *CARGO, "--", "--test-threads=1", "--exact", "a::b"],
    ),
    (
        ReportFormat.CARGO,
        "cargo test -- --test-threads=4",
        ["cargo", "test", *CARGO, "--", "--test-threads=4"],
    ),
    (ReportFormat.JUNIT, "mvn -o test", ["mvn", "-o", "test"]),
]


@pytest.mark.parametrize(("runner", "command", "expected"), COMMANDS)
def test_the_runner_gets_the_options_of_the_disguise(runner: ReportFormat, command: str, expected: list[str]) -> None:
    words = disguise_command(runner, command.split())
    assert list(words[-len(expected) :]) == expected
    disguise = words[: -len(expected)]
    assert disguise[0] == "env" and "TZ=Asia/Kathmandu" in disguise
    assert disguise[disguise.index("GITHUB_ACTIONS") - 1] == "-u"


def test_a_suspicion_names_the_tests_the_disguise_and_the_failure() -> None:
    statuses = {"a": TestStatus.FAILED, "b": TestStatus.FAILED, "c": TestStatus.PASSED, "d": TestStatus.SKIPPED}
    results = tuple(
        TestResult(id=id, status=status, cause="got 3500" if status.is_failure else "")
        for id, status in statuses.items()
    )
    report = TestReport(runner="go", complete=True, results=results)
    assert list_failing(report, [*statuses, "e"]) == ("a", "b") and list_passing(report, [*statuses, "e"]) == ("c",)
    assert list_failing(None, statuses) == () == list_passing(None, statuses)
    reason = describe_suspicion("tests:go", ReportFormat.GO, ["a", "b"], report).reason
    assert reason.startswith(
        "tests:go: a (and 1 other test) passes, and fails when it runs three times, in another order"
    )
    assert reason.endswith(": got 3500")
