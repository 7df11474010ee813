"""Runs in addition to the check itself: reruns of single tests, and runs on trees derived from the one under check.

`Reruns` reruns single tests before they are judged:

- A test that now fails and passed before is rerun on the same tree. If it passes then, it is flaky and no regression,
  unless it depends on the tests before it: if it fails again whenever its file runs as a whole (or the suite, if that
  is short), its failure counts. Selected tests run in the order of the suite.
- A flaky test is also rerun on the base. If it is flaky there, the change did not cause it.
- A failure on the base that comes from the cache excuses nothing until it has been reproduced.
- If the user agreed, tests that fail in the sandbox on both trees are run once outside. Those that pass there cannot be
  verified in the sandbox.

`DerivedRuns` runs a check on a derived tree. Each run has its own row, and none decides alone. A derived run that died
measured nothing: `NotMeasuredError` names the run, and the check becomes `unverifiable`.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from posixpath import basename

from proofstone.check.context import TreeUnderCheck
from proofstone.check.execution import CheckDeadline, CheckRunner, build_unverifiable_result
from proofstone.check.models import CheckKind, CheckResult, CheckSpec, DeathCause, ReportFormat, TestReport
from proofstone.check.observation import ObservationRequest
from proofstone.check.recording import CheckRecorder
from proofstone.check.reports.rerun import build_rerun_command
from proofstone.check.rules.compare import compare_reports, order_as_run
from proofstone.check.rules.result_findings import RerunFindings
from proofstone.check.rules.unstable_ids import UnstableIds, select_for_rerun
from proofstone.common.commands import is_compound
from proofstone.common.models import Phase, Verdict
from proofstone.config.settings import TestSettings
from proofstone.git.checkout import replace_contents, restore_base_files
from proofstone.git.snapshot import Snapshot
from proofstone.git.store import Store

_MAX_RERUN_TESTS = 100
"""More failures than this are not caused by flakiness."""
_BASE_TRIES = 3
_TREE = {Phase.BASELINE: "base", Phase.AFTER: "change"}


@dataclass(frozen=True)
class Reruns:
    """Reruns single tests that failed."""

    runner: CheckRunner
    recorder: CheckRecorder
    bare: CheckRunner | None
    """Runs outside the sandbox, if the user agreed."""
    base: TreeUnderCheck
    tree: TreeUnderCheck
    tests: TestSettings
    reruns: int
    changed: tuple[str, ...]
    unstable: Mapping[str, UnstableIds]
    """The unstable test ids of each check."""

    def rerun_failures(self, spec: CheckSpec, before: CheckResult | None, after: CheckResult) -> RerunFindings:
        """Rerun the failing tests and return what that shows about them."""
        if after.report is None and spec.kind is CheckKind.VERIFY and after.verdict is Verdict.FAIL:
            return self._rerun_command(spec)
        if after.report is None or not any(result.status.is_failure for result in after.report.results):
            return RerunFindings()
        if before is None or before.report is None:
            return RerunFindings(
                flaky=self._find_flaky(spec, after, [r.id for r in after.report.results if r.status.is_failure], [])
            )
        deaths: list[str] = []
        comparison = compare_reports(before.report, after.report)
        flaky = self._find_flaky(spec, after, [*comparison.regressions, *comparison.new_failures], deaths)
        base_results = before.report.by_id
        mended: tuple[str, ...] = ()
        if before.reused_from is not None and comparison.standing:
            passing_on_base = self._find_passing(self.runner, spec, self.base, before, comparison.standing, deaths)
            # A test that passes alone on both trees fails because of the test order: the base's failure still counts.
            passing_on_change = self._find_passing(self.runner, spec, self.tree, after, passing_on_base or (), deaths)
            if passing_on_base is not None and passing_on_change is not None:
                mended = tuple(test for test in passing_on_base if test not in passing_on_change)
        standing = [test for test in comparison.standing if test not in mended]
        sandbox_only = self._find_sandbox_only(spec, before, standing, deaths)
        flaky_before = self._find_flaky_on_base(spec, before, [test for test in flaky if test in base_results], deaths)
        return RerunFindings(
            flaky=flaky,
            flaky_before=flaky_before,
            allowed_flaky=tuple(test for test in flaky if _matches_any(test, self.tests.allow_flaky)),
            sandbox_only=sandbox_only,
            blocking=tuple(
                test for test in sandbox_only if is_related_to_change(test, base_results[test].path, self.changed)
            ),
            mended=mended,
            not_measured=tuple(dict.fromkeys(deaths)),
        )

    def _rerun_command(self, spec: CheckSpec) -> RerunFindings:
        """Rerun a user's command that gives no results by id, as a whole."""
        for _ in range(self.reruns):
            again = self.recorder.record_extra_run(self.runner.run(spec, self.tree), "rerun")
            if again.verdict is Verdict.PASS:
                allowed = _matches_any(spec.name, self.tests.allow_flaky)
                return RerunFindings(flaky=(spec.name,), allowed_flaky=(spec.name,) if allowed else ())
        return RerunFindings()

    def _find_flaky(
        self, spec: CheckSpec, after: CheckResult, suspects: Sequence[str], deaths: list[str]
    ) -> tuple[str, ...]:
        """Return the failing tests that pass in one of the reruns."""
        passed: set[str] = set()
        for _ in range(self.reruns):
            remaining = [test for test in suspects if test not in passed]
            passed |= set(self._find_passing(self.runner, spec, self.tree, after, remaining, deaths) or ())
        return tuple(sorted(passed - self._find_order_dependent(spec, after, sorted(passed), deaths)))

    def _find_order_dependent(
        self, spec: CheckSpec, after: CheckResult, tests: Sequence[str], deaths: list[str]
    ) -> set[str]:
        """Return those of the tests, which pass when they run alone, that fail again each time that their suite or
        their file runs as a whole."""
        failing = set(tests)
        for _ in range(self.reruns + 1):  # one more than shows that a test is flaky
            if not failing or after.report is None:
                break
            again = self._rerun_whole(spec, after, failing, deaths)
            results = again.report.by_id if again is not None and again.report is not None else {}
            failing = {test for test in failing if test in results and results[test].status.is_failure}
        return failing

    def _rerun_whole(
        self, spec: CheckSpec, after: CheckResult, tests: Collection[str], deaths: list[str]
    ) -> CheckResult | None:
        """Rerun the suite if it is short, else the files of these tests; None if their files are unknown."""
        if after.duration_ms <= WHOLE_SUITE_MS:
            return self._run_again(self.runner, spec, self.tree, None, deaths)
        results = after.report.by_id if after.report else {}
        files = {results[test].path for test in tests if test in results}
        selected = [path for path in files if path is not None]
        if len(selected) < len(files):
            return None
        return self._rerun_tests(self.runner, spec, self.tree, after, selected, deaths)

    def _find_flaky_on_base(
        self, spec: CheckSpec, before: CheckResult, flaky: Sequence[str], deaths: list[str]
    ) -> tuple[str, ...]:
        """Return tests that passed on the base and fail there in one of a few reruns."""
        failing: set[str] = set()
        for _ in range(_BASE_TRIES):
            remaining = [test for test in flaky if test not in failing]
            if not remaining:
                break
            again = self._rerun_tests(self.runner, spec, self.base, before, remaining, deaths)
            failing |= (
                {r.id for r in again.report.results if r.status.is_failure and r.id in remaining}
                if again and again.report
                else set()
            )
        return tuple(sorted(failing))

    def _find_sandbox_only(
        self, spec: CheckSpec, before: CheckResult, standing: Sequence[str], deaths: list[str]
    ) -> tuple[str, ...]:
        """Return tests that need a service by the settings, or that pass outside the sandbox."""
        sandbox_only = {test for test in standing if _matches_any(test, self.tests.needs_service)}
        if self.bare:
            remaining = [test for test in standing if test not in sandbox_only]
            sandbox_only |= set(self._find_passing(self.bare, spec, self.base, before, remaining, deaths) or ())
        return tuple(sorted(sandbox_only))

    def _find_passing(
        self,
        runner: CheckRunner,
        spec: CheckSpec,
        tree: TreeUnderCheck,
        result: CheckResult,
        tests: Sequence[str],
        deaths: list[str],
    ) -> tuple[str, ...] | None:
        """Return those of `tests` that pass in a rerun; None if the rerun died."""
        again = self._rerun_tests(runner, spec, tree, result, tests, deaths)
        if again is not None and again.death is not None:
            return None
        if again is None or again.report is None:
            return ()
        by_id = again.report.by_id
        return tuple(
            test
            for test in tests
            if test in by_id and by_id[test].status.is_executed and not by_id[test].status.is_failure
        )

    def _rerun_tests(
        self,
        runner: CheckRunner,
        spec: CheckSpec,
        tree: TreeUnderCheck,
        result: CheckResult,
        tests: Sequence[str],
        deaths: list[str],
    ) -> CheckResult | None:
        """Rerun single tests. If the run died, add a message to `deaths`."""
        if not tests or len(tests) > _MAX_RERUN_TESTS or result.report is None:
            return None
        argv = split_command(spec)
        selected = order_as_run(result.report, select_for_rerun(result.report.runner, tests))
        command = (
            build_rerun_command(ReportFormat(result.report.runner), argv, selected, cwd=spec.cwd) if argv else None
        )
        if command is None:
            return None
        return self._run_again(runner, spec, tree, command, deaths)

    def _run_again(
        self,
        runner: CheckRunner,
        spec: CheckSpec,
        tree: TreeUnderCheck,
        command: Sequence[str] | None,
        deaths: list[str],
    ) -> CheckResult:
        """Run the check once more, with its own command if there is none. If the run died, add a message to
        `deaths`."""
        suffix = "bare" if runner is self.bare else "rerun"
        again = self.recorder.record_extra_run(runner.run(spec, tree, argv=command), suffix)
        again = number_unstable_cases(again, self.unstable.get(spec.name))
        if again.death is not None:
            deaths.append(f"the run {again.name} on the {_TREE[tree.phase]} died: {again.death.detail}")
        return again


def number_unstable_cases(result: CheckResult, unstable: UnstableIds | None) -> CheckResult:
    """Return the result with unstable test ids replaced by positions."""
    if unstable is None or result.report is None:
        return result
    numbered = unstable.number_cases(result.report)
    observations = result.observations
    if observations is not None:
        ids = {old.id: new.id for old, new in zip(result.report.results, numbered.results, strict=True)}
        observations = observations.rename_tests(ids)
    return result.model_copy(update={"report": numbered, "observations": observations})


def split_command(spec: CheckSpec) -> Sequence[str] | None:
    """Return the command as words; None for a shell line that is more than one command."""
    if spec.shell is None:
        return spec.argv
    try:
        words = shlex.split(spec.shell)
    except ValueError:
        return None
    return None if is_compound(spec.shell) else words


def _matches_any(test: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(test, glob) for glob in globs)


def is_related_to_change(test: str, path: str | None, changed: Sequence[str]) -> bool:
    """Return whether a test is related to the changed files: its own file is one of them, or is named after one."""
    if path in changed:
        return True
    name = basename(path or test.partition("::")[0]).partition(".")[0]
    subject = name.removeprefix("test_").removesuffix("_test").removesuffix("_spec")
    return any(basename(file).partition(".")[0] == subject for file in changed)


WHOLE_SUITE_MS = 30_000
"""A suite that takes longer than this is not rerun as a whole."""
_MAX_SELECTION_CHARS = 100_000
"""Characters of a selection. A longer one may not fit on a command line, and then everything is run."""


class NotMeasuredError(Exception):
    """A derived run died, twice if it was worth repeating. The layers catch this error."""


@dataclass(frozen=True)
class DerivedRuns:
    """Runs checks on trees derived from the base or from the change."""

    runner: CheckRunner
    store: Store
    snapshot: Snapshot
    make_tree: Callable[[str, bool], TreeUnderCheck]
    """Makes a derived tree that checks can run on. Pass True if it is derived from the base."""
    recorder: CheckRecorder
    builds: Mapping[str, CheckSpec]
    """All checks by name. A derived tree needs the same builds as any other."""
    unstable: Mapping[str, UnstableIds]
    """The unstable test ids of each check."""
    read: Callable[[Iterable[str]], Mapping[str, bytes]]
    """Reads files of the tree under check that exist and are not too large."""

    def run(
        self,
        spec: CheckSpec,
        tree: str,
        what: str,
        *,
        argv: Sequence[str] | None = None,
        of_base: bool = False,
        deadline: CheckDeadline | None = None,
        tolerated: Collection[DeathCause] = (),
        key: str | None = None,
        observe: ObservationRequest | None = None,
    ) -> CheckResult:
        """Run the check on a derived tree. Raise NotMeasuredError if the run dies, unless the caller tolerates the
        cause of death. A result that passes is cached under the key, if there is one. `observe` asks for
        observations of the tests."""
        target = self.make_tree(tree, of_base)
        for name in spec.needs:
            built = self.recorder.record_extra_run(self.runner.run(self.builds[name], target, keep=True), what)
            _raise_if_dead(built, ())
            if built.verdict is not Verdict.PASS:
                return self.recorder.record_extra_run(
                    build_unverifiable_result(spec, target, f"{name} must pass first"), what
                )
        ran = self.runner.run(spec, target, argv=argv, deadline=deadline, observe=observe)
        result = self.recorder.record_extra_run(ran, what, key)
        _raise_if_dead(result, tolerated)
        return number_unstable_cases(result, self.unstable.get(spec.name))

    def with_base_files(self, paths: set[bytes], contents: Mapping[str, bytes] | None = None) -> str:
        """Return the tree under check with these paths as they are in the base, and with these file contents."""
        tree = restore_base_files(self.store, self.snapshot, paths)
        by_path = {os.fsencode(path): content for path, content in (contents or {}).items()}
        return replace_contents(self.store, tree, by_path) if by_path else tree

    def with_contents(self, contents: Mapping[str, bytes], *, of_base: bool = False) -> str:
        """Return the tree under check, or the base, with these file contents."""
        tree = self.snapshot.base if of_base else self.snapshot.tree
        return replace_contents(self.store, tree, {os.fsencode(path): content for path, content in contents.items()})

    @staticmethod
    def select_tests(spec: CheckSpec, report: TestReport, tests: Sequence[str]) -> Sequence[str] | None:
        """Return the command for these tests only; None if everything must be run."""
        argv = split_command(spec)
        if not argv or not tests:
            return None
        selected = order_as_run(report, select_for_rerun(report.runner, tests))
        command = build_rerun_command(ReportFormat(report.runner), argv, selected, cwd=spec.cwd)
        return command if command and sum(map(len, command)) < _MAX_SELECTION_CHARS else None


def _raise_if_dead(result: CheckResult, tolerated: Collection[DeathCause]) -> None:
    if result.death is not None and result.death.cause not in tolerated:
        raise NotMeasuredError(f"the run {result.name} died: {result.death.detail}")
