"""Plants tests that must fail among the project's own, runs them, and looks at what is reported (L4, and half of L5).

The user's own command is never touched: this is a further run, on a tree of its own. Where the suite is short all of
it runs, so that nothing can tell this run from the real one; else the files in which something was planted.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from posixpath import basename
from random import SystemRandom

from proofstone.adapters.checks.reports.options import without_bail
from proofstone.adapters.sources.canary import with_canary
from proofstone.adapters.sources.expectations import mutated
from proofstone.contracts.check import CheckResult, CheckSpec
from proofstone.contracts.examined import Examined
from proofstone.contracts.tests import ReportFormat, TestReport
from proofstone.core.must_fail import Fate, Kind, Planted, accused, by_path, fate, findings, own_name
from proofstone.core.must_pass import matching
from proofstone.engine.beside import WHOLE_SUITE_MS, Beside
from proofstone.engine.second_runs import argv_of

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
        planted = [one for one in plan.planted if one.kind is Kind.CANARY or fate(one, after) is Fate.PASSED]
        suspects = accused(planted, run.report)
        if not suspects and all(fate(one, run.report) is Fate.FAILED for one in planted):
            return Examined()
        again, base = run, None
        if suspects:
            base = self._on_base(planting)
            again = self._run(planting.spec, planting.report, plan, planting.like, "must-fail-again")
        steady = [one for one in planted if fate(one, again.report) is fate(one, run.report)]
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
        relied_on = {one.id for name in self.required for one in matching(name, report.results)}
        relied_on |= {one.id for one in base.results if one.status.bad} if base else set()
        planted: list[Planted] = []
        for path in near:
            names = {own_name(one.id, path) for one in files.get(path, ()) if one.id in relied_on}
            others = sorted({own_name(one.id, path) for one in files.get(path, ())} - names)
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
        touched = {one.path for one in planted}
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
