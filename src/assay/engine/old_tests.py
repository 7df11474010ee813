"""Runs the base's tests on the changed source, where the change edited tests or what decides how they run (L2)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.contracts.change import ChangeKind
from assay.contracts.check import CheckKind, CheckResult, CheckSpec
from assay.contracts.examined import Examined
from assay.contracts.finding import Finding
from assay.contracts.tests import TestReport, TestResult
from assay.core.edited import edited_lines
from assay.core.must_fail import own_name
from assay.core.old_tests import (
    edited_check,
    edited_check_finding,
    edited_expectations,
    expectation_findings,
    unrunnable,
    unrunnable_finding,
)
from assay.core.protected import Role, changed_roles
from assay.engine.beside import Beside
from assay.engine.inspection import ChangedFile

_NAME = "old-tests"


@dataclass(frozen=True)
class OldTests:
    beside: Beside
    files: Sequence[ChangedFile]
    base_specs: Mapping[str, CheckSpec]
    """The checks as the base's own files name them."""
    reruns: int
    accepted: bool

    def examine(self, spec: CheckSpec, before: CheckResult | None, after: CheckResult) -> Examined:
        """Tests that pass only because they were edited; none where the change left them alone."""
        if before is None:
            return Examined()
        if before.report is not None and after.report is not None:
            return self._by_id(spec, before, before.report, after.report)
        if after.report is None and after.kind is CheckKind.TESTS:
            return self._by_exit_code(spec, before)
        return Examined()

    def _by_id(self, spec: CheckSpec, before: CheckResult, known: TestReport, now: TestReport) -> Examined:
        seen = {r.path for r in known.results if r.path is not None and not _in_source(r)}
        edited = {file.path for file in self.files if _decides_tests(file, seen)}
        if not edited:
            return Examined()
        tree = self.beside.with_base_files({os.fsencode(path) for path in edited})
        tests = [r.id for r in known.results if r.path in edited]
        # A file without tests of its own (data, conftest) may decide any test: then all of them are run.
        selection = self.beside.selection(spec, known, tests) if edited <= seen else None
        old = self.beside.run(self.base_specs.get(spec.name, spec), tree, _NAME, argv=selection, like=before)
        if why := unrunnable(old, known, sorted(edited)):
            return Examined(findings=(unrunnable_finding(old, why, accepted=self.accepted),))
        found = edited_expectations(old.report, now, {r.id for r in known.results}) if old.report else ()
        found = self._still_failing(spec, known, tree, found)
        told = expectation_findings(found, old, accepted=self.accepted)
        by_test = zip(found, told, strict=True)
        return Examined(edited=found, findings=tuple(self._side_by_side(test, one) for test, one in by_test))

    def _side_by_side(self, test: str, finding: Finding) -> Finding:
        """The finding with what the test expected and what it expects now."""
        file = next((one for one in self.files if one.path == finding.path and one.old and one.new), None)
        if file is None or file.old is None or file.new is None:
            return finding
        old, new = file.old.decode("utf-8", "replace"), file.new.decode("utf-8", "replace")
        before, after = edited_lines(old, new, own_name(test, file.path))
        return finding.model_copy(update={"before": before, "after": after})

    def _by_exit_code(self, spec: CheckSpec, before: CheckResult) -> Examined:
        edited = {file.path for file in self.files if _decides_tests(file, set()) or _names_command(file, spec.cwd)}
        if not edited:
            return Examined()
        tree = self.beside.with_base_files({os.fsencode(path) for path in edited})
        old = self.beside.run(self.base_specs.get(spec.name, spec), tree, _NAME, like=before)
        return (
            Examined(findings=(edited_check_finding(old, accepted=self.accepted),)) if edited_check(old) else Examined()
        )

    def _still_failing(
        self, spec: CheckSpec, known: TestReport, tree: str, accused: tuple[str, ...]
    ) -> tuple[str, ...]:
        """A test that flakes is not accused: it must fail in its old form every time."""
        for _ in range(self.reruns):
            selection = self.beside.selection(spec, known, accused) if accused else None
            if selection is None:
                return accused
            again = self.beside.run(spec, tree, f"{_NAME}-rerun", argv=selection)
            bad = {r.id for r in again.report.results if r.status.bad} if again.report else set(accused)
            accused = tuple(test for test in accused if test in bad)
        return accused


def _decides_tests(file: ChangedFile, seen: set[str]) -> bool:
    """A file of the tests that the change edited or took away, or one that decides how tests run.

    A new test file is no old test; a new conftest is taken away for the old ones.
    """
    roles = changed_roles(file.path, file.old, file.new)
    if file.kind is ChangeKind.ADDED:
        return Role.RUNNER in roles
    return file.path in seen or bool(roles & {Role.TESTS, Role.RUNNER})


def _names_command(file: ChangedFile, cwd: str) -> bool:
    """Whether it names the command of tests that have no ids; a new one may be read instead of the old."""
    folder = file.path.rpartition("/")[0] or "."
    return folder == cwd and Role.BUILD in changed_roles(file.path, file.old, file.new)


def _in_source(test: TestResult) -> bool:
    """Whether it is a doctest of a module: its file is the source, and putting that back would undo the change."""
    name = test.id.partition("::")[2].partition("[")[0]
    return "." in name and (test.path or "").endswith(".py")
