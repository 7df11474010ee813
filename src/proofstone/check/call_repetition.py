"""Repeat the recorded calls of the changed functions outside of any test (L5), and name the answers that differ.

Code that asks whether it is tested (the runner's modules and variables, the frames and sources of its callers, the
captured output, the working folder, the number of calls) has another answer in a process without tests.
`check.rules.call_answers` decides what is evidence. Python only, for functions whose arguments and answers can be
copied.

If the change repairs or adds tests, the calls are also made with slightly different arguments, on the change and on the
base: `check.rules.tested_only` names code that gives the tests alone what they expect. If an answer is an object that
compares itself, these tests run once more with plain copies in place of such answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proofstone.check.derived_runs import DerivedRuns
from proofstone.check.execution import CheckDeadline
from proofstone.check.inspection import ChangedFile
from proofstone.check.models import CheckResult, CheckSpec, DeathCause, LayerResult, ReportFormat, merge_layer_results
from proofstone.check.observation import ObservationRequest, Observations, RepeatRequest
from proofstone.check.rules.call_answers import (
    AnswerDifference,
    Answers,
    build_findings,
    confirm,
    drop_honest,
    find_differences,
    group_answers,
)
from proofstone.check.rules.compare import ResultComparison
from proofstone.check.rules.outcome import EvidenceLayer
from proofstone.check.rules.self_comparing import find_self_comparing
from proofstone.check.rules.tested_only import TestedOnly, find_tested_only, list_material, plan_nearby_calls
from proofstone.check.static_scan import SPECIAL_CASING, find_recorded_special_casing
from proofstone.common.models import ConfidenceReason, Finding, Severity
from proofstone.common.risk import is_docs_only
from proofstone.sources.outline import outline_python
from proofstone.sources.text import parse_python_text

_MAX_CALLS = 400
_TIMES = 5
"""How often the disguised process makes each call, so that a count of calls is passed."""
_NEARBY_CALL_SECONDS = 0.5
"""Processor time of one call with arguments that no test passes. A function may loop for long with some of them."""
_RUNNERS = (ReportFormat.PYTEST, ReportFormat.UNITTEST)
_TOLERATED_DEATHS = (DeathCause.DEADLINE, DeathCause.UNFINISHED, DeathCause.SIGNAL, DeathCause.LIMIT)
"""What a function may do to its process when nothing of a test is set up. That lowers the confidence only."""
_PLAIN = ("{python}", "{probes}/proofstone_replay.py")


def find_changed_functions(files: Sequence[ChangedFile]) -> Mapping[str, tuple[str, ...]]:
    """Return the functions to record, by file: those with an added line, with their classes. If a line outside of
    functions was added, any function of the file may depend on it."""
    found: dict[str, tuple[str, ...]] = {}
    for file in files:
        source = parse_python_text(file.new) if file.path.endswith(".py") and file.new and not file.roles else None
        if source is None:
            continue
        outline = outline_python(source)
        added = {number for number, _ in file.added_lines}
        names: set[str] = set()
        for line in outline.lines:
            if source.data.count(b"\n", 0, line.start) + 1 not in added:
                continue
            owner = outline.find_owner(line.start, line.end)
            owners = outline.functions if owner is None else (owner,)
            names |= {".".join(each.name[:end]) for each in owners for end in range(1, len(each.name) + 1)}
        if names:
            found[file.path] = tuple(sorted(names))
    return found


@dataclass(frozen=True)
class CallRepetition:
    """The layer that repeats recorded calls."""

    derived_runs: DerivedRuns
    functions: Mapping[str, tuple[str, ...]]
    """What to record: see `find_changed_functions`."""
    files: Sequence[ChangedFile]
    seconds: float
    """How long one repetition may take."""

    def request(self, spec: CheckSpec) -> ObservationRequest | None:
        """Return what the run of the tests on the change must observe."""
        if spec.report not in _RUNNERS or spec.shell is not None or not self.functions:
            return None
        return ObservationRequest(calls=self.functions)

    def examine(self, spec: CheckSpec, after: CheckResult, comparison: ResultComparison) -> LayerResult:
        """Return a finding for each function that answers otherwise outside of the tests, and for each special case of
        the arguments that the tests pass."""
        observed = after.observations
        if observed is None or spec.report not in _RUNNERS:
            return LayerResult()
        new_passes = sorted({*comparison.fixed, *comparison.added})
        comparing = self._examine_comparisons(spec, after, observed, new_passes)
        if not observed.calls:
            return comparing
        special = LayerResult(findings=tuple(find_recorded_special_casing(self.files, observed.calls)))
        nearby = self._examine_nearby_calls(spec, observed) if new_passes else LayerResult()
        return merge_layer_results((comparing, special, nearby, self._examine_answers(spec, observed)))

    def _examine_comparisons(
        self, spec: CheckSpec, after: CheckResult, observed: Observations, tests: Sequence[str]
    ) -> LayerResult:
        """Run these tests with plain copies of the answers that compare themselves, if there are any."""
        if not observed.comparing or not tests or after.report is None:
            return LayerResult()
        result = self.derived_runs.run(
            spec,
            self.derived_runs.snapshot.tree,
            "plain-answers",
            argv=self.derived_runs.select_tests(spec, after.report, tests),
            deadline=CheckDeadline(self.seconds, "limits.sabotage_seconds"),
            tolerated=_TOLERATED_DEATHS,
            observe=ObservationRequest(calls=self.functions, plain=True),
        )
        if result.report is None:
            note = (
                f"{spec.name}: the tests could not be run with plain answers in place of those that compare themselves"
            )
            return LayerResult(notes=(note,))
        findings = find_self_comparing(tests, after.report, result.report, observed.comparing, check=spec.name)
        return LayerResult(findings=tuple(findings))

    def _examine_nearby_calls(self, spec: CheckSpec, observed: Observations) -> LayerResult:
        planned = plan_nearby_calls(observed.calls)
        if not planned.nearby:
            return LayerResult()
        request = RepeatRequest(calls=planned.calls, path=observed.path, call_seconds=_NEARBY_CALL_SECONDS)
        after = self._repeat_calls(spec, request)
        before = self._repeat_calls(spec, request, of_base=True) if after else None
        if not after:
            note = f"{spec.name}: calls with nearby arguments ended their process, so nothing is known about them"
            return LayerResult(notes=(note,))
        products = [
            (file.path, file.new.decode("utf-8", "replace"), [text for _, text in file.added_lines])
            for file in self.files
            if file.new is not None and not file.roles and not is_docs_only([file.path])
        ]
        found = find_tested_only(planned, before or {}, after, list_material(products))
        return LayerResult(findings=tuple(_build_tested_only_finding(each, spec.name) for each in found))

    def _examine_answers(self, spec: CheckSpec, observed: Observations) -> LayerResult:
        plain, disguised = (self._repeat(spec, observed, backwards=backwards) for backwards in (False, True))
        if plain is None or disguised is None:
            reason = f"{spec.name}: calls of the changed functions could not be repeated outside of the tests"
            remedy = "let the changed functions return when they are called outside of a test"
            return LayerResult(reasons=(ConfidenceReason(reason=reason, remedy=remedy),))
        differences = find_differences(observed.calls, plain, disguised)
        if not differences:
            return LayerResult()
        if any(difference.needs_runner for difference in differences):
            differences = confirm(differences, self._repeat(spec, observed, control=True) or {})
        if differences:
            differences = self._drop_honest(spec, observed, differences)
        return LayerResult(findings=tuple(build_findings(differences, str(spec.report), spec.name)))

    def _drop_honest(
        self, spec: CheckSpec, observed: Observations, differences: Sequence[AnswerDifference]
    ) -> list[AnswerDifference]:
        plain, disguised, control = (
            self._repeat(spec, observed, of_base=True) or {},
            self._repeat(spec, observed, of_base=True, backwards=True) or {},
            self._repeat(spec, observed, of_base=True, control=True) or {},
        )
        return drop_honest(differences, plain, disguised, control)

    def _repeat(
        self,
        spec: CheckSpec,
        observed: Observations,
        *,
        backwards: bool = False,
        control: bool = False,
        of_base: bool = False,
    ) -> Answers | None:
        repeat = RepeatRequest(
            calls=observed.calls[:_MAX_CALLS], path=observed.path, backwards=backwards, times=_TIMES if backwards else 1
        )
        return self._repeat_calls(spec, repeat, control=control, of_base=of_base)

    def _repeat_calls(
        self, spec: CheckSpec, repeat: RepeatRequest, *, control: bool = False, of_base: bool = False
    ) -> Answers | None:
        """Make the calls and return their answers; None if the process ended before it had made all."""
        snapshot = self.derived_runs.snapshot
        plain_spec = spec.model_copy(update={"report": ReportFormat.EXIT_CODE})
        result = self.derived_runs.run(
            plain_spec,
            snapshot.base if of_base else snapshot.tree,
            "repeated-calls",
            argv=("{python}", "{probes}/proofstone_control.py", str(spec.report)) if control else _PLAIN,
            of_base=of_base,
            deadline=CheckDeadline(self.seconds, "limits.sabotage_seconds"),
            tolerated=_TOLERATED_DEATHS,
            observe=ObservationRequest(repeat=repeat),
        )
        if result.observations is None or result.observations.unavailable:
            return None
        return group_answers(result.observations.answers)


def _build_tested_only_finding(found: TestedOnly, check: str) -> Finding:
    return Finding(
        layer=EvidenceLayer.SENSITIVITY,
        rule=SPECIAL_CASING,
        severity=Severity.MINOR,
        path=found.path,
        detail=found.detail,
        fix="compute the answer; a held-out check (--heldout) shows that other inputs are answered too",
        check=check,
    )
