"""jest, vitest and mocha: recorded reports, and the real tools from the registry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proofstone.check.models import ReportFormat
from proofstone.check.reports import read_report
from proofstone.check.reports.rerun import build_rerun_command
from proofstone.check.reports.sniff import sniff_formats
from tests.check.reports.project import FIXTURES, Project, read_fixture, statuses
from tests.needs import needs

JEST_EXPECTED = {
    "src/a.test.js > outer > in > ner > ok": "passed",
    "src/a.test.js > outer > in > ner > bad": "failed",
    "src/a.test.js > outer > in > ner > sk": "skipped",
    "src/a.test.js > outer > in > ner > later": "skipped",
    "src/a.test.js > top": "passed",
    "src/broken.test.js": "error",
}
MOCHA_EXPECTED = {
    "src/m.mocha.js > outer ok": "passed",
    "src/m.mocha.js > outer bad": "failed",
    "src/m.mocha.js > outer sk": "skipped",
    "src/m.mocha.js > outer pending": "skipped",
    'src/m.mocha.js > outer h "before all" hook for "x"': "error",
}
SOURCE = """
describe('outer', () => {
  describe('in > ner', () => {
    test('ok', () => {});
    test('bad', () => { expect(1).toBe(2); });
    test.skip('sk', () => {});
    test.todo('later');
  });
});
test('top', () => {});
"""
MOCHA_SOURCE = """
describe('outer', () => {
  it('ok', () => {});
  it('bad', () => { throw new Error('on purpose'); });
  it.skip('sk', () => {});
  it('pending');
  describe('h', () => { before(() => { throw new Error('hook'); }); it('x', () => {}); });
});
"""
COMMANDS = {
    ReportFormat.JEST: ("node_modules/.bin/jest", "--json", "--outputFile={report}/jest.json"),
    ReportFormat.VITEST: (
        *("node_modules/.bin/vitest", "run", "--reporter=default", "--reporter=json"),
        "--outputFile.json={report}/vitest.json",
    ),
}
RECORDED = [
    (ReportFormat.JEST, JEST_EXPECTED),
    (ReportFormat.VITEST, JEST_EXPECTED),
    (ReportFormat.MOCHA, MOCHA_EXPECTED),
]


@pytest.mark.parametrize(("format", "expected"), RECORDED)
def test_recorded_reports_are_read(tmp_path: Path, format: ReportFormat, expected: dict[str, str]) -> None:
    report = read_fixture(format, f"{format}.json", tmp_path)
    assert statuses(report) == expected
    assert report.complete
    assert all(result.message for result in report.results if result.status.is_failure)
    assert sniff_formats(tmp_path, b"") == (format,)


@pytest.mark.parametrize("format", [ReportFormat.JEST, ReportFormat.VITEST])
def test_a_report_with_cases_taken_out_is_incomplete(tmp_path: Path, format: ReportFormat) -> None:
    document = json.loads((FIXTURES / f"{format}.json").read_text())
    document["testResults"][0]["assertionResults"].pop()
    (tmp_path / f"{format}.json").write_text(json.dumps(document))
    report = read_report(format, tmp_path, b"", root="/repo", cwd=".", exit_code=1)
    assert not report.complete
    assert "says 5 tests and lists 4" in report.problems[0]


@pytest.mark.few(1, ci=3)
@needs("node", "npm")
@pytest.mark.registry
@pytest.mark.parametrize("format", COMMANDS)
def test_the_real_runner_reports_and_runs_single_tests_again(
    project: Project, node_modules: Path, format: ReportFormat
) -> None:
    project.file("package.json", '{"private": true}')
    project.file("vitest.config.mjs", "export default { test: { globals: true } };\n")
    project.file("src/a.test.js", SOURCE)
    project.file("src/broken.test.js", "throw new Error('cannot be loaded');\n")
    (project.root / "node_modules").symlink_to(node_modules)
    report = project.run(format, COMMANDS[format])
    assert statuses(report) == JEST_EXPECTED
    assert report.complete
    assert project.exit_code == 1
    assert "bad" in project.output

    bad = "src/a.test.js > outer > in > ner > bad"
    again = build_rerun_command(format, COMMANDS[format], [bad])
    assert again is not None
    ran = {result.id for result in project.run(format, again).results if result.status.is_executed}
    assert ran == {bad}


@needs("node", "npm")
@pytest.mark.registry
def test_real_mocha_reports(project: Project, node_modules: Path) -> None:
    project.file("src/m.mocha.js", MOCHA_SOURCE)
    (project.root / "node_modules").symlink_to(node_modules)
    output = ("--reporter", "json", "--reporter-option", "output={report}/mocha.json")
    report = project.run(ReportFormat.MOCHA, ["node_modules/.bin/mocha", *output, "src/m.mocha.js"])
    assert statuses(report) == MOCHA_EXPECTED
    assert report.complete
