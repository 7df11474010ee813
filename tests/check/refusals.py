"""What a refusal must look like."""

from __future__ import annotations

from tests.workshop import CheckRun


def assert_refused(run: CheckRun, *words: str) -> None:
    """Exit 2, a sentence and a hint on stderr, the same as a document, and nothing that looks like a crash."""
    assert run.exit == 2, f"exit {run.exit}: {run.stderr}"
    assert "Traceback" not in run.stderr
    error = run.json["error"]
    assert error["exit_code"] == 2
    for word in words:
        assert word in run.stderr, run.stderr
        assert word in error["message"] or word in (error["hint"] or ""), error


def assert_passed(run: CheckRun) -> None:
    assert run.exit == 0, f"{run.stderr}\n{run.stdout}"
    assert run.report.outcome == "passed"


def assert_failed(run: CheckRun, *rules: str) -> None:
    assert run.exit == 1, f"{run.stderr}\n{run.stdout}"
    assert run.report.outcome == "failed"
    found = {finding.rule for finding in run.report.findings}
    assert set(rules) <= found, found
