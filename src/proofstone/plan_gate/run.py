"""Who looks on while a plan is put through the gate.

One run of the plan gate: the shell that drives `plan_gate.rules.loop`.

What the loop asks for at the same time is asked at the same time. Each answer is on record, with what the engine saw
of its claims, before the loop hears of it; so a run that was killed, or waits for a person, goes through the loop again
and asks only for what is missing.
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
    """What is known before anybody is asked."""

    run_id: str
    plan_path: str
    title: str
    quality: PlanQuality
    complexity: Complexity
    team_mode: TeamMode
    agents: Mapping[str, str]
    """Who serves whom. Nobody: the rules alone."""
    note: str = ""
    """Why nobody is asked, if so."""


class Watching(Protocol):
    """Told from several threads at once while agents work beside each other."""

    def began(self, beginning: Beginning) -> None: ...

    def iterating(self, iteration: int) -> None: ...

    def asked(self, agent: str) -> None:
        """An agent begins: `challenger`, `researcher:resolve`."""
        ...

    def doing(self, agent: str, line: str) -> None:
        """What it does, in a line, in the place of what it did before."""
        ...

    def said(self, agent: str, line: str) -> None:
        """For the person who looks on: a question to them, a pause, a warning."""
        ...

    def answered(self, agent: str, said: str, *, failed: bool) -> None:
        """In one line: `4 challenges`, or why there is no answer."""
        ...

    def decided(self, state: IterationState, challenges: Sequence[Challenge], events: Sequence[PlanEvent]) -> None:
        """An iteration has ended; `events` are those of this iteration."""
        ...

    def spending(self, spent: Spent) -> None: ...


SLOTS: Final = 4
"""Agents at once."""

Ask = Callable[[Sequence[OpenQuestion]], Mapping[str, str]]
"""The person, where one can be asked here and now; what they leave out, they have not answered."""


@dataclass(frozen=True)
class PlanGateRun:
    about: About
    subject: Subject
    discussion: Discussion
    journal: PlanJournal
    agents: PlanAgents
    watching: Watching
    ask: Ask
    by: str
    """Whoever answers."""
    note: str = ""
    """Why nobody is asked, if so."""
    given: dict[str, str] = field(default_factory=dict)
    """Answers that were given beforehand and not used yet."""
    at_once: int = SLOTS
    ends: Deadline = field(kw_only=True)
    _told: list[int] = field(default_factory=list)
    """Iterations of which whoever looks on has heard."""

    def run(self) -> PlanReport:
        """To the verdict, to a question that nobody here answers, or to the end of the budget (OutOfBudgetError)."""
        self.watching.began(self._beginning())
        with end_on_record(self.journal.ledger, self.about.run_id, self.agents.world.cancel):
            report = self._through()
        self.journal.reported(report, {None: "needs_human", "PROCEED": "passed"}.get(report.verdict, "failed"))
        return report

    def _through(self) -> PlanReport:
        loop = verify(self.subject)
        needs = next(loop)
        while True:
            sent = self._met(needs)
            if isinstance(sent, PlanReport):
                return sent
            try:
                needs = loop.send(sent)
            except StopIteration as stop:
                ended: Ended = stop.value
                return self._report(ended.progress, ended.decision)

    def _met(self, needs: tuple[Need, ...]) -> tuple[Sent, ...] | PlanReport:
        match needs:
            case (Iterated() as one,):
                self.journal.iterated(one.state)
                self.watching.decided(one.state, one.challenges, one.events)
                return (Noted(),)
            case (AskPerson() as question,):
                answers = self._answers(question)
                if answers is None:
                    return self._report(question.progress, question.decision, question.questions)
                return (Answered(answers),)
        self.ends.refuse_if_over()
        self.agents.prepare()
        to_ask = [need for need in needs if not isinstance(need, AskPerson | Iterated)]
        self._tell_iteration(to_ask[0].seen.iteration)
        asked = [asking(need, self.discussion, self.agents.served) for need in to_ask]
        return side_by_side([partial(self._heard, item) for item in asked], self.at_once, self.agents.world.cancel)

    def _heard(self, one: PlanAsking) -> Heard | Failed:
        known = self.journal.recall(one.occasion.id, one.text, one.role.output)
        if known is not None:
            return known
        self.watching.asked(one.agent)
        came = self.agents.ask(one)
        new = _failed(came, one.agent) if isinstance(came, Fault) else came
        self.journal.keep(one.occasion.id, one.text, new, one.agent, one.seen.iteration)
        self.watching.answered(one.agent, _in_short(new), failed=isinstance(new, Failed))
        return new

    def _tell_iteration(self, iteration: int) -> None:
        if iteration not in self._told:
            self._told.append(iteration)
            self.watching.iterating(iteration)

    def _answers(self, question: AskPerson) -> Mapping[str, str] | None:
        """What the person says, now or on record; None: nobody here can say."""
        iteration = len(question.progress.iterations)
        wanted = [item.challenge for item in question.questions]
        on_record = {id: text for id, text in self.journal.answers(iteration).items() if id in wanted}
        if on_record:
            return on_record
        options = {item.challenge: item.options for item in question.questions}
        new = {id: _meant(id, self.given[id], options[id]) for id in wanted if id in self.given}
        if new:
            self.journal.answered(new, iteration, self.by)  # before anything else is asked, which may be left
            for id in new:
                del self.given[id]
            return new
        new = {id: text for id, text in self.ask(question.questions).items() if text.strip()}
        if not new:
            return None
        self.journal.answered(new, iteration, self.by)
        return new

    def _report(self, progress: Progress, decision: Decision, questions: Sequence[OpenQuestion] = ()) -> PlanReport:
        return report_of(
            self.about,
            progress,
            decision,
            questions=questions,
            spent=self.agents.spent(),
            dispatches=self.agents.dispatches(),
        )

    def _beginning(self) -> Beginning:
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


def _meant(id: str, text: str, options: Sequence[str]) -> str:
    """What the person means: the number of an option is that option, and no other number is an answer."""
    said = chosen(text, options)
    if said is None:
        there = "; ".join(f"{number} {option}" for number, option in enumerate(options, start=1))
        raise InputError(f"{id}={text}: there is no such option", hint=f"there are: {there}; or your own words")
    return said


def _failed(fault: Fault, agent: str) -> Failed:
    """By the rules of the loop; but what is no failure of the agent's stops the run."""
    stop_for(fault, agent)
    stop_if_unreached(fault, agent)
    return Failed(fault.why, unreadable=fault.kind is FaultKind.MALFORMED)


def _in_short(came: Heard | Failed) -> str:
    if isinstance(came, Failed):
        return came.why
    parts = [(name.removesuffix("s"), getattr(came.output, name)) for name in type(came.output).model_fields]
    told = [counted(len(value), name) for name, value in parts if isinstance(value, tuple) and value]
    false = sum(item.holds is False for item in came.looked)
    told += [counted(false, "false claim")] if false else []
    return ", ".join(told) or "nothing to say"
