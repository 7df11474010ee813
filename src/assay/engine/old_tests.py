"""Runs the base's tests on the changed source, where the change edited tests or what decides how they run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from posixpath import basename

from assay.adapters.checks.reports import rerun
from assay.adapters.git.snapshot import Entry, Snapshot, with_base_files
from assay.adapters.git.store import Store
from assay.contracts.change import ChangeKind
from assay.contracts.check import CheckKind, CheckResult, CheckSpec
from assay.contracts.finding import Finding
from assay.contracts.tests import ReportFormat, TestReport, TestResult
from assay.core.old_tests import (
    edited_check,
    edited_check_finding,
    edited_expectations,
    expectation_findings,
    unrunnable,
    unrunnable_finding,
)
from assay.core.risk import is_test
from assay.engine.execution import Runner
from assay.engine.recording import Recorder
from assay.engine.second_runs import argv_of
from assay.engine.trees import TreeUnderCheck

_NAME = "old-tests"
_LONGEST = 100_000
"""Characters of a selection; a longer one may not fit on a command line, and then everything is run."""

# Files that decide what tests mean without being tests: a new one is taken away for the old tests, too.
_SUPPORT = ("conftest.py", "pytest.ini", ".pytest.ini", "sitecustomize.py", "usercustomize.py")
_SUPPORT_PREFIXES = ("jest.config.", "vitest.config.", "vitest.workspace.", ".mocharc.")
# Files that name the command of tests that have no ids.
_COMMANDS = ("package.json", "Makefile", "makefile", "GNUmakefile", "Rakefile", "CMakeLists.txt")

Edited = tuple[tuple[str, ...], list[Finding]]
NOTHING: Edited = ((), [])


@dataclass(frozen=True)
class OldTests:
    runner: Runner
    store: Store
    snapshot: Snapshot
    make_tree: Callable[[str], TreeUnderCheck]
    """The derived tree as one that checks can run on."""
    recorder: Recorder
    key: Callable[[CheckSpec, str], str]
    base_specs: Mapping[str, CheckSpec]
    """The checks as the base's own files name them."""
    reruns: int
    accepted: bool
    fresh: bool

    def edited(self, spec: CheckSpec, before: CheckResult | None, after: CheckResult) -> Edited:
        """Tests that pass only because they were edited; none where the change left them alone."""
        if before is None:
            return NOTHING
        if before.report is not None and after.report is not None:
            return self._by_id(spec, before.report, after.report)
        if after.report is None and after.kind is CheckKind.TESTS:
            return self._by_exit_code(spec)
        return NOTHING

    def _by_id(self, spec: CheckSpec, before: TestReport, after: TestReport) -> Edited:
        seen = {os.fsencode(r.path) for r in before.results if r.path is not None and not _in_source(r)}
        edited = {e.path for e in self.snapshot.entries if _decides_tests(e, seen)}
        if not edited:
            return NOTHING
        tree = with_base_files(self.store, self.snapshot, edited)
        tests = [r.id for r in before.results if r.path is not None and os.fsencode(r.path) in edited]
        # A file without tests of its own (data, conftest) may decide any test: then all of them are run.
        selection = self._selection(spec, before, tests) if edited <= seen else None
        old = self._run(spec, tree, selection)
        if why := unrunnable(old, before, [os.fsdecode(path) for path in edited]):
            return (), [unrunnable_finding(old, why, accepted=self.accepted)]
        found = edited_expectations(old.report, after) if old.report else ()
        found = self._still_failing(spec, before, tree, found)
        return found, expectation_findings(found, old, accepted=self.accepted)

    def _by_exit_code(self, spec: CheckSpec) -> Edited:
        edited = {e.path for e in self.snapshot.entries if _decides_tests(e, set()) or _names_command(e, spec.cwd)}
        if not edited:
            return NOTHING
        old_spec = self.base_specs.get(spec.name, spec)
        old = self._run(old_spec, with_base_files(self.store, self.snapshot, edited), None)
        if not edited_check(old):
            return NOTHING
        return (), [edited_check_finding(old, accepted=self.accepted)]

    def _still_failing(
        self, spec: CheckSpec, before: TestReport, tree: str, accused: tuple[str, ...]
    ) -> tuple[str, ...]:
        """A test that flakes is not accused: it must fail in its old form every time."""
        for _ in range(self.reruns):
            selection = self._selection(spec, before, accused) if accused else None
            if selection is None:
                return accused
            again = self.recorder.further(self.runner.run(spec, self.make_tree(tree), argv=selection), f"{_NAME}-rerun")
            bad = {r.id for r in again.report.results if r.status.bad} if again.report else set(accused)
            accused = tuple(test for test in accused if test in bad)
        return accused

    @staticmethod
    def _selection(spec: CheckSpec, before: TestReport, tests: Sequence[str]) -> Sequence[str] | None:
        argv = argv_of(spec)
        if not argv or not tests:
            return None
        selected = rerun(ReportFormat(before.runner), argv, tests, cwd=spec.cwd)
        return selected if selected and sum(map(len, selected)) < _LONGEST else None

    def _run(self, spec: CheckSpec, tree: str, argv: Sequence[str] | None) -> CheckResult:
        """On the derived tree, unless the same was run before and passed."""
        named = spec.model_copy(update={"name": f"{spec.name}:{_NAME}", "argv": tuple(argv or spec.argv)})
        key = self.key(named, tree)
        known = None if self.fresh else self.recorder.cache.find(key)
        if known is not None:
            return known
        return self.recorder.further(self.runner.run(spec, self.make_tree(tree), argv=argv), _NAME, key)


def _decides_tests(entry: Entry, seen: set[bytes]) -> bool:
    """A file of the tests that the change edited or took away, or a new one that decides what tests mean."""
    path = os.fsdecode(entry.path)
    if entry.kind is ChangeKind.ADDED:
        return basename(path) in _SUPPORT or basename(path).startswith(_SUPPORT_PREFIXES)
    return entry.old_mode.startswith("100") and (entry.path in seen or is_test(path))


def _names_command(entry: Entry, cwd: str) -> bool:
    folder, _, name = os.fsdecode(entry.path).rpartition("/")
    return entry.kind is not ChangeKind.ADDED and name in _COMMANDS and (folder or ".") == cwd


def _in_source(test: TestResult) -> bool:
    """Whether it is a doctest of a module: its file is the source, and putting that back would undo the change."""
    name = test.id.partition("::")[2].partition("[")[0]
    return "." in name and (test.path or "").endswith(".py")
