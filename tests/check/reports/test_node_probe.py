"""Node's own test runner with Proofstone's reporter."""

from __future__ import annotations

import subprocess

import pytest

from proofstone.check.models import ReportFormat
from proofstone.check.reports.rerun import build_rerun_command
from proofstone.check.reports.sniff import sniff_formats
from proofstone.sandbox.bubblewrap import PROBES_FOLDER
from tests.check.reports.project import Project, statuses
from tests.needs import needs

pytestmark = needs("node")

EVERY_OUTCOME = """
const { test, describe, it, before } = require('node:test');
const assert = require('node:assert');
const { spawnSync } = require('node:child_process');
test('passes', () => {});
describe('group', () => {
  it('passes', () => {});
  it('fails', () => { assert.equal(1, 2); });
  it.skip('skipped', () => {});
  it.todo('unwritten');
});
describe('broken', () => { before(() => { throw new Error('hook'); }); it('inside', () => {}); });
test('parent', async (t) => { await t.test('child', () => {}); });
test('known to fail', { todo: true }, () => { throw new Error('known'); });
test('children do not report', () => {
  assert.equal(process.env.PROOFSTONE_REPORT, undefined);
  assert.ok(!(process.env.NODE_OPTIONS ?? '').includes('proofstone'));
  assert.equal(spawnSync(process.execPath, ['-e', '0']).status, 0);
});
"""

EXPECTED = {
    "test/all.test.js > passes": "passed",
    "test/all.test.js > group > passes": "passed",
    "test/all.test.js > group > fails": "failed",
    "test/all.test.js > group > skipped": "skipped",
    "test/all.test.js > group > unwritten": "skipped",
    "test/all.test.js > broken": "error",
    "test/all.test.js > parent > child": "passed",
    "test/all.test.js > parent": "passed",
    "test/all.test.js > known to fail": "xfailed",
    "test/all.test.js > children do not report": "passed",
    "test/load.test.js": "error",
}

COMMANDS = (
    "node --test",
    "node --test --test-reporter=tap",
    "node --test --test-reporter spec --test-reporter-destination stdout",
    "npm test",
)


def _fill(project: Project) -> None:
    project.file("package.json", '{"scripts": {"test": "node --test"}}')
    project.file("test/all.test.js", EVERY_OUTCOME)
    project.file("test/load.test.js", "throw new Error('cannot be loaded');\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_verbatim_command_yields_every_result(project: Project, command: str) -> None:
    _fill(project)
    report = project.run(ReportFormat.NODE, command)
    found = statuses(report)
    found.pop("test/all.test.js > broken > inside", None)  # whether it is reported differs between versions
    assert found == EXPECTED
    assert report.complete
    assert project.exit_code == 1
    assert "1 == 2" in report.by_id["test/all.test.js > group > fails"].message
    assert sniff_formats(project.report_dir, project.output.encode()) == (ReportFormat.NODE,)


@pytest.mark.parametrize("command", COMMANDS)
def test_exit_code_and_results_on_the_terminal_are_as_without_it(project: Project, command: str) -> None:
    project.file("package.json", '{"scripts": {"test": "node --test"}}')
    project.file("test/a.test.js", "require('node:test')('passes', () => {});\n")
    project.run(ReportFormat.NODE, command)
    probed = (project.exit_code, _stable(project.output))
    project.run(ReportFormat.NODE, command, probed=False)
    assert probed == (project.exit_code, _stable(project.output))
    assert probed[0] == 0


def _stable(output: str) -> list[str]:
    return [line.split("(")[0] for line in output.splitlines() if "duration" not in line]


def test_the_reporter_can_also_be_named_in_the_command(project: Project) -> None:
    _fill(project)
    project.env = {"PROOFSTONE_REPORT": str(project.root.parent / "report-1")}
    reporter = f"--test-reporter={PROBES_FOLDER}/proofstone_node_reporter.mjs --test-reporter-destination=stderr"
    command = f"node --test --test-reporter=spec --test-reporter-destination=stdout {reporter}"
    report = project.run(ReportFormat.NODE, command, probed=False)
    assert report.by_id["test/all.test.js > group > fails"].status.is_failure


def test_probes_that_are_reached_through_a_link_report_once(project: Project) -> None:
    project.file("test/a.test.js", "require('node:test')('passes', () => {});\n")
    link = project.root.parent / "probes"
    link.symlink_to(PROBES_FOLDER)
    project.env = {
        "NODE_OPTIONS": f"--require={link}/proofstone_node.cjs",
        "PROOFSTONE_REPORT": f"{project.root.parent}/report-1",
    }
    report = project.run(ReportFormat.NODE, "node --test", probed=False)
    assert statuses(report) == {"test/a.test.js > passes": "passed"}
    assert len(list(project.report_dir.iterdir())) == 1


def test_a_program_that_is_no_test_runner_is_left_alone(project: Project) -> None:
    report = project.run(ReportFormat.NODE, ["node", "-p", "process.argv.length"])
    assert (project.exit_code, project.output.strip()) == (0, "1")
    assert not report.complete


def test_two_packages_in_one_command_keep_their_own_files(project: Project) -> None:
    for package in ("a", "b"):
        project.file(f"packages/{package}/test/x.test.js", "require('node:test')('works', () => {});\n")
    report = project.run(ReportFormat.NODE, "(cd packages/a && node --test) && (cd packages/b && node --test)")
    assert statuses(report) == {
        "packages/a/test/x.test.js > works": "passed",
        "packages/b/test/x.test.js > works": "passed",
    }


def test_a_runner_that_is_killed_leaves_an_incomplete_report(project: Project) -> None:
    kill = "require('node:test')('kills', () => { process.kill(process.ppid, 'SIGKILL'); });\n"
    project.file("test/x.test.js", kill)
    report = project.run(ReportFormat.NODE, "node --test")
    assert project.exit_code != 0
    assert not report.complete


def test_a_test_file_that_is_killed_makes_the_report_incomplete(project: Project) -> None:
    project.file("k.test.js", "require('node:test')('k', () => { process.kill(process.pid, 'SIGKILL'); });\n")
    report = project.run(ReportFormat.NODE, "node --test k.test.js")
    assert (report.complete, report.began) == (False, True)
    assert report.problems[0].endswith("k.test.js: SIGKILL killed it")


def test_single_tests_run_again_by_id(project: Project) -> None:
    _fill(project)
    again = build_rerun_command(ReportFormat.NODE, ["node", "--test"], ["test/all.test.js > group > fails"])
    assert again is not None
    report = project.run(ReportFormat.NODE, again)
    ran = {id for id, status in statuses(report).items() if status in ("passed", "failed")}
    assert ran == {"test/all.test.js > group > fails"}


def test_the_probes_are_valid_for_this_node() -> None:
    for probe in (*PROBES_FOLDER.glob("*.cjs"), *PROBES_FOLDER.glob("*.mjs")):
        subprocess.run(["node", "--check", str(probe)], check=True)
