"""Runs beside the check itself, on trees derived from the one under check: each has its own row, none decides alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from assay.adapters.checks.reports import rerun
from assay.adapters.git.derived import with_base_files, with_contents
from assay.adapters.git.snapshot import Snapshot
from assay.adapters.git.store import Store
from assay.contracts.check import CheckResult, CheckSpec
from assay.contracts.tests import ReportFormat, TestReport
from assay.contracts.verdict import Verdict
from assay.engine.execution import Runner, unverifiable
from assay.engine.recording import Recorder
from assay.engine.second_runs import argv_of
from assay.engine.trees import TreeUnderCheck

WHOLE_SUITE_MS = 30_000
"""A suite that takes longer than this is not run whole once more."""
_LONGEST = 100_000
"""Characters of a selection; a longer one may not fit on a command line, and then everything is run."""
_SHORTEST_DEADLINE = 60.0
_DEADLINE_FACTOR = 3


@dataclass(frozen=True)
class Beside:
    runner: Runner
    store: Store
    snapshot: Snapshot
    make_tree: Callable[[str, bool], TreeUnderCheck]
    """A derived tree as one that checks can run on; True if it was derived from the base."""
    recorder: Recorder
    builds: Mapping[str, CheckSpec]
    """Checks that others need, by name: a derived tree is built like any other."""
    most_seconds: float

    def run(
        self,
        spec: CheckSpec,
        tree: str,
        what: str,
        *,
        argv: Sequence[str] | None = None,
        like: CheckResult | None = None,
        of_base: bool = False,
    ) -> CheckResult:
        """The check on a derived tree; `like` is the same check elsewhere, which says how long it may take."""
        place = self.make_tree(tree, of_base)
        for name in spec.needs:
            built = self.recorder.further(self.runner.run(self.builds[name], place, keep=True), what)
            if built.verdict is not Verdict.PASS:
                return self.recorder.further(unverifiable(spec, place, f"{name} must pass first"), what)
        result = self.runner.run(spec, place, argv=argv, seconds=self.deadline(like))
        return self.recorder.further(result, what)

    def deadline(self, like: CheckResult | None) -> float:
        """Three times what it took elsewhere, within the configured maximum."""
        if like is None:
            return self.most_seconds
        return min(self.most_seconds, max(_SHORTEST_DEADLINE, _DEADLINE_FACTOR * like.duration_ms / 1000))

    def with_base_files(self, paths: set[bytes]) -> str:
        return with_base_files(self.store, self.snapshot, paths)

    def with_contents(self, contents: Mapping[str, bytes], *, of_base: bool = False) -> str:
        tree = self.snapshot.base if of_base else self.snapshot.tree
        return with_contents(self.store, tree, {os.fsencode(path): content for path, content in contents.items()})

    @staticmethod
    def selection(spec: CheckSpec, report: TestReport, tests: Sequence[str]) -> Sequence[str] | None:
        """The command for these tests only; None where everything must be run."""
        argv = argv_of(spec)
        if not argv or not tests:
            return None
        selected = rerun(ReportFormat(report.runner), argv, tests, cwd=spec.cwd)
        return selected if selected and sum(map(len, selected)) < _LONGEST else None
