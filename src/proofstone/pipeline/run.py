"""A run of the whole pipeline: it performs the effects of `pipeline.rules.loop`.

Every answer, approval, check and part is recorded before the loop receives it. A run that was killed, or that waits for
a person, executes the loop again and performs only the missing effects. The plan gate and the task gate are child runs,
whose ids are recorded before they start.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final, Protocol, get_args

from pydantic import JsonValue

from proofstone.agents.memory.rules.lessons import select_proposals
from proofstone.agents.roles.models.gate import CheckSummary, RetryDirection
from proofstone.agents.roles.models.pipeline import KnowledgeOutput, Lesson
from proofstone.agents.rules.budget import build_cost_fields
from proofstone.auditor.delivery import send_audit_report
from proofstone.auditor.rules.report import list_findings
from proofstone.auditor.tap import audit_run_with_parts
from proofstone.check.context import RunContext
from proofstone.common.models import Acceptance, BudgetUsage, Lane, Verdict
from proofstone.errors import RepositoryError
from proofstone.gate.models import RunOutcome
from proofstone.gate.rules.direction import build_plan_directive
from proofstone.gate.rules.pages import format_duration
from proofstone.git.commit import CommitIdentity
from proofstone.ledger.connection import ledger_path
from proofstone.machine.files import write_atomic
from proofstone.pipeline.agents import PipelineAgents, RequestContext, build_agent_request
from proofstone.pipeline.bundle_builder import build_bundle
from proofstone.pipeline.journal import PipelineJournal, PipelineObserver
from proofstone.pipeline.merged_tree import LedgerEvidence, MergedTree, commit_merged, to_reviewed_checks
from proofstone.pipeline.models.run import (
    AddedRequirement,
    ApprovalRequest,
    GateSummary,
    PipelineRunConfig,
    PlanGateSummary,
    RunMode,
    RunReport,
)
from proofstone.pipeline.rules.approvals import build_commit_message
from proofstone.pipeline.rules.building import select_accepted_tasks
from proofstone.pipeline.rules.bundle_page import render_bundle_page
from proofstone.pipeline.rules.documents import build_task_documents
from proofstone.pipeline.rules.effects import (
    AgentFailure,
    AgentReply,
    ApprovalDecision,
    AskAgent,
    AskForApproval,
    AskKnowledge,
    AskPlan,
    AskReview,
    AwaitFix,
    CheckCounts,
    CommitChange,
    CommitResult,
    CountChecks,
    CountReviews,
    FixOrdered,
    Implement,
    MergedCheckResult,
    PendingAnswer,
    PipelineEffect,
    PipelineEffectResult,
    PipelineGoal,
    PipelineResult,
    PlanGateResult,
    RecordNote,
    ReviewCounts,
    RunAllChecks,
    TaskGateResult,
    VerifyPlan,
)
from proofstone.pipeline.rules.endings import list_partial_results, suggest_next_moves
from proofstone.pipeline.rules.loop import deliver
from proofstone.pipeline.rules.memory_entries import build_run_entries
from proofstone.pipeline.rules.planning import explain_outgrown_lane
from proofstone.pipeline.supervision_hooks import PLANNING_POINT_PREFIX, Amendments, PipelineMemory
from proofstone.plans.models import Plan
from proofstone.plans.parser import read_plan
from proofstone.runtime.context import Deadline
from proofstone.runtime.pause import pause_for_person
from proofstone.runtime.rules import EffectDone
from proofstone.runtime.run_index import record_early_end
from proofstone.runtime.workflow import Handler, Handlers, Operation, drive, encode_result

BUNDLE_NAME: Final = "evidence-bundle.md"
PIPELINE_JOBS: Final = 4
"""The number of agents that work at the same time."""

AskApproval = Callable[[ApprovalRequest], tuple[str, str] | None]
"""Ask the user, if someone can answer now. Return the option and a comment, or None if nobody can answer."""


class ChildRuns(Protocol):
    """The child runs of this run."""

    def verify_plan(self, run_id: str, iteration: int, plan: Path, tip: str) -> PlanGateSummary | PendingAnswer: ...

    def implement(
        self, run_id: str, iteration: int, plan: Path, base: str, *, lane: str
    ) -> GateSummary | PendingAnswer: ...

    def unpin(self) -> None:
        """Unpin the commits of tasks, which are now part of the one commit."""
        ...

    def read_spent(self, run_ids: Sequence[str]) -> BudgetUsage: ...

    def count_dispatches(self, run_ids: Sequence[str]) -> int: ...


@dataclass
class PipelineRun:
    context: RunContext
    setup: PipelineRunConfig
    journal: PipelineJournal
    agents: PipelineAgents
    memory: PipelineMemory
    amendments: Amendments
    parts: ChildRuns
    observer: PipelineObserver
    ask: AskApproval
    author: CommitIdentity
    deadline: Deadline
    sign: bool = False
    decided_by: str = "person"
    resumed: bool = False
    _checks: tuple[CheckSummary, ...] = ()
    """The results of the last checks on the merged tree, for reviewers."""
    _plans: list[Plan] = field(default_factory=list)
    """The plans so far, with those of their tasks whose work is in the tip."""
    _proposals: list[Lesson] = field(default_factory=list)
    """What the knowledge role has proposed for files that instruct agents."""
    _directives: int = 0
    """The number of directives of the controller so far."""
    _tip: str = ""
    _started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._earlier_ms = self.journal.read_work_ms()
        self._tip = self.context.base_commit

    @property
    def run_id(self) -> str:
        return self.context.run_id

    def run(self) -> RunReport:
        """Run to the commit, to a refusal, or to a question for the user."""
        self.observer.on_run_started(self.run_id, self.setup, resumed=self.resumed)
        with record_early_end(self.journal.ledger, self.run_id, self.context.cancel):
            report = self._drive()
        report = report.model_copy(update={"bundle": str(self.folder / BUNDLE_NAME)})
        patch = self.folder / "change.patch"
        moves = suggest_next_moves(report, str(patch) if patch.is_file() else "")
        report = report.model_copy(update={"next_moves": moves})
        self._remember(report)
        self.journal.record_report(report)
        send_audit_report(self.context.ledger, self.run_id)
        self._write_bundle()
        return report

    def _remember(self, report: RunReport) -> None:
        """Leave in the memory how the run went, and in the ledger what was decided and proposed."""
        commands = [command for plan in self._plans for task in plan.tasks for command in task.verify]
        if told := self.memory.store_course(lambda at: build_run_entries(report, commands, at)):
            self.observer.on_note("memory", told)
        self.journal.record_decisions(self.agents.documents.decisions, self.setup.repository)
        self.journal.record_proposals(self._proposals, self.setup.repository)

    def _write_bundle(self) -> None:
        """Write the readable evidence, made from the ledger alone."""
        bundle = build_bundle(self.context.ledger, self.run_id)
        self.agents.documents.write({BUNDLE_NAME: render_bundle_page(bundle)})
        self.agents.documents.write_task_documents(build_task_documents(bundle), is_committed=bool(bundle.commits))
        self.agents.documents.flush()

    def _drive(self) -> RunReport:
        self.agents.documents.write_request(self.setup.request)
        delivered = drive(
            deliver(self._feature),
            self._handlers,
            self.journal.steps,
            self.observer,
            max_parallel=PIPELINE_JOBS,
            cancel=self.context.cancel,
        )
        return self._build_report(delivered)

    @property
    def _handlers(self) -> Handlers:
        """The handler of each effect. Whatever does more than take a note ends with the time of the run."""
        timed: Handlers = {
            AskForApproval: self._approve,
            AwaitFix: self._await_fix,
            VerifyPlan: self._verify_plan,
            Implement: self._implement,
            RunAllChecks: self._run_checks,
            CountReviews: self._count_reviews,
            CountChecks: self._count_checks,
            CommitChange: self._commit,
            **dict.fromkeys(get_args(AskAgent), self._ask_agent),
        }
        return {RecordNote: self._record_note, **{kind: self._within_deadline(timed[kind]) for kind in timed}}

    def _within_deadline(self, handler: Handler) -> Handler:
        def build_operation(effect: PipelineEffect) -> Operation[PipelineEffectResult]:
            self.deadline.raise_if_over()
            return handler(effect)

        return build_operation

    @property
    def _feature(self) -> PipelineGoal:
        setup = self.setup
        return PipelineGoal(
            run_id=self.run_id,
            slug=setup.slug,
            request=setup.request,
            lane=setup.lane,
            lane_reason=setup.lane_reason,
            mode=setup.mode,
            proceed_on_pushback=setup.proceed_on_pushback,
            base_commit=setup.base_commit,
            minutes=setup.minutes,
            concerns=setup.concerns,
            weights=setup.weights,
            forbidden=setup.forbidden,
        )

    def _ask_agent(self, effect: AskAgent) -> Operation[AgentReply | AgentFailure]:
        tip = effect.tip if isinstance(effect, AskReview | AskKnowledge) and effect.tip else self._tip
        merged = MergedTree(self.context, tip)
        self.agents.prepare(merged.tree, tip)
        request = build_agent_request(effect, self._build_context(effect, merged))
        operation = self.agents.build_operation(request, merged.tree, tip)
        return replace(operation, on_result=self._store_lessons)

    def _store_lessons(self, result: AgentReply | AgentFailure) -> None:
        """Store the answer of the knowledge keeper."""
        if isinstance(result, AgentReply) and isinstance(result.output, KnowledgeOutput):
            self._proposals += select_proposals(result.output)
            self.observer.on_note("knowledge", self.memory.store_lessons(result.output))

    def _build_context(self, effect: PipelineEffect, merged: MergedTree) -> RequestContext:
        concerns_code = isinstance(effect, AskKnowledge) or (isinstance(effect, AskReview) and effect.scope == "code")
        return RequestContext(
            run_id=self.run_id,
            request=self.setup.request,
            diff=merged.build_diff() if concerns_code and merged.tip != self.context.base_commit else "",
            checks=self._checks if concerns_code else (),
            events=self.journal.read_notes() if isinstance(effect, AskKnowledge) else (),
            learnt=self.memory.recall_lessons(self.setup.request) if isinstance(effect, AskPlan) else (),
            added=self._read_additions(f"{PLANNING_POINT_PREFIX}{effect.iteration}")
            if isinstance(effect, AskPlan)
            else (),
        )

    def _read_additions(self, point: str) -> tuple[str, ...]:
        """Return the user's additions that no plan before this point contains and no task has taken in. They are
        recorded: a resumed run gets the same additions at the same point, and later ones later.
        """
        return self.amendments.read_unplanned(point)

    def _late_additions(self, delivered: PipelineResult) -> tuple[str, ...]:
        """Return requested additions that the commit does not contain."""
        return self.amendments.find_unplanned_at_end() if delivered.commit else ()

    def _record_note(self, effect: RecordNote) -> Operation[EffectDone]:
        def record() -> EffectDone:
            if isinstance(effect.data, RetryDirection):
                self._publish_directive(effect.data)
            self.journal.record_note(effect.kind, effect.text, effect.data)
            self.observer.on_note(effect.kind, effect.text)
            return EffectDone()

        return Operation(record)

    def _publish_directive(self, direction: RetryDirection) -> None:
        """Send the controller's decision to the planner. A resumed run sends the same ones, which are sent once."""
        self._directives += 1
        payload = build_plan_directive(self.run_id, direction).model_dump(mode="json")
        name = f"run/directive-{self._directives}"
        self.memory.bus.publish("controller", "planner", "PlanDirective", payload, message_id=name)

    # Approvals.

    def _approve(self, effect: AskForApproval) -> Operation[ApprovalDecision | PendingAnswer]:
        return Operation(partial(self._ask_for_approval, effect))

    def _ask_for_approval(self, effect: AskForApproval) -> ApprovalDecision | PendingAnswer:
        request = self._with_elapsed_time(effect.request)
        decision = self.journal.read_decision(request.gate_id)
        if decision is None and self.setup.mode is RunMode.AUTONOMOUS and not effect.by_person:
            decision = request.default.id, ""
            self.journal.record_decision(request, request.default.id, "", "proofstone", self.setup.mode, auto=True)
        elif decision is None:
            decision = self._ask_person(request)
            if decision is None:
                return PendingAnswer(request.question, f"proofstone approve {self.run_id} {request.gate_id} OPTION")
            self.journal.record_decision(request, *decision, self.decided_by, self.setup.mode, auto=False)
        self.agents.documents.write_approvals(self.journal.list_approvals())
        self.observer.on_approval(
            next(approval for approval in self.journal.list_approvals() if approval.gate_id == request.gate_id)
        )
        return ApprovalDecision(*decision)

    def _ask_person(self, request: ApprovalRequest) -> tuple[str, str] | None:
        started = time.monotonic()
        with pause_for_person(self.context.ledger, self.run_id, self.deadline):
            decision = self.ask(request)
        self._started += time.monotonic() - started
        return decision

    def _await_fix(self, effect: AwaitFix) -> Operation[FixOrdered | PendingAnswer]:
        def find_order() -> FixOrdered | PendingAnswer:
            if self.journal.count_fix_orders() >= effect.number:
                return FixOrdered()
            return PendingAnswer("a blocker halts the run", f"proofstone resume {self.run_id}")

        return Operation(find_order)

    def _with_elapsed_time(self, request: ApprovalRequest) -> ApprovalRequest:
        """Add the elapsed time to the request: the loop has no clock."""
        metadata = request.metadata.model_copy(update={"elapsed_time": format_duration(self._elapsed_ms / 1000)})
        return request.model_copy(update={"metadata": metadata})

    # Parts.

    def _verify_plan(self, effect: VerifyPlan) -> Operation[PlanGateResult | PendingAnswer]:
        def verify(run_id: str, plan: Path) -> PlanGateResult | PendingAnswer:
            summary = self.parts.verify_plan(run_id, effect.iteration, plan, self._tip)
            return summary if isinstance(summary, PendingAnswer) else PlanGateResult(summary)

        return Operation(
            perform=lambda: verify(*self._start_child("plan", effect.iteration, effect.text)),
            step=f"plan/{effect.iteration}",
            input=effect.text,
            encode=_encode_unless_pending,
        )

    def _implement(self, effect: Implement) -> Operation[TaskGateResult | PendingAnswer]:
        def implement(run_id: str, plan: Path) -> TaskGateResult | PendingAnswer:
            summary = self.parts.implement(run_id, effect.iteration, plan, effect.base, lane=effect.lane)
            return summary if isinstance(summary, PendingAnswer) else TaskGateResult(summary, self._elapsed_ms)

        def follow(result: TaskGateResult | PendingAnswer) -> None:
            if isinstance(result, TaskGateResult):
                plan, _ = read_plan(effect.text, "plan.md")
                self._plans += [select_accepted_tasks(plan, result.summary)] if plan is not None else []
                self._tip = result.summary.tip

        return Operation(
            perform=lambda: implement(*self._start_child("gate", effect.iteration, effect.text)),
            step=f"gate/{effect.iteration}",
            input=effect.text,
            encode=_encode_unless_pending,
            on_result=follow,
        )

    def _start_child(self, kind: str, iteration: int, text: str) -> tuple[str, Path]:
        """Return the id and the plan of a child run. The id is recorded before the run starts."""
        run_id = f"{self.run_id}-{kind[0]}{iteration}"
        if run_id not in self.journal.list_children():
            self.journal.record_child(run_id, kind, iteration)
        plan = self.folder / f"{kind}-{iteration}" / "plan.md"
        plan.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(plan, text.encode())
        return run_id, plan

    # The merged tree.

    def _run_checks(self, effect: RunAllChecks) -> Operation[MergedCheckResult]:
        is_large, merged = effect.lane is Lane.LARGE, MergedTree(self.context, effect.tip)
        step = f"checks/{effect.iteration}{'-large' if is_large else ''}"

        def run_checks() -> MergedCheckResult:
            checks, report = merged.run_checks(
                self._plans,
                effect.iteration,
                self.observer.on_checks_started(),
                large=is_large,
                accepted=self._read_acceptances(),
            )
            self.observer.on_checks_ended(checks)
            return MergedCheckResult(
                checks,
                explain_outgrown_lane(effect.lane, merged.blast_radius()),
                self._read_additions(step),
                to_reviewed_checks(report),
                self.amendments.read_all(f"all/{step}"),
            )

        def keep_for_reviewers(result: MergedCheckResult) -> None:
            self._checks = result.reviewed

        return Operation(run_checks, step, effect.tip, in_thread=True, on_result=keep_for_reviewers)

    # The evidence in the ledger.

    def _count_reviews(self, effect: CountReviews) -> Operation[ReviewCounts]:
        tree = MergedTree(self.context, effect.tip or self._tip).tree
        return Operation(
            lambda: ReviewCounts(self._evidence.count_review(self.setup.slug, effect.scope, effect.round, tree))
        )

    def _count_checks(self, effect: CountChecks) -> Operation[CheckCounts]:
        def count() -> CheckCounts:
            passing = [check.name for check in self._checks if check.verdict is Verdict.PASS]
            tree = MergedTree(self.context, effect.tip).tree
            merged = self._evidence.count_merged_checks(tree, effect.iteration, passing)
            tallies = (merged, *self._evidence.count_task_checks(effect.gates))
            return CheckCounts(tallies, self._read_additions(f"commit/{effect.iteration}"))

        return Operation(count)

    @property
    def _evidence(self) -> LedgerEvidence:
        return LedgerEvidence(self.context.ledger_path, self.run_id)

    def _read_acceptances(self) -> tuple[Acceptance, ...]:
        """Return what persons accepted for the tasks of this run."""
        return self._evidence.read_acceptances(self.journal.list_children())

    def _commit(self, effect: CommitChange) -> Operation[CommitResult | AgentFailure]:
        return Operation(partial(self._commit_merged, effect))

    def _commit_merged(self, effect: CommitChange) -> CommitResult | AgentFailure:
        """Commit the merged tree. The message is recorded before: a commit repeated after a crash is the same
        commit.
        """
        step, merged, setup = "commit", MergedTree(self.context, effect.tip), self.setup
        recorded = self.journal.steps.lookup(f"{step}/intent", effect.tip)
        if recorded is None:
            paths = [path.path for path in merged.snapshot.change.paths]
            message = build_commit_message(setup, self.run_id, paths, self._read_acceptances())
            recorded = {"message": message, "date": f"{int(time.time())} +0000"}
            self.journal.steps.record(f"{step}/intent", effect.tip, recorded)
        try:
            commit = commit_merged(
                merged, setup.branch, str(recorded["message"]), self.author, str(recorded["date"]), sign=self.sign
            )
        except RepositoryError as error:
            return AgentFailure(error.message)
        if self.journal.steps.lookup(step, effect.tip) is None:
            self.journal.steps.record(step, effect.tip, {"commit": commit, "tree": merged.tree, "branch": setup.branch})
            self.observer.on_commit(commit, setup.branch)
        self.parts.unpin()
        return CommitResult(commit)

    # The end.

    @property
    def folder(self) -> Path:
        return self.agents.documents.folder

    @property
    def _elapsed_ms(self) -> int:
        return self._earlier_ms + round(1000 * (time.monotonic() - self._started))

    def _build_report(self, delivered: PipelineResult) -> RunReport:
        merged, setup = MergedTree(self.context, delivered.tip or self.context.base_commit), self.setup
        if delivered.commit is None and merged.tip != self.context.base_commit:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomic(self.folder / "change.patch", merged.build_patch())
        runs = (self.run_id, *self.journal.list_children())
        waiting, spent = delivered.waiting, self.parts.read_spent(runs)
        late = self._late_additions(delivered)
        return RunReport(
            run_id=self.run_id,
            request=setup.request,
            repository=setup.repository,
            outcome=RunOutcome.NEEDS_HUMAN if late else delivered.outcome,
            reason=_explain_late(late) if late else delivered.reason,
            confidence=delivered.confidence,
            reasons=delivered.reasons,
            lane=delivered.lane,
            lane_reason=delivered.lane_reason,
            branch=setup.branch,
            commit=delivered.commit,
            tree=merged.tree if delivered.commit else None,
            base_commit=setup.base_commit,
            rollback=f"git revert --no-edit {delivered.commit}" if delivered.commit else "",
            plan_gates=delivered.plan_gates,
            gates=delivered.gates,
            tasks=tuple(task for gate in delivered.gates for task in gate.tasks),
            final=delivered.final,
            reviews=delivered.reviews,
            single_model=delivered.single_model,
            known_issues=delivered.known_issues,
            approvals=self.journal.list_approvals(),
            waiting=self._with_elapsed_time(waiting) if isinstance(waiting, ApprovalRequest) else None,
            changed=merged.blast_radius() if merged.tip != self.context.base_commit else (),
            agents={agent: " or ".join(specs) for agent, specs in setup.agents.items()},
            dispatches=self.parts.count_dispatches(runs),
            spent=spent,
            cost=build_cost_fields(spent),
            ledger=str(ledger_path(self.context.home)),
            elapsed_ms=self._elapsed_ms,
            directory=str(self.folder),
            gaps=delivered.gaps,
            requirements=tuple(
                AddedRequirement(text=text, is_met=text not in late and delivered.outcome is RunOutcome.PASSED)
                for text in dict.fromkeys((*delivered.requirements, *self.amendments.read_texts()))
            ),
            notes=setup.notes,
            audit=list_findings(audit_run_with_parts(self.context.ledger, self.run_id)),
            next_step='proofstone run "…", with what came too late' if late else _next_step(delivered, self.run_id),
            awaits_fix=delivered.awaits_fix,
            partial=() if delivered.commit else list_partial_results(delivered.gates),
        )


def _encode_unless_pending(result: object) -> Mapping[str, JsonValue] | None:
    """Return the journal entry of a child run that has ended. One that waits for a person is started again."""
    return None if isinstance(result, PendingAnswer) else encode_result(result)


def _explain_late(late: Sequence[str]) -> str:
    """Explain why a run is not over although its commit was made."""
    return f"you added this too late, so it is not part of the commit: {'; '.join(late)}"


def _next_step(delivered: PipelineResult, run_id: str) -> str:
    match delivered.waiting:
        case ApprovalRequest() as request:
            return f"proofstone approve {run_id} {request.gate_id} OPTION && proofstone resume {run_id}"
        case PendingAnswer(command=how) if how:
            return how
    is_resumable = delivered.outcome is RunOutcome.NEEDS_HUMAN or delivered.awaits_fix > 0
    return f"proofstone resume {run_id}" if is_resumable else ""
