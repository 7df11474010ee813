"""One run of the whole pipeline: the shell that drives `pipeline.rules.loop`.

Each answer, approval, check and part is on record before the loop hears of it; so a run that was killed, or waits for a
person, goes through the loop again and does only what is missing. The plan gate and the task gate are runs of their
own, whose ids are on record before they begin.
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
"""Agents at once."""

Ask = Callable[[ApprovalRequest], tuple[str, str] | None]
"""The person, where one can be asked here and now: the option, and what they say beside it; None: nobody can."""

Came = TypeVar("Came", bound=Contract)


class Parts(Protocol):
    """Runs that are parts of this one."""

    def verify_plan(self, run_id: str, iteration: int, plan: Path, tip: str) -> PlanGateSummary | Waiting: ...

    def implement(self, run_id: str, iteration: int, plan: Path, base: str, *, lane: str) -> GateSummary | Waiting: ...

    def let_go(self) -> None:
        """What tasks have committed is in the one commit now."""
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
    """Of the last cascade on the merged tree, for reviewers."""
    _plans: list[Plan] = field(default_factory=list)
    _tip: str = ""
    _since: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._before = self.journal.milliseconds()
        self._tip = self.world.base_commit

    @property
    def run_id(self) -> str:
        return self.world.run_id

    def run(self) -> RunReport:
        """To the commit, to an honest refusal, or to where a person must say something."""
        self.watching.began(self.run_id, self.setup, resumed=self.resumed)
        with end_on_record(self.journal.ledger, self.run_id, self.world.cancel):
            report = self._through()
        report = report.model_copy(update={"bundle": str(self.folder / BUNDLE)})
        self.journal.reported(report)
        self._bundle()
        return report

    def _bundle(self) -> None:
        """What a person can read, made from the ledger alone."""
        bundle = bundle_of(self.world.ledger, self.run_id)
        self.agents.documents.write({BUNDLE: page(bundle), **task_documents(bundle)})
        self.agents.documents.settle()

    def _through(self) -> RunReport:
        self.agents.documents.request(self.setup.request)
        loop = deliver(self._feature)
        needs = next(loop)
        while True:
            sent = self._met(needs)
            try:
                needs = loop.send(sent)
            except StopIteration as stop:
                delivered: Delivered = stop.value
                return self._report(delivered)

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

    def _met(self, needs: tuple[Need, ...]) -> tuple[Sent, ...]:
        """What is asked at the same time is asked at the same time; only agents are."""
        if not all(isinstance(need, Note) for need in needs):
            self.ends.refuse_if_over()
        match needs:
            case (Approve() as need,):
                return (self._approved(need),)
            case (VerifyPlan() as need,):
                return (self._plan_verified(need),)
            case (Implement() as need,):
                return (self._implemented(need),)
            case (CheckAll() as need,):
                return side_by_side([partial(self._checked, need)], 1, self.world.cancel)
            case (CountReviews() as need,):
                return (self._reviews_counted(need),)
            case (CountChecks() as need,):
                return (self._checks_counted(need),)
            case (Commit() as need,):
                return (self._committed(need),)
        if all(isinstance(need, Note) for need in needs):
            return tuple(self._noted(need) for need in needs if isinstance(need, Note))
        asked = [need for need in needs if isinstance(need, AskAgent)]
        tips = [need.tip if isinstance(need, AskReview | AskKnowledge) and need.tip else self._tip for need in asked]
        shown = {tip: Merged(self.world, tip) for tip in tips}
        for tip, merged in shown.items():
            self.agents.prepare(merged.tree, tip)
        jobs = [
            partial(self.agents.heard, asking(need, self._shown(need, shown[tip])), shown[tip].tree, tip)
            for need, tip in zip(asked, tips, strict=True)
        ]
        return self._learnt(side_by_side(jobs, SLOTS, self.world.cancel))

    def _learnt(self, sent: tuple[Heard | Failed, ...]) -> tuple[Heard | Failed, ...]:
        """What the keeper of knowledge has said is kept by the engine."""
        for item in sent:
            if isinstance(item, Heard) and isinstance(item.output, KnowledgeOutput):
                self.watching.noted("knowledge", self.learning.keep(item.output))
        return sent

    def _shown(self, need: Need, merged: Merged) -> Shown:
        of_code = isinstance(need, AskKnowledge) or (isinstance(need, AskReview) and need.scope == "code")
        return Shown(
            run_id=self.run_id,
            request=self.setup.request,
            diff=merged.diff() if of_code and merged.tip != self.world.base_commit else "",
            checks=self._checks if of_code else (),
            learnt=self.learning.recalled(self.setup.request) if isinstance(need, AskPlan) else (),
            added=self._added(f"{PLANNED}{need.iteration}") if isinstance(need, AskPlan) else (),
        )

    def _added(self, point: str) -> tuple[str, ...]:
        """What the person has added that no plan before this point holds and no task has taken in. Which that was is on
        record: whoever resumes the run hears the same at the same point, and the rest later."""
        return self.adding.unplanned(point)

    def _too_late(self, it: Delivered) -> tuple[str, ...]:
        """What the commit does not hold although it was asked for."""
        return self.adding.too_late() if it.commit else ()

    def _noted(self, need: Note) -> Noted:
        self.journal.note(need.kind, need.text, need.data)
        self.watching.noted(need.kind, need.text)
        return Noted()

    # Approvals.

    def _approved(self, need: Approve) -> Decided | Waiting:
        request = self._timed(need.request)
        known = self.journal.decided(request.gate_id)
        if known is None and self.setup.mode is RunMode.AUTONOMOUS and not need.by_person:
            known = request.default.id, ""
            self.journal.decide(request, request.default.id, "", "proofstone", self.setup.mode, auto=True)
        elif known is None:
            known = self.ask(request)
            if known is None:
                return Waiting(request.question, f"proofstone approve {self.run_id} {request.gate_id} OPTION")
            self.journal.decide(request, *known, self.by, self.setup.mode, auto=False)
        self.agents.documents.approvals(self.journal.approvals())
        self.watching.approved(
            next(approval for approval in self.journal.approvals() if approval.gate_id == request.gate_id)
        )
        return Decided(*known)

    def _timed(self, request: ApprovalRequest) -> ApprovalRequest:
        """With how long the run has taken so far: the loop knows no clock."""
        metadata = request.metadata.model_copy(update={"elapsed_time": lasting(self._milliseconds / 1000)})
        return request.model_copy(update={"metadata": metadata})

    # Parts.

    def _plan_verified(self, need: VerifyPlan) -> PlanVerified | Waiting:
        came = self._part(
            "plan",
            need.iteration,
            need.text,
            lambda run_id, plan: self.parts.verify_plan(run_id, need.iteration, plan, self._tip),
            PlanGateSummary,
        )
        return came if isinstance(came, Waiting) else PlanVerified(came)

    def _implemented(self, need: Implement) -> Implemented | Waiting:
        came = self._part(
            "gate",
            need.iteration,
            need.text,
            lambda run_id, plan: self.parts.implement(run_id, need.iteration, plan, need.base, lane=need.lane),
            GateSummary,
        )
        if isinstance(came, Waiting):
            return came
        plan, _ = read_plan(need.text, "plan.md")
        self._plans += [plan] if plan is not None else []
        self._tip = came.tip
        return Implemented(came, self._elapsed(f"gate/{need.iteration}"))

    def _part(
        self,
        kind: str,
        iteration: int,
        text: str,
        through: Callable[[str, Path], Came | Waiting],
        contract: type[Came],
    ) -> Came | Waiting:
        """A run of its own. Its id is on record before it begins, and what came of it when it has ended."""
        known = self.journal.steps.recall(f"{kind}/{iteration}", text)
        if known is not None:
            return contract.model_validate(known["came"])
        run_id = f"{self.run_id}-{kind[0]}{iteration}"
        if run_id not in self.journal.children():
            self.journal.child(run_id, kind, iteration)
        plan = self.folder / f"{kind}-{iteration}" / "plan.md"
        plan.parent.mkdir(parents=True, exist_ok=True)
        write_whole(plan, text.encode())
        came = through(run_id, plan)
        if not isinstance(came, Waiting):
            self.journal.steps.keep(f"{kind}/{iteration}", text, {"came": came.model_dump(mode="json")})
        return came

    # The merged tree.

    def _checked(self, need: CheckAll) -> Checked:
        large, asked = need.lane is Lane.LARGE, need.tip
        step = f"checks/{need.iteration}{'-large' if large else ''}"
        merged = Merged(self.world, need.tip)
        known = self.journal.steps.recall(step, asked)
        if known is None:
            checks, report = merged.checked(self._plans, need.iteration, self.watching.checking(), large=large)
            seen: list[JsonValue] = [item.model_dump(mode="json") for item in reviewed(report)]
            known = {"checks": checks.model_dump(mode="json"), "seen": seen}
            self.journal.steps.keep(step, asked, known)
            self.watching.checked(checks)
        listed = known["seen"] if isinstance(known["seen"], list) else []
        self._checks = tuple(map(ReviewedCheck.model_validate, listed))
        left = outgrown(need.lane, merged.blast_radius())
        return Checked(FinalChecks.model_validate(known["checks"]), left, self._added(step))

    # What the ledger bears out.

    def _reviews_counted(self, need: CountReviews) -> ReviewsCounted:
        tree = Merged(self.world, need.tip or self._tip).tree
        return ReviewsCounted(self._evidence.of_review(self.setup.slug, need.scope, need.round, tree))

    def _checks_counted(self, need: CountChecks) -> ChecksCounted:
        said = [check.name for check in self._checks if check.verdict is Verdict.PASS]
        merged = self._evidence.of_merged(Merged(self.world, need.tip).tree, need.iteration, said)
        return ChecksCounted((merged, *self._evidence.of_tasks(need.gates)), self._added(f"commit/{need.iteration}"))

    @property
    def _evidence(self) -> LedgerEvidence:
        return LedgerEvidence(self.world.ledger_path, self.run_id)

    def _committed(self, need: Commit) -> Committed | Failed:
        """The words of the commit are on record before it is made: after a crash it is made again, and is the same."""
        step, merged, setup = "commit", Merged(self.world, need.tip), self.setup
        known = self.journal.steps.recall(f"{step}/intent", need.tip)
        if known is None:
            message = commit_message(setup, self.run_id, [path.path for path in merged.snapshot.change.paths])
            known = {"message": message, "date": f"{int(time.time())} +0000"}
            self.journal.steps.keep(f"{step}/intent", need.tip, known)
        try:
            commit = committed(
                merged, setup.branch, str(known["message"]), self.author, str(known["date"]), sign=self.sign
            )
        except RepositoryError as error:
            return Failed(error.message)
        if self.journal.steps.recall(step, need.tip) is None:
            self.journal.steps.keep(step, need.tip, {"commit": commit, "tree": merged.tree, "branch": setup.branch})
            self.watching.committed(commit, setup.branch)
        self.parts.let_go()
        return Committed(commit)

    # The end.

    @property
    def folder(self) -> Path:
        return self.agents.documents.folder

    def _elapsed(self, step: str) -> int:
        known = self.journal.steps.recall(f"time/{step}", "")
        if known is not None:
            return int(str(known["ms"]))
        ms = self._milliseconds
        self.journal.steps.keep(f"time/{step}", "", {"ms": ms})
        return ms

    @property
    def _milliseconds(self) -> int:
        return self._before + round(1000 * (time.monotonic() - self._since))

    def _report(self, it: Delivered) -> RunReport:
        merged, setup = Merged(self.world, it.tip or self.world.base_commit), self.setup
        if it.commit is None and merged.tip != self.world.base_commit:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self.folder / "change.patch", merged.patch())
        runs = (self.run_id, *self.journal.children())
        waiting, spent = it.waiting, self.parts.spent(runs)
        return RunReport(
            run_id=self.run_id,
            request=setup.request,
            repository=setup.repository,
            outcome=it.outcome,
            reason=it.reason,
            confidence=it.confidence,
            confidence_reasons=it.confidence_reasons,
            lane=it.lane,
            lane_reason=it.lane_reason,
            branch=setup.branch,
            commit=it.commit,
            tree=merged.tree if it.commit else None,
            base_commit=setup.base_commit,
            rollback=f"git revert --no-edit {it.commit}" if it.commit else "",
            plan_gates=it.plan_gates,
            gates=it.gates,
            tasks=tuple(task for gate in it.gates for task in gate.tasks),
            final=it.final,
            reviews=it.reviews,
            single_model=it.single_model,
            known_issues=it.known_issues,
            approvals=self.journal.approvals(),
            waiting=self._timed(waiting) if isinstance(waiting, ApprovalRequest) else None,
            changed=merged.blast_radius() if merged.tip != self.world.base_commit else (),
            agents={agent: " or ".join(specs) for agent, specs in setup.agents.items()},
            dispatches=self.parts.dispatches(runs),
            spent=spent,
            cost=cost(spent),
            ledger=str(ledger_path(self.world.home)),
            elapsed_ms=self._milliseconds,
            directory=str(self.folder),
            notes=(*setup.notes, *(f"added too late to be a part of it: {item}" for item in self._too_late(it))),
            next_step=_next(it, self.run_id),
        )


def _next(it: Delivered, run_id: str) -> str:
    match it.waiting:
        case ApprovalRequest() as request:
            return f"proofstone approve {run_id} {request.gate_id} OPTION && proofstone resume {run_id}"
        case Waiting(how=how) if how:
            return how
    return f"proofstone resume {run_id}" if it.outcome is RunOutcome.NEEDS_HUMAN else ""
