"""Runs beside the check itself, on trees derived from the one under check: each has its own row, none decides alone.

A derived run that died measured nothing, so nobody learns anything from it: `NotMeasuredError` says which run it was,
and the check becomes `unverifiable`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from proofstone.adapters.checks.reports import rerun
from proofstone.adapters.git.derived import with_base_files, with_contents
from proofstone.adapters.git.snapshot import Snapshot
from proofstone.adapters.git.store import Store
from proofstone.contracts.check import CheckResult, CheckSpec, DeathCause
from proofstone.contracts.tests import ReportFormat, TestReport
from proofstone.contracts.verdict import Verdict
from proofstone.engine.execution import Deadline, Runner, unverifiable
from proofstone.engine.recording import Recorder
from proofstone.engine.second_runs import argv_of
from proofstone.engine.trees import TreeUnderCheck

WHOLE_SUITE_MS = 30_000
"""A suite that takes longer than this is not run whole once more."""
_LONGEST = 100_000
"""Characters of a selection; a longer one may not fit on a command line, and then everything is run."""


class NotMeasuredError(Exception):
    """A derived run died, twice if it was worth repeating. Never leaves the layers."""


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

    def run(
        self,
        spec: CheckSpec,
        tree: str,
        what: str,
        *,
        argv: Sequence[str] | None = None,
        of_base: bool = False,
        deadline: Deadline | None = None,
        tolerated: Collection[DeathCause] = (),
    ) -> CheckResult:
        """The check on a derived tree. A run that dies raises, unless the caller can live with that cause of death."""
        place = self.make_tree(tree, of_base)
        for name in spec.needs:
            built = self.recorder.further(self.runner.run(self.builds[name], place, keep=True), what)
            _refuse_dead(built, ())
            if built.verdict is not Verdict.PASS:
                return self.recorder.further(unverifiable(spec, place, f"{name} must pass first"), what)
        result = self.recorder.further(self.runner.run(spec, place, argv=argv, deadline=deadline), what)
        _refuse_dead(result, tolerated)
        return result

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


def _refuse_dead(result: CheckResult, tolerated: Collection[DeathCause]) -> None:
    if result.death is not None and result.death.cause not in tolerated:
        raise NotMeasuredError(f"the run {result.name} died: {result.death.detail}")
