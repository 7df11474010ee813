"""Rerun checks with the parts of the base that the change weakened (L2 and L6).

`OldTests` runs the base's tests on the changed source if the change edited tests or files that decide how tests run. A
test whose old version still passes is compared with it: it may check less than before.

`SuppressionCheck` runs linters and type checkers with the base's configuration if the change edits it, and without the
suppressions that the change adds. A suppression that names its rule is left to the reviewer. A blanket suppression that
hides a complaint must be accepted by a person, like an edited configuration.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from proofstone.check.derived_runs import DerivedRuns
from proofstone.check.inspection import ChangedFile
from proofstone.check.models import (
    CheckKind,
    CheckResult,
    CheckSpec,
    LayerResult,
    TestReport,
    TestResult,
    TestStatus,
    merge_layer_results,
)
from proofstone.check.rules.compare import (
    apply_renames,
    build_edited_check_finding,
    build_expectation_findings,
    build_unrunnable_finding,
    diff_test_lines,
    explain_unrunnable,
    find_edited_expectations,
    find_new_diagnostics,
    is_edited_check,
)
from proofstone.check.rules.must_fail import strip_test_id
from proofstone.check.rules.outcome import EvidenceLayer
from proofstone.check.rules.protected import ProtectedRole, find_roles
from proofstone.check.rules.scan_rules import Suppression, find_suppressions, remove_suppressions
from proofstone.check.rules.weakened_tests import build_weakened_finding
from proofstone.check.variants.views import split_views
from proofstone.check.weakening import find_weakened_tests
from proofstone.common.models import ChangeKind, ConfidenceReason, Diagnostic, Finding, Severity, Verdict
from proofstone.git.objects import GITLINK, SYMLINK
from proofstone.git.program import decode_path

_NAME = "old-tests"


@dataclass(frozen=True)
class OldTests:
    """The layer that runs the base's tests on the changed source."""

    derived_runs: DerivedRuns
    files: Sequence[ChangedFile]
    renames: Mapping[str, str]
    """Moved files, old path → new path."""
    base_specs: Mapping[str, CheckSpec]
    """The checks as the base's own files name them."""
    reruns: int

    def examine(self, spec: CheckSpec, before: CheckResult | None, after: CheckResult) -> LayerResult:
        """Return the tests that pass only because they were edited. There are none if the change edited no tests."""
        if before is None:
            return LayerResult()
        old_spec = self.base_specs.get(spec.name, spec)
        if before.report is not None and after.report is not None:
            return self._examine_by_id(old_spec, before, before.report, after.report)
        if after.report is None and after.kind is CheckKind.TESTS:
            return self._examine_by_exit_code(old_spec, before)
        return LayerResult()

    def _examine_by_id(
        self, spec: CheckSpec, before: CheckResult, base_report: TestReport, new_report: TestReport
    ) -> LayerResult:
        test_files = {r.path for r in base_report.results if r.path is not None and not _is_doctest(r)}
        edited = self._find_edited_files(test_files)
        if not edited:
            return LayerResult()
        # Remove a moved file under its new name: two copies of a test would conflict.
        restored = edited | {self.renames[path] for path in edited if path in self.renames}
        tree = self.derived_runs.with_base_files({os.fsencode(path) for path in restored})
        tests = [r.id for r in base_report.results if r.path in edited]
        # A file without tests of its own (data, conftest) may affect any test: then run all of them.
        selection = self.derived_runs.select_tests(spec, base_report, tests) if edited <= test_files else None
        old_result = self.derived_runs.run(spec, tree, _NAME, argv=selection)
        if why := explain_unrunnable(old_result, base_report, sorted(edited)):
            return LayerResult(findings=(build_unrunnable_finding(old_result, why),))
        edited_tests = self._find_edited_expectations(spec, base_report, new_report, old_result, tree)
        findings = build_expectation_findings(edited_tests, apply_renames(old_result, self.renames))
        by_test = zip(edited_tests, findings, strict=True)
        return LayerResult(
            edited=edited_tests,
            findings=(
                *(self._add_expectations(test, finding) for test, finding in by_test),
                *self._find_weakened(spec, base_report, new_report, old_result),
            ),
        )

    def _find_edited_files(self, test_files: set[str]) -> set[str]:
        """Return the changed files of the old tests or of what decides them. A link or a submodule in such a place
        counts as changed; a file that only moved does not."""
        content = {file.path: (file.old, file.new) for file in self.files}
        moved = {
            old
            for old, new in self.renames.items()
            if old in content and content.get(new, (None, None))[1] == content[old][0]
        }
        edited = {file.path for file in self.files if file.path not in moved and _decides_tests(file, test_files)}
        special = [
            entry for entry in self.derived_runs.snapshot.entries if {entry.mode, entry.old_mode} & {GITLINK, SYMLINK}
        ]
        paths = {decode_path(entry.path) for entry in special}
        return edited | {
            path
            for path in paths
            if path in test_files or find_roles(path) & {ProtectedRole.TESTS, ProtectedRole.RUNNER}
        }

    def _find_edited_expectations(
        self, spec: CheckSpec, base_report: TestReport, new_report: TestReport, old_result: CheckResult, tree: str
    ) -> tuple[str, ...]:
        """Return the tests that fail only in their old form, under their names in the change. They run under their
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
        base = {new_names.get(r.id, r.id) for r in base_report.results}
        accused = set(find_edited_expectations(renamed or old_result.report, new_report, base))
        confirmed = self._confirm_failures(
            spec, base_report, tree, tuple(id for id, new in new_names.items() if new in accused)
        )
        return tuple(sorted(new_names[id] for id in confirmed))

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

    def _add_expectations(self, test: str, finding: Finding) -> Finding:
        """Return the finding with the old and the new expectation of the test."""
        file = next(
            (
                candidate
                for candidate in self.files
                if candidate.path == finding.path and candidate.old and candidate.new
            ),
            None,
        )
        if file is None or file.old is None or file.new is None:
            return finding
        old, new = file.old.decode("utf-8", "replace"), file.new.decode("utf-8", "replace")
        before, after = diff_test_lines(old, new, strip_test_id(test, file.path))
        return finding.model_copy(update={"before": before, "after": after})

    def _examine_by_exit_code(self, spec: CheckSpec, before: CheckResult) -> LayerResult:
        edited = self._find_edited_files(set()) | {file.path for file in self.files if _names_command(file, spec.cwd)}
        if not edited:
            return LayerResult()
        tree = self.derived_runs.with_base_files({os.fsencode(path) for path in edited})
        old_result = self.derived_runs.run(spec, tree, _NAME)
        if is_edited_check(old_result):
            return LayerResult(findings=(build_edited_check_finding(old_result),))
        return LayerResult(
            findings=tuple(
                build_weakened_finding(weakened.path, weakened.id, weakened.weakenings, spec.name)
                for weakened in find_weakened_tests(self.files, self.renames)
            )
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


def _decides_tests(file: ChangedFile, test_files: set[str]) -> bool:
    """Return whether a file is a test that the change edited or deleted, or decides how tests run.

    A new test file is not an old test. A new conftest is removed when the old tests run.
    """
    if file.kind is ChangeKind.ADDED:
        return ProtectedRole.RUNNER in file.roles
    return file.path in test_files or bool(file.roles & {ProtectedRole.TESTS, ProtectedRole.RUNNER})


def _names_command(file: ChangedFile, cwd: str) -> bool:
    """Return whether the file defines the command of tests that have no ids. A new file may take precedence over the
    old one."""
    folder = file.path.rpartition("/")[0] or "."
    return folder == cwd and ProtectedRole.BUILD in file.roles


def _is_doctest(test: TestResult) -> bool:
    """Return whether the test is a doctest of a module. Its file is the source, and restoring that would undo the
    change."""
    name = test.id.partition("::")[2].partition("[")[0]
    return "." in name and (test.path or "").endswith(".py")


_MAX_FINDINGS = 20


@dataclass(frozen=True)
class SuppressionCheck:
    """The layer that reruns linters without what the change suppressed."""

    derived_runs: DerivedRuns
    files: Sequence[ChangedFile]
    base_specs: Mapping[str, CheckSpec]
    """The checks as the base's own files name them."""

    def examine(self, spec: CheckSpec, before: CheckResult | None, after: CheckResult) -> LayerResult:
        """Return the complaints that the change hides by configuration or by comments."""
        base_diagnostics = before.diagnostics if before else ()
        return merge_layer_results(
            (
                self._examine_configuration(spec, base_diagnostics, after),
                self._examine_comments(spec, base_diagnostics, after),
            )
        )

    def _examine_configuration(
        self, spec: CheckSpec, base_diagnostics: Sequence[Diagnostic], after: CheckResult
    ) -> LayerResult:
        edited = [file for file in self.files if ProtectedRole.LINT in file.roles]
        if not edited:
            return LayerResult()
        tree = self.derived_runs.with_base_files({os.fsencode(file.path) for file in edited})
        run = self.derived_runs.run(self.base_specs.get(spec.name, spec), tree, "old-configuration")
        findings = tuple(
            self._build_finding(
                spec,
                run,
                complaint,
                EvidenceLayer.PROTECTED_FILES,
                "weakened-configuration",
                f"with the base's configuration ({edited[0].path}) {run.tool} complains: {complaint.message}",
                "fix the complaint and restore the configuration",
            )
            for complaint in find_new_diagnostics((*base_diagnostics, *after.diagnostics), run.diagnostics)[
                :_MAX_FINDINGS
            ]
        )
        return LayerResult(findings=findings, reasons=_describe_gap(spec, run))

    def _examine_comments(
        self, spec: CheckSpec, base_diagnostics: Sequence[Diagnostic], after: CheckResult
    ) -> LayerResult:
        contents: dict[str, bytes] = {}
        added: dict[str, Sequence[Suppression]] = {}
        for file in self.files:
            lines = split_views(file.path, file.new) if file.new is not None else None
            if file.new is None or lines is None:
                continue
            old = split_views(file.path, file.old) if file.old is not None else None
            if new_suppressions := find_suppressions(lines, {number for number, _ in file.added_lines}, old or ()):
                contents[file.path] = remove_suppressions(file.new, new_suppressions, lines)
                added[file.path] = new_suppressions
        if not any(suppression.blanket for new_suppressions in added.values() for suppression in new_suppressions):
            return LayerResult()  # a suppression that names its rule is left to the reviewer
        run = self.derived_runs.run(spec, self.derived_runs.with_contents(contents), "without-suppressions")
        hidden = find_new_diagnostics((*base_diagnostics, *after.diagnostics), run.diagnostics)
        findings = tuple(
            self._build_finding(
                spec,
                run,
                diagnostic,
                EvidenceLayer.STATIC_SCAN,
                "blanket-suppression",
                f"a suppression that names no rule hides what {run.tool} says here: {diagnostic.message}",
                "fix the complaint, or name the rule that does not apply here",
            )
            for diagnostic in hidden[:_MAX_FINDINGS]
            if _is_hidden_by_blanket(diagnostic, added.get(diagnostic.path, ()))
        )
        return LayerResult(findings=findings, reasons=_describe_gap(spec, run))

    def _build_finding(
        self,
        spec: CheckSpec,
        run: CheckResult,
        diagnostic: Diagnostic,
        layer: EvidenceLayer,
        rule: str,
        detail: str,
        fix: str,
    ) -> Finding:
        return Finding(
            layer=layer,
            rule=rule,
            severity=Severity.MAJOR,
            path=diagnostic.path,
            line=diagnostic.line,
            detail=detail,
            fix=fix,
            check=spec.name,
            artifact=run.artifact,
        )


def _describe_gap(spec: CheckSpec, run: CheckResult) -> tuple[ConfidenceReason, ...]:
    """Return what is unknown if the run gave no readable complaints."""
    if run.verdict is not Verdict.UNVERIFIABLE:
        return ()
    reason = f"{spec.name}: unknown what it reports without the suppressions of the change: {run.reason}"
    return (ConfidenceReason(reason=reason, remedy=f"let {spec.name} run on files without these suppressions"),)


def _is_hidden_by_blanket(diagnostic: Diagnostic, added: Sequence[Suppression]) -> bool:
    """Return whether only a blanket suppression hides the complaint. It does not if a suppression that names a rule is
    on its line, on the line before, or names its rule."""
    named = [suppression for suppression in added if not suppression.blanket]
    covered = any(
        suppression.line in (diagnostic.line, (diagnostic.line or 0) - 1)
        or (diagnostic.code and diagnostic.code in suppression.text)
        for suppression in named
    )
    return not covered and any(suppression.blanket for suppression in added)
