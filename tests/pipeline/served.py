"""A shop, a model server, and `proofstone run` between them."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from proofstone.agents.roles.registry import PLAN_GATE_ROLES, ROLES
from proofstone.testing.model_server.answers import (
    Answer,
    Disconnect,
    Garbage,
    HttpError,
    ReceivedRequest,
    Reply,
    StreamError,
    WireProtocol,
)
from proofstone.testing.model_server.server import ModelServer
from tests.pipeline.stage import REQUEST, TEAM, PipelineResult, Stage, executor, planner, task
from tests.staging import Entry

FIX = ("--files", "shop/count.py", "--files", "tests/test_count.py")
"""Files that choose the lane with one reviewer."""


@dataclass(frozen=True)
class Served:
    stage: Stage
    player: Player
    env: Mapping[str, str]

    def run(self, *args: str) -> PipelineResult:
        return self._came("run", REQUEST, "--backend", "api:local:played", *args)

    def resume(self) -> PipelineResult:
        return self._came("resume", "last")

    def _came(self, *args: str) -> PipelineResult:
        done = self.stage.proofstone(*args, "--json", "--quiet", env=self.env)
        assert self.env["LOCAL_KEY"] not in done.stdout + done.stderr
        return PipelineResult(done.returncode, done.stdout, done.stderr)

    def on_record(self, type: str) -> int:
        """Messages of this type, of the run and of its parts."""
        return sum(len(self.stage.messages(run_id, type)) for run_id in self.stage.runs)

    @property
    def state(self) -> str:
        """What `proofstone runs` calls the run."""
        (only,) = json.loads(self.stage.proofstone("runs", "--json").stdout)["runs"]
        return str(only["state"])


UNASKED = '[understanding]\nask = "off"\n'
"""Here it is the wire that is tried: whoever answers has no words for anything but its work."""


@dataclass(frozen=True)
class Trouble:
    """What is said in place of the right answer, and what it leaves on record."""

    answer: Callable[[Reply], Answer]
    record: str = "Fault"
    """The message that tells of it; empty: none does, for nothing was wrong."""


def _late(reply: Reply) -> Reply:
    time.sleep(0.3)
    return reply


def _no_json(reply: Reply) -> Reply:
    return replace(reply, raw_arguments='{"completion": {"status":')


TROUBLES = {
    "429": Trouble(lambda _: HttpError(429, retry_after=0.02)),
    "500": Trouble(lambda _: HttpError(500)),
    "cut": Trouble(lambda _: Disconnect(after_pieces=1)),
    "cut-at-once": Trouble(lambda _: Disconnect()),
    "overloaded-while-it-speaks": Trouble(lambda _: StreamError()),
    "no-json": Trouble(lambda _: Garbage(b'{"id": "x", "choices": [{')),
    "a-login-page": Trouble(lambda _: Garbage()),
    "an-answer-that-is-no-json": Trouble(_no_json, "Repair"),
    "slow-first-byte": Trouble(_late, ""),
}
OUTAGES = tuple(name for name, trouble in TROUBLES.items() if trouble.record == "Fault")
"""Those that a provider cannot be reached by, if they last."""


def once(trouble: Trouble, role: str) -> Disturb:
    """When this role would give its answer, the first time."""
    hit: list[Question] = []

    def disturb(_: int, question: Question, reply: Reply) -> Answer:
        if question.asker.role != role or reply.calls[0][0] != "answer" or hit:
            return reply
        hit.append(question)
        return trouble.answer(reply)

    return disturb


def ever(trouble: Trouble, role: str) -> Disturb:
    """Whenever this role would give its answer."""

    def disturb(_: int, question: Question, reply: Reply) -> Answer:
        at_its_answer = question.asker.role == role and reply.calls[0][0] == "answer"
        return trouble.answer(reply) if at_its_answer else reply

    return disturb


def now_and_then(every: int) -> Disturb:
    """Every so manieth request, each time by another of them."""
    troubles = list(TROUBLES.values())

    def disturb(number: int, _: Question, reply: Reply) -> Answer:
        wrong = number % every == 0 and reply.calls[0][0] == "answer"
        return troubles[number // every % len(troubles)].answer(reply) if wrong else reply

    return disturb


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


@contextmanager
def served(folder: Path, wire: WireProtocol, disturb: Disturb = as_it_should, settings: str = "") -> Iterator[Served]:
    stage, player = Stage.set_up(folder / "stage", settings=UNASKED + settings), Player(disturb)
    with ModelServer(player.answer) as server:
        config = folder / "person.toml"
        config.write_text(
            f'[providers.local]\nwire = "{wire}"\nurl = "{server.base_url(wire)}"\nkey_variable = "LOCAL_KEY"\n'
        )
        yield Served(stage, player, {"PROOFSTONE_CONFIG": str(config), "LOCAL_KEY": "sk-very-secret-key"})
