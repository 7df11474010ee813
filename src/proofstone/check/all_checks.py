"""Run all checks: each check on the base and on the change, reruns of failures, the judgement and the record."""

from __future__ import annotations

import itertools
import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from proofstone.check.cache import ResultCache
from proofstone.check.call_repetition import CallRepetition, find_changed_functions
from proofstone.check.call_repetition_javascript import JavaScriptCallRepetition
from proofstone.check.context import CheckRequest, RunContext, TreeUnderCheck
from proofstone.check.derived_runs import (
    WHOLE_SUITE_MS,
    DerivedRuns,
    NotMeasuredError,
    Reruns,
    number_unstable_cases,
)
from proofstone.check.diagnostics import list_failures
from proofstone.check.disguised_tests import DisguisedTests
from proofstone.check.execution import CheckRunner, build_unverifiable_result, select_changed_files
from proofstone.check.held_out import hide_held_out_output, read_held_out_files, write_layer
from proofstone.check.layers import LayerExaminer
from proofstone.check.models import (
    CheckKind,
    CheckLine,
    CheckResult,
    CheckSpec,
    LayerResult,
    RunDeath,
    StrengthLevel,
    TestReport,
)
from proofstone.check.mutation_runs import StrengthLayer
from proofstone.check.observation import ObservationRequest
from proofstone.check.old_tests import OldTests
from proofstone.check.recording import CheckRecorder
from proofstone.check.rules import outcome as outcome_rules
from proofstone.check.rules.acceptance import are_losses_accepted, downgrade_accepted, select_used
from proofstone.check.rules.compare import apply_renames
from proofstone.check.rules.judge import CheckJudgement, judge_check
from proofstone.check.rules.result_findings import RerunFindings
from proofstone.check.rules.unstable_ids import UnstableIds, find_suspects, find_unstable, select_function
from proofstone.check.sensitivity import MustFailLayer, MustFailRun, SensitivityLayer
from proofstone.check.setup import PreparedEnvironment, is_manifest, prepare_environment
from proofstone.check.subject import CheckSubject
from proofstone.check.suppression_check import SuppressionCheck
from proofstone.common.models import ChangeKind, Finding, Phase, Verdict
from proofstone.common.text import cut_to_tail, pluralize
from proofstone.git.program import decode_path
from proofstone.runtime.workflow import wait_for

_WORKERS = 16


@dataclass(frozen=True)
class CheckOutcome:
    """The final result of one check."""

    line: CheckLine
    judgement: CheckJudgement
    excuses: RerunFindings
    examined: LayerResult
    after: CheckResult
    """The result on the change."""
    before: CheckResult | None
    renamed_base: CheckResult | None
    """The result on the base, with the test names of the change."""
    keys: tuple[str, str] | None
    """The cache keys of the results on the base and on the change."""

    @property
    def report(self) -> TestReport | None:
        return self.after.report

    @property
    def base_report(self) -> TestReport | None:
        """The test results on the base, with the test names of the change."""
        return self.renamed_base.report if self.renamed_base else None

    @property
    def output(self) -> str:
        return self.after.output

    @property
    def death(self) -> RunDeath | None:
        """Why the run on the change measured nothing, if it died."""
        return self.after.death

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """All findings with the severity that they have before anybody accepts them."""
        strict = judge_check(self.renamed_base, self.after, self.excuses)
        return (*strict.findings, *self.examined.findings)


class AllChecks:
    """All checks of one run."""

    def __init__(
        self, context: RunContext, request: CheckRequest, subject: CheckSubject, recorder: CheckRecorder
    ) -> None:
        self.context = context
        self.request = request
        self.subject = subject
        self.recorder = recorder
        self.prepared: PreparedEnvironment | None = None
        self.accepted = (*context.accepted, *request.accepted)
        self._numbers = itertools.count(1)
        self._unstable: dict[str, UnstableIds] = {}
        """Test ids that differ from run to run, by check."""
        self._measured: dict[str, tuple[CheckResult, CheckResult]] = {}
        """The results on the base and on the change as the runner gave them, for checks with unstable ids."""

    @cached_property
    def runner(self) -> CheckRunner:
        context = self.context
        return CheckRunner(
            sandbox=context.sandbox,
            environment=self.subject.environment,
            artifacts=context.artifacts,
            slots=context.slots,
            limits=context.job_limits(context.settings.limits.check_seconds),
            output_bytes=context.settings.limits.output_mb << 20,
            scratch=context.scratch,
            cancel=context.cancel,
            progress=context.progress,
            numbers=lambda: next(self._numbers),
            record_death=lambda result: self.recorder.record_extra_run(result, "died"),
            verify_seconds=self.request.verify_seconds,
            mask=context.secrets,
        )

    @cached_property
    def base(self) -> TreeUnderCheck:
        return self._make_tree(Phase.BASELINE, self.subject.snapshot.base, ChangeKind.ADDED)

    @cached_property
    def tree(self) -> TreeUnderCheck:
        return self._make_tree(Phase.AFTER, self.subject.snapshot.tree, ChangeKind.DELETED)

    def _make_tree(self, phase: Phase, tree: str, absent: ChangeKind) -> TreeUnderCheck:
        return TreeUnderCheck(
            phase=phase,
            tree=tree,
            commit=self.context.base_commit,
            folder=self.context.scratch / phase.value,
            store=self.context.store,
            environment=self.subject.environment,
            state=self.context.home,
            held_out=self.context.held_out,
            changed=tuple(os.fsdecode(e.path) for e in self.subject.snapshot.entries if e.kind is not absent),
        )

    def set_up(self) -> None:
        """Install dependencies with `environment.setup` for both trees, before anything runs on them."""
        if not self.context.settings.environment.setup:
            return
        self.context.progress.on_step("setting up the environment")
        before, after = ({decode_path(path): blob for path, blob in files.items()} for files in self.subject.tree_files)
        folder = self.context.home / "environments"
        base_environment = prepare_environment(self.runner, self.base, before, own=False, folder=folder)
        is_manifest_changed = any(is_manifest(file.path) for file in self.subject.files)
        change_environment = (
            prepare_environment(self.runner, self.tree, after, own=True, folder=folder)
            if is_manifest_changed
            else base_environment
        )
        self.prepared = change_environment
        for layer in (base_environment, change_environment):
            if layer and layer.layer not in self.subject.environment.prepared:
                self.subject.environment.prepared.append(layer.layer)
        self.base.under = (base_environment.layer,) if base_environment else ()
        self.tree.under = (change_environment.layer,) if change_environment else ()

    def run(self) -> list[CheckOutcome]:
        """Run all checks and return their results."""
        self.context.progress.on_step(f"running {pluralize(len(self.subject.specs), 'check')}")
        # Compute these before the threads start: two threads might compute the same cached property twice.
        _ = (
            self.runner,
            self.base,
            self.tree,
            self.derived_runs,
            self.call_repetition,
            self.reruns,
            self.layers,
            self.subject.environment.digest,
        )
        _ = (self.subject.empty_submodules, self.subject.renames, self.subject.tree_files, self.held_out_layer)
        done: dict[str, CheckOutcome] = {}
        with ThreadPoolExecutor(_WORKERS) as pool, ThreadPoolExecutor(_WORKERS) as bases:
            try:
                for wave in outcome_rules.order_in_waves(self.subject.specs):
                    started = [pool.submit(self._run_check, spec, dict(done), bases) for spec in wave]
                    for spec, future in zip(wave, started, strict=True):
                        done[spec.name] = wait_for(future)
            except BaseException:
                self.context.cancel.set()  # stop all running checks, whatever the error
                raise
        return list(done.values())

    def _run_check(self, spec: CheckSpec, done: dict[str, CheckOutcome], bases: ThreadPoolExecutor) -> CheckOutcome:
        """Run one check on both trees, judge it and record it."""
        keys = self._cache_key(spec, self.subject.snapshot.base), self._cache_key(spec, self.subject.snapshot.tree)
        keep = any(spec.name in other.needs for other in self.subject.specs)
        failed_needs = [name for name in spec.needs if done[name].line.verdict is not Verdict.PASS]
        if failed_needs:
            after = build_unverifiable_result(spec, self.tree, f"{failed_needs[0]} must pass first")
            return self._finish_check(spec, None, after, None)
        if spec.kind is CheckKind.HELD_OUT:
            return self._finish_check(spec, None, self.runner.run(spec, self.tree, over=self.held_out_layer), None)
        cached_base = self._find_cached(spec, self.base, keys[0], keep)
        base = bases.submit(self._run_on_base, spec, cached_base, keys[0], keep)
        reused = self._find_cached(spec, self.tree, keys[1], keep)
        must_fail_run = self._start_must_fail_early(spec, cached_base, bases) if reused is None else None
        after = reused or self.runner.run(
            spec, self.tree, keep=keep, observe=self._request_observations(spec, self.tree)
        )
        self.context.progress.on_end(spec.name, Phase.AFTER, reused=after.reused_from is not None)
        before = base.result()
        if before is None and self.subject.snapshot.change.is_empty:
            before = after.model_copy(update={"phase": Phase.BASELINE})
        return self._finish_check(spec, before, after, keys, must_fail_run)

    def _start_must_fail_early(
        self, spec: CheckSpec, cached_base: CheckResult | None, pool: ThreadPoolExecutor
    ) -> Future[MustFailRun | None] | None:
        """Start the run of tests that must fail in parallel to the check itself, if the base's tests are known
        already."""
        report = apply_renames(cached_base, self.subject.renames).report if cached_base else None
        if (
            cached_base is None
            or report is None
            or cached_base.duration_ms > WHOLE_SUITE_MS
            or not self._needs_must_fail(spec)
        ):
            return None
        must_fail = self.layers.must_fail
        return (
            pool.submit(must_fail.plant, spec, report, report, cached_base)
            if must_fail.has_required_tests(report)
            else None
        )

    def _needs_must_fail(self, spec: CheckSpec) -> bool:
        """Return whether tests that must fail are planted for this check. Once for each runner is enough."""
        if not spec.kind.executes_change or self.subject.snapshot.change.is_empty:
            return False
        test_specs = [
            other for other in self.subject.specs if other.kind is CheckKind.TESTS and other.report is not None
        ]
        return spec.kind is CheckKind.TESTS or not any(other.cwd == spec.cwd for other in test_specs)

    def _run_on_base(self, spec: CheckSpec, cached: CheckResult | None, key: str, keep: bool) -> CheckResult | None:
        """Run the same check on the base; return None if there is nothing to compare with."""
        has_no_files = "{changed}" in spec.argv and not select_changed_files(spec, self.base.changed)
        if self.subject.snapshot.change.is_empty or has_no_files:
            return None
        if cached is None and any(name not in self.base.built for name in spec.needs):
            return build_unverifiable_result(spec, self.base, "the build that it needs fails on the base")
        result = cached or self.runner.run(spec, self.base, keep=keep)
        self.context.progress.on_end(spec.name, Phase.BASELINE, reused=cached is not None)
        return result

    def _find_cached(self, spec: CheckSpec, tree: TreeUnderCheck, key: str, keep: bool) -> CheckResult | None:
        """Return a cached result, unless the cache is off or another check that must run needs the output of this
        one."""
        if self.request.no_cache or (keep and self._is_output_needed(spec, tree)):
            return None
        cached = self.recorder.cache.lookup(key)
        wanted = self._request_observations(spec, tree)
        if cached and wanted and not (cached.observations and cached.observations.request.covers(wanted)):
            return None
        return (
            cached.model_copy(update={"phase": tree.phase, "required": spec.required, "decides": spec.decides})
            if cached
            else None
        )

    def _request_observations(self, spec: CheckSpec, tree: TreeUnderCheck) -> ObservationRequest | None:
        """Return what a run on the change, or on the base, is to observe."""
        if tree.phase is not Phase.AFTER or self.subject.snapshot.change.is_empty:
            return None
        calls, coverage = self.call_repetition.request(spec), self.layers.sensitivity.request(spec)
        return calls.merge(coverage) if calls and coverage else calls or coverage

    def _is_output_needed(self, spec: CheckSpec, tree: TreeUnderCheck) -> bool:
        dependents = [other for other in self.subject.specs if spec.name in other.needs]
        return any(self.recorder.cache.lookup(self._cache_key(other, tree.tree)) is None for other in dependents)

    def _cache_key(self, spec: CheckSpec, tree: str) -> str:
        """Return a digest of everything that decides a result; see `docs/decisions/0007-kept-results.md`."""
        environment = self.context.settings.environment
        under = self.base.under if tree == self.base.tree else self.tree.under
        return ResultCache.build_key(
            tree=tree,
            spec=spec.model_dump(mode="json", exclude={"required", "decides", "evidence", "install"}),
            files=select_changed_files(spec, self.tree.changed) if "{changed}" in spec.argv else (),
            environment=self.subject.environment.digest,
            tools=self.subject.environment.tool_digest([spec.tool], spec.cwd),
            sandbox=self.context.sandbox.level,
            network=environment.network,
            sockets=environment.sockets,
            submodules=self.subject.empty_submodules,
            conversions=self.context.store.conversions,
            setup=[str(path) for path in under],
        )

    def _finish_check(
        self,
        spec: CheckSpec,
        before: CheckResult | None,
        after: CheckResult,
        keys: tuple[str, str] | None,
        must_fail_run: Future[MustFailRun | None] | None = None,
    ) -> CheckOutcome:
        """Judge a check, let the layers examine a pass, and record the result."""
        before, after = self._number_unstable_cases(spec, before, after, keys)
        renamed_base = apply_renames(before, self.subject.renames) if before else None
        excuses = self.reruns.rerun_failures(spec, renamed_base, after)
        # The layers examine only checks that pass, or that would pass if a person accepted that tests are gone.
        can_accept = bool(self.accepted) or self.request.ask_acceptance is not None or self.request.expectations_only
        hopeful = excuses.model_copy(update={"losses_accepted": can_accept})
        judgement = judge_check(renamed_base, after, hopeful)
        examined = LayerResult()
        if judgement.verdict is Verdict.PASS and keys is not None and not self.subject.snapshot.change.is_empty:
            examined = self.layers.examine(spec, before, renamed_base, after, judgement.comparison, keys, must_fail_run)
            self.subject.notes += examined.notes
        return self._judge(excuses, examined, after, before, renamed_base, keys)

    def judge_again(self, outcome: CheckOutcome) -> CheckOutcome:
        """Judge a check again after a person accepted findings, and record the new judgement if it is another."""
        if not select_used(self.accepted, outcome.all_findings):
            return outcome
        return self._judge(
            outcome.excuses, outcome.examined, outcome.after, outcome.before, outcome.renamed_base, outcome.keys
        )

    def _judge(
        self,
        excuses: RerunFindings,
        examined: LayerResult,
        after: CheckResult,
        before: CheckResult | None,
        renamed_base: CheckResult | None,
        keys: tuple[str, str] | None,
    ) -> CheckOutcome:
        """Judge a check with what is accepted so far, and record the result."""
        strict = judge_check(renamed_base, after, excuses)
        is_loss_accepted = are_losses_accepted(strict.comparison, self.accepted)
        judgement = judge_check(renamed_base, after, excuses.model_copy(update={"losses_accepted": is_loss_accepted}))
        judgement = judgement.add_layer_findings(
            downgrade_accepted(examined.findings, self.accepted), examined.edited, examined.not_measured
        )
        judgement = judgement.model_copy(
            update={"findings": tuple(downgrade_accepted(judgement.findings, self.accepted))}
        )
        seq = self.recorder.record_check(*self._measured.get(after.name, (before, after)), judgement, keys)
        line = build_check_line(after, before, judgement, seq, examined)
        self.context.progress.on_check_judged(line)
        return CheckOutcome(line, judgement, excuses, examined, after, before, renamed_base, keys)

    def _number_unstable_cases(
        self, spec: CheckSpec, before: CheckResult | None, after: CheckResult, keys: tuple[str, str] | None
    ) -> tuple[CheckResult | None, CheckResult]:
        """Return both results with unstable test ids replaced by positions. The base is run a second time only if ids
        of a test function are gone and others have appeared."""
        if keys is None or before is None or before.report is None or after.report is None:
            return before, after
        renames = self.subject.renames
        renamed = apply_renames(before, renames).report or before.report
        suspects = find_suspects(renamed, after.report)
        if not suspects:
            return before, after
        old_paths = {new: old for old, new in renames.items()}
        functions = [select_function(before.report.runner, name, old_paths) for name in sorted(suspects)]
        argv = self.derived_runs.select_tests(spec, before.report, functions)
        key = ResultCache.build_key(base_again=keys[0], functions=functions)
        try:
            again = (None if self.request.no_cache else self.recorder.cache.lookup(key)) or self.derived_runs.run(
                spec, before.tree, "base-again", argv=argv, of_base=True, key=key
            )
        except NotMeasuredError:
            return before, after  # then the tests that are gone are reported as such
        again_report = apply_renames(again, renames).report
        unstable = find_unstable(suspects, renamed, again_report, after.report) if again_report else None
        if unstable is None or not unstable.functions:
            return before, after
        self.subject.notes.append(unstable.describe())
        self._measured[spec.name] = before, after
        unstable = self._unstable[spec.name] = unstable.add_old_paths(renames)
        return number_unstable_cases(before, unstable), number_unstable_cases(after, unstable)

    @cached_property
    def reruns(self) -> Reruns:
        bare = replace(self.runner, sandbox=self.context.bare) if self.context.bare else None
        return Reruns(
            runner=self.runner,
            recorder=self.recorder,
            bare=bare,
            base=self.base,
            tree=self.tree,
            tests=self.context.settings.tests.model_copy(update={"allow_flaky": ("*",)})
            if self.request.flaky_allowed
            else self.context.settings.tests,
            reruns=self.context.settings.check.flaky_reruns,
            changed=tuple(file.path for file in self.subject.files),
            unstable=self._unstable,
        )

    def _make_derived_tree(self, tree: str, of_base: bool = False) -> TreeUnderCheck:
        folder = self.context.scratch / f"derived-{next(self._numbers)}"
        return (self.base if of_base else self.tree).derive(tree, folder)

    @cached_property
    def held_out_layer(self) -> tuple[Path, ...]:
        """The files of held-out checks as a layer over the tree. They never enter git's object store, which others can
        read."""
        files = read_held_out_files(self.request.heldout_files)
        return (write_layer(files, self.context.scratch / "held-out"),) if files else ()

    @cached_property
    def derived_runs(self) -> DerivedRuns:
        return DerivedRuns(
            runner=self.runner,
            store=self.context.store,
            snapshot=self.subject.snapshot,
            make_tree=self._make_derived_tree,
            recorder=self.recorder,
            builds={spec.name: spec for spec in self.subject.specs},
            unstable=self._unstable,
            read=self.subject.read,
        )

    @cached_property
    def call_repetition(self) -> CallRepetition:
        files = self.subject.files
        return CallRepetition(self.derived_runs, find_changed_functions(files), files, self._sabotage_seconds)

    @property
    def _sabotage_seconds(self) -> float:
        limits = self.context.settings.limits
        return float(min(limits.sabotage_seconds, limits.check_seconds))

    @cached_property
    def layers(self) -> LayerExaminer:
        needs = {spec.name: spec.needs for spec in self.subject.specs}
        base_specs = {
            spec.name: spec.model_copy(update={"needs": needs.get(spec.name, ())})
            for spec in self.subject.discoveries[0].specs
        }
        files, required = self.subject.files, self.request.must_pass
        reruns = self.context.settings.check.flaky_reruns
        oracle = frozenset(self.subject.oracle.find())
        sensitivity = SensitivityLayer(self.derived_runs, files, oracle, required, self._sabotage_seconds)
        level = StrengthLevel(self.request.strength or self.context.settings.check.strength)
        return LayerExaminer(
            old_tests=OldTests(
                self.derived_runs,
                self.subject.oracle,
                files,
                self.subject.renames,
                frozenset(map(decode_path, self.subject.tree_files[1])),
                base_specs,
                reruns,
            ),
            must_fail=MustFailLayer(
                self.derived_runs, self.subject.read, frozenset(file.path for file in files), required
            ),
            sensitivity=sensitivity,
            strength=StrengthLayer(self.derived_runs, sensitivity.source_files, self.subject.read, level),
            call_repetition=self.call_repetition,
            disguised_tests=DisguisedTests(self.reruns, self._sabotage_seconds),
            javascript_calls=JavaScriptCallRepetition(self.derived_runs, {}, files, self._sabotage_seconds),
            suppression_check=SuppressionCheck(self.derived_runs, self.subject.files_by_content, base_specs),
            needs_must_fail=self._needs_must_fail,
            recorder=self.recorder,
            accepted=self.accepted,
            fresh=self.request.no_cache,
            expectations_only=self.request.expectations_only,
        )


def build_check_line(
    result: CheckResult,
    before: CheckResult | None,
    judgement: CheckJudgement,
    seq: int,
    examined: LayerResult | None = None,
) -> CheckLine:
    """Build the report line of a check. It shows what a verify command printed; a held-out check stays unknown."""
    result = hide_held_out_output(result)
    is_shown = result.kind is CheckKind.VERIFY
    return CheckLine(
        name=result.name,
        kind=result.kind,
        tier=result.tier,
        verdict=judgement.verdict,
        baseline=before.verdict if before else None,
        duration_ms=result.duration_ms,
        reused=result.reused_from is not None,
        required=result.required,
        decides=result.decides,
        reason=judgement.reason,
        command=result.command,
        assurance=result.assurance,
        tests=result.report.executed_count if result.report else None,
        seq=seq,
        artifact=None if result.kind is CheckKind.HELD_OUT else result.artifact,
        exit_code=result.exit_code,
        remedy=result.remedy,
        output_tail=cut_to_tail(result.output) if is_shown else "",
        failures=list_failures(result) if is_shown and result.verdict is not Verdict.PASS else (),
        depends_on_change=bool(judgement.comparison.fixed or (examined and examined.sensitive)),
    )
