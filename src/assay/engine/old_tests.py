"""Runs the base's tests on the changed source, where the change edited tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assay.adapters.checks.reports import rerun
from assay.adapters.git.snapshot import Snapshot, with_base_files
from assay.adapters.git.store import Store
from assay.contracts.change import ChangeKind
from assay.contracts.check import CheckResult, CheckSpec
from assay.contracts.finding import Finding
from assay.contracts.tests import ReportFormat, TestResult
from assay.core.old_tests import edited_expectations, expectation_findings
from assay.core.risk import is_test
from assay.engine.execution import Runner
from assay.engine.recording import Recorder
from assay.engine.second_runs import argv_of
from assay.engine.trees import TreeUnderCheck

_NAME = "old-tests"


@dataclass(frozen=True)
class OldTests:
    runner: Runner
    store: Store
    snapshot: Snapshot
    make_tree: Callable[[str], TreeUnderCheck]
    """The derived tree as one that checks can run on."""
    recorder: Recorder
    key: Callable[[CheckSpec, str], str]
    accepted: bool
    fresh: bool

    def edited(
        self, spec: CheckSpec, before: CheckResult | None, after: CheckResult
    ) -> tuple[tuple[str, ...], list[Finding]]:
        """Tests that pass only because they were edited; none where the change left the tests alone."""
        if before is None or before.report is None or after.report is None:
            return (), []
        edited = self._edited(before)
        if not edited:
            return (), []
        tests = [r.id for r in before.report.results if r.path is not None and os.fsencode(r.path) in edited]
        argv = argv_of(spec)
        selected = rerun(ReportFormat(before.report.runner), argv, tests, cwd=spec.cwd) if argv and tests else None
        old = self._run(spec, with_base_files(self.store, self.snapshot, edited), selected)
        if old.report is None:
            return (), []
        found = edited_expectations(old.report, after.report)
        return found, expectation_findings(found, old.report, spec.name, old.artifact, accepted=self.accepted)

    def _run(self, spec: CheckSpec, tree: str, argv: Sequence[str] | None) -> CheckResult:
        """On the derived tree, unless the same was run before."""
        key = self.key(spec.model_copy(update={"name": f"{spec.name}:{_NAME}"}), tree)
        known = None if self.fresh else self.recorder.cache.find(key)
        if known is not None:
            return known
        return self.recorder.further(self.runner.run(spec, self.make_tree(tree), argv=argv), _NAME, key)

    def _edited(self, before: CheckResult) -> set[bytes]:
        """Files of the base's tests that the change edited: by their name, or because tests were seen in them."""
        results = before.report.results if before.report else ()
        seen = {result.path for result in results if not _in_source(result)}
        return {
            entry.path
            for entry in self.snapshot.entries
            if entry.kind is not ChangeKind.ADDED
            and ((path := os.fsdecode(entry.path)) in seen or is_test(path))
            and entry.old_mode.startswith("100")
        }


def _in_source(test: TestResult) -> bool:
    """Whether it is a doctest of a module: its file is the source, and putting that back would undo the change."""
    name = test.id.partition("::")[2].partition("[")[0]
    return "." in name and (test.path or "").endswith(".py")
