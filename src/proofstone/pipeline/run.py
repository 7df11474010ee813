"""A run of the whole pipeline: it performs the effects of `pipeline.rules.loop`.

Every answer, approval, check and part is recorded before the loop receives it. A run that was killed, or that waits for
a person, executes the loop again and performs only the missing effects. The plan gate and the task gate are child runs,
whose ids are recorded before they start.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeVar

from pydantic import JsonValue

from proofstone.agents.roles.models.gate import ReviewedCheck
from proofstone.agents.roles.models.pipeline import KnowledgeOutput
from proofstone.agents.rules.budget import cost
from proofstone.check.context import World
from proofstone.common.models import Contract, Lane, Spent, Verdict
from proofstone.errors import RepositoryError
from proofstone.gate.models import RunOutcome
from proofstone.gate.rules.pages import lasting
from proofstone.git.commit import Identity
from proofstone.ledger.connection import ledger_path
from proofstone.machine.files import write_whole
from proofstone.pipeline.agents import PipelineAgents, Shown, asking
from proofstone.pipeline.attending import PLANNED, Adding, Learning
from proofstone.pipeline.bundling import bundle_of
from proofstone.pipeline.journal import PipelineJournal, Watching
from proofstone.pipeline.merged import LedgerEvidence, Merged, committed, reviewed
from proofstone.pipeline.models.run import (
    ApprovalRequest,
    FinalChecks,
    GateSummary,
    PlanGateSummary,
    RunMode,
    RunReport,
    RunSetup,
)
from proofstone.pipeline.rules.approvals import commit_message
from proofstone.pipeline.rules.bundle_page import page
from proofstone.pipeline.rules.documents import task_documents
from proofstone.pipeline.rules.effects import (
    Approve,
    AskAgent,
    AskKnowledge,
    AskPlan,
    AskReview,
    CheckAll,
    Checked,
    ChecksCounted,
    Commit,
    Committed,
    CountChecks,
    CountReviews,
    Decided,
    Delivered,
    Failed,
    Feature,
    Heard,
    Implement,
    Implemented,
    Need,
    Note,
    Noted,
    PlanVerified,
    ReviewsCounted,
    Sent,
    VerifyPlan,
    Waiting,
)
from proofstone.pipeline.rules.loop import deliver
from proofstone.pipeline.rules.planning import outgrown
from proofstone.plans.models import Plan
from proofstone.plans.reading import read_plan
from proofstone.runtime.context import Deadline
from proofstone.runtime.parallel import side_by_side
from proofstone.runtime.run_index import end_on_record

BUNDLE: Final = "evidence-bundle.md"
SLOTS: Final = 4
"""The number of agents that work at the same time."""

Ask = Callable[[ApprovalRequest], tuple[str, str] | None]
"""Ask the user, if someone can answer now. Return the option and a comment, or None if nobody can answer."""

Came = TypeVar("Came", bound=Contract)


class Parts(Protocol):
    """The child runs of this run."""

    def verify_plan(self, run_id: str, iteration: int, plan: Path, tip: str) -> PlanGateSummary | Waiting: ...

    def implement(self, run_id: str, iteration: int, plan: Path, base: str, *, lane: str) -> GateSummary | Waiting: ...

    def let_go(self) -> None:
        """Unpin the commits of tasks, which are now part of the one commit."""
        ...

    def spent(self, run_ids: Sequence[str]) -> Spent: ...

    def dispatches(self, run_ids: Sequence[str]) -> int: ...


@dataclass
class PipelineRun:
    world: World
    setup: RunSetup
    journal: PipelineJournal
    agents: PipelineAgents
    learning: Learning
    adding: Adding
    parts: Parts
    watching: Watching
    ask: Ask
    author: Identity
    ends: Deadline
    sign: bool = False
    by: str = "person"
    resumed: bool = False
    _checks: tuple[ReviewedCheck, ...] = ()
    """The results of the last checks on the merged tree, for reviewers."""
    _plans: list[Plan] = field(default_factory=list)
    _tip: str = ""
    _started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._earlier_ms = self.journal.milliseconds()
        self._tip = self.world.base_commit

    @property
    def run_id(self) -> str:
        return self.world.run_id

    def run(self) -> RunReport:
        """Run to the commit, to a refusal, or to a question for the user."""
        self.watching.began(self.run_id, self.setup, resumed=self.resumed)
        with end_on_record(self.journal.ledger, self.run_id, self.world.cancel):
            report = self._drive()
        report = report.model_copy(update={"bundle": str(self.folder / BUNDLE)})
        self.journal.reported(report)
        self._write_bundle()
        return report

    def _write_bundle(self) -> None:
        """Write the readable evidence, made from the ledger alone."""
        bundle = bundle_of(self.world.ledger, self.run_id)
        self.agents.documents.write({BUNDLE: page(bundle), **task_documents(bundle)})
        self.agents.documents.settle()

    def _drive(self) -> RunReport:
        self.agents.documents.request(self.setup.request)
        loop = deliver(self._feature)
        effects = next(loop)
        while True:
            results = self._perform(effects)
            try:
                effects = loop.send(results)
            except StopIteration as stop:
                delivered: Delivered = stop.value
                return self._build_report(delivered)

    @property
    def _feature(self) -> Feature:
        setup = self.setup
        return Feature(
            run_id=self.run_id,
            slug=setup.slug,
            request=setup.request,
            lane=setup.lane,
            lane_reason=setup.lane_reason,
            mode=setup.mode,
            proceed_on_pushback=setup.proceed_on_pushback,
            base_commit=setup.base_commit,
            minutes=setup.minutes,
        )

    def _perform(self, effects: tuple[Need, ...]) -> tuple[Sent, ...]:
        """Perform the effects. Effects that are yielded together are performed in parallel; only agents are."""
        if not all(isinstance(effect, Note) for effect in effects):
            self.ends.refuse_if_over()
        match effects:
            case (Approve() as effect,):
                return (self._approve(effect),)
            case (VerifyPlan() as effect,):
                return (self._verify_plan(effect),)
            case (Implement() as effect,):
                return (self._implement(effect),)
            case (CheckAll() as effect,):
                return side_by_side([partial(self._run_checks, effect)], 1, self.world.cancel)
            case (CountReviews() as effect,):
                return (self._count_reviews(effect),)
            case (CountChecks() as effect,):
                return (self._count_checks(effect),)
            case (Commit() as effect,):
                return (self._commit(effect),)
        if all(isinstance(effect, Note) for effect in effects):
            return tuple(self._record_note(effect) for effect in effects if isinstance(effect, Note))
        agent_effects = [effect for effect in effects if isinstance(effect, AskAgent)]
        tips = [
            effect.tip if isinstance(effect, AskReview | AskKnowledge) and effect.tip else self._tip
            for effect in agent_effects
        ]
        trees = {tip: Merged(self.world, tip) for tip in tips}
        for tip, merged in trees.items():
            self.agents.prepare(merged.tree, tip)
        jobs = [
            partial(self.agents.heard, asking(effect, self._build_context(effect, trees[tip])), trees[tip].tree, tip)
            for effect, tip in zip(agent_effects, tips, strict=True)
        ]
        return self._store_lessons(side_by_side(jobs, SLOTS, self.world.cancel))

    def _store_lessons(self, results: tuple[Heard | Failed, ...]) -> tuple[Heard | Failed, ...]:
        """Store the answer of the knowledge keeper."""
        for result in results:
            if isinstance(result, Heard) and isinstance(result.output, KnowledgeOutput):
                self.watching.noted("knowledge", self.learning.keep(result.output))
        return results

    def _build_context(self, effect: Need, merged: Merged) -> Shown:
        concerns_code = isinstance(effect, AskKnowledge) or (isinstance(effect, AskReview) and effect.scope == "code")
        return Shown(
            run_id=self.run_id,
            request=self.setup.request,
            diff=merged.diff() if concerns_code and merged.tip != self.world.base_commit else "",
            checks=self._checks if concerns_code else (),
            learnt=self.learning.recalled(self.setup.request) if isinstance(effect, AskPlan) else (),
            added=self._read_additions(f"{PLANNED}{effect.iteration}") if isinstance(effect, AskPlan) else (),
        )

    def _read_additions(self, point: str) -> tuple[str, ...]:
        """Return the user's additions that no plan before this point contains and no task has taken in. They are
        recorded: a resumed run gets the same additions at the same point, and later ones later.
        """
        return self.adding.unplanned(point)

    def _late_additions(self, delivered: Delivered) -> tuple[str, ...]:
        """Return requested additions that the commit does not contain."""
        return self.adding.too_late() if delivered.commit else ()

    def _record_note(self, effect: Note) -> Noted:
        self.journal.note(effect.kind, effect.text, effect.data)
        self.watching.noted(effect.kind, effect.text)
        return Noted()

    # Approvals.

    def _approve(self, effect: Approve) -> Decided | Waiting:
        request = self._with_elapsed_time(effect.request)
        decision = self.journal.decided(request.gate_id)
        if decision is None and self.setup.mode is RunMode.AUTONOMOUS and not effect.by_person:
            decision = request.default.id, ""
            self.journal.decide(request, request.default.id, "", "proofstone", self.setup.mode, auto=True)
        elif decision is None:
            decision = self.ask(request)
            if decision is None:
                return Waiting(request.question, f"proofstone approve {self.run_id} {request.gate_id} OPTION")
            self.journal.decide(request, *decision, self.by, self.setup.mode, auto=False)
        self.agents.documents.approvals(self.journal.approvals())
        self.watching.approved(
            next(approval for approval in self.journal.approvals() if approval.gate_id == request.gate_id)
        )
        return Decided(*decision)

    def _with_elapsed_time(self, request: ApprovalRequest) -> ApprovalRequest:
        """Add the elapsed time to the request: the loop has no clock."""
        metadata = request.metadata.model_copy(update={"elapsed_time": lasting(self._elapsed_ms / 1000)})
        return request.model_copy(update={"metadata": metadata})

    # Parts.

    def _verify_plan(self, effect: VerifyPlan) -> PlanVerified | Waiting:
        summary = self._run_part(
            "plan",
            effect.iteration,
            effect.text,
            lambda run_id, plan: self.parts.verify_plan(run_id, effect.iteration, plan, self._tip),
            PlanGateSummary,
        )
        return summary if isinstance(summary, Waiting) else PlanVerified(summary)

    def _implement(self, effect: Implement) -> Implemented | Waiting:
        summary = self._run_part(
            "gate",
            effect.iteration,
            effect.text,
            lambda run_id, plan: self.parts.implement(run_id, effect.iteration, plan, effect.base, lane=effect.lane),
            GateSummary,
        )
        if isinstance(summary, Waiting):
            return summary
        plan, _ = read_plan(effect.text, "plan.md")
        self._plans += [plan] if plan is not None else []
        self._tip = summary.tip
        return Implemented(summary, self._measure_time(f"gate/{effect.iteration}"))

    def _run_part(
        self,
        kind: str,
        iteration: int,
        text: str,
        perform: Callable[[str, Path], Came | Waiting],
        contract: type[Came],
    ) -> Came | Waiting:
        """Perform a child run. Its id is recorded before it starts, and its result when it has ended."""
        recorded = self.journal.steps.recall(f"{kind}/{iteration}", text)
        if recorded is not None:
            return contract.model_validate(recorded["came"])
        run_id = f"{self.run_id}-{kind[0]}{iteration}"
        if run_id not in self.journal.children():
            self.journal.child(run_id, kind, iteration)
        plan = self.folder / f"{kind}-{iteration}" / "plan.md"
        plan.parent.mkdir(parents=True, exist_ok=True)
        write_whole(plan, text.encode())
        result = perform(run_id, plan)
        if not isinstance(result, Waiting):
            self.journal.steps.keep(f"{kind}/{iteration}", text, {"came": result.model_dump(mode="json")})
        return result

    # The merged tree.

    def _run_checks(self, effect: CheckAll) -> Checked:
        is_large, tip = effect.lane is Lane.LARGE, effect.tip
        step = f"checks/{effect.iteration}{'-large' if is_large else ''}"
        merged = Merged(self.world, effect.tip)
        recorded = self.journal.steps.recall(step, tip)
        if recorded is None:
            checks, report = merged.checked(self._plans, effect.iteration, self.watching.checking(), large=is_large)
            verdicts: list[JsonValue] = [check.model_dump(mode="json") for check in reviewed(report)]
            recorded = {"checks": checks.model_dump(mode="json"), "seen": verdicts}
            self.journal.steps.keep(step, tip, recorded)
            self.watching.checked(checks)
        entries = recorded["seen"] if isinstance(recorded["seen"], list) else []
        self._checks = tuple(map(ReviewedCheck.model_validate, entries))
        outgrown_lane = outgrown(effect.lane, merged.blast_radius())
        return Checked(FinalChecks.model_validate(recorded["checks"]), outgrown_lane, self._read_additions(step))

    # The evidence in the ledger.

    def _count_reviews(self, effect: CountReviews) -> ReviewsCounted:
        tree = Merged(self.world, effect.tip or self._tip).tree
        return ReviewsCounted(self._evidence.of_review(self.setup.slug, effect.scope, effect.round, tree))

    def _count_checks(self, effect: CountChecks) -> ChecksCounted:
        passing = [check.name for check in self._checks if check.verdict is Verdict.PASS]
        merged = self._evidence.of_merged(Merged(self.world, effect.tip).tree, effect.iteration, passing)
        return ChecksCounted(
            (merged, *self._evidence.of_tasks(effect.gates)), self._read_additions(f"commit/{effect.iteration}")
        )

    @property
    def _evidence(self) -> LedgerEvidence:
        return LedgerEvidence(self.world.ledger_path, self.run_id)

    def _commit(self, effect: Commit) -> Committed | Failed:
        """Commit the merged tree. The message is recorded before: a commit repeated after a crash is the same
        commit.
        """
        step, merged, setup = "commit", Merged(self.world, effect.tip), self.setup
        recorded = self.journal.steps.recall(f"{step}/intent", effect.tip)
        if recorded is None:
            message = commit_message(setup, self.run_id, [path.path for path in merged.snapshot.change.paths])
            recorded = {"message": message, "date": f"{int(time.time())} +0000"}
            self.journal.steps.keep(f"{step}/intent", effect.tip, recorded)
        try:
            commit = committed(
                merged, setup.branch, str(recorded["message"]), self.author, str(recorded["date"]), sign=self.sign
            )
        except RepositoryError as error:
            return Failed(error.message)
        if self.journal.steps.recall(step, effect.tip) is None:
            self.journal.steps.keep(step, effect.tip, {"commit": commit, "tree": merged.tree, "branch": setup.branch})
            self.watching.committed(commit, setup.branch)
        self.parts.let_go()
        return Committed(commit)

    # The end.

    @property
    def folder(self) -> Path:
        return self.agents.documents.folder

    def _measure_time(self, step: str) -> int:
        recorded = self.journal.steps.recall(f"time/{step}", "")
        if recorded is not None:
            return int(str(recorded["ms"]))
        ms = self._elapsed_ms
        self.journal.steps.keep(f"time/{step}", "", {"ms": ms})
        return ms

    @property
    def _elapsed_ms(self) -> int:
        return self._earlier_ms + round(1000 * (time.monotonic() - self._started))

    def _build_report(self, delivered: Delivered) -> RunReport:
        merged, setup = Merged(self.world, delivered.tip or self.world.base_commit), self.setup
        if delivered.commit is None and merged.tip != self.world.base_commit:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self.folder / "change.patch", merged.patch())
        runs = (self.run_id, *self.journal.children())
        waiting, spent = delivered.waiting, self.parts.spent(runs)
        return RunReport(
            run_id=self.run_id,
            request=setup.request,
            repository=setup.repository,
            outcome=delivered.outcome,
            reason=delivered.reason,
            confidence=delivered.confidence,
            confidence_reasons=delivered.confidence_reasons,
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
            approvals=self.journal.approvals(),
            waiting=self._with_elapsed_time(waiting) if isinstance(waiting, ApprovalRequest) else None,
            changed=merged.blast_radius() if merged.tip != self.world.base_commit else (),
            agents={agent: " or ".join(specs) for agent, specs in setup.agents.items()},
            dispatches=self.parts.dispatches(runs),
            spent=spent,
            cost=cost(spent),
            ledger=str(ledger_path(self.world.home)),
            elapsed_ms=self._elapsed_ms,
            directory=str(self.folder),
            notes=(
                *setup.notes,
                *(
                    f"added too late, not part of the commit: {addition}"
                    for addition in self._late_additions(delivered)
                ),
            ),
            next_step=_next_step(delivered, self.run_id),
        )


def _next_step(delivered: Delivered, run_id: str) -> str:
    match delivered.waiting:
        case ApprovalRequest() as request:
            return f"proofstone approve {run_id} {request.gate_id} OPTION && proofstone resume {run_id}"
        case Waiting(how=how) if how:
            return how
    return f"proofstone resume {run_id}" if delivered.outcome is RunOutcome.NEEDS_HUMAN else ""
