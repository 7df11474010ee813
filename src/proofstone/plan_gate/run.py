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
from proofstone.agents.spending import stop_for, stop_if_unreached
from proofstone.common.models import Spent
from proofstone.common.text import counted
from proofstone.errors import InputError
from proofstone.plan_gate.agents import Discussion, PlanAgents, PlanAsking, asking
from proofstone.plan_gate.journal import PlanJournal
from proofstone.plan_gate.models import Complexity, OpenQuestion, PlanEvent, PlanReport
from proofstone.plan_gate.rules.decision import Decision, chosen
from proofstone.plan_gate.rules.effects import (
    Answered,
    AskPerson,
    Ended,
    Failed,
    Heard,
    Iterated,
    Need,
    Noted,
    Progress,
    Sent,
    Subject,
)
from proofstone.plan_gate.rules.loop import verify
from proofstone.plan_gate.rules.report import About, report_of
from proofstone.runtime.context import Deadline
from proofstone.runtime.parallel import side_by_side
from proofstone.runtime.run_index import end_on_record


@dataclass(frozen=True)
class Beginning:
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


class Watching(Protocol):
    """Observes a run of the plan gate. Called from several threads at once while agents work in parallel."""

    def began(self, beginning: Beginning) -> None: ...

    def iterating(self, iteration: int) -> None: ...

    def asked(self, agent: str) -> None:
        """An agent begins: `challenger`, `researcher:resolve`."""
        ...

    def doing(self, agent: str, line: str) -> None:
        """Show what the agent does, in a line that replaces the previous one."""
        ...

    def said(self, agent: str, line: str) -> None:
        """Show a line to the person: a question, a pause, a warning."""
        ...

    def answered(self, agent: str, said: str, *, failed: bool) -> None:
        """Show the answer in one line: `4 challenges`, or why there is no answer."""
        ...

    def decided(self, state: IterationState, challenges: Sequence[Challenge], events: Sequence[PlanEvent]) -> None:
        """An iteration has ended. `events` are those of this iteration."""
        ...

    def spending(self, spent: Spent) -> None: ...


SLOTS: Final = 4
"""Agents at work at the same time. A Ask Asks the person, if one can be asked now. Questions that are missing in the
result are not answered.
"""

Ask = Callable[[Sequence[OpenQuestion]], Mapping[str, str]]
"""The person, where one can be asked here and now; what they leave out, they have not answered."""


@dataclass(frozen=True)
class PlanGateRun:
    """Drives a run of the plan gate."""

    about: About
    subject: Subject
    discussion: Discussion
    journal: PlanJournal
    agents: PlanAgents
    watching: Watching
    ask: Ask
    by: str
    """Who answers the questions."""
    note: str = ""
    """Why no agent is asked, if so."""
    given: dict[str, str] = field(default_factory=dict)
    """Answers that were given in advance and not used yet."""
    at_once: int = SLOTS
    ends: Deadline = field(kw_only=True)
    _shown_iterations: list[int] = field(default_factory=list)
    """Iterations that the observer was told about."""

    def run(self) -> PlanReport:
        """Run to the verdict, to a question that nobody here answers, or to the end of the budget
        (OutOfBudgetError).
        """
        self.watching.began(self._make_beginning())
        with end_on_record(self.journal.ledger, self.about.run_id, self.agents.world.cancel):
            report = self._drive_loop()
        self.journal.reported(report, {None: "needs_human", "PROCEED": "passed"}.get(report.verdict, "failed"))
        return report

    def _drive_loop(self) -> PlanReport:
        loop = verify(self.subject)
        effects = next(loop)
        while True:
            results = self._perform(effects)
            if isinstance(results, PlanReport):
                return results
            try:
                effects = loop.send(results)
            except StopIteration as stop:
                ended: Ended = stop.value
                return self._build_report(ended.progress, ended.decision)

    def _perform(self, effects: tuple[Need, ...]) -> tuple[Sent, ...] | PlanReport:
        match effects:
            case (Iterated() as iterated,):
                self.journal.iterated(iterated.state)
                self.watching.decided(iterated.state, iterated.challenges, iterated.events)
                return (Noted(),)
            case (AskPerson() as question,):
                answers = self._find_answers(question)
                if answers is None:
                    return self._build_report(question.progress, question.decision, question.questions)
                return (Answered(answers),)
        self.ends.refuse_if_over()
        self.agents.prepare()
        to_ask = [effect for effect in effects if not isinstance(effect, AskPerson | Iterated)]
        self._show_iteration(to_ask[0].seen.iteration)
        requests = [asking(effect, self.discussion, self.agents.served) for effect in to_ask]
        return side_by_side(
            [partial(self._ask_agent, request) for request in requests], self.at_once, self.agents.world.cancel
        )

    def _ask_agent(self, request: PlanAsking) -> Heard | Failed:
        recorded = self.journal.recall(request.occasion.id, request.text, request.role.output)
        if recorded is not None:
            return recorded
        self.watching.asked(request.agent)
        answer = self.agents.ask(request)
        result = _convert_fault(answer, request.agent) if isinstance(answer, Fault) else answer
        self.journal.keep(request.occasion.id, request.text, result, request.agent, request.seen.iteration)
        self.watching.answered(request.agent, _summarize(result), failed=isinstance(result, Failed))
        return result

    def _show_iteration(self, iteration: int) -> None:
        if iteration not in self._shown_iterations:
            self._shown_iterations.append(iteration)
            self.watching.iterating(iteration)

    def _find_answers(self, question: AskPerson) -> Mapping[str, str] | None:
        """Return the person's answers, new or recorded; None if nobody here can answer."""
        iteration = len(question.progress.iterations)
        asked_ids = [open_question.challenge for open_question in question.questions]
        on_record = {id: text for id, text in self.journal.answers(iteration).items() if id in asked_ids}
        if on_record:
            return on_record
        options = {open_question.challenge: open_question.options for open_question in question.questions}
        new = {id: _resolve_option(id, self.given[id], options[id]) for id in asked_ids if id in self.given}
        if new:
            self.journal.answered(
                new, iteration, self.by
            )  # recorded before the next question, which may be interrupted
            for id in new:
                del self.given[id]
            return new
        new = {id: text for id, text in self.ask(question.questions).items() if text.strip()}
        if not new:
            return None
        self.journal.answered(new, iteration, self.by)
        return new

    def _build_report(
        self, progress: Progress, decision: Decision, questions: Sequence[OpenQuestion] = ()
    ) -> PlanReport:
        return report_of(
            self.about,
            progress,
            decision,
            questions=questions,
            spent=self.agents.spent(),
            dispatches=self.agents.dispatches(),
        )

    def _make_beginning(self) -> Beginning:
        return Beginning(
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
    answer = chosen(text, options)
    if answer is None:
        choices = "; ".join(f"{number} {option}" for number, option in enumerate(options, start=1))
        raise InputError(
            f"{id}={text}: there is no such option", hint=f"the options are: {choices}; or use your own words"
        )
    return answer


def _convert_fault(fault: Fault, agent: str) -> Failed:
    """Turn a fault into a failure for the loop. A fault that is not the agent's stops the run."""
    stop_for(fault, agent)
    stop_if_unreached(fault, agent)
    return Failed(fault.why, unreadable=fault.kind is FaultKind.MALFORMED)


def _summarize(result: Heard | Failed) -> str:
    if isinstance(result, Failed):
        return result.why
    parts = [(name.removesuffix("s"), getattr(result.output, name)) for name in type(result.output).model_fields]
    parts_text = [counted(len(value), name) for name, value in parts if isinstance(value, tuple) and value]
    false = sum(lookup.holds is False for lookup in result.looked)
    parts_text += [counted(false, "false claim")] if false else []
    return ", ".join(parts_text) or "nothing to say"
