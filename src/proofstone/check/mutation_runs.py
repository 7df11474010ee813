"""Measure how many mistakes in the changed lines the tests notice.

`StrengthLayer` makes mutants of the lines that the change added or edited and runs the tests against them. Under pytest
all mutants run in one process (`probes/proofstone_mutants.py`), on the tests that reach them. Other runners get a run
for each mutant, on a derived tree, and so fewer mutants. `check.rules.strength` bounds the cost and judges the result.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from posixpath import relpath
from typing import Final

from proofstone.check.derived_runs import WHOLE_SUITE_MS, DerivedRuns
from proofstone.check.execution import CheckDeadline
from proofstone.check.inspection import ChangedFile
from proofstone.check.models import (
    CheckResult,
    CheckSpec,
    DeathCause,
    LayerResult,
    MutantResult,
    MutantStatus,
    ReportFormat,
    StrengthLevel,
    TestReport,
)
from proofstone.check.rules.must_fail import group_by_path
from proofstone.check.rules.reaching_tests import find_reaching_tests
from proofstone.check.rules.strength import (
    MUTATED_LANGUAGES,
    StrengthBounds,
    bound_cost,
    bound_runs,
    decide_by_run,
    read_probe_results,
)
from proofstone.check.sensitivity import is_near_change
from proofstone.check.variants.mutants import Mutant, choose_mutants, list_mutants
from proofstone.common.models import ConfidenceReason
from proofstone.sources.syntax import detect_language

_TOLERATED: Final = (DeathCause.DEADLINE, DeathCause.UNFINISHED, DeathCause.SIGNAL, DeathCause.LIMIT)
"""What a mutant may do to the tests."""
_MAX_TEST_FILES: Final = 40
_PLAN_VARIABLE: Final = "PROOFSTONE_MUTANTS"
_MAX_PLAN_CHARS: Final = 120_000
"""A variable of the environment cannot be longer."""


@dataclass(frozen=True)
class StrengthLayer:
    """The layer that makes mistakes in the changed lines."""

    derived_runs: DerivedRuns
    files: Sequence[ChangedFile]
    """The changed files of the product itself."""
    read: Callable[[Sequence[str]], Mapping[str, bytes]]
    """Reads files of the tree under check that exist and are not too large."""
    level: StrengthLevel

    def examine(self, spec: CheckSpec, after: CheckResult) -> LayerResult:
        """Return the mutants that the tests of a check were run against, with what became of them."""
        report = after.report
        if report is None:
            return LayerResult()
        contents = self._find_contents(ReportFormat(report.runner))
        found = [
            mutant
            for file in self.files
            if file.path in contents
            for mutant in list_mutants(file.path, contents[file.path], {number for number, _ in file.added_lines})
        ]
        if not found:
            return LayerResult()
        if self.level is StrengthLevel.OFF:
            return _build_gap(spec, "is switched off", "measure it (--strength quick, or the setting check.strength)")
        if report.runner == ReportFormat.PYTEST:
            return self._run_together(spec, after, report, found, contents)
        return self._run_each(spec, after, report, found, contents)

    def _find_contents(self, runner: ReportFormat) -> dict[str, bytes]:
        """Return the changed files that the tests of this runner may run."""
        languages = MUTATED_LANGUAGES.get(runner, frozenset())
        return {
            file.path: file.new
            for file in self.files
            if file.new is not None and detect_language(file.path, file.new) in languages
        }

    # Many mutants in one process

    def _run_together(
        self,
        spec: CheckSpec,
        after: CheckResult,
        report: TestReport,
        found: Sequence[Mutant],
        contents: Mapping[str, bytes],
    ) -> LayerResult:
        argv, is_known = self._select_command(spec, after, report)
        if not is_known:
            return _build_gap(spec, _TOO_SLOW, _NEAR_TESTS)
        bounds = bound_cost(self.level, report.executed_count, after.duration_ms)
        chosen = choose_mutants(found, contents, bounds.mutants)
        plan = encode_plan(spec.cwd, chosen, bounds)
        while len(plan) > _MAX_PLAN_CHARS:
            chosen = chosen[: len(chosen) // 2]
            plan = encode_plan(spec.cwd, chosen, bounds)
        with_plan = spec.model_copy(update={"env": {**spec.env, _PLAN_VARIABLE: plan}})
        tree = self.derived_runs.snapshot.tree
        run = self.derived_runs.run(with_plan, tree, "mutants", argv=argv, tolerated=_TOLERATED)
        mutants = [describe(mutant, spec.name) for mutant in chosen]
        decided = read_probe_results(run.report, mutants) if run.report is not None else []
        if not decided:
            why = run.death.detail if run.death else "no mutant was run"
            return _build_gap(spec, f"could not be measured: {why}", "")
        return LayerResult(mutants=tuple(decided), untried=len(found) - len(decided))

    def _select_command(
        self, spec: CheckSpec, after: CheckResult, report: TestReport
    ) -> tuple[Sequence[str] | None, bool]:
        """Return the command for the tests that may reach the change, and whether there are such tests. A short suite
        runs as a whole; of another, the tests that were seen to execute the changed lines, and those of files that
        name a changed one: they may start a program that executes them."""
        if after.duration_ms <= WHOLE_SUITE_MS:
            return None, True
        files = group_by_path(report.results)
        changed = frozenset(file.path for file in self.files)
        contents = self.read([*files])
        near = [path for path, content in contents.items() if is_near_change(path, content, changed)]
        reaching = find_reaching_tests(
            after.observations, {file.path: [number for number, _ in file.added_lines] for file in self.files}
        )
        named = [result.id for path in sorted(near)[:_MAX_TEST_FILES] for result in files[path]]
        tests = [*dict.fromkeys((*sorted(reaching), *named))]
        argv = self.derived_runs.select_tests(spec, report, tests)
        return argv, argv is not None

    # A run for each mutant

    def _run_each(
        self,
        spec: CheckSpec,
        after: CheckResult,
        report: TestReport,
        found: Sequence[Mutant],
        contents: Mapping[str, bytes],
    ) -> LayerResult:
        argv, is_known = self._select_command(spec, after, report)
        if not is_known:
            return _build_gap(spec, _TOO_SLOW, _NEAR_TESTS)
        chosen = choose_mutants(found, contents, bound_runs(self.level, after.duration_ms))
        deadline = CheckDeadline(10 + 10 * after.duration_ms / 1000, "check.strength")
        decided: list[MutantResult] = []
        for mutant in chosen:
            tree = self.derived_runs.with_contents({mutant.path: mutant.apply(contents[mutant.path])})
            run = self.derived_runs.run(spec, tree, "mutant", argv=argv, deadline=deadline, tolerated=_TOLERATED)
            result = decide_by_run(describe(mutant, spec.name), report, run)
            decided += [result] if result is not None else []
        return LayerResult(mutants=tuple(decided), untried=len(found) - len(chosen))


_TOO_SLOW: Final = "is not measured: the suite takes too long, and no test file names the changed files"
_NEAR_TESTS: Final = "add a test file that imports the changed code"


def encode_plan(cwd: str, mutants: Sequence[Mutant], bounds: StrengthBounds, trace: Sequence[str] = ()) -> str:
    """Return the plan for the probe."""
    plan = {
        "root": relpath(".", cwd),
        "tests": bounds.test_runs,
        "fresh": bounds.fresh,
        "seconds": bounds.seconds,
        "trace": list(trace),
        "mutants": [
            {
                "path": mutant.path,
                "line": mutant.line,
                "start": mutant.edit.start,
                "end": mutant.edit.end,
                "text": mutant.edit.text.decode("utf-8", "replace"),
            }
            for mutant in mutants
        ],
    }
    return base64.b64encode(zlib.compress(json.dumps(plan).encode(), 9)).decode("ascii")


def describe(mutant: Mutant, check: str) -> MutantResult:
    """Return the record of a mutant that is not decided yet."""
    return MutantResult(
        path=mutant.path,
        line=mutant.line,
        operator=mutant.operator,
        before=mutant.before,
        after=mutant.after,
        function=mutant.function,
        is_new_function=mutant.is_new_function,
        status=MutantStatus.UNDECIDED,
        check=check,
    )


def _build_gap(spec: CheckSpec, why: str, remedy: str) -> LayerResult:
    reason = f"{spec.name}: the strength of the tests {why}"
    return LayerResult(reasons=(ConfidenceReason(reason=reason, remedy=remedy),))
