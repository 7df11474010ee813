"""What tools say, as data: the real ruff and mypy, and recorded output of the others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from proofstone.check.diagnostics import list_failures, parse_diagnostics
from proofstone.check.models import CheckKind, CheckResult, TestReport, TestResult, TestStatus
from proofstone.check.rules.compare import find_new_diagnostics
from proofstone.common.models import Diagnostic, Phase, Verdict
from tests.rows import each_row


def run(directory: Path, *argv: str) -> str:
    done = subprocess.run([sys.executable, "-m", *argv], cwd=directory, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    return done.stdout


def test_the_real_ruff_is_understood(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import os\n\nx = undefined\n")
    output = run(tmp_path, "ruff", "check", "--isolated", "--no-cache", "--output-format=concise", "a.py")
    found = parse_diagnostics("ruff", output)
    assert [(item.path, item.line, item.code) for item in found] == [("a.py", 1, "F401"), ("a.py", 3, "F821")]
    assert found[0].message == "`os` imported but unused"


def test_the_real_ruff_on_broken_syntax_is_understood(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(:\n")
    output = run(tmp_path, "ruff", "check", "--isolated", "--no-cache", "--output-format=concise", "a.py")
    assert {item.code for item in parse_diagnostics("ruff", output)} == {"invalid-syntax"}


def test_the_real_mypy_is_understood(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x: int = 'a'\n\ndef f() -> str:\n    return 1\n")
    output = run(tmp_path, "mypy", "--config-file=", f"--cache-dir={tmp_path / 'cache'}", "--no-pretty", "a.py")
    found = parse_diagnostics("python:mypy", output)
    assert [(item.path, item.line, item.code) for item in found] == [
        ("a.py", 1, "assignment"),
        ("a.py", 4, "return-value"),
    ]


ESLINT = json.dumps(
    [
        {
            "filePath": "/repo/src/a.js",
            "messages": [
                {"ruleId": "no-undef", "severity": 2, "message": "'x' is not defined.", "line": 3},
                {"ruleId": "no-console", "severity": 1, "message": "Unexpected console.", "line": 4},
                {"ruleId": None, "severity": 2, "fatal": True, "message": "Parsing error: x\nmore", "line": 5},
            ],
        }
    ]
)
RECORDED: dict[str, tuple[str, str, list[tuple[str, int | None, str, str]]]] = {
    "flake8": (
        "python:flake8",
        "./a.py:1:1: F401 'os' imported but unused\n",
        [("a.py", 1, "F401", "'os' imported but unused")],
    ),
    "mypy notes": (
        "python:mypy",
        'a.py:2: note: see\na.py:2:5: error: Name "x" is not defined  [name-defined]\nFound 1 error in 1 file\n',
        [("a.py", 2, "name-defined", 'Name "x" is not defined')],
    ),
    "pyright": (
        "pyright",
        '/repo/a.py\n  /repo/a.py:1:5 - error: "x" is not defined (reportUndefinedVariable)\n'
        "  /repo/a.py:2:5 - warning: y (reportY)\n1 error, 1 warning, 0 informations\n",
        [("a.py", 1, "reportUndefinedVariable", '"x" is not defined')],
    ),
    "tsc": (
        "node:tsc",
        "src/a.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.\n  detail\n",
        [("src/a.ts", 3, "TS2322", "Type 'string' is not assignable to type 'number'.")],
    ),
    "tsc pretty": (
        "node:tsc",
        "\x1b[96msrc/a.ts\x1b[0m:\x1b[93m3\x1b[0m:5 - \x1b[91merror\x1b[0m\x1b[90m TS1: \x1b[0mNo.\n",
        [("src/a.ts", 3, "TS1", "No.")],
    ),
    "eslint": (
        "node:eslint",
        f"(node) a warning\n{ESLINT}\n[not json\n",
        [("src/a.js", 3, "no-undef", "'x' is not defined."), ("src/a.js", 5, "parse", "Parsing error: x")],
    ),
    "go vet": (
        "go",
        "# example.com/a\n./a.go:5:2: Printf format %d has arg x of wrong type string\nvet: ./b.go:3:1: undefined: y\n",
        [
            ("a.go", 5, "", "Printf format %d has arg x of wrong type string"),
            ("b.go", 3, "", "undefined: y"),
        ],
    ),
    "cargo": (
        "cargo",
        "src/main.rs:2:9: warning: unused variable: `x`\nsrc/main.rs:3:5: error[E0308]: mismatched types\n"
        "error: could not compile `a`\n",
        [("src/main.rs", 2, "", "unused variable: `x`"), ("src/main.rs", 3, "E0308", "mismatched types")],
    ),
    "gcc": (
        "make",
        "a.c: In function 'main':\na.c:3:5: error: expected ';' before 'x'\na.c:3:5: note: here\n",
        [("a.c", 3, "", "expected ';' before 'x'")],
    ),
    "rubocop": (
        "bundle",
        "/repo/a.rb:1:1: C: [Correctable] Style/StringLiterals: Prefer single quotes.\n",
        [("a.rb", 1, "Style/StringLiterals", "Prefer single quotes.")],
    ),
}


@each_row("case", RECORDED)
def test_recorded_output_is_understood(case: str) -> None:
    tool, output, expected = RECORDED[case]
    found = parse_diagnostics(tool, output, root="/repo")
    assert [(item.path, item.line, item.code, item.message) for item in found] == expected


def at(line: int, message: str = "m") -> Diagnostic:
    return Diagnostic(path="a.py", line=line, code="C", message=message)


def test_a_complaint_that_merely_moved_is_not_new() -> None:
    assert find_new_diagnostics([at(1)], [at(9)]) == ()
    assert find_new_diagnostics([at(1, "defined on line 1")], [at(9, "defined on line 8")]) == ()


def test_one_more_of_the_same_is_new_and_the_old_one_keeps_its_line() -> None:
    assert find_new_diagnostics([at(5)], [at(2), at(5)]) == (at(2),)


def test_a_complaint_that_went_away_is_no_matter() -> None:
    assert find_new_diagnostics([at(1), at(2, "other")], [at(1)]) == ()


DIAGNOSTICS = st.lists(st.builds(at, st.integers(1, 4), st.sampled_from(["a", "b"])), max_size=6)


@given(DIAGNOSTICS, DIAGNOSTICS)
def test_the_difference_is_the_surplus_and_never_more(before: list[Diagnostic], after: list[Diagnostic]) -> None:
    new = find_new_diagnostics(before, after)
    for message in ("a", "b"):
        count = [sum(item.message == message for item in items) for items in (before, after, new)]
        assert count[2] == max(0, count[1] - count[0])


@given(st.sampled_from(sorted({tool for tool, _, _ in RECORDED.values()})), st.text(max_size=200))
def test_no_output_raises(tool: str, output: str) -> None:
    parse_diagnostics(tool, output)


def test_what_failed_in_a_command_is_read_from_its_report_or_else_from_its_output() -> None:
    failed = CheckResult(
        name="verify",
        kind=CheckKind.VERIFY,
        tier=2,
        tool="",
        command="make",
        phase=Phase.AFTER,
        tree="0" * 40,
        verdict=Verdict.FAIL,
    )
    results = (
        TestResult(id="test_a", status=TestStatus.FAILED, cause="assert 9 == 5"),
        TestResult(id="test_b", status=TestStatus.PASSED),
    )
    report = TestReport(runner="pytest", results=results, complete=True)
    output = "src/a.ts:3:5 - error\nsrc/a.py:7: error: bad type [arg-type]\nmake: *** [all] Error 1\n"
    assert list_failures(failed.model_copy(update={"report": report, "output": output})) == ("test_a: assert 9 == 5",)
    assert list_failures(failed.model_copy(update={"output": output}))[1] == "src/a.py:7: bad type [arg-type]"
    many = "\n".join(f"FAILED a.py::test_{number}" for number in range(30))
    shown = list_failures(failed.model_copy(update={"output": many}))
    assert shown[0] == "a.py::test_0" and shown[-1] == "and 11 more" and len(shown) == 21
    assert list_failures(failed) == ()
