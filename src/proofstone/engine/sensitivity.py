"""Runs tests without the change: with its source put back, and with everything that it touched made to raise (L5)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from proofstone.adapters.sources.sabotage import sabotaged
from proofstone.contracts.change import ChangeKind
from proofstone.contracts.check import CheckKind, CheckResult, CheckSpec, DeathCause
from proofstone.contracts.examined import Examined, together
from proofstone.contracts.finding import Finding
from proofstone.contracts.tests import TestReport
from proofstone.contracts.verdict import Severity, Verdict
from proofstone.core.compare import Comparison
from proofstone.core.layers import Layer
from proofstone.core.must_pass import matching
from proofstone.core.protected import Role
from proofstone.core.risk import docs_only
from proofstone.core.sensitivity import Asked, depends, examine, noticed
from proofstone.engine.beside import WHOLE_SUITE_MS, Beside
from proofstone.engine.execution import Deadline
from proofstone.engine.inspection import ChangedFile
from proofstone.engine.setup import is_manifest

_MOST = 200
"""Tests that are asked; more than this are asked in part."""
_BY_SABOTAGE = (DeathCause.DEADLINE, DeathCause.UNFINISHED)
"""What sabotage itself may do to a program: it waits for ever, or its test runner breaks off. That shows nothing, but
it is the engine's own doing, so it costs confidence and not the verdict."""


@dataclass(frozen=True)
class Sensitivity:
    beside: Beside
    files: Sequence[ChangedFile]
    required: tuple[str, ...]
    accepted: bool
    sabotage_seconds: float

    @property
    def source(self) -> list[ChangedFile]:
        """What the change did to the product itself: neither tests nor what decides them nor documentation."""
        return [
            file for file in self.files if not file.roles and not docs_only([file.path]) and not is_manifest(file.path)
        ]

    def examine(self, spec: CheckSpec, before: CheckResult | None, after: CheckResult, found: Comparison) -> Examined:
        if not self.source:
            return Examined()
        if after.report is None:
            return self._by_exit_code(spec, before, after) if after.kind.exercises else Examined()
        named = {one.id for name in self.required for one in matching(name, after.report.results)}
        told = {*found.fixed, *found.added}
        # Where tests were edited as well, what they said before says nothing: only what the task names is counted on.
        tests_edited = any(file.roles & {Role.TESTS, Role.RUNNER} for file in self.files)
        counted_on = sorted((set() if tests_edited else {*found.fixed}) | (named & told))
        tests = [*counted_on, *sorted(told - set(counted_on))][:_MOST]
        if not tests:
            return self._covered(spec, after)
        put_back = self._put_back(spec, before, after.report, tests)
        run, whole = self._sabotaged(spec, after, tests)
        asked = Asked(put_back=put_back, sabotaged=run.report if run else None, whole=whole)
        counted_on = self._failing_before(spec, counted_on, asked, before)
        found_out = examine(
            tests, counted_on, asked, after.report.by_id, run=run, check=spec.name, accepted=self.accepted
        )
        return together((found_out, Examined(caps=_sabotage_gap(spec, run))))

    def _failing_before(
        self, spec: CheckSpec, tests: Sequence[str], asked: Asked, before: CheckResult | None
    ) -> list[str]:
        """Without those that would be accused and pass on the base when asked again: they had failed by chance."""
        suspects = [test for test in tests if depends(test, asked) is False]
        known = before.report.by_id if before and before.report else {}
        flaky = [test for test in suspects if test in known and known[test].status.bad]
        if not flaky or before is None or before.report is None:
            return list(tests)
        argv = self.beside.selection(spec, before.report, flaky)
        again = self.beside.run(spec, self.beside.snapshot.base, "base-again", argv=argv, of_base=True)
        now = again.report.by_id if again.report else {}
        return [test for test in tests if test not in flaky or test not in now or now[test].status.bad]

    def _put_back(
        self, spec: CheckSpec, before: CheckResult | None, report: TestReport, tests: Sequence[str]
    ) -> TestReport | None:
        """The run on the base itself, where source is all that changed."""
        source = {os.fsencode(file.path) for file in self.source}
        others = [entry for entry in self.beside.snapshot.entries if entry.path not in source]
        if not others:
            return before.report if before else None
        tree = self.beside.with_base_files(source)
        argv = self.beside.selection(spec, report, tests)
        return self.beside.run(spec, tree, "source-put-back", argv=argv).report

    def _sabotaged(self, spec: CheckSpec, after: CheckResult, tests: Sequence[str]) -> tuple[CheckResult | None, bool]:
        """The tests with the change sabotaged, and whether all of it was."""
        contents: dict[str, bytes] = {}
        whole = True
        for file in self.source:
            broken = sabotaged(file.path, file.old, file.new) if file.new is not None else None
            if broken is not None:
                contents[file.path] = broken.content
            whole = whole and broken is not None and broken.complete and file.kind is not ChangeKind.DELETED
        if not contents:
            return None, False
        argv = self.beside.selection(spec, after.report, tests) if after.report and tests else None
        tree = self.beside.with_contents(contents)
        deadline = Deadline(self.sabotage_seconds, "limits.sabotage_seconds")
        run = self.beside.run(spec, tree, "sabotaged", argv=argv, deadline=deadline, tolerated=_BY_SABOTAGE)
        return run, whole

    def _covered(self, spec: CheckSpec, after: CheckResult) -> Examined:
        """No test is new or repaired: does any notice the change at all?"""
        if after.duration_ms > WHOLE_SUITE_MS:
            return Examined(caps=(f"{spec.name}: no test is new or repaired, and whether one covers it was not tried",))
        run, whole = self._sabotaged(spec, after, ())
        tests = noticed(run.report, after.report) if run and run.report and after.report else ()
        if gap := _sabotage_gap(spec, run):
            return Examined(caps=gap)
        told = f"{spec.name}: no test fails when everything that changed raises: nothing covers it"
        return Examined(sensitive=tests, caps=(told,) if whole and not tests else ())

    def _by_exit_code(self, spec: CheckSpec, before: CheckResult | None, after: CheckResult) -> Examined:
        """Without ids the check itself is the test: it must not pass with the change sabotaged."""
        run, whole = self._sabotaged(spec, after, ())
        if run is None or run.verdict is not Verdict.PASS:
            return Examined(caps=_sabotage_gap(spec, run))
        # A person's own command may look at files instead of running them, and be right.
        if not whole or before is None or before.verdict is not Verdict.FAIL or spec.kind is not CheckKind.TESTS:
            return Examined(
                caps=(f"{spec.name}: passes with everything that changed made to raise: it does not cover it",)
            )
        return Examined(
            findings=(
                Finding(
                    layer=Layer.SENSITIVITY,
                    rule="insensitive-test",
                    severity=Severity.MINOR if self.accepted else Severity.CRITICAL,
                    detail=f"{spec.name}: failed on the base, and passes now even with everything that changed "
                    "raising: something else than the change makes it pass",
                    fix="let the check run what was changed, and let it end with its own exit code",
                    check=spec.name,
                    artifact=run.artifact,
                ),
            )
        )


def _sabotage_gap(spec: CheckSpec, run: CheckResult | None) -> tuple[str, ...]:
    """What is not known because the sabotaged run died."""
    if run is None or run.death is None:
        return ()
    raised = f"; {run.death.setting} would give it longer" if run.death.setting else ""
    return (f"{spec.name}: whether tests notice the change was not shown: sabotaged, {run.death.detail}{raised}",)
