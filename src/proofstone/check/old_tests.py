"""Run the base's oracle on the changed source (L2): its tests, and whatever else decides what they expect.

`check.oracle` finds the changed files that decide expectations. They are put back as they were on the base, files of
the tests that the change adds and that may reach beyond themselves are left out, and the tests run once more. A test
that passes in the change and fails then has an edited expectation. If the old tests still pass, an edited file is
silent.

- Tests in a source file, and examples in docstrings, cannot be put back with their file: the old ones are put into its
  new version.
- Tests that did not run on the base count by their text: their marks (skip, xfail) are taken off, and a file that could
  not be loaded there yields its tests here.
- A test whose old version still passes is compared with it: it may check less than before.

It also compares where the project's modules come from on base and change, which the reports of both say.

All of it is one run, and only if the change touches such a file. One more run confirms what it shows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from proofstone.check.derived_runs import DerivedRuns
from proofstone.check.inspection import ChangedFile
from proofstone.check.models import (
    CheckKind,
    CheckResult,
    CheckSpec,
    LayerResult,
    ReportFormat,
    TestReport,
    TestResult,
    TestStatus,
)
from proofstone.check.oracle import Oracle
from proofstone.check.rules.compare import (
    ExpectationCause,
    apply_renames,
    build_edited_check_finding,
    build_expectation_finding,
    build_unrunnable_finding,
    diff_test_lines,
    explain_unrunnable,
    find_edited_expectations,
    is_edited_check,
    is_within,
    rename_test,
)
from proofstone.check.rules.module_origins import find_foreign_modules
from proofstone.check.rules.must_fail import strip_test_id
from proofstone.check.rules.oracle_files import OracleReason, find_uses
from proofstone.check.rules.protected import ProtectedRole, find_roles
from proofstone.check.rules.weakened_tests import build_weakened_finding
from proofstone.check.variants.reach import may_affect_other_tests
from proofstone.check.variants.skip_marks import remove_skip_marks
from proofstone.check.variants.transplant import transplant_tests
from proofstone.check.weakening import find_weakened_tests
from proofstone.common.models import ChangeKind, Finding, Verdict
from proofstone.common.risk import is_test_path
from proofstone.git.objects import GITLINK, SYMLINK
from proofstone.git.program import decode_path

_NAME = "old-tests"
_NOT_RUN = (TestStatus.SKIPPED, TestStatus.XFAILED)


@dataclass(frozen=True)
class _OldOracle:
    """The tree with the base's oracle in it, and what was put back."""

    tree: str
    reasons: Mapping[str, OracleReason]
    """Edited and deleted files that were put back, and why each is oracle."""
    added: Set[str]
    """Files of the tests that the change adds and that were left out."""
    transplanted: Set[str]
    """Source files that hold the old tests in their new version."""

    @property
    def is_empty(self) -> bool:
        return not (self.reasons or self.added or self.transplanted)


@dataclass(frozen=True)
class OldTests:
    """The layer that runs the base's oracle on the changed source."""

    derived_runs: DerivedRuns
    oracle: Oracle
    files: Sequence[ChangedFile]
    renames: Mapping[str, str]
    """Moved files, old path → new path."""
    present: Set[str]
    """All files of the change."""
    base_specs: Mapping[str, CheckSpec]
    """The checks as the base's own files name them."""
    reruns: int

    def examine(self, spec: CheckSpec, before: CheckResult | None, after: CheckResult) -> LayerResult:
        """Return the tests that pass only because their oracle was edited. There are none if the change edits none."""
        if before is None:
            return LayerResult()
        old_spec = self.base_specs.get(spec.name, spec)
        if before.report is not None and after.report is not None:
            return self._examine_by_id(old_spec, before.report, after.report)
        if after.report is None and after.kind.executes_change:
            return self._examine_by_exit_code(old_spec, before)
        return LayerResult()

    def _examine_by_id(self, spec: CheckSpec, base_report: TestReport, new_report: TestReport) -> LayerResult:
        test_files = {r.path for r in base_report.results if r.path is not None and not _is_doctest(r)}
        test_files -= {path for path in test_files if _is_in_source(path)}
        shared = (
            *find_foreign_modules(base_report, new_report, self.present, self.renames, spec.name),
            *self.oracle.find_shared(test_files),
        )
        old = self._put_back(base_report, new_report, test_files)
        if old.is_empty:
            return LayerResult(findings=shared)
        edited = set(old.reasons)
        tests = [r.id for r in base_report.results if r.path in edited | old.transplanted]
        # A file without tests of its own (data, conftest), or that other tests use, may affect any test: then run all.
        is_local = edited <= test_files and not old.added and not self.oracle.is_used_by_tests(edited, test_files)
        selection = self.derived_runs.select_tests(spec, base_report, tests) if is_local else None
        old_result = self.derived_runs.run(spec, old.tree, _NAME, argv=selection)
        if why := explain_unrunnable(old_result, base_report, new_report, sorted(edited)):
            return LayerResult(findings=(build_unrunnable_finding(old_result, why), *shared))
        edited_tests = self._find_edited_expectations(spec, base_report, new_report, old_result, old.tree)
        renamed = apply_renames(old_result, self.renames)
        not_run = {result.id for result in base_report.results if result.status in _NOT_RUN}
        causes = [(test, self._find_cause(test, renamed, old, test in not_run)) for test in edited_tests]
        return LayerResult(
            edited=edited_tests,
            findings=(
                *(self._add_lines(test, build_expectation_finding(test, renamed, cause)) for test, cause in causes),
                *self._find_weakened(spec, base_report, new_report, old_result),
                *shared,
            ),
        )

    def _put_back(self, base_report: TestReport, new_report: TestReport, test_files: Set[str]) -> _OldOracle:
        """Derive the tree in which the base's oracle judges the changed source."""
        reasons = self._find_edited_files(test_files)
        added = {file.path for file in self.files if _is_reaching(file)}
        contents = {
            file.path: content
            for file in self.files
            if _holds_tests_in_source(file, base_report)
            and (content := transplant_tests(file.path, file.old or b"", file.new or b"")) is not None
        }
        transplanted = set(contents)
        contents |= self._remove_skip_marks(base_report, new_report, reasons)
        # Remove a moved file under its new name: two copies of a test would conflict.
        restored = {*reasons, *added, *(self.renames[path] for path in reasons if path in self.renames)}
        tree = (
            self.derived_runs.with_base_files({os.fsencode(path) for path in restored}, contents)
            if restored or contents
            else ""
        )
        return _OldOracle(tree, reasons, added, transplanted)

    def _find_edited_files(self, test_files: Set[str]) -> dict[str, OracleReason]:
        """Return the changed files that decide what the base's tests expect. A link or a submodule in such a place
        counts as changed; a file that only moved does not."""
        content = {file.path: (file.old, file.new) for file in self.files}
        moved = {
            old
            for old, new in self.renames.items()
            if old in content and content.get(new, (None, None))[1] == content[old][0]
        }
        reasons = {path: why for path, why in self.oracle.find(test_files).items() if path not in moved}
        special = [
            entry for entry in self.derived_runs.snapshot.entries if {entry.mode, entry.old_mode} & {GITLINK, SYMLINK}
        ]
        paths = {decode_path(entry.path) for entry in special}
        return reasons | {
            path: OracleReason.PLACE
            for path in paths
            if path in test_files or find_roles(path) & {ProtectedRole.TESTS, ProtectedRole.RUNNER}
        }

    def _remove_skip_marks(
        self, base_report: TestReport, new_report: TestReport, edited: Mapping[str, OracleReason]
    ) -> dict[str, bytes]:
        """Return the base's test files without the marks of tests that did not run there and pass now."""
        new_results = new_report.by_id
        contents = {file.path: file.old for file in self.files if file.old is not None and file.path in edited}
        unmarked: dict[str, bytes] = {}
        for path, content in contents.items():
            names = set()
            for result in apply_renames_to_results(base_report, self.renames):
                new = new_results.get(result.id)
                was_not_run = result.status in _NOT_RUN and result.path in (path, self.renames.get(path))
                if was_not_run and new is not None and new.status in (TestStatus.PASSED, TestStatus.XPASSED):
                    names.add(strip_test_id(result.id, result.path))
            if (without := remove_skip_marks(path, content, names)) is not None:
                unmarked[path] = without
        return unmarked

    def _find_edited_expectations(
        self, spec: CheckSpec, base_report: TestReport, new_report: TestReport, old_result: CheckResult, tree: str
    ) -> tuple[str, ...]:
        """Return the tests that fail only with the base's oracle, under their names in the change. They run under their
        names in the base, because that is where they exist."""
        if old_result.report is None:
            return ()
        renamed = apply_renames(old_result, self.renames).report
        new_names = dict(
            zip(
                [r.id for r in old_result.report.results],
                [r.id for r in (renamed or old_result.report).results],
                strict=True,
            )
        )
        broken = [result.id for result in base_report.results if result.status is TestStatus.ERROR]
        base = {new_names.get(r.id, r.id) for r in base_report.results}
        base |= {new for old, new in new_names.items() if any(is_within(old, container) for container in broken)}
        accused = set(find_edited_expectations(renamed or old_result.report, new_report, base))
        confirmed = self._confirm_failures(
            spec, old_result.report, tree, tuple(id for id, new in new_names.items() if new in accused)
        )
        return tuple(sorted(new_names[id] for id in confirmed))

    def _find_cause(self, test: str, result: CheckResult, old: _OldOracle, was_not_run: bool) -> ExpectationCause:
        """Return which file the change edited so that the test passes: its own, else the one that its own names."""
        path = result.report.by_id[test].path if result.report else None
        old_path = next((before for before, now in self.renames.items() if now == path), path)
        if path is not None and {path, old_path} & {*old.reasons, *old.transplanted}:
            return ExpectationCause(path=path, was_skipped=was_not_run)
        own = next((file for file in self.derived_runs.read([path or ""]).values()), b"").decode("utf-8", "replace")
        others = [*(file for file in old.reasons if file not in self._list_test_files(result)), *sorted(old.added)]
        named = [file for file in others if find_uses(own, file, path or "")]
        runner = [file for file in others if ProtectedRole.RUNNER in find_roles(file)]
        cause = next(iter((*named, *runner, *others, *old.reasons)), path or "")
        return ExpectationCause(
            path=cause, reason=old.reasons.get(cause, OracleReason.PLACE).value, is_added=self._is_added(cause)
        )

    def _is_added(self, path: str) -> bool:
        return any(file.path == path and file.kind is ChangeKind.ADDED for file in self.files)

    @staticmethod
    def _list_test_files(result: CheckResult) -> set[str]:
        return {test.path for test in result.report.results if test.path} if result.report else set()

    def _find_weakened(
        self, spec: CheckSpec, base_report: TestReport, new_report: TestReport, old_result: CheckResult
    ) -> Iterator[Finding]:
        """Yield the tests of this check that check less than before although their old version passes."""
        test_files = {result.path for result in base_report.results if result.path and not _is_doctest(result)}
        old_results = old_result.report.results if old_result.report else ()
        has_failures = any(result.status.is_failure for result in old_results)
        new_ids = {result.id for result in new_report.results}
        for weakened in find_weakened_tests(self.files, self.renames, test_files):
            own = [result for result in old_results if strip_test_id(result.id, weakened.old_path) == weakened.name]
            # A helper is no test of its own: an edited expectation in the same run says enough about it.
            if any(result.status.is_failure for result in own) if own else has_failures:
                continue
            has_lost_ids = not self.renames and any(result.id not in new_ids for result in own)
            if weakenings := weakened.without_lost_cases() if has_lost_ids else weakened.weakenings:
                test = own[0].id.partition("[")[0] if own else weakened.id
                yield build_weakened_finding(weakened.path, test, weakenings, spec.name)

    def _add_lines(self, test: str, finding: Finding) -> Finding:
        """Return the finding with the lines of the oracle file that differ, old and new."""
        file = next((candidate for candidate in self.files if candidate.path == finding.path), None)
        if file is None or b"\0" in (file.old or b"")[:8192] + (file.new or b"")[:8192]:
            return finding
        old, new = ((content or b"").decode("utf-8", "replace") for content in (file.old, file.new))
        before, after = diff_test_lines(old, new, strip_test_id(test, file.path))
        return finding.model_copy(update={"before": before, "after": after})

    def _examine_by_exit_code(self, spec: CheckSpec, before: CheckResult) -> LayerResult:
        reasons = self._find_edited_files(set())
        # A command that fails on the base may need tests of the change: then only the command itself is put back.
        is_own = {path for path, why in reasons.items() if why is OracleReason.COMMAND}
        edited = is_own if before.verdict is Verdict.FAIL and spec.kind is CheckKind.VERIFY else set(reasons)
        if spec.kind is CheckKind.VERIFY and any(other.kind is CheckKind.TESTS for other in self.base_specs.values()):
            # The project's own suite compares its test files by test id, which says more than an exit code.
            is_own, edited = ({path for path in paths if not _is_suite_file(path)} for paths in (is_own, edited))
        if spec.kind is CheckKind.TESTS or is_own:
            edited |= {file.path for file in self.files if _names_command(file, spec.cwd)}
        if not edited:
            return LayerResult()
        tree = self.derived_runs.with_base_files({os.fsencode(path) for path in edited})
        old_result = self.derived_runs.run(spec, tree, _NAME)
        if is_edited_check(old_result):
            finding = build_edited_check_finding(old_result, sorted(is_own) or sorted(edited))
            return LayerResult(findings=(self._add_lines("", finding),))
        return LayerResult(
            findings=tuple(
                build_weakened_finding(weakened.path, weakened.id, weakened.weakenings, spec.name)
                for weakened in find_weakened_tests(self.files, self.renames)
            )
            if spec.kind is CheckKind.TESTS
            else ()
        )

    def _confirm_failures(
        self, spec: CheckSpec, base_report: TestReport, tree: str, accused: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Return the accused tests that fail in every rerun. A flaky test is not accused: its old form must never
        pass."""
        for _ in range(self.reruns):
            selection = self.derived_runs.select_tests(spec, base_report, accused) if accused else None
            if selection is None:
                return accused
            again = self.derived_runs.run(spec, tree, f"{_NAME}-rerun", argv=selection)
            passed = {r.id for r in again.report.results if r.status is TestStatus.PASSED} if again.report else set()
            accused = tuple(test for test in accused if test not in passed)
        return accused


def apply_renames_to_results(report: TestReport, renames: Mapping[str, str]) -> Sequence[TestResult]:
    """Return the results under the names that moved files have in the change."""
    return [rename_test(result, renames) for result in report.results]


def _is_reaching(file: ChangedFile) -> bool:
    """Return whether a file that the change adds to the tests may change what other tests see."""
    is_new_test = file.kind is ChangeKind.ADDED and ProtectedRole.TESTS in file.roles and file.new is not None
    return is_new_test and may_affect_other_tests(file.path, file.new or b"")


def _is_in_source(path: str) -> bool:
    """Return whether a file that holds tests is a source file of the product too."""
    return path.endswith((".py", ".rs")) and not is_test_path(path) and not find_roles(path)


def _holds_tests_in_source(file: ChangedFile, report: TestReport) -> bool:
    """Return whether a changed source file holds tests: cargo's report does not say where its tests are."""
    if file.old is None or file.new is None or not _is_in_source(file.path):
        return False
    return report.runner == ReportFormat.CARGO or any(result.path == file.path for result in report.results)


def _names_command(file: ChangedFile, cwd: str) -> bool:
    """Return whether the file defines the command of tests that have no ids. A new file may take precedence over the
    old one."""
    folder = file.path.rpartition("/")[0] or "."
    return folder == cwd and ProtectedRole.BUILD in file.roles


_SUITE_FILE: Final = re.compile(r"(?:^|/)(?:test_[^/]*\.py|[^/]*_test\.(?:py|go)|[^/]*\.(?:test|spec)\.[cm]?[jt]sx?)$")


def _is_suite_file(path: str) -> bool:
    """Return whether runners collect a file because of its name."""
    return _SUITE_FILE.search(path) is not None


def _is_doctest(test: TestResult) -> bool:
    """Return whether the test is a doctest of a module. Its file is the source, and restoring that would undo the
    change."""
    name = test.id.partition("::")[2].partition("[")[0]
    return "." in name and (test.path or "").endswith(".py")
