"""Single tests, run again, before anything is said about them.

- what fails now and did not before is run again on the same tree: fail then pass is flaky, not a regression;
- what flaked is tried on the base too: a test that flakes there was not made so by the change;
- a failure that an earlier run saw on the base excuses nothing until it has been seen again;
- with the person's consent, what fails in the sandbox on both trees is run once outside: what passes there cannot
  be verified in the sandbox.

Runs beside the check itself, on trees derived from the one under check: each has its own row, none decides alone.

A derived run that died measured nothing, so nobody learns anything from it: `NotMeasuredError` says which run it was,
and the check becomes `unverifiable`.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from posixpath import basename

from proofstone.check.context import TreeUnderCheck
from proofstone.check.execution import Deadline, Runner, unverifiable
from proofstone.check.models import CheckKind, CheckResult, CheckSpec, DeathCause, ReportFormat, TestReport
from proofstone.check.recording import Recorder
from proofstone.check.reports import rerun
from proofstone.check.rules.compare import compare
from proofstone.check.rules.judge import Excuses
from proofstone.common.commands import is_compound
from proofstone.common.models import Phase, Verdict
from proofstone.config.settings import TestSettings
from proofstone.git.checkout import with_base_files, with_contents
from proofstone.git.snapshot import Snapshot
from proofstone.git.store import Store

_MOST = 100
"""More failures than this are not flakiness."""
_BASE_TRIES = 3
_TREE = {Phase.BASELINE: "base", Phase.AFTER: "change"}


@dataclass(frozen=True)
class SecondRuns:
    runner: Runner
    recorder: Recorder
    bare: Runner | None
    """Outside the sandbox, if the person agreed to it."""
    base: TreeUnderCheck
    tree: TreeUnderCheck
    tests: TestSettings
    reruns: int
    changed: tuple[str, ...]

    def excuses(self, spec: CheckSpec, before: CheckResult | None, after: CheckResult) -> Excuses:
        """What further runs show about the tests that fail."""
        if after.report is None and spec.kind is CheckKind.VERIFY and after.verdict is Verdict.FAIL:
            return self._whole_command(spec)
        if after.report is None or not any(result.status.bad for result in after.report.results):
            return Excuses()
        if before is None or before.report is None:
            return Excuses(flaky=self._flaky(spec, after, [r.id for r in after.report.results if r.status.bad], []))
        deaths: list[str] = []
        found = compare(before.report, after.report)
        flaky = self._flaky(spec, after, [*found.regressions, *found.new_failures], deaths)
        known = before.report.by_id
        mended: tuple[str, ...] = ()
        if before.reused_from is not None and found.standing:
            alone = self._passing(self.runner, spec, self.base, before, found.standing, deaths)
            # What passes alone on the change as well fails by the order of tests: the base's failure still counts.
            also = self._passing(self.runner, spec, self.tree, after, alone or (), deaths)
            if alone is not None and also is not None:
                mended = tuple(test for test in alone if test not in also)
        standing = [test for test in found.standing if test not in mended]
        sandbox_only = self._sandbox_only(spec, before, standing, deaths)
        flaky_before = self._flaky_on_base(spec, before, [test for test in flaky if test in known], deaths)
        return Excuses(
            flaky=flaky,
            flaky_before=flaky_before,
            allowed_flaky=tuple(test for test in flaky if _any(test, self.tests.allow_flaky)),
            sandbox_only=sandbox_only,
            blocking=tuple(test for test in sandbox_only if touches(test, known[test].path, self.changed)),
            mended=mended,
            not_measured=tuple(dict.fromkeys(deaths)),
        )

    def _whole_command(self, spec: CheckSpec) -> Excuses:
        """A person's command that gives no results by id is run again as a whole."""
        for _ in range(self.reruns):
            again = self.recorder.further(self.runner.run(spec, self.tree), "rerun")
            if again.verdict is Verdict.PASS:
                allowed = _any(spec.name, self.tests.allow_flaky)
                return Excuses(flaky=(spec.name,), allowed_flaky=(spec.name,) if allowed else ())
        return Excuses()

    def _flaky(
        self, spec: CheckSpec, after: CheckResult, suspects: Sequence[str], deaths: list[str]
    ) -> tuple[str, ...]:
        passed: set[str] = set()
        for _ in range(self.reruns):
            left = [test for test in suspects if test not in passed]
            passed |= set(self._passing(self.runner, spec, self.tree, after, left, deaths) or ())
        return tuple(sorted(passed))

    def _flaky_on_base(
        self, spec: CheckSpec, before: CheckResult, flaky: Sequence[str], deaths: list[str]
    ) -> tuple[str, ...]:
        """Tests that passed on the base and fail there in one of a few further runs."""
        seen: set[str] = set()
        for _ in range(_BASE_TRIES):
            left = [test for test in flaky if test not in seen]
            if not left:
                break
            again = self._again(self.runner, spec, self.base, before, left, deaths)
            seen |= (
                {r.id for r in again.report.results if r.status.bad and r.id in left}
                if again and again.report
                else set()
            )
        return tuple(sorted(seen))

    def _sandbox_only(
        self, spec: CheckSpec, before: CheckResult, standing: Sequence[str], deaths: list[str]
    ) -> tuple[str, ...]:
        declared = {test for test in standing if _any(test, self.tests.needs_service)}
        if self.bare:
            left = [test for test in standing if test not in declared]
            declared |= set(self._passing(self.bare, spec, self.base, before, left, deaths) or ())
        return tuple(sorted(declared))

    def _passing(
        self,
        runner: Runner,
        spec: CheckSpec,
        tree: TreeUnderCheck,
        result: CheckResult,
        tests: Sequence[str],
        deaths: list[str],
    ) -> tuple[str, ...] | None:
        """Those of `tests` that pass when they are run again; None if that run died."""
        again = self._again(runner, spec, tree, result, tests, deaths)
        if again is not None and again.death is not None:
            return None
        if again is None or again.report is None:
            return ()
        by_id = again.report.by_id
        return tuple(
            test for test in tests if test in by_id and by_id[test].status.executed and not by_id[test].status.bad
        )

    def _again(
        self,
        runner: Runner,
        spec: CheckSpec,
        tree: TreeUnderCheck,
        result: CheckResult,
        tests: Sequence[str],
        deaths: list[str],
    ) -> CheckResult | None:
        """A second run of single tests. If it died, that is added to `deaths`."""
        if not tests or len(tests) > _MOST or result.report is None:
            return None
        argv = argv_of(spec)
        command = rerun(ReportFormat(result.report.runner), argv, tests, cwd=spec.cwd) if argv else None
        if command is None:
            return None
        where = "bare" if runner is self.bare else "rerun"
        again = self.recorder.further(runner.run(spec, tree, argv=command), where)
        if again.death is not None:
            deaths.append(f"the run {again.name} on the {_TREE[tree.phase]} died: {again.death.detail}")
        return again


def argv_of(spec: CheckSpec) -> Sequence[str] | None:
    """The command as words; None for a shell line that is more than one command."""
    if spec.shell is None:
        return spec.argv
    try:
        words = shlex.split(spec.shell)
    except ValueError:
        return None
    return None if is_compound(spec.shell) else words


def _any(test: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(test, glob) for glob in globs)


def touches(test: str, path: str | None, changed: Sequence[str]) -> bool:
    """Whether a test has to do with the changed files: its own file is one, or is named after one."""
    if path in changed:
        return True
    name = basename(path or test.partition("::")[0]).partition(".")[0]
    subject = name.removeprefix("test_").removesuffix("_test").removesuffix("_spec")
    return any(basename(file).partition(".")[0] == subject for file in changed)


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
