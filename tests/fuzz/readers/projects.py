"""Readers of what a checked project writes: plans, test reports, complaints of tools, manifests, source files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from proofstone.check.diagnostics import parse_diagnostics
from proofstone.check.discovery import discover
from proofstone.check.ecosystems.node_scripts import parse_script
from proofstone.check.inspection import ChangedFile
from proofstone.check.models import MutantResult, ReportFormat, TestReport, TestResult, TestStatus
from proofstone.check.observation import ObservationRequest
from proofstone.check.readiness import find_readiness_problems
from proofstone.check.reports import read_report
from proofstone.check.reports.observed_lines import read_observations
from proofstone.check.reports.sniff import sniff_formats
from proofstone.check.reports.source import ReportSource
from proofstone.check.rules.call_answers import (
    confirm,
    describe_answer,
    describe_call,
    find_differences,
    group_answers,
    list_examples,
)
from proofstone.check.rules.demands import find_reader
from proofstone.check.rules.disguised_names import find_disguised_names
from proofstone.check.rules.loaded_code import find_unseen_code
from proofstone.check.rules.loosened_checks import find_loosened_checks
from proofstone.check.rules.opaque_files import find_opaque_file
from proofstone.check.rules.protected import find_changed_roles
from proofstone.check.rules.scan import scan_lines
from proofstone.check.rules.scan_paths import find_conflict_markers, scan_path
from proofstone.check.rules.scan_rules import find_suppressions, remove_suppressions
from proofstone.check.rules.special_casing import find_examples, find_special_cases
from proofstone.check.rules.strength import read_probe_results
from proofstone.check.rules.tested_only import find_tested_only, plan_nearby_calls
from proofstone.check.rules.weakened_tests import build_weakened_finding
from proofstone.check.variants.canary import add_canary
from proofstone.check.variants.expectations import mutate_expectations
from proofstone.check.variants.sabotage import sabotage_file
from proofstone.check.variants.views import plain_lines, split_views
from proofstone.check.weakening import find_weakened_tests
from proofstone.ci.rules.approvals import Review, list_approvals
from proofstone.ci.rules.job import read_job
from proofstone.common.commands import is_compound, is_vacuous, loses_exit_code, proves_nothing
from proofstone.common.globs import matches
from proofstone.common.models import ChangeKind
from proofstone.common.shell import ShellSyntaxError, has_blocks, is_complete, lex, split_statements
from proofstone.documents.diff import parse_diff
from proofstone.documents.html import write_html
from proofstone.documents.markdown_page import write_markdown
from proofstone.documents.model import DiffBlock, Document, Section
from proofstone.gate.rules.command_criteria import is_asserted
from proofstone.plan_gate.rules.outline import outline_plan
from proofstone.plan_gate.rules.record_documents import read_all_records, write_yaml
from proofstone.plans.lint import find_lint_problems
from proofstone.plans.parser import read_plan
from proofstone.sources.grammar_outline import outline_by_grammar
from proofstone.sources.outline import outline_python
from proofstone.sources.syntax import find_new_syntax_errors, find_syntax_errors
from proofstone.sources.text import parse_python_text
from tests.fuzz.checking import Reader, folder, pick, text_of

FIXTURES = Path(__file__).parents[2] / "fixtures"


def _files(pattern: str) -> Callable[[], Sequence[bytes]]:
    return lambda: [file.read_bytes() for file in sorted(FIXTURES.glob(pattern))]


# Plans.


def _plan(data: bytes) -> None:
    text = text_of(data)
    plan, problems = read_plan(text, "PLAN.md")
    if plan is None:
        assert any(problem.severity == "error" for problem in problems), "no plan, and no error"
        return
    lines = text.count("\n") + text.count("\r") + 1
    for problem in (*problems, *find_lint_problems(plan, text)):
        assert 1 <= problem.line <= lines and problem.message and problem.hint
    plan.model_dump_json().encode()


def _plan_outline(data: bytes) -> None:
    repr(outline_plan(text_of(data), "PLAN.md")).encode("utf-8", "backslashreplace")


def _records(data: bytes) -> None:
    for record in read_all_records(text_of(data), "records.yaml"):
        assert read_all_records(write_yaml(record), "again") == (record,), "a record does not read back"


def _record_seeds() -> Sequence[bytes]:
    from tests.plan_gate.reports import CHALLENGES, RISK, STATES, SURFACED, UNKNOWN

    return [write_yaml(one).encode() for one in (*CHALLENGES[:2], RISK, *STATES[:1], SURFACED, UNKNOWN)]


# Test reports.

_JOURNAL = (
    {"event": "start", "runner": "pytest", "version": "8", "base": "/project"},
    {"event": "collected", "tests": [["tests/test_a.py", "test_one"], ["tests/test_a.py", "test_two"]]},
    {"event": "test", "file": "tests/test_a.py", "name": "test_one", "status": "passed", "ms": 1.5, "message": ""},
    {"event": "test", "file": None, "name": "tests.a.T.two", "status": "failed", "ms": 2, "message": "no", "path": "a"},
    {"event": "finish", "exit": 0, "imported_from": ["/project/a"]},
)
JOURNAL = b"".join(json.dumps(line).encode() + b"\n" for line in _JOURNAL)
"""As the probes write it."""
_FILES = {
    ReportFormat.PYTEST: "pytest-1-1.jsonl",
    ReportFormat.UNITTEST: "unittest-1-1.jsonl",
    ReportFormat.NODE: "node-1-1.jsonl",
    ReportFormat.JEST: "jest.json",
    ReportFormat.VITEST: "vitest.json",
    ReportFormat.MOCHA: "mocha.json",
    ReportFormat.JUNIT: "report.xml",
    ReportFormat.TAP: "report.tap",
}
_TAKEN_FROM = {
    ReportFormat.JEST: "reports/jest.json",
    ReportFormat.VITEST: "reports/vitest.json",
    ReportFormat.MOCHA: "reports/mocha.json",
    ReportFormat.JUNIT: "reports/*.xml",
    ReportFormat.TAP: "reports/*.tap",
    ReportFormat.GO: "reports/go-*.txt",
    ReportFormat.CARGO: "reports/cargo.txt",
}
BOMB = (
    b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">'
    b'<!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;">]><testsuite><testcase name="&d;"/></testsuite>'
)


def _report(format: ReportFormat) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        place = folder(f"report-{format.value}")
        if name := _FILES.get(format):
            (place / name).write_bytes(data)
        exit_code = (0, 1, None, 2)[pick(data, 4)]
        report = read_report(format, place, b"" if name else data, root="/project", cwd=".", exit_code=exit_code)
        report.model_dump_json().encode()
        assert exit_code is not None or not report.complete, "a run that was killed has no complete report"
        assert len(report.by_id) == len(report.results), "one id twice"

    return read


_OBSERVED = (
    {"event": "start", "runner": "pytest", "base": "/project"},
    {"event": "file", "path": "tests/data.json", "kind": "read", "stack": ["tests/test_a.py", "shop.py"]},
    {"event": "module", "name": "shop", "path": "shop.py"},
    {"event": "test", "number": 1, "file": "tests/test_a.py", "name": "test_one"},
    {"event": "instrumented", "path": "shop.py"},
    {"event": "coverage", "path": "shop.py", "lines": [2, 3], "tests": [0, 1]},
    {"event": "path", "entries": ["/project"]},
    {
        "event": "call",
        "path": "shop.py",
        "module": "shop",
        "name": "total",
        "parameters": [["price"], [], [], []],
        "arguments": [["list", [1]]],
        "answer": ["value", 3],
    },
    *(
        {
            "event": "call",
            "path": "shop.py",
            "module": "shop",
            "name": "total",
            "parameters": [["price", "count"], [], [], []],
            "arguments": [first, second],
            "answer": ["value", answer],
            "attribute": ["shop", "total"],
        }
        for first, second, answer in (
            (250, ["float", "2.5"], ["list", [238, 225]]),
            ("12.50", ["int", "90071992547409930"], 1250),
            (
                ["dict", [["a", ["text", "Decimal", "1.5"]]]],
                ["object", "shop", "Cart", "object", None, [["n", 5]]],
                "a-b",
            ),
        )
    ),
    {"event": "comparing", "name": "total", "kind": "shop.Total", "base": "int"},
    {"event": "answer", "number": 0, "answer": ["error", "ValueError"]},
    {"event": "unavailable", "what": "files", "why": "OSError: no"},
    {"event": "finish"},
)


def _observed(data: bytes) -> None:
    place = folder("observed")
    (place / "observed-pytest-1.jsonl").write_bytes(data)
    request = ObservationRequest(files=True, coverage={"shop.py": ((1, 9),)}, calls={"shop.py": ("total",)})
    observations = read_observations(ReportSource(place, b"", "/project", ".", 0), request)
    assert observations is not None
    observations.model_dump_json().encode()
    observations.tests_reaching("shop.py", range(10))
    answers = group_answers(observations.answers)
    differences = find_differences(observations.calls, answers, answers)
    confirm(differences, answers)
    assert len(list_examples(observations.calls)) <= len(observations.calls)
    for call in observations.calls:
        describe_call(call).encode()
        describe_answer(call.answer).encode()
    planned = plan_nearby_calls(observations.calls)
    found = find_tested_only(
        planned, answers, {number: frozenset((call.answer,)) for number, call in enumerate(planned.calls)}, "3"
    )
    assert all(each.path == "shop.py" and each.detail.encode() for each in found)


def _report_seeds(format: ReportFormat) -> Callable[[], Sequence[bytes]]:
    if format in _TAKEN_FROM:
        found = _files(_TAKEN_FROM[format])
        return (lambda: [*found(), BOMB]) if format is ReportFormat.JUNIT else found
    return lambda: [JOURNAL]


def _sniff(data: bytes) -> None:
    sniff_formats(folder("sniffed"), data)


# Complaints, commands, manifests.

TOOLS = (
    "python:mypy", "python:ruff", "python:flake8", "python:pyright", "node:tsc", "node:eslint", "go", "go:vet",
    "rust:cargo", "unknown",
)  # fmt: skip
_COMPLAINTS = (
    b"a/b.py:12: error: Incompatible types [assignment]\nFound 1 error in 1 file\n",
    b"a/b.py:1:5: F401 `os` imported but unused\nFound 1 error.\n",
    b"src/a.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.\n",
    b"src/a.ts:3:7 - error TS2322: Type\n",
    b'[{"filePath":"/project/a.js","messages":[{"severity":2,"line":3,"ruleId":"no-undef","message":"x"}]}]\n',
    b"vet: ./a.go:3:2: undefined: x\n# example.com/a\n./a.go:4:2: missing return\n",
    b"error[E0425]: cannot find value `x`\n --> src/main.rs:2:5\n",
)


def _complaints(data: bytes) -> None:
    for one in parse_diagnostics(TOOLS[pick(data, len(TOOLS))], text_of(data), root="/project"):
        one.model_dump_json().encode("utf-8", "strict")


def _shell(data: bytes) -> None:
    text = text_of(data)
    assert proves_nothing(text) or not is_vacuous(text)
    assert loses_exit_code(text) or not proves_nothing(text)
    is_complete(text)
    has_blocks(text)
    is_compound(text)
    pieces = lex(text)
    assert all(text.startswith(piece.text, piece.start) for piece in pieces if not piece.is_operator)
    assert "".join("".join(split_statements(text)).split()) == "".join(text.split())


def _glob(data: bytes) -> None:
    pattern, _, path = text_of(data).partition("\n")
    matches(pattern, path)


MANIFESTS = (
    "package.json", "pyproject.toml", "setup.cfg", "tox.ini", "Cargo.toml", "go.mod", "Makefile", "tsconfig.json",
    "Pipfile", ".eslintrc", "pom.xml", "build.gradle", "Gemfile", "CMakeLists.txt", "requirements.txt", "a.csproj",
    "tests/test_a.py", "jest.config.js", "composer.json", "noxfile.py", "environment.yml", ".mocharc.json",
)  # fmt: skip
_MANIFEST_TEXTS = (
    b'{"name": "a", "scripts": {"test": "jest --ci && eslint .", "build": "tsc -p ."}, "jest": {"testMatch": ["**"]}, '
    b'"devDependencies": {"jest": "29", "eslint": "8", "vitest": "1"}, "workspaces": ["packages/*"]}\n',
    b'// a comment\n{"compilerOptions": {"strict": true,},}\n',
    b'[project]\nname = "a"\ndependencies = ["pytest>=8"]\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'
    b'addopts = "-q"\n[tool.ruff]\nline-length = 100\n[tool.mypy]\nstrict = true\n',
    b"[tool:pytest]\ntestpaths = tests\n[flake8]\nmax-line-length = 100\n[options.extras_require]\ntest =\n    a\n",
    b'[package]\nname = "a"\nversion = "1.0.0"\n[dependencies]\nserde = { version = "1", features = ["derive"] }\n',
    b"module example.com/a\n\ngo 1.21\n\nrequire example.com/b v1.0.0\n",
    b"test: build\n\tpytest -q\nlint:\n\truff check .\n.PHONY: test lint\n",
    b"<project><build><plugins><plugin><artifactId>maven-surefire-plugin</artifactId></plugin></plugins></build>"
    b"</project>\n",
    b"dependencies:\n  - python\n  - pytest\n",
    b"import pytest\n\n\ndef test_a():\n    assert 1\n",
)


def _manifest(data: bytes) -> None:
    name = MANIFESTS[pick(data, len(MANIFESTS))]
    found = discover(
        ("a.py", "a.js", "a.go", "a.rs", "tests/test_b.py", name), lambda path: data if path == name else b""
    )
    repr(found).encode("utf-8", "backslashreplace")


def _node_script(data: bytes) -> None:
    script, _, others = text_of(data).partition("\n")
    parse_script(script, {"build": others, "test": script})


def _demands(data: bytes) -> None:
    """A file that runs checks, of every kind, and the same bytes as source."""
    names = (".github/workflows/a.yml", ".pre-commit-config.yaml", "tox.ini", "package.json", "Makefile", "noxfile.py")
    for path in (*names, "pyproject.toml", ".husky/pre-commit", ".claude/settings.json", "AGENTS.md", "jest.config.js"):
        assert find_reader(path) is not None
        find_loosened_checks([(path, data, b"x: 1\n"), (path, b"", data)], {path: data})
    find_opaque_file("a.bin", data[:9], data)
    lines = plain_lines(data)
    list(find_disguised_names(lines, range(1, 99)))
    list(find_unseen_code(lines, range(1, 99), is_test=False))


def _protected(data: bytes) -> None:
    name = MANIFESTS[pick(data, len(MANIFESTS))]
    old, _, new = data.partition(b"\n\n")
    find_changed_roles(name, old, new)
    assert find_changed_roles(name, data, data) == frozenset(), "nothing changed"
    find_changed_roles(name, None, data)


# Source files.

SOURCES = (
    "a.py", "tests/test_a.py", "a.js", "a.test.ts", "a.tsx", "a.go", "a_test.go", "a.rs", "A.java", "a.rb", "a.php",
    "a.json", "a.toml", "a.yaml", "a.lua", "script", "a.c",
)  # fmt: skip
_SOURCE_TEXTS = (
    b"import os\n\n\nclass A:\n    '''A.'''\n\n    def f(self, x: int = 1) -> int:\n        if x > 3:  # noqa\n"
    b"            return x  # type: ignore\n        try:\n            return {1: [x]}[1][0]\n        except OSError:\n"
    b"            pass\n\n\ndef test_a():\n    assert A().f(2) == 2\n    assert f'{1}' in ('1', \"2\")\n",
    b"import unittest\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(1 + 1, 2)\n",
    b"#!/usr/bin/env node\nconst a = (b) => `x${b}`; // eslint-disable-line\n"
    b"describe('a', () => { it('b', async () => { expect(a(1)).toBe('x1'); }); test.only('c', () => {}); });\n"
    b"module.exports = { a };\n",
    b'package a\n\nimport "testing"\n\n//nolint\nfunc Add(a, b int) int { return a + b }\n\n'
    b'func TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal("no")\n\t}\n}\n',
    b"#[cfg(test)]\nmod tests {\n    #[test]\n    fn it() { assert_eq!(1 + 1, 2); }\n}\npub fn f(x: u8) -> u8 { x }\n",
    b"<<<<<<< ours\na = 1\n=======\na = 2\n>>>>>>> theirs\n",
    b'{"a": [1, 2.5, {"b": null}], "c": "\\u00e9"}\n',
    b"a: &x [1, 2]\nb: *x\n",
    b"import threading\nlock = threading.Lock()\nos.system('rm -rf ' + input())\neval(x)\nTOKEN = 'abcdef0123456789'\n",
)


def _syntax(data: bytes) -> None:
    path = SOURCES[pick(data, len(SOURCES))]
    for one in find_syntax_errors(path, data) or ():
        one.model_dump_json().encode("utf-8", "backslashreplace")
    find_new_syntax_errors(path, data[: len(data) // 2], data)


def _source(data: bytes) -> None:
    path = SOURCES[pick(data, len(SOURCES))]
    old = data[: len(data) // 2]
    sabotage_file(path, old, data)
    mutate_expectations(path, data, None, "word")
    add_canary((ReportFormat.PYTEST, ReportFormat.NODE, ReportFormat.GO)[pick(data, 3)], path, data, "word")
    source = parse_python_text(data)
    if source is not None:
        outline_python(source)
    for language in ("javascript", "go", "rust"):
        outline_by_grammar(data, language)


TESTS = ("tests/test_a.py", "test/a.test.js", "test/a.test.ts")
_TEST_TEXTS = (
    *_SOURCE_TEXTS,
    b"@pytest.mark.parametrize('x', [1, 2])\ndef test_a(x):\n    y = f(x)\n    if y:\n"
    b"        assert y == approx(3, abs=0.1)\n"
    b"    with pytest.raises(ValueError, match='e'):\n        g()\n    assert a in (1, 2) or not b and c < 3\n"
    b"    for z in (1, 2):\n        self.assertAlmostEqual(z, 1, places=2)\n    m.assert_called_once_with(1)\n",
    b"test('a', async t => { const r = await f(); t.is(r, 1); if (x) { expect(r).not.toBeCloseTo(1, 2); }\n"
    b"for (const c of [1, 2]) { assert.ok(c === 1 || [2].includes(c)); }\n"
    b"try { t.throws(f, {message: /x/}); } catch {} });\n",
)
_DIFFS = (
    b"diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ f\n a\n-b\n+c\n"
    b"\\ No newline at end of file\n",
    b'diff --git "a/\\303\\244" "b/\\303\\244"\nsimilarity index 90%\nrename from a\nrename to b\n@@ -0,0 +1 @@\n+x\n',
    b"diff --git a/i b/i\nnew file mode 100644\nBinary files /dev/null and b/i differ\n",
)


def _weakened(data: bytes) -> None:
    """The two halves of the input are the old and the new version of a test file; then the whole is both."""
    path = TESTS[pick(data, len(TESTS))]
    half = len(data) // 2
    for old, new in ((data[:half], data[half:]), (data, data[:half] + data[half + 1 :])):
        for test in find_weakened_tests([ChangedFile(path, ChangeKind.MODIFIED, old, new)], {}):
            assert test.weakenings
            assert build_weakened_finding(test.path, test.id, test.weakenings, "tests").line


_SPECIAL_CASES = (
    b"def test_f():\n    assert f(17, 'ab') == 3421\n\ndef f(x, y):\n    if x == 17:\n        return 3421\n",
    b"@mark.parametrize('x,y', [(17, 3421)])\ndef test(x, y): 0\nTABLE = {17: 3421, (2, 3): [4, {5: -6.5}]}\n####\n",
    b"assert f((1, [2])) == 99\nassertEqual(f('x y'), b'z')\nmatch x:\n    case (1, [2]):\n        return 99\n#####\n",
)


def _special_cases(data: bytes) -> None:
    """The two halves of the input are a test file and a product file."""
    half = len(data) // 2
    tests = {"tests/test_a.py": text_of(data[:half])}
    product = text_of(data[half:])
    lines = range(1, product.count("\n") + 2)
    for case in find_special_cases("a.py", product, lines, find_examples(tests), tests):
        assert case.line in lines


_EVENTS = (
    b'{"action": "labeled", "label": {"name": "proofstone-accept:flaky"}, "sender": {"login": "a"}, "before": "0"}',
    b'{"pull_request": {"number": 7, "base": {"sha": "ab"}, "head": {"sha": "cd"}, "user": {"login": "a"}}}',
)


def _ci_event(data: bytes) -> None:
    """The input is the document of an event; what a person wrote in a review is the input as text."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        document = None
    event = document if isinstance(document, dict) else {}
    job = read_job({"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "o/r"}, event)
    result = list_approvals(job, [Review("a", text_of(data), "cd")], lambda login: "admin" if login else "none")
    assert all(approval.rule for approval in result.approvals)


_MUTANTS = (
    b'mutant 0\n{"status": "killed", "by": "a"}',
    b'mutant 1\n{"status": ["killed"], "by": {}}',
    b"mutant \xc2\xb2\n[[",
)


def _mutant_results(data: bytes) -> None:
    """The first line of the input is the id of a result, and the rest is its message."""
    name, _, message = text_of(data).partition("\n")
    result = TestResult(id=name, status=TestStatus.PASSED, message=message)
    report = TestReport(runner="pytest", results=(result,), complete=True)
    mutants = [MutantResult(path="a.py", line=1, operator="x", before="", after="") for _ in range(2)]
    assert len(read_probe_results(report, mutants)) <= 1


def _shown_diff(data: bytes) -> None:
    files, _ = parse_diff(text_of(data), ["hidden"])
    assert files[0].path == "hidden"
    page = Document("x", (), (Section("The change", (DiffBlock(files),)),))
    assert write_html(page) and write_markdown(page)


def _scanned(data: bytes) -> None:
    path = SOURCES[pick(data, len(SOURCES))]
    lines = split_views(path, data)
    if lines is None:
        return
    added = range(1, len(lines) + 1)
    for test_file in (False, True):
        for hit in scan_lines(path, "python", lines, added, (), test_file=test_file, new_file=False):
            assert 1 <= hit.line <= len(lines)
    remove_suppressions(data, find_suppressions(lines, added), lines)
    find_conflict_markers(path, None, data)
    find_readiness_problems(path, [(line.number, line.text) for line in lines], data)


_CRITERIA = (
    b'`python -m shop total` prints 42\ntest "$(python -m shop total)" = 42',
    b"total([1, 2]) == 3\npython3 -c 'from shop import total; assert total([1, 2]) == 3'",
    b"`./run.sh` exits with 2\n./run.sh; test $? -eq 2",
)


def _criterion(data: bytes) -> None:
    """The first line is a criterion, the rest a command that may assert it."""
    criterion, _, command = text_of(data).partition("\n")
    is_asserted(criterion, command)
    is_asserted(command, criterion)


def _path(data: bytes) -> None:
    for kind in ChangeKind:
        scan_path(text_of(data), kind)


READERS: tuple[Reader, ...] = (
    Reader("plan", _plan, _files("plans/*.md"), ("proofstone.plans.frontmatter",)),
    Reader("plan-outline", _plan_outline, _files("plans/*.md"), ("proofstone.plan_gate.rules.outline",)),
    Reader("plan-records", _records, _record_seeds, ("proofstone.plan_gate.rules.record_documents",)),
    *(
        Reader(
            f"report-{format.value}",
            _report(format),
            _report_seeds(format),
            ("proofstone.check.reports.source", "proofstone.check.reports.junit"),
        )
        for format in ReportFormat
        if format is not ReportFormat.EXIT_CODE
    ),
    Reader(
        "observations",
        _observed,
        lambda: [b"".join(json.dumps(line).encode() + b"\n" for line in _OBSERVED)],
        (
            "proofstone.check.reports.observed_lines",
            "proofstone.check.rules.call_answers",
            "proofstone.check.rules.nearby_arguments",
            "proofstone.check.rules.tested_only",
        ),
    ),
    Reader("report-sniffed", _sniff, _files("reports/*"), ("proofstone.check.reports.sniff",)),
    Reader("complaints", _complaints, lambda: _COMPLAINTS, ("proofstone.check.diagnostics",)),
    Reader(
        "shell",
        _shell,
        lambda: [
            b"cd a && pytest -q | tee log; if [ -f x ]; then echo $(cat <<E\nx\nE\n); fi",
            b'for a in \'b c\' "d\\"e"; do npm test || true; done &',
            b"python3 -m unittest tests.test_a > /dev/null 2>&1",
        ],
        ("proofstone.common.shell", "proofstone.check.rules.outcome", "proofstone.check.derived_runs"),
        refuses=(ShellSyntaxError,),
    ),
    Reader("glob", _glob, lambda: [b"src/**/*.py\nsrc/a/b.py", b"./a/?/[id]/\na/b/c"], ()),
    Reader(
        "manifest",
        _manifest,
        lambda: _MANIFEST_TEXTS,
        (
            "proofstone.check.ecosystems.ecosystem",
            "proofstone.sources.text",
            "proofstone.common.parsing",
        ),
    ),
    Reader(
        "node-script",
        _node_script,
        lambda: [b'npm run build && NODE_ENV=test jest --ci "a b" | cat; yarn test\ntsc -p . && (cd a; eslint .)'],
        ("proofstone.check.ecosystems.node_scripts",),
    ),
    Reader(
        "demands",
        _demands,
        lambda: [
            b"on: [push]\njobs:\n  a:\n    steps:\n      - run: pytest tests || true\n      - uses: psf/black@stable\n",
            b"repos:\n- hooks:\n  - id: ruff\n    stages: [manual]\n    args: [--fix]\n",
            b"[testenv]\nignore_outcome = true\ncommands =\n    lint: - flake8 src\n    coverage run -m pytest\n",
            b'{"scripts": {"test": "jest --ci; exit 0"}, "hooks": {"Stop": [{"hooks": [{"command": "x"}]}]}}',
            b"test:\n\t-pytest --cov-fail-under=90\n",
        ],
        ("proofstone.check.rules.demands", "proofstone.check.rules.check_commands"),
    ),
    Reader("protected-file", _protected, lambda: _MANIFEST_TEXTS, ("proofstone.check.rules.protected",)),
    Reader("syntax", _syntax, lambda: _SOURCE_TEXTS, ("proofstone.sources.syntax",)),
    Reader("source", _source, lambda: _SOURCE_TEXTS, ("proofstone.sources.text",)),
    Reader("weakened-tests", _weakened, lambda: _TEST_TEXTS, ("proofstone.check.variants.python_assertions",)),
    Reader("special-cases", _special_cases, lambda: _SPECIAL_CASES, ("proofstone.check.rules.special_casing",)),
    Reader("ci-event", _ci_event, lambda: _EVENTS, ("proofstone.app.ci",)),
    Reader("mutant-results", _mutant_results, lambda: _MUTANTS, ("proofstone.check.rules.strength",)),
    Reader("shown-diff", _shown_diff, lambda: _DIFFS, ()),
    Reader("scanned-source", _scanned, lambda: _SOURCE_TEXTS, ("proofstone.check.rules.scan_python",)),
    Reader("criterion", _criterion, lambda: _CRITERIA, ("proofstone.gate.rules.command_criteria",)),
    Reader("changed-path", _path, lambda: [b"src/conftest.py", b"a/../b/node_modules/x.pth", b".github/ci.yml"], ()),
)
