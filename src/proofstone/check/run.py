"""Run `proofstone check`, from the work tree to the verdict.

The steps are: freeze the tree → inspect the changed files → run each check on the base and on the change → decide →
record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property

from proofstone import __version__
from proofstone.check.all_checks import AllChecks, CheckOutcome, build_check_line
from proofstone.check.cache import ResultCache
from proofstone.check.context import CheckRequest, RunContext
from proofstone.check.dispute_records import find_disputes
from proofstone.check.inspection import (
    KNOWN_SECRET_RULE,
    Inspection,
    find_added_secrets,
    find_weakened_settings,
    inspect_files,
    inspect_readiness,
    is_documentation_only,
    is_large,
)
from proofstone.check.integrity import find_environment_tampering
from proofstone.check.models import CheckKind, CheckLine, CheckReport, CheckResult, CheckRunConfig, TestRun
from proofstone.check.recording import CheckRecorder
from proofstone.check.rules import outcome as outcome_rules
from proofstone.check.rules.acceptance import (
    downgrade_accepted,
    find_acceptable,
    select_used,
)
from proofstone.check.rules.compare import check_must_pass
from proofstone.check.rules.confidence import CheckGrounds, list_failing_without, rate_check
from proofstone.check.rules.disputes import RecordedDispute, accept_by_decisions, apply_disputes
from proofstone.check.rules.judge import CheckJudgement
from proofstone.check.rules.outcome import (
    EvidenceLayer,
    decide_outcome,
    find_weakest_level,
)
from proofstone.check.rules.protected import find_roles
from proofstone.check.rules.result_findings import merge_syntax_errors
from proofstone.check.rules.strength import hide_secrets, measure_strength
from proofstone.check.static_scan import (
    SPECIAL_CASING,
    build_include_note,
    find_ignored_modules,
    find_loosened,
    find_special_casing,
    scan_changes,
)
from proofstone.check.subject import CheckSubject
from proofstone.common.globs import find_undeclared
from proofstone.common.models import Acceptance, Finding, Outcome, Phase, Severity, Verdict, VerdictDispute
from proofstone.errors import LedgerError
from proofstone.git.program import decode_path
from proofstone.git.snapshot import find_changes_between
from proofstone.ledger.repository_anchors import anchor_head

_MAX_MOVED = 20
_MAX_LEFTOVERS = 5


class CheckRun:
    """One run of `proofstone check`."""

    def __init__(self, context: RunContext, request: CheckRequest) -> None:
        self.context = context
        self.request = request
        cache = ResultCache(context.home / "cache" / "results", context.ledger)
        self.recorder = CheckRecorder(
            context.run_id, context.ledger, cache, context.artifacts, context.task_id, context.attempt
        )
        self.subject = CheckSubject(context, request)
        self.all_checks = AllChecks(context, request, self.subject, self.recorder)
        self.subject.notes += context.notes
        self.test_runs: tuple[TestRun, ...] = ()
        """The test results of all checks, after the run."""

    def run(self) -> CheckReport:
        """Check the change, record the run in the ledger and return the report."""
        context = self.context
        context.progress.on_step("freezing the work tree")
        config = CheckRunConfig(
            version=__version__,
            repository=str(context.repository.root),
            base_commit=context.base_commit,
            tree=self.subject.snapshot.tree,
            frozen=self.subject.frozen_snapshot.tree,
            base=self.subject.snapshot.base,
            base_reason=context.base_reason,
            sandbox=context.sandbox.level.value,
        )
        self.recorder.record_event("run.started", **config.model_dump(mode="json"))
        try:
            report = self._check_unchanged() if self.subject.frozen_snapshot.change.is_empty else self.run_checks()
        except BaseException as error:
            with suppress(LedgerError):  # the original error matters more than a failure to record it
                self.recorder.record_event("run.finished", outcome="interrupted", reason=_describe_error(error))
            raise
        if self.request.use_worktree_config:
            self.recorder.record_event("settings.own", reason="the person used the settings of the work tree")
        for acceptance in report.accepted:
            self.recorder.record_event("finding.accepted", **acceptance.model_dump(mode="json"))
        repairs = self._repairs()
        if repairs:
            self.recorder.record_event("state.repaired", what=repairs)
        report = report.model_copy(update={"notes": (*self.subject.notes, *repairs)})
        artifact = context.artifacts.put(report.model_dump_json().encode())  # `proofstone status` shows it again
        context.ledger.append(artifact.to_row("application/json"))
        self.recorder.record_event(
            "run.finished", outcome=report.outcome.value, reason=report.reason, report=artifact.hash
        )
        self._anchor()
        return report.model_copy(update={"notes": (*self.subject.notes, *repairs)})

    def _repairs(self) -> list[str]:
        """Return what was damaged in Proofstone's own state and has been rebuilt."""
        return [*dict.fromkeys((*self.context.store.repairs, *self.recorder.cache.repairs))]

    def _check_unchanged(self) -> CheckReport:
        """Return the report on a work tree that equals its base. It never passes, because there is no change to prove.

        An author who disputes the task and changed nothing waits for a decision.
        Nothing is run, unless the user demands a command or a test, which must hold all the same. What is wrong beside
        the tree is found too, such as a nested repository or a test runner that was tampered with.
        """
        if self.request.verify or self.request.must_pass or self.request.heldout:
            report = self.run_checks()
            if report.outcome is not Outcome.PASSED:
                return report
            reason = self._describe_nothing("what you asked for holds, but nothing is proven about a change")
            return report.model_copy(
                update={"outcome": Outcome.NOTHING_TO_CHECK, "reason": reason, "confidence": None, "reasons": ()}
            )
        self._apply_decisions()
        found, accepted = self._find_without_running(), self.all_checks.accepted
        findings = downgrade_accepted(found, accepted)
        outcome, reason = decide_outcome([], findings, documentation_only=True)
        if outcome is Outcome.PASSED:
            reason = self._describe_nothing("so nothing was run and nothing is proven")
            outcome = Outcome.NOTHING_TO_CHECK
        outcome, reason = apply_disputes(outcome, reason, [], findings, self._open_disputes)
        return self._report([], findings, [], outcome, reason, select_used(accepted, found))

    def _describe_nothing(self, consequence: str) -> str:
        subject = "what is staged" if self.request.staged or self.request.tree else "the work tree"
        why = f" ({self.context.base_reason})" if self.context.base_reason else ""
        return (
            f"{subject} equals {self.context.base_commit[:12]}{why}, {consequence}. To check commits that are made "
            "already, name the commit before them: `proofstone check --base REV`"
        )

    def run_checks(self) -> CheckReport:
        """Run all checks and return the report. The caller records the beginning and the end of the run."""
        lines: list[CheckLine] = []
        self.subject.notes += self.subject.discoveries[1].notes
        self._apply_decisions()
        findings = self._find_without_running()
        for inspection, inspection_findings in self._inspect():
            findings += inspection_findings
            lines.append(self._record_inspection(inspection))
        if self._nothing_executes():
            lines.append(self._record_inspection(_build_infeasible_result(self.subject.snapshot.tree)))
        self.all_checks.set_up()
        judged: Sequence[CheckOutcome] = self.all_checks.run()
        reports = [result.report for result in judged if result.report]
        # If a run died, it is unknown which tests were executed. The check reports that already.
        died = any(
            result.death and result.line.required and result.line.verdict is Verdict.UNVERIFIABLE for result in judged
        )
        findings += check_must_pass(self.request.must_pass, reports, all_measured=not died)
        findings += self._find_changed_meanwhile()
        judged = self._ask_person(findings, judged)
        accepted = self.all_checks.accepted
        used = select_used(accepted, [*findings, *(finding for result in judged for finding in result.all_findings)])
        findings = downgrade_accepted(findings, accepted)
        special = {(finding.path, finding.line) for finding in findings if finding.rule == SPECIAL_CASING}
        findings += [
            finding
            for result in judged
            for finding in result.judgement.findings
            if finding.rule != SPECIAL_CASING or (finding.path, finding.line) not in special
        ]
        lines += [result.line for result in judged]
        findings = merge_syntax_errors(findings)
        outcome, reason = decide_outcome(
            lines, findings, documentation_only=is_documentation_only(self.subject.snapshot)
        )
        outcome, reason = apply_disputes(outcome, reason, lines, findings, self._open_disputes)
        self._note_ignored_modules(judged)
        self.test_runs = tuple(
            TestRun(check=result.line.name, base=result.base_report, now=result.report)
            for result in judged
            if result.base_report or result.report
        )
        if outcome is Outcome.PASSED and self.all_checks.prepared:
            self.all_checks.prepared.promote()
        return self._report(lines, findings, judged, outcome, reason, used)

    def _ask_person(self, findings: Sequence[Finding], judged: Sequence[CheckOutcome]) -> Sequence[CheckOutcome]:
        """Ask a person about findings that refuse the change and that a person may accept. Return the checks, judged
        again with what the person accepted."""
        ask = self.request.ask_acceptance
        if ask is None:
            return judged
        accepted = self.all_checks.accepted
        refusing = downgrade_accepted(findings, accepted)
        refusing += [finding for result in judged for finding in result.judgement.findings]
        answered = tuple(ask(refusing)) if find_acceptable(refusing) else ()
        if not answered:
            return judged
        self.all_checks.accepted = (*accepted, *answered)
        return [self.all_checks.judge_again(result) for result in judged]

    @cached_property
    def _open_disputes(self) -> tuple[VerdictDispute, ...]:
        """What somebody disputes about this tree and a person has not decided."""
        return tuple(dispute.to_verdict() for dispute in self._disputes if dispute.is_open)

    @cached_property
    def _disputes(self) -> tuple[RecordedDispute, ...]:
        trees = {self.subject.snapshot.tree, self.subject.frozen_snapshot.tree}
        return find_disputes(self.context.ledger, trees)

    def _inspect(self) -> list[Inspection]:
        inspections = inspect_files(
            self.subject.files, self.subject.snapshot.tree, max_file_kb=self.context.settings.check.max_file_kb
        )
        if not self.is_large:
            return inspections
        known_secrets = {
            (finding.path, finding.line) for finding in self._secret_findings if finding.rule == KNOWN_SECRET_RULE
        }
        return inspections + inspect_readiness(self.subject.files, self.subject.snapshot.tree, known_secrets)

    @cached_property
    def _secret_findings(self) -> list[Finding]:
        """Keys and tokens that the change adds. A moved file adds none."""
        return find_added_secrets(self.subject.files_by_content, self.context.secrets)

    @cached_property
    def is_large(self) -> bool:
        """Whether the change touches files that are known, or declared, to be dangerous."""
        return is_large(self.subject.files) or any(
            not find_undeclared([file.path], self.context.settings.check.large) for file in self.subject.files
        )

    def _nothing_executes(self) -> bool:
        """Return whether no check of any tier executes the project although the change is more than documentation."""
        specs = self.subject.specs
        has_runtime_check = outcome_rules.has_runtime_check(specs) or any(spec.tier == 3 for spec in specs)
        return (
            not has_runtime_check
            and not is_documentation_only(self.subject.snapshot)
            and not self.subject.snapshot.change.is_empty
        )

    def _record_inspection(self, result: CheckResult) -> CheckLine:
        judgement = CheckJudgement(verdict=result.verdict, reason=result.reason)
        seq = self.recorder.record_check(None, result, judgement, None)
        line = build_check_line(result, None, judgement, seq)
        self.context.progress.on_check_judged(line)
        return line

    def _find_without_running(self) -> list[Finding]:
        """Return the findings that need no check to run."""
        return [
            *self.subject.snapshot.findings,
            *self._find_out_of_scope(),
            *self._find_removed_linters(),
            *find_weakened_settings(self.context.store.git(), self.subject.snapshot, self.subject.list_base_setup),
            *self._secret_findings,
            *find_loosened(
                self.subject.files_by_content, map(decode_path, self.subject.tree_files[1]), self.subject.read
            ),
            *scan_changes(self.subject.files),
            *find_special_casing(
                self.subject.files_by_content, map(decode_path, self.subject.tree_files[1]), self.subject.read
            ),
            *find_environment_tampering(self.subject.environment.dependencies, self.context.repository.root),
        ]

    def _find_out_of_scope(self) -> list[Finding]:
        """Return a finding for each changed file that `--files` does not declare. Protected files among them were
        reverted."""
        if not self.request.files:
            return []
        outside = find_undeclared((path.path for path in self.subject.frozen_snapshot.change.paths), self.request.files)
        protected = self.subject.reverted_paths
        return [
            _build_protected_finding(path) if path in protected else _build_undeclared_finding(path) for path in outside
        ]

    def _find_changed_meanwhile(self) -> list[Finding]:
        """Return a finding for each file of the work tree that changed during the check. Without this, `proofstone
        check && git commit -a` would prove nothing."""
        if self.request.tree is not None:
            return []  # no work tree was checked
        moved = find_changes_between(self.context.store, self.subject.frozen_snapshot, self.subject.freeze())
        return [
            Finding(
                layer=EvidenceLayer.FROZEN_TREE,
                rule="work-tree-moved",
                severity=Severity.MAJOR,
                path=decode_path(entry.path),
                detail="changed during the check: the file that was checked is not the file in the work tree now",
                fix="check again, and do not change files during the check",
            )
            for entry in moved[:_MAX_MOVED]
        ]

    def _find_removed_linters(self) -> list[Finding]:
        """Return a finding for each linter whose configuration the change removes. Otherwise the missing complaints
        would go unnoticed."""
        return [
            Finding(
                layer="cascade",
                rule="check-dropped",
                severity=Severity.MINOR,
                detail=f"{spec.name}: the base's files configure it ({spec.evidence}), but the change removes that",
                fix="restore the configuration, unless the project should no longer use it",
            )
            for spec in self.subject.dropped_specs
        ]

    def _report(
        self,
        lines: Sequence[CheckLine],
        findings: Sequence[Finding],
        judged: Sequence[CheckOutcome],
        outcome: Outcome,
        reason: str,
        accepted: Sequence[Acceptance],
    ) -> CheckReport:
        def ids(select: Callable[[CheckOutcome], tuple[str, ...]]) -> tuple[str, ...]:
            return tuple(sorted({test for result in judged for test in select(result)}))

        if self.subject.frozen_snapshot.leftovers:
            self.subject.notes.append(_describe_leftovers(self.subject.frozen_snapshot.leftovers))
        for path in self.subject.empty_submodules:
            self.subject.notes.append(f"the submodule {path} is not initialised here, so checks see it empty")
        sensitive = ids(lambda result: result.examined.sensitive)
        assurance = find_weakest_level([line.assurance for line in lines])
        fixed = ids(lambda result: result.judgement.comparison.fixed)
        measured = measure_strength(
            [mutant for result in judged for mutant in result.examined.mutants],
            max((result.examined.untried for result in judged), default=0),
        )
        strength = hide_secrets(measured, findings)
        rating = rate_check(
            CheckGrounds(
                outcome=outcome,
                reason=reason,
                checks=lines,
                findings=findings,
                gaps=[gap for result in judged for gap in result.examined.reasons],
                uncovered=[gap for result in judged for gap in result.examined.uncovered],
                failing_without=list_failing_without(sensitive, fixed, lines),
                accepted=accepted,
                documentation_only=is_documentation_only(self.subject.snapshot),
                source_changed=bool(self.all_checks.layers.sensitivity.source_files),
                strength=strength,
                strength_threshold=self.context.settings.check.strength_threshold,
            )
        )
        return CheckReport(
            run_id=self.context.run_id,
            tree=self.subject.snapshot.tree,
            frozen=self.subject.frozen_snapshot.tree,
            base=self.subject.snapshot.base,
            base_commit=self.context.base_commit,
            base_reason=self.context.base_reason,
            outcome=outcome,
            reason=reason,
            confidence=rating.confidence,
            reasons=rating.reasons,
            assurance=assurance,
            checks=tuple(lines),
            findings=tuple(findings),
            regressions=ids(lambda result: result.judgement.comparison.regressions),
            fixed=fixed,
            standing=ids(lambda result: result.judgement.comparison.standing),
            edited=ids(lambda result: result.examined.edited),
            sensitive=sensitive,
            strength=strength,
            flaky=ids(lambda result: result.excuses.flaky),
            unverifiable_tests=ids(lambda result: result.excuses.sandbox_only),
            changed=tuple(path.path for path in self.subject.snapshot.change.paths),
            accepted=tuple(accepted),
            disputes=self._open_disputes,
            notes=(),
            ledger=str(self.context.ledger_path),
        )

    def _apply_decisions(self) -> None:
        """Accept and note what a person decided about disputes of this tree."""
        self.all_checks.accepted += accept_by_decisions(self._disputes)
        for dispute in self._disputes:
            if dispute.decision is not None:
                by = f"{dispute.decided_by} decided about {dispute.subject}"
                self.subject.notes.append(f"{by}: {dispute.decision}: {dispute.reason}")

    def _note_ignored_modules(self, judged: Sequence[CheckOutcome]) -> None:
        outputs = [result.output for result in judged if result.line.verdict is not Verdict.PASS]
        tracked = frozenset(decode_path(path) for path in self.subject.tree_files[1]) if outputs else frozenset()
        if missed := find_ignored_modules(outputs, self.context.repository.root, tracked):
            self.subject.notes.append(build_include_note(missed))

    def _anchor(self) -> None:
        problem = anchor_head(self.context.ledger, self.context.home, self.context.repository)
        if problem:
            self.subject.notes.append(f"the ledger's head could not be anchored: {problem}")


def _describe_leftovers(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MAX_LEFTOVERS} more" if len(paths) > _MAX_LEFTOVERS else ""
    return (
        "not part of the change, because running the project leaves them behind: "
        f"{', '.join(paths[:_MAX_LEFTOVERS])}{more}; list them in .gitignore"
    )


def _build_undeclared_finding(path: str) -> Finding:
    return Finding(
        layer="scope",
        rule="undeclared-file",
        severity=Severity.MAJOR,
        path=path,
        detail="changed, but not among the files that --files declares",
        fix="undo the change to it, or declare it",
    )


def _build_protected_finding(path: str) -> Finding:
    role = ", ".join(sorted(find_roles(path)))
    return Finding(
        layer=EvidenceLayer.PROTECTED_FILES,
        rule="protected-file",
        severity=Severity.MAJOR,
        path=path,
        detail=f"changed without being declared, and it decides what counts as proof ({role}); checks ran with the "
        "base's version",
        fix="undo the change to it; if the task is to change it, declare it",
    )


def _describe_error(error: BaseException) -> str:
    return str(error).encode("utf-8", "backslashreplace").decode("utf-8") or type(error).__name__


def _build_infeasible_result(tree: str) -> CheckResult:
    """Return the result that records that a tier-3 check was due but impossible. It never passes."""
    return CheckResult(
        name="tier3-infeasible",
        kind=CheckKind.SMOKE,
        tier=3,
        tool="proofstone",
        command="",
        phase=Phase.AFTER,
        tree=tree,
        verdict=Verdict.UNVERIFIABLE,
        reason="nothing executes the project, and no changed file can be loaded by itself",
        required=False,
    )
