"""A run of the control loop: it performs the effects of `solve.rules.loop`.

Every answer, every check and every measured time is recorded before the loop receives it. A run that was killed, or
that waits for a person, executes the loop again and performs only the missing effects. Messages between roles are
published on the bus once, along its routes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, get_args

from pydantic import JsonValue

from proofstone.agents.bus import MessageBus
from proofstone.agents.dispatch import format_now
from proofstone.agents.memory.models import MemoryStore
from proofstone.agents.memory.rules.calibration import Calibration, calibrate
from proofstone.agents.roles.models.solve_messages import FinalStatus, SubTask, TaskSpec
from proofstone.runtime.rules import EffectDone
from proofstone.runtime.run_index import record_early_end
from proofstone.runtime.workflow import Handlers, Operation, QuestionPendingError, drive
from proofstone.solve.agents import EXECUTOR_TOOLS, SolveAgents, SolveObserver, SolveStart, build_reader_operation
from proofstone.solve.journal import PERSON_STEP, SolveJournal, write_memory, write_patch
from proofstone.solve.models import SolveReport, SolveRound, SolveRunConfig
from proofstone.solve.requests import build_dispatch
from proofstone.solve.rules.effects import (
    AskLoopAgent,
    AskPerson,
    CheckCriteria,
    ElapsedTime,
    MeasureTime,
    PublishMessage,
    PursueSubtasks,
    RecallMemory,
    ReportPlan,
    ReportRejectedPlan,
    ReportRound,
    SolveAgentFailure,
    SolveAgentReply,
    SolveResult,
    SubtaskOutcomes,
    UserReply,
)
from proofstone.solve.rules.gradient import POLICIES, LossWeights
from proofstone.solve.rules.loop import SolveGoal, solve
from proofstone.solve.subtasks import SubtaskRunner

SOLVE_JOBS: Final = 4
"""The number of agents that work at the same time."""
OUTCOME_OF_STATUS: Final = {
    FinalStatus.ACCEPTED: "passed",
    FinalStatus.PARTIAL: "failed",
    FinalStatus.ABANDONED: "failed",
}

AskUser = Callable[[str], str]
"""Ask the user, if someone can answer now; an empty result means that there is no answer."""


@dataclass
class SolveRun:
    run_id: str
    setup: SolveRunConfig
    journal: SolveJournal
    agents: SolveAgents
    bus: MessageBus
    observer: SolveObserver
    ask: AskUser
    memory: MemoryStore | None
    started_at: str
    """When the first process of the run started."""
    answer: str = ""
    """An answer to the perceiver's question, given in advance."""
    answered_by: str = "person"
    """Who answers."""
    jobs: int = SOLVE_JOBS
    resumed: bool = False
    _rounds: list[SolveRound] = field(default_factory=list)
    _rejected: list[str] = field(default_factory=list)
    _spec: TaskSpec | None = None
    _message_count: int = 0
    _recall_count: int = 0
    _has_asked: bool = False
    _started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._subtasks = SubtaskRunner(
            self.run_id, self.agents, self.journal.steps, self.observer, self._publish_message, self.jobs
        )
        self._earlier_ms = self.journal.read_work_ms()
        """The milliseconds that earlier processes have worked."""

    def run(self) -> SolveReport:
        """Run to the result, to a question that nobody can answer now, or to the end of the budget
        (OutOfBudgetError).
        """
        self.observer.on_run_started(self._build_beginning())
        with record_early_end(self.journal.ledger, self.run_id, self._cancel):
            report = self._drive()
        self.journal.record_report(report, OUTCOME_OF_STATUS[report.result.status] if report.result else "needs_human")
        if report.result is not None:
            self.agents.workspace.unpin()
        return report

    def _drive(self) -> SolveReport:
        handlers: Handlers = {
            PublishMessage: self._publish,
            AskPerson: self._ask_person,
            RecallMemory: self._recall,
            PursueSubtasks: self._pursue_subtasks,
            CheckCriteria: self._subtasks.check_criteria,
            MeasureTime: self._measure_time,
            ReportPlan: self._report_plan,
            ReportRejectedPlan: self._report_rejected_plan,
            ReportRound: self._end_round,
            **dict.fromkeys(get_args(AskLoopAgent), self._ask_agent),
        }
        try:
            solved = drive(solve(self._goal), handlers, self.journal.steps, self.observer, cancel=self._cancel)
        except QuestionPendingError as pending:
            assert isinstance(pending.effect, AskPerson)
            return self._build_report(question=pending.effect.question)
        return self._finish(solved)

    @property
    def _goal(self) -> SolveGoal:
        setup = self.setup
        weights = LossWeights(max_replans=setup.max_replans, time_budget_ms=setup.time_budget_ms)
        weights = weights.with_factors(setup.weights)
        return SolveGoal(self.run_id, setup.goal, EXECUTOR_TOOLS, self.started_at, weights, POLICIES[setup.policy])

    # Handlers of the effects.

    def _ask_agent(self, effect: AskLoopAgent) -> Operation[SolveAgentReply | SolveAgentFailure]:
        return build_reader_operation(self.agents, build_dispatch(effect, self.run_id, EXECUTOR_TOOLS))

    def _pursue_subtasks(self, effect: PursueSubtasks) -> Operation[SubtaskOutcomes]:
        return Operation(lambda: SubtaskOutcomes(self._subtasks.pursue(effect)))

    def _publish(self, effect: PublishMessage) -> Operation[EffectDone]:
        self._message_count += 1
        return Operation(partial(self._publish_message, f"{self.run_id}/{self._message_count}", effect))

    def _publish_message(self, name: str, effect: PublishMessage) -> EffectDone:
        message = effect.message
        if isinstance(message, TaskSpec):
            self._spec = message
        if isinstance(message, SubTask):
            message = self._with_deadline(message)
        payload = message.model_dump(mode="json")
        self.bus.publish(effect.sender, effect.recipient, type(message).__name__, payload, message_id=f"solve/{name}")
        return EffectDone()

    def _with_deadline(self, subtask: SubTask) -> SubTask:
        seconds = self.agents.time_limit_of("executor")
        return subtask if seconds is None else subtask.model_copy(update={"deadline": format_now(after=seconds)})

    def _ask_person(self, effect: AskPerson) -> Operation[UserReply]:
        def ask() -> UserReply:
            self._has_asked = True
            asked_at = time.monotonic()
            text = self.answer or self.ask(effect.question)
            self._started += time.monotonic() - asked_at  # the time of the user does not count
            if not text.strip():
                raise QuestionPendingError(effect)
            return UserReply(text)

        return Operation(
            perform=ask,
            step=PERSON_STEP,
            input=effect.question,
            encode=lambda reply: {"text": reply.text, "by": self.answered_by},
            decode=lambda payload: UserReply(str(payload["text"])),
        )

    def _recall(self, effect: RecallMemory) -> Operation[Calibration]:
        """Return what the memory knows about the task. It is recorded, because the memory may change before a
        resume.
        """
        self._recall_count += 1
        step, words = f"recall/{self._recall_count}", (effect.spec.intent, effect.spec.raw_input)

        def recall() -> Calibration:
            if self.memory is None:
                return Calibration()
            name = f"solve/{self.run_id}/{step}"
            self.bus.publish("planner", "memory", "MemoryQuery", {"words": list(words)}, message_id=f"{name}/query")
            calibration = calibrate(self.memory.entries(), words)
            payload: dict[str, JsonValue] = {"entries": [*calibration.used]}
            self.bus.publish("memory", "planner", "MemoryEntries", payload, message_id=f"{name}/entries")
            return calibration

        return Operation(recall, step, "\n".join(words))

    def _measure_time(self, effect: MeasureTime) -> Operation[ElapsedTime]:
        return Operation(lambda: ElapsedTime(self._elapsed_ms), f"time/{effect.round}")

    def _report_plan(self, effect: ReportPlan) -> Operation[EffectDone]:
        def report() -> EffectDone:
            self.observer.on_plan_accepted(effect.round, effect.subtasks)
            return EffectDone()

        return Operation(report)

    def _report_rejected_plan(self, effect: ReportRejectedPlan) -> Operation[EffectDone]:
        def report() -> EffectDone:
            self._rejected.append(f"round {effect.round}: {effect.why}")
            self.observer.on_plan_rejected(effect.round, effect.why)
            return EffectDone()

        return Operation(report)

    @property
    def _elapsed_ms(self) -> int:
        return self._earlier_ms + round(1000 * (time.monotonic() - self._started))

    def _end_round(self, effect: ReportRound) -> Operation[EffectDone]:
        round = SolveRound(
            number=effect.number,
            directive=effect.directive,
            nabla=effect.reading.nabla,
            elapsed_ms=effect.elapsed_ms,
            subtasks=effect.subtasks,
            outcomes=effect.outcomes,
            merged=effect.merged,
        )

        def report() -> EffectDone:
            self._rounds.append(round)
            self.journal.record_round(round)
            self.observer.on_round_ended(round)
            return EffectDone()

        return Operation(report)

    # The end.

    def _finish(self, solved: SolveResult) -> SolveReport:
        path = write_patch(self.agents.workspace, self.run_id)
        remembered = 0
        if self.memory is not None:
            remembered = write_memory(solved, self.memory, self.bus, self.run_id, self.agents.read_spent().usd)
        return self._build_report(solved, patch=path, remembered=remembered)

    def _build_report(
        self, solved: SolveResult | None = None, *, question: str = "", patch: str = "", remembered: int = 0
    ) -> SolveReport:
        setup, fallback = self.setup, TaskSpec(task_id=self.run_id, intent=self.setup.goal, raw_input=self.setup.goal)
        return SolveReport(
            run_id=self.run_id,
            repository=setup.repository,
            task=solved.spec if solved else self._spec or fallback,
            result=solved.result if solved else None,
            question=question,
            rounds=tuple(self._rounds),
            rejected=tuple(self._rejected),
            changed=self.agents.workspace.list_changes(),
            patch=patch,
            remembered=remembered,
            agents=_agent_names(setup),
            policy=setup.policy,
            elapsed_ms=self._elapsed_ms,
            dispatches=self.agents.count_dispatches(),
            spent=self.agents.read_spent(),
            notes=setup.notes,
            unused_answer=bool(self.answer) and not self._has_asked,
            next_step=f'proofstone solve --resume {self.run_id} --answer "…"' if question else "",
        )

    @property
    def _cancel(self) -> threading.Event:
        return self.agents.workspace.context.cancel

    def _build_beginning(self) -> SolveStart:
        setup = self.setup
        return SolveStart(
            run_id=self.run_id,
            goal=setup.goal,
            agents=_agent_names(setup),
            policy=setup.policy,
            max_replans=setup.max_replans,
            time_budget_ms=setup.time_budget_ms,
            notes=setup.notes,
            resumed=self.resumed,
        )


def _agent_names(setup: SolveRunConfig) -> dict[str, str]:
    return {role: " or ".join(specs) for role, specs in setup.agents.items()}
