"""Run the plan gate: perform the effects of `plan_gate.rules.loop`, and tell the observer.

Effects that the loop yields together are performed in parallel. Each answer is recorded, with what Proofstone found out
about its claims, before the loop receives it. So a run that was killed, or that waits for a person, goes through the
loop again and asks only for what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from proofstone.agents.models import Fault, FaultKind
from proofstone.agents.roles.models.plan_gate_records import Challenge, IterationState, PlanQuality, TeamMode
from proofstone.agents.spending import raise_if_fatal, raise_if_unreachable
from proofstone.common.models import BudgetUsage
from proofstone.common.text import pluralize
from proofstone.errors import InputError
from proofstone.plan_gate.agents import Discussion, PlanAgentRequest, PlanAgents, build_plan_request
from proofstone.plan_gate.journal import PlanJournal
from proofstone.plan_gate.models import Complexity, OpenQuestion, PlanEvent, PlanReport
from proofstone.plan_gate.rules.decision import PlanDecision, parse_option
from proofstone.plan_gate.rules.effects import (
    AskPlanQuestions,
    PlanAcknowledgement,
    PlanAgentFailure,
    PlanAgentReply,
    PlanAnswers,
    PlanEffect,
    PlanEffectResult,
    PlanLoopResult,
    PlanProgress,
    PlanSubject,
    RecordIteration,
)
from proofstone.plan_gate.rules.loop import run_plan_loop
from proofstone.plan_gate.rules.report import PlanRunInfo, build_plan_report
from proofstone.runtime.context import Deadline
from proofstone.runtime.parallel import run_parallel
from proofstone.runtime.run_index import record_early_end


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


class PlanGateObserver(Protocol):
    """Observes a run of the plan gate. Called from several threads at once while agents work in parallel."""

    def on_run_started(self, beginning: PlanGateStart) -> None: ...

    def on_iteration_started(self, iteration: int) -> None: ...

    def on_agent_started(self, agent: str) -> None:
        """An agent begins: `challenger`, `researcher:resolve`."""
        ...

    def on_activity(self, agent: str, line: str) -> None:
        """Show what the agent does, in a line that replaces the previous one."""
        ...

    def on_message(self, agent: str, line: str) -> None:
        """Show a line to the person: a question, a pause, a warning."""
        ...

    def on_agent_ended(self, agent: str, said: str, *, failed: bool) -> None:
        """Show the answer in one line: `4 challenges`, or why there is no answer."""
        ...

    def on_iteration_ended(
        self, state: IterationState, challenges: Sequence[Challenge], events: Sequence[PlanEvent]
    ) -> None:
        """An iteration has ended. `events` are those of this iteration."""
        ...

    def on_spending(self, spent: BudgetUsage) -> None: ...


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
        loop = run_plan_loop(self.subject)
        effects = next(loop)
        while True:
            results = self._perform(effects)
            if isinstance(results, PlanReport):
                return results
            try:
                effects = loop.send(results)
            except StopIteration as stop:
                ended: PlanLoopResult = stop.value
                return self._build_report(ended.progress, ended.decision)

    def _perform(self, effects: tuple[PlanEffect, ...]) -> tuple[PlanEffectResult, ...] | PlanReport:
        match effects:
            case (RecordIteration() as iterated,):
                self.journal.record_iteration(iterated.state)
                self.observer.on_iteration_ended(iterated.state, iterated.challenges, iterated.events)
                return (PlanAcknowledgement(),)
            case (AskPlanQuestions() as question,):
                answers = self._find_answers(question)
                if answers is None:
                    return self._build_report(question.progress, question.decision, question.questions)
                return (PlanAnswers(answers),)
        self.deadline.raise_if_over()
        self.agents.prepare()
        to_ask = [effect for effect in effects if not isinstance(effect, AskPlanQuestions | RecordIteration)]
        self._show_iteration(to_ask[0].snapshot.iteration)
        requests = [build_plan_request(effect, self.discussion, self.agents.available_tools) for effect in to_ask]
        return run_parallel(
            [partial(self._ask_agent, request) for request in requests], self.max_parallel, self.agents.world.cancel
        )

    def _ask_agent(self, request: PlanAgentRequest) -> PlanAgentReply | PlanAgentFailure:
        recorded = self.journal.lookup(request.occasion.id, request.text, request.role.output)
        if recorded is not None:
            return recorded
        self.observer.on_agent_started(request.agent)
        answer = self.agents.ask(request)
        result = _convert_fault(answer, request.agent) if isinstance(answer, Fault) else answer
        self.journal.record(request.occasion.id, request.text, result, request.agent, request.snapshot.iteration)
        self.observer.on_agent_ended(request.agent, _summarize(result), failed=isinstance(result, PlanAgentFailure))
        return result

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
            id: _resolve_option(id, self.unused_answers[id], options[id])
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


def _resolve_option(id: str, text: str, options: Sequence[str]) -> str:
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
