"""Repeat the recorded calls of changed JavaScript and TypeScript functions outside of any test (L5).

The evidence and its rules are those of `check.call_repetition`. What differs is how the calls are recorded: on a
derived tree, whose changed exported functions hand themselves over to a recorder (`variants.javascript_functions`), in
one more run of the tests that were repaired or added. The calls are repeated in plain `node` processes, on the trees as
they are. Below the runner they are repeated in a test of the project's own kind that is put beside one that loads the
changed file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from posixpath import dirname

from proofstone.check.call_repetition import CallRepetition
from proofstone.check.derived_runs import WHOLE_SUITE_MS, split_command
from proofstone.check.execution import CheckDeadline
from proofstone.check.models import CheckResult, CheckSpec, DeathCause, LayerResult, ReportFormat, merge_layer_results
from proofstone.check.observation import ObservationRequest, Observations, RepeatRequest
from proofstone.check.reports.rerun import build_rerun_command, disable_bail
from proofstone.check.rules.call_answers import Answers, group_answers
from proofstone.check.rules.compare import ResultComparison
from proofstone.check.variants.javascript_control import ControlTest, build_control_test
from proofstone.check.variants.javascript_functions import record_functions
from proofstone.common.models import ConfidenceReason
from proofstone.common.risk import is_docs_only
from proofstone.common.text import pluralize

_RUNNERS = (ReportFormat.NODE, ReportFormat.JEST, ReportFormat.VITEST, ReportFormat.MOCHA)
_TOLERATED_DEATHS = (DeathCause.DEADLINE, DeathCause.UNFINISHED, DeathCause.SIGNAL, DeathCause.LIMIT)
_REPORTER = "--require={probes}/proofstone_node.cjs"
_PLAIN: tuple[str, ...] = ("node", "{probes}/proofstone_replay.cjs")


@dataclass(frozen=True)
class JavaScriptCallRepetition(CallRepetition):
    """The layer that repeats recorded calls of JavaScript and TypeScript."""

    control: ControlTest | None = None
    """The test below which calls are repeated, once the tests that load the changed files are known."""
    made: dict[tuple[RepeatRequest, bool, bool], Answers | None] = field(default_factory=dict)
    """The answers of calls that were repeated already."""

    def request(self, spec: CheckSpec) -> ObservationRequest | None:
        """Return None: the run of the tests on the change itself observes nothing."""
        return None

    def examine(self, spec: CheckSpec, after: CheckResult, comparison: ResultComparison) -> LayerResult:
        """Return what the calls show that the repaired and added tests make; nothing if there is no such test."""
        tests = (*comparison.fixed, *comparison.added)
        if spec.report not in _RUNNERS or spec.shell is not None or after.report is None or not tests:
            return LayerResult()
        contents, functions = self._wrap_functions()
        if not functions:
            return LayerResult()
        paths = sorted({path for test in tests if (path := after.report.by_id[test].path) is not None})
        argv = self.derived_runs.select_tests(spec, after.report, paths)
        if argv is None and after.duration_ms > WHOLE_SUITE_MS:
            return LayerResult(
                notes=(
                    f"{spec.name}: calls of the changed functions were not repeated outside of the tests: they would "
                    f"be recorded in one more run, and the suite takes longer than {WHOLE_SUITE_MS // 1000} s",
                )
            )
        run = self.derived_runs.run(
            _with_probes(spec, "proofstone_recorder.cjs"),
            self.derived_runs.with_contents(contents),
            "recorded-calls",
            argv=argv or disable_bail(str(spec.report), split_command(spec) or spec.argv),
            deadline=CheckDeadline(self.seconds, "limits.sabotage_seconds"),
            tolerated=_TOLERATED_DEATHS,
            observe=ObservationRequest(calls=functions),
        )
        disturbed = _find_disturbed(after, run, tests)
        if disturbed or run.report is None:
            return LayerResult(reasons=(_describe_disturbed(spec, disturbed),))
        if run.observations is None or not run.observations.calls:
            return LayerResult()
        modules = sorted({call.path for call in run.observations.calls})
        control = build_control_test(spec.report, self.derived_runs.read(paths), modules)
        return replace(self, control=control, made={})._examine_calls(spec, run.observations)

    def _wrap_functions(self) -> tuple[Mapping[str, bytes], Mapping[str, tuple[str, ...]]]:
        """Return the changed files with their changed functions wrapped, and the names of these."""
        contents: dict[str, bytes] = {}
        functions: dict[str, tuple[str, ...]] = {}
        for file in self.files:
            if file.new is None or file.roles or is_docs_only([file.path]):
                continue
            recorded = record_functions(file.path, file.new, {number for number, _ in file.added_lines})
            if recorded is not None:
                contents[file.path], functions[file.path] = recorded.content, recorded.names
        return contents, functions

    def _examine_calls(self, spec: CheckSpec, observed: Observations) -> LayerResult:
        if self._repeat(spec, observed) == {}:
            names = ", ".join(sorted({call.path for call in observed.calls}))
            note = (
                f"{spec.name}: calls were not repeated outside of the tests: a plain Node process cannot load {names}, "
                "nor with TypeScript, esbuild, Babel or Rolldown of the project"
            )
            return LayerResult(notes=(note,))
        nearby = self._examine_nearby_calls(spec, observed)
        if any(problem.startswith("page: ") for problem in observed.unavailable):
            note = (
                f"{spec.name}: answers were not compared with those outside of the tests: the tests have the variables "
                "of a page, which no plain process has"
            )
            return merge_layer_results((nearby, LayerResult(notes=(note,))))
        return merge_layer_results((nearby, self._examine_answers(spec, observed)))

    def _repeat_calls(
        self, spec: CheckSpec, repeat: RepeatRequest, *, control: bool = False, of_base: bool = False
    ) -> Answers | None:
        """Make the calls and return their answers; None if the process ended before it had made all."""
        key = (repeat, control, of_base)
        if key not in self.made:
            self.made[key] = self._make_calls(spec, repeat, control=control, of_base=of_base)
        return self.made[key]

    def _make_calls(self, spec: CheckSpec, repeat: RepeatRequest, *, control: bool, of_base: bool) -> Answers | None:
        snapshot = self.derived_runs.snapshot
        if not control:
            plain = spec.model_copy(update={"report": ReportFormat.EXIT_CODE, "needs": ()})
            tree, argv = snapshot.base if of_base else snapshot.tree, _PLAIN
        elif self.control is None:
            return None
        else:
            plain = _with_probes(spec, "proofstone_control.cjs")
            tree = self.derived_runs.with_contents({self.control.path: self.control.content}, of_base=of_base)
            argv = self._select_control(spec)
        result = self.derived_runs.run(
            plain,
            tree,
            "repeated-calls",
            argv=argv,
            of_base=of_base,
            deadline=CheckDeadline(self.seconds, "limits.sabotage_seconds"),
            tolerated=_TOLERATED_DEATHS,
            observe=ObservationRequest(repeat=repeat),
        )
        if result.observations is None or result.observations.unavailable:
            return None
        return group_answers(result.observations.answers)

    def _select_control(self, spec: CheckSpec) -> tuple[str, ...]:
        """Return the command for the control test alone, or for all tests if the runner cannot select."""
        argv = split_command(spec) or spec.argv
        path = self.control.path if self.control is not None else dirname(spec.cwd)
        return build_rerun_command(ReportFormat(str(spec.report)), argv, [path], cwd=spec.cwd) or tuple(argv)


def _with_probes(spec: CheckSpec, probe: str) -> CheckSpec:
    """Return the check so that every process of its runner loads a probe first."""
    own = spec.env.get("NODE_OPTIONS", "")
    words = [_REPORTER] if spec.report is ReportFormat.NODE else []
    words += [f"--require={{probes}}/{probe}", *([own] if own else [])]
    return spec.model_copy(
        update={"env": {**spec.env, "NODE_OPTIONS": " ".join(words), "PROOFSTONE_RECORD": "{report}"}}
    )


def _find_disturbed(after: CheckResult, run: CheckResult, tests: Iterable[str]) -> list[str]:
    """Return the tests that pass in the check itself and fail while calls are recorded."""
    before, now = (result.report.by_id if result.report else {} for result in (after, run))
    return [
        test
        for test in tests
        if test in before and not before[test].status.is_failure and test in now and now[test].status.is_failure
    ]


def _describe_disturbed(spec: CheckSpec, disturbed: list[str]) -> ConfidenceReason:
    what = f"{pluralize(len(disturbed), 'test')} fail" if disturbed else "the tests could not run"
    return ConfidenceReason(
        reason=f"{spec.name}: {what} while calls of the changed functions are recorded"
        + (f": {disturbed[0]}" if disturbed else ""),
        remedy="let the changed code and its tests not depend on the text or the parameters of a function",
    )
