"""A report as SARIF and as JUnit XML, for code hosts, editors and CI."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest

from proofstone.check.models import TestReport, TestResult, TestRun, TestStatus
from proofstone.check.rules.junit import build_junit
from proofstone.check.rules.sarif import build_sarif
from proofstone.common.models import Finding, Severity
from tests.gate.records import check_report


def finding(rule: str = "edited-expectation", **changed: object) -> Finding:
    known = {"layer": "L2", "severity": Severity.CRITICAL, "detail": "it passes only because it was edited"}
    return Finding.model_validate({**known, "fix": "change the source", "rule": rule, **changed})


def read_sarif(*findings: Finding) -> dict[str, Any]:
    run: dict[str, Any] = json.loads(build_sarif(check_report(findings=findings, outcome="failed"), "1.2"))["runs"][0]
    return run


def test_each_finding_is_a_result_at_its_line_with_its_rule() -> None:
    run = read_sarif(
        finding(path="tests/a b.py", line=7),
        finding("flaky", severity=Severity.MINOR),
        finding(path="tests/a b.py", line=9, detail="another"),
    )
    assert run["tool"]["driver"]["name"] == "Proofstone" and run["tool"]["driver"]["version"] == "1.2"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["edited-expectation", "flaky"]
    assert all(rule["shortDescription"]["text"] and rule["help"]["text"] for rule in run["tool"]["driver"]["rules"])
    first, second, third = run["results"]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "tests/a%20b.py", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 7}
    assert (first["level"], second["level"]) == ("error", "note")
    assert [result["ruleIndex"] for result in run["results"]] == [0, 1, 0]
    assert "region" not in second["locations"][0]["physicalLocation"], "it is about no single file"
    assert "What to do: change the source" in first["message"]["text"]
    assert first["partialFingerprints"] != third["partialFingerprints"]


def test_a_finding_that_moves_keeps_its_fingerprint() -> None:
    (before,) = read_sarif(finding(path="a.py", line=1))["results"]
    (after,) = read_sarif(finding(path="a.py", line=40))["results"]
    assert before["partialFingerprints"] == after["partialFingerprints"]


@pytest.mark.parametrize("text", ["\udcff\x00\x1b[2J", "é € 𝄞", "a\nb"])
def test_any_text_can_be_written(text: str) -> None:
    assert read_sarif(finding(detail=text, path=f"d/{text.splitlines()[0]}.py"))["results"]
    document = build_junit([TestRun(check=text, base=None, now=report({text: TestStatus.FAILED}, cause=text))])
    assert ElementTree.fromstring(document.encode())[0].get("tests") == "1"


def report(results: dict[str, TestStatus], cause: str = "") -> TestReport:
    made = tuple(
        TestResult(id=id, status=status, duration_ms=1500, path="t.py", cause=cause) for id, status in results.items()
    )
    return TestReport(runner="pytest", results=made, complete=True)


def test_each_test_has_its_result_on_the_base_and_now() -> None:
    base = {
        "same": TestStatus.PASSED,
        "broken": TestStatus.PASSED,
        "standing": TestStatus.FAILED,
        "gone": TestStatus.PASSED,
        "gone-skip": TestStatus.SKIPPED,
    }
    now = {
        "same": TestStatus.PASSED,
        "broken": TestStatus.FAILED,
        "standing": TestStatus.ERROR,
        "new": TestStatus.SKIPPED,
    }
    text = build_junit([TestRun(check="tests:pytest", base=report(base), now=report(now, cause="1 != 2"))])
    (suite,) = ElementTree.fromstring(text)
    assert {name: suite.get(name) for name in ("name", "tests", "failures", "errors", "skipped")} == {
        "name": "tests:pytest",
        "tests": "6",
        "failures": "1",
        "errors": "2",
        "skipped": "2",
    }
    seen = {}
    for case in suite:
        values = {entry.get("name"): entry.get("value") for entry in case.iter("property")}
        outcome = next((child.tag + " " + str(child.get("type")) for child in case if child.tag != "properties"), "")
        seen[case.get("name")] = (values["base"], values["now"], outcome)
    assert seen == {
        "same": ("passed", "passed", ""),
        "broken": ("passed", "failed", "failure new"),
        "standing": ("failed", "error", "error standing"),
        "new": ("absent", "skipped", "skipped skipped"),
        "gone": ("passed", "absent", "error vanished"),
        "gone-skip": ("skipped", "absent", "skipped skipped"),
    }
    assert suite[0].get("time") == "1.5" and suite[0].get("classname") == "t.py"


def test_tests_of_a_check_that_could_not_run_are_not_called_vanished() -> None:
    text = build_junit([TestRun(check="tests:pytest", base=report({"a": TestStatus.PASSED}), now=None)])
    (suite,) = ElementTree.fromstring(text)
    assert [error.get("type") for error in suite.iter("error")] == ["unverifiable"]
