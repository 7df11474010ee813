"""A model behind every role of the pipeline: over the wire it says what the scripted team says."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from proofstone.agents.roles.registry import PLAN_GATE_ROLES, ROLES
from proofstone.testing.model_server.answers import Answer, ReceivedRequest, Reply
from tests.pipeline_runs.stage import TEAM, executor, planner, task
from tests.staging import Entry

_TITLES = {
    **{one.title: (one.name, "") for one in ROLES.values()},
    **{one.title: (one.name, agent.partition(":")[2]) for agent, one in PLAN_GATE_ROLES.items()},
}
_SECTION = "^## {}\n\n.*\n\n(?:```\n)?(\\w+)"
"""A word of a request, after what it is about."""


class Asker(NamedTuple):
    """Who a request is for, as far as their prompt tells."""

    role: str
    focus: str = ""
    scope: str = ""


class Question(NamedTuple):
    """A turn of somebody's; the same, however often it is asked for."""

    asker: Asker
    before: int
    """Turns of theirs that there are already."""


def asker(asked: ReceivedRequest) -> Asker:
    text = "\n".join((asked.system, *(said for who, said in asked.messages if who == "user")))
    for title, (role, focus) in _TITLES.items():
        if re.search(f"^# {re.escape(title)}$", text, re.MULTILINE):
            return Asker(role, focus or _section("Focus", text), _section("Scope", text))
    assert "You are the executor" in text, text[:300]
    return Asker("executor")


def _section(name: str, text: str) -> str:
    found = re.search(_SECTION.format(name), text, re.MULTILINE)
    return found[1] if found else ""


def entry_for(one: Asker, entries: Sequence[Entry]) -> Entry:
    """What the script has for them."""

    def fits(entry: Entry) -> bool:
        focus, step = entry["match"].get("focus", one.focus), str(entry["match"].get("step", one.scope))
        return entry["role"] == one.role and focus == one.focus and step.startswith(one.scope)

    return next(filter(fits, entries))


Disturb = Callable[[int, Question, Reply], Answer]
"""What is said in place of an answer, by the number of the request, from 1."""


def as_it_should(_: int, __: Question, reply: Reply) -> Answer:
    return reply


@dataclass
class Player:
    """Answers by what a conversation holds already, so that a turn that is asked for again is given again."""

    disturb: Disturb = as_it_should
    entries: Sequence[Entry] = (planner(task(relevant_context=[])), executor(), *TEAM)
    """In a short lane there is no requirement and no decision that a task could point to."""
    requests: int = 0
    answered: Counter[Question] = field(default_factory=Counter)
    """How often each turn was given as it should be."""
    _counting: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, asked: ReceivedRequest) -> Answer:
        question = Question(asker(asked), sum(who == "assistant" for who, _ in asked.messages))
        reply = self.reply(question)
        with self._counting:
            self.requests += 1
            answer = self.disturb(self.requests, question, reply)
            self.answered[question] += answer is reply
        return answer

    def reply(self, question: Question) -> Reply:
        entry = entry_for(question.asker, self.entries)
        calls = [next(iter(step["tool"].items())) for step in entry.get("steps", ())]
        turns = [*calls, ("answer", entry["output"])]
        return Reply(calls=(turns[min(question.before, len(turns) - 1)],))

    @property
    def given_twice(self) -> list[Question]:
        return [question for question, times in self.answered.items() if times > 1]
