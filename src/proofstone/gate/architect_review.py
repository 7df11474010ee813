"""Ask the architect besides the rules: a command, a script, an agent or a person reviews the candidate.

Files that the architect writes are discarded. Only a verdict that follows the schema approves.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from proofstone.agents.executors.context import Architect, ExecutionContext
from proofstone.agents.executors.people import HumanArchitect
from proofstone.agents.gate_agents import AgentArchitect
from proofstone.agents.roles.models.gate import (
    ArchitectDecision,
    ArchitectVerdict,
    AttemptFailure,
    CheckSummary,
    FailureReason,
    FailureType,
    NoVerdict,
    PendingReview,
    Recommendation,
    ReviewRequest,
)
from proofstone.agents.sandbox_shell import ReadOnlyView, build_read_only_shell, find_sandbox_root
from proofstone.common.models import Verdict
from proofstone.common.secrets import is_secret_path
from proofstone.gate.context import GateContext
from proofstone.gate.execution import AttemptStoppedError
from proofstone.gate.models import AttemptApproved, AttemptFailed, Evidence, ReviewEscalated, ReviewFailed, TaskRecord
from proofstone.gate.rules.pass_rule import describe_added_file, find_unmet_by_architects
from proofstone.git.checkout import render_diff
from proofstone.machine.files import remove_folder
from proofstone.plans.models import PlanTask

_MAX_DIFF = 200_000


@dataclass
class ArchitectReviewer:
    """Runs the reviews of architects."""

    gate: GateContext
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def review(
        self, task: PlanTask, record: TaskRecord, architect: Architect
    ) -> AttemptApproved | AttemptFailed | ReviewEscalated | ReviewFailed | PendingReview:
        """Return the verdict or its absence as an event, or the question for a person."""
        evidence = record.evidence
        if evidence is None:
            raise AssertionError(f"{record.id} has nothing to review")
        scratch = self.gate.context.scratch / f"review-{next(self._numbers)}"
        world = self.gate.context_at(evidence.base_commit, task.id, record.attempt, scratch)
        with world.artifacts.open_writer(world.settings.limits.output_mb << 20) as sink:
            shell = build_read_only_shell(world, self._make_view(record, evidence), sink)
            site = ExecutionContext(
                work_tree=shell.view.files,
                scratch=scratch,
                run=shell,
                is_done=lambda: self.gate.journal.has_pending_command(task.id),
                say=lambda line: self.gate.observer.on_message(task.id, line),
                on_text=lambda text: self.gate.observer.on_output(task.id, text.encode("utf-8", "replace")),
                on_progress=lambda line: self.gate.observer.on_activity(task.id, line),
                sandbox_path=find_sandbox_root(shell),
                level=world.sandbox.level,
                secret=world.settings.tools.secret,
                cancel=world.cancel,
                mask=world.secrets,
            )
            with self.gate.lock_terminal(isinstance(architect, HumanArchitect)):
                answer = architect.review(self._make_request(task, record, evidence), site)
            world.ledger.append(sink.finish().to_row())
        remove_folder(scratch)
        if isinstance(answer, PendingReview):
            return answer
        if isinstance(answer, NoVerdict):
            return _handle_missing_verdict(record, answer, architect.spec)
        return make_review_event(record, answer)

    def _make_view(self, record: TaskRecord, evidence: Evidence) -> ReadOnlyView:
        return ReadOnlyView(
            tree=evidence.tree,
            commit=evidence.base_commit,
            seconds=self.gate.architect_seconds(record),
            network=self.gate.settings.network,
            pass_through=self.gate.settings.pass_through,
            hide_secrets=isinstance(self.gate.architect, AgentArchitect),
        )

    def _make_request(self, task: PlanTask, record: TaskRecord, evidence: Evidence) -> ReviewRequest:
        verify = [
            CheckSummary(
                name=f"verify: {run.command}",
                verdict=run.verdict,
                reason=f"exit code {run.exit_code}",
                output=run.output_tail,
            )
            for run in evidence.verify
        ]
        passed = [CheckSummary(name=name, verdict=Verdict.PASS) for name in evidence.passing]
        return ReviewRequest(
            run_id=self.gate.context.run_id,
            task_id=task.id,
            task_name=task.name,
            attempt=record.attempt,
            round=record.moves + len(record.review_failures) + 1,
            base_commit=evidence.base_commit,
            action=task.action,
            done=task.done,
            files=self.gate.journal.original_plan.get_task(task.id).files,
            files_added=(
                *map(describe_added_file, evidence.added_files),
                *(f"{path} was asked for by the executor and granted by rule" for path in evidence.granted),
            ),
            claim=record.claim,
            diff=self._show_diff(evidence),
            checks=(*verify, *passed),
            findings=record.concerns,
            previous_failures=record.failures,
            criteria=tuple(link.criterion for link in evidence.criteria if link.is_prose),
            deadline_seconds=self.gate.architect_seconds(record),
        )

    def _show_diff(self, evidence: Evidence) -> str:
        git, hidden = self.gate.context.store.git(), self._find_secret_files(evidence)
        return render_diff(git, evidence.base_commit, evidence.tree, hidden, _MAX_DIFF)

    def _find_secret_files(self, evidence: Evidence) -> list[str]:
        """Return changed files whose content no agent may see."""
        if not isinstance(self.gate.architect, AgentArchitect):
            return []
        secret_patterns = self.gate.context.settings.tools.secret
        return [path for path in evidence.changed if is_secret_path(path, secret_patterns)]


def make_review_event(
    record: TaskRecord, verdict: ArchitectVerdict
) -> AttemptApproved | AttemptFailed | ReviewEscalated:
    """Return the event that follows from a verdict, together with those already recorded."""
    is_approval = verdict.verdict is ArchitectDecision.APPROVED
    is_hesitant = is_approval and verdict.recommendation is not Recommendation.COMMIT
    if is_hesitant or verdict.recommendation is Recommendation.MANUAL_REVIEW:
        return ReviewEscalated(verdict=verdict)
    verdicts = (*record.verdicts, verdict)
    if is_approval:
        return AttemptApproved(verdicts=verdicts)
    reasons = find_unmet_by_architects(record.evidence, verdicts) if record.evidence else ()
    return make_rejection(record, reasons, (verdict,))


def describe_escalation(verdict: ArchitectVerdict) -> str:
    """Describe why an architect asks for a person."""
    return f"{verdict.by} asks for a person: {verdict.feedback or '; '.join(verdict.concerns) or 'no reason given'}"


def make_rejection(
    record: TaskRecord, reasons: tuple[FailureReason, ...], verdicts: tuple[ArchitectVerdict, ...] = ()
) -> AttemptFailed:
    """Build the failure of an attempt that was rejected. It keeps the checks that passed on record."""
    said = next((verdict.feedback for verdict in verdicts if verdict.feedback), "")
    error = said or (reasons[0].detail if reasons else "rejected")
    failure = AttemptFailure(
        attempt=record.attempt,
        type=FailureType.ARCHITECT_REJECTION,
        error=error.splitlines()[0],
        reasons=reasons,
        passed=record.evidence.passing if record.evidence else (),
        verdicts=verdicts,
    )
    return AttemptFailed(failure=failure, tree=record.tree, claim=record.claim)


def _handle_missing_verdict(record: TaskRecord, answer: NoVerdict, spec: str) -> ReviewFailed:
    if answer.cancelled:
        raise AttemptStoppedError
    detail = f"{spec}: {answer.why}"
    failure = AttemptFailure(
        attempt=record.attempt,
        type=FailureType.TIMEOUT if answer.timed_out else FailureType.MALFORMED,
        error=answer.why.splitlines()[0],
        reasons=(FailureReason(check="architect", layer="gate", verdict=Verdict.UNVERIFIABLE, detail=detail),),
        missing_program=answer.missing_program,
    )
    return ReviewFailed(failure=failure)
