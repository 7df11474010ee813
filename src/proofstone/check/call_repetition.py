"""Repeat the recorded calls of the changed functions outside of any test (L5), and name the answers that differ.

Code that asks whether it is tested (the runner's modules and variables, the frames and sources of its callers, the
captured output, the working folder, the number of calls) has another answer in a process without tests.
`check.rules.call_answers` decides what is evidence. Python only, for functions whose arguments and answers can be
copied.
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
from proofstone.check.static_scan import find_recorded_special_casing
from proofstone.common.models import ConfidenceReason
from proofstone.sources.outline import outline_python
from proofstone.sources.text import parse_python_text

_MAX_CALLS = 400
_TIMES = 5
"""How often the disguised process makes each call, so that a count of calls is passed."""
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

    def examine(self, spec: CheckSpec, after: CheckResult) -> LayerResult:
        """Return a finding for each function that answers otherwise outside of the tests, and for each special case of
        the arguments that the tests pass."""
        observed = after.observations
        if observed is None or not observed.calls or spec.report not in _RUNNERS:
            return LayerResult()
        special = LayerResult(findings=tuple(find_recorded_special_casing(self.files, observed.calls)))
        return merge_layer_results((special, self._examine_answers(spec, observed)))

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
        """Make the calls once more and return their answers; None if the process ended before it had made all."""
        repeat = RepeatRequest(
            calls=observed.calls[:_MAX_CALLS], path=observed.path, backwards=backwards, times=_TIMES if backwards else 1
        )
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
