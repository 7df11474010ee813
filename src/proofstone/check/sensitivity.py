"""Plants tests that must fail among the project's own, runs them, and looks at what is reported (L4, and half of L5).

The user's own command is never touched: this is a further run, on a tree of its own. Where the suite is short all of
it runs, so that nothing can tell this run from the real one; else the files in which something was planted.

Runs tests without the change: with its source put back, and with everything that it touched made to raise (L5).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from posixpath import basename
from random import SystemRandom

from proofstone.check.derived_runs import WHOLE_SUITE_MS, Beside, argv_of
from proofstone.check.execution import Deadline
from proofstone.check.inspection import ChangedFile
from proofstone.check.models import (
    CheckKind,
    CheckResult,
    CheckSpec,
    DeathCause,
    Examined,
    ReportFormat,
    TestReport,
    together,
)
from proofstone.check.reports.rerun import without_bail
from proofstone.check.rules.compare import Comparison, matching
from proofstone.check.rules.must_fail import (
    Asked,
    Fate,
    Kind,
    Planted,
    accused,
    by_path,
    depends,
    examine,
    fate,
    findings,
    noticed,
    own_name,
)
from proofstone.check.rules.outcome import Layer
from proofstone.check.rules.protected import Role
from proofstone.check.setup import is_manifest
from proofstone.check.variants.canary import with_canary
from proofstone.check.variants.expectations import mutated
from proofstone.check.variants.sabotage import sabotaged
from proofstone.common.models import ChangeKind, Finding, Severity, Verdict
from proofstone.common.risk import docs_only

_CANARIES = 3
_SAMPLE = 5
"""Tests with a changed expectation, besides those that the verdict rests on."""
_FILES = 40
_SYLLABLES = ("ba", "co", "di", "fu", "ga", "le", "mi", "no", "pa", "ri", "so", "ta", "vu", "ze")


@dataclass(frozen=True)
class Plan:
    planted: tuple[Planted, ...]
    contents: Mapping[str, bytes]
    format: ReportFormat


@dataclass(frozen=True)
class Planting:
    """A run with planted tests, not yet judged."""

    spec: CheckSpec
    report: TestReport
    plan: Plan
    like: CheckResult
    run: CheckResult


@dataclass(frozen=True)
class MustFail:
    beside: Beside
    read: Callable[[Iterable[str]], Mapping[str, bytes]]
    """The files of the tree under check that are there and not too large."""
    changed: frozenset[str]
    required: tuple[str, ...]

    def plant(self, spec: CheckSpec, report: TestReport, base: TestReport | None, like: CheckResult) -> Planting | None:
        """The run with planted tests; None where none could be planted. `report` says which tests there are, `base`
        which of them failed before; `like` is a run of the same check, for its length."""
        plan = self.plan(report, base)
        if plan is None:
            return None
        return Planting(spec, report, plan, like, self._run(spec, report, plan, like, "must-fail"))

    def examine(self, check: str, planting: Planting | None, after: TestReport) -> Examined:
        """What the run says, now that it is known which tests pass as they are: only their copies must fail."""
        if planting is None:
            return Examined(caps=(f"{check}: no test that must fail could be planted",))
        plan, run = planting.plan, planting.run
        planted = [item for item in plan.planted if item.kind is Kind.CANARY or fate(item, after) is Fate.PASSED]
        suspects = accused(planted, run.report)
        if not suspects and all(fate(item, run.report) is Fate.FAILED for item in planted):
            return Examined()
        again, base = run, None
        if suspects:
            base = self._on_base(planting)
            again = self._run(planting.spec, planting.report, plan, planting.like, "must-fail-again")
        steady = [item for item in planted if fate(item, again.report) is fate(item, run.report)]
        found, caps = findings(steady, run, base.report if base else None, check=check)
        return Examined(findings=tuple(found), caps=tuple(caps))

    def known_on(self, base: TestReport) -> bool:
        """Whether the base has every test that the task names, so that it can tell what is to be planted."""
        return all(matching(name, base.results) for name in self.required)

    def plan(self, report: TestReport, base: TestReport | None) -> Plan | None:
        """What is planted where: canaries near the change, changed expectations in the tests that count and a few."""
        format = ReportFormat(report.runner)
        files = by_path(report.results)
        contents = dict(self.read(_some([*files], _FILES, first=self.changed)))
        near = sorted(contents, key=lambda path: not self._near(path, contents[path]))
        relied_on = {item.id for name in self.required for item in matching(name, report.results)}
        relied_on |= {result.id for result in base.results if result.status.bad} if base else set()
        planted: list[Planted] = []
        for path in near:
            names = {own_name(file.id, path) for file in files.get(path, ()) if file.id in relied_on}
            others = sorted({own_name(file.id, path) for file in files.get(path, ())} - names)
            sample = set(SystemRandom().sample(others, min(len(others), max(0, _SAMPLE - len(planted)))))
            changed = mutated(path, contents[path], names | sample, word=_word())
            contents[path] = changed.content
            planted += [
                Planted(kind=Kind.EXPECTATION, path=path, name=name, relied_on=name in names) for name in changed.tests
            ]
        canaries = 0
        for path in near:
            canary = with_canary(format, path, contents[path], _word()) if canaries < _CANARIES else None
            if canary is not None:
                contents[path] = canary.content
                planted.append(Planted(kind=Kind.CANARY, path=path, name=canary.name))
                canaries += 1
        touched = {item.path for item in planted}
        return Plan(tuple(planted), {path: contents[path] for path in touched}, format) if planted else None

    def _near(self, path: str, content: bytes) -> bool:
        """Whether a test file has to do with the change: it is part of it, or it names a changed file."""
        stems = {basename(file).partition(".")[0] for file in self.changed} - {"__init__", "index", ""}
        return path in self.changed or any(stem.encode() in content for stem in stems)

    def _run(self, spec: CheckSpec, report: TestReport, plan: Plan, like: CheckResult, what: str) -> CheckResult:
        tree = self.beside.with_contents(plan.contents)
        return self.beside.run(spec, tree, what, argv=self._argv(spec, report, plan, like))

    def _on_base(self, one: Planting) -> CheckResult:
        tree = self.beside.with_contents(one.plan.contents, of_base=True)
        argv = self._argv(one.spec, one.report, one.plan, one.like)
        return self.beside.run(one.spec, tree, "must-fail-on-base", argv=argv, of_base=True)

    def _argv(self, spec: CheckSpec, report: TestReport, plan: Plan, like: CheckResult) -> Sequence[str] | None:
        files = sorted(plan.contents)
        if like.duration_ms > WHOLE_SUITE_MS and (selected := self.beside.selection(spec, report, files)):
            return selected
        argv = argv_of(spec)
        return without_bail(plan.format, argv) if argv else None


def _some(paths: Sequence[str], most: int, *, first: frozenset[str]) -> list[str]:
    """At most so many, those of the change before the others, which are drawn by lot."""
    drawn = SystemRandom().sample(paths, len(paths))
    return sorted(drawn, key=lambda path: path not in first)[:most]


def _word() -> str:
    return "".join(secrets.choice(_SYLLABLES) for _ in range(4))


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
        named = {item.id for name in self.required for item in matching(name, after.report.results)}
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
