"""Run the plan gate: perform the effects of `plan_gate.rules.loop`, and tell the observer.

Effects that the loop yields together are performed in parallel. Each answer is recorded, with what Proofstone found out
about its claims, before the loop receives it. So a run that was killed, or that waits for a person, goes through the
loop again and asks only for what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, get_args

from proofstone.agents.models import Fault, FaultKind
from proofstone.agents.roles.models.plan_gate_records import Challenge, IterationState, PlanQuality, TeamMode
from proofstone.agents.spending import raise_if_fatal, raise_if_unreachable
from proofstone.common.text import pluralize
from proofstone.errors import InputError
from proofstone.plan_gate.agents import Discussion, PlanAgents, build_plan_request
from proofstone.plan_gate.journal import PlanJournal, decode_answer, encode_answer
from proofstone.plan_gate.models import Complexity, OpenQuestion, PlanEvent, PlanReport
from proofstone.plan_gate.rules.decision import PlanDecision, parse_option
from proofstone.plan_gate.rules.effects import (
    AskPlanAgent,
    AskPlanQuestions,
    PlanAgentFailure,
    PlanAgentReply,
    PlanAnswers,
    PlanProgress,
    PlanSubject,
    RecordIteration,
)
from proofstone.plan_gate.rules.loop import run_plan_loop
from proofstone.plan_gate.rules.report import PlanRunInfo, build_plan_report
from proofstone.runtime.context import Deadline
from proofstone.runtime.pause import pause_for_person
from proofstone.runtime.rules import EffectDone
from proofstone.runtime.run_index import record_early_end
from proofstone.runtime.workflow import AgentObserver, Handlers, Operation, QuestionPendingError, drive


@dataclass(frozen=True)
class PlanGateStart:
    """What is known before any agent is asked."""

    run_id: str
    plan_path: str
    title: str
    quality: PlanQuality
    complexity: Complexity
    team_mode: TeamMode
    agents: Mapping[str, str]
    """The agent of each role. Empty if the rules decide alone."""
    note: str = ""
    """Why no agent is asked, if so."""


class PlanGateObserver(AgentObserver, Protocol):
    """Observes a run of the plan gate. Agents work in parallel, so it is called from several threads."""

    def on_run_started(self, beginning: PlanGateStart) -> None: ...

    def on_iteration_started(self, iteration: int) -> None: ...

    def on_iteration_ended(
        self, state: IterationState, challenges: Sequence[Challenge], events: Sequence[PlanEvent]
    ) -> None:
        """An iteration has ended. `events` are those of this iteration."""
        ...


MAX_PLAN_AGENTS: Final = 4
"""The number of agents that work at the same time."""

AskPlanUser = Callable[[Sequence[OpenQuestion]], Mapping[str, str]]
"""Asks the user, if someone can answer now. A question that is missing in the result is not answered."""


@dataclass(frozen=True)
class PlanGateRun:
    """Drives a run of the plan gate."""

    about: PlanRunInfo
    subject: PlanSubject
    discussion: Discussion
    journal: PlanJournal
    agents: PlanAgents
    observer: PlanGateObserver
    ask: AskPlanUser
    answered_by: str
    """Who answers the questions."""
    note: str = ""
    """Why no agent is asked, if so."""
    unused_answers: dict[str, str] = field(default_factory=dict)
    """Answers that were given in advance and not used yet."""
    max_parallel: int = MAX_PLAN_AGENTS
    deadline: Deadline = field(kw_only=True)
    _shown_iterations: list[int] = field(default_factory=list)
    """Iterations that the observer was told about."""

    def run(self) -> PlanReport:
        """Run to the verdict, to a question that nobody here answers, or to the end of the budget
        (OutOfBudgetError).
        """
        self.observer.on_run_started(self._make_beginning())
        with record_early_end(self.journal.ledger, self.about.run_id, self.agents.world.cancel):
            report = self._drive_loop()
        self.journal.record_report(report, {None: "needs_human", "PROCEED": "passed"}.get(report.verdict, "failed"))
        return report

    def _drive_loop(self) -> PlanReport:
        handlers: Handlers = {
            RecordIteration: self._end_iteration,
            AskPlanQuestions: self._ask_person,
            **dict.fromkeys(get_args(AskPlanAgent), self._ask_agent),
        }
        try:
            ended = drive(
                run_plan_loop(self.subject),
                handlers,
                self.journal.steps,
                self.observer,
                max_parallel=self.max_parallel,
                cancel=self.agents.world.cancel,
            )
        except QuestionPendingError as pending:
            question = pending.effect
            assert isinstance(question, AskPlanQuestions)
            return self._build_report(question.progress, question.decision, question.questions)
        return self._build_report(ended.progress, ended.decision)

    # Handlers of the effects.

    def _end_iteration(self, effect: RecordIteration) -> Operation[EffectDone]:
        def record() -> EffectDone:
            self.journal.record_iteration(effect.state)
            self.observer.on_iteration_ended(effect.state, effect.challenges, effect.events)
            return EffectDone()

        return Operation(record)

    def _ask_person(self, effect: AskPlanQuestions) -> Operation[PlanAnswers]:
        def ask() -> PlanAnswers:
            answers = self._find_answers(effect)
            if answers is None:
                raise QuestionPendingError(effect)
            return PlanAnswers(answers)

        return Operation(ask)

    def _ask_agent(self, effect: AskPlanAgent) -> Operation[PlanAgentReply | PlanAgentFailure]:
        self.deadline.raise_if_over()
        self.agents.prepare()
        self._show_iteration(effect.snapshot.iteration)
        request = build_plan_request(effect, self.discussion, self.agents.available_tools)

        def ask() -> PlanAgentReply | PlanAgentFailure:
            answer = self.agents.ask(request)
            return _convert_fault(answer, request.agent) if isinstance(answer, Fault) else answer

        return Operation(
            perform=ask,
            step=request.occasion.id,
            input=request.text,
            encode=lambda result: encode_answer(result, request.agent),
            decode=lambda payload: decode_answer(payload, request.role.output),
            build_rows=lambda result: self.journal.build_false_claims(
                request.occasion.id, result, request.agent, request.snapshot.iteration
            ),
            in_thread=True,
            agent=request.agent,
            describe=lambda result: (_summarize(result), isinstance(result, PlanAgentFailure)),
        )

    def _show_iteration(self, iteration: int) -> None:
        if iteration not in self._shown_iterations:
            self._shown_iterations.append(iteration)
            self.observer.on_iteration_started(iteration)

    def _find_answers(self, question: AskPlanQuestions) -> Mapping[str, str] | None:
        """Return the person's answers, new or recorded; None if nobody here can answer."""
        iteration = len(question.progress.iterations)
        asked_ids = [open_question.challenge for open_question in question.questions]
        on_record = {id: text for id, text in self.journal.read_answers(iteration).items() if id in asked_ids}
        if on_record:
            return on_record
        options = {open_question.challenge: open_question.options for open_question in question.questions}
        new = {
            id: resolve_option(id, self.unused_answers[id], options[id])
            for id in asked_ids
            if id in self.unused_answers
        }
        if new:
            self.journal.record_answers(
                new, iteration, self.answered_by
            )  # recorded before the next question, which may be interrupted
            for id in new:
                del self.unused_answers[id]
            return new
        with pause_for_person(self.journal.ledger, self.about.run_id, self.deadline):
            new = {id: text for id, text in self.ask(question.questions).items() if text.strip()}
        if not new:
            return None
        self.journal.record_answers(new, iteration, self.answered_by)
        return new

    def _build_report(
        self, progress: PlanProgress, decision: PlanDecision, questions: Sequence[OpenQuestion] = ()
    ) -> PlanReport:
        return build_plan_report(
            self.about,
            progress,
            decision,
            questions=questions,
            spent=self.agents.get_spent(),
            dispatches=self.agents.count_dispatches(),
        )

    def _make_beginning(self) -> PlanGateStart:
        return PlanGateStart(
            run_id=self.about.run_id,
            plan_path=self.about.plan_path,
            title=self.about.title,
            quality=self.about.quality,
            complexity=self.about.complexity,
            team_mode=self.about.team_mode,
            agents=self.about.agents,
            note=self.note,
        )


def resolve_option(id: str, text: str, options: Sequence[str]) -> str:
    """Return the answer that the person means. The number of an option means that option; other numbers are refused."""
    answer = parse_option(text, options)
    if answer is None:
        choices = "; ".join(f"{number} {option}" for number, option in enumerate(options, start=1))
        raise InputError(
            f"{id}={text}: there is no such option", hint=f"the options are: {choices}; or use your own words"
        )
    return answer


def _convert_fault(fault: Fault, agent: str) -> PlanAgentFailure:
    """Turn a fault into a failure for the loop. A fault that is not the agent's stops the run."""
    raise_if_fatal(fault, agent)
    raise_if_unreachable(fault, agent)
    return PlanAgentFailure(fault.why, is_unreadable=fault.kind is FaultKind.MALFORMED)


def _summarize(result: PlanAgentReply | PlanAgentFailure) -> str:
    if isinstance(result, PlanAgentFailure):
        return result.reason
    parts = [(name.removesuffix("s"), getattr(result.output, name)) for name in type(result.output).model_fields]
    parts_text = [pluralize(len(value), name) for name, value in parts if isinstance(value, tuple) and value]
    false = sum(lookup.holds is False for lookup in result.lookups)
    parts_text += [pluralize(false, "false claim")] if false else []
    return ", ".join(parts_text) or "nothing to say"
