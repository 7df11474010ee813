"""What the engine costs beside an agent's own work: against LangGraph with its SQLite checkpointer, and a bare journal.

`python -m benchmarks.run [--quick]`; it needs the extra `bench`.

All take turns within one run, on one disk, with agents that answer at once and answers of one size, 26 at a time. What
one takes is the mean of its 26, since a disk makes some of them wait for all; medians of these are compared.

Steps, which make a program durable and do nothing else:

- ours: looked for on record (`Steps.recall`), done, kept (`Steps.keep`): one row with its place in the chain;
- LangGraph: a chain of nodes, `durability="sync"`, `SqliteSaver` on a connection with WAL and `synchronous=FULL`, which
  waits for the disk twice a step. Its state is every request and answer so far, as a pipeline needs them and as our
  record has them; or, in its favour, the last ones only;
- bare: one row with the request's digest and the answer, one transaction.

Whole dispatches, which are also what is done within a step:

- ours: a dispatch of the pipeline (`PipelineAgents.heard`), as `proofstone run` puts it together: the request written
out, a
  corner of its own for the agent, the answer held against its schema, all rows of the record, the documents in the
  run's folder. Nobody waits for the disk when it begins, everybody when the answer comes. `without documents` leaves
  those for people out;
- LangGraph: as much of it as its record has a place for. Two nodes, since that somebody is asked is on record before
  they answer: one writes the request out, one holds the answer against its schema.

Left out: starting the process, opening the files, and what `invoke` does before its first step. Of ours: what a run
does between its dispatches, such as git and checks.
"""

from __future__ import annotations

import hashlib
import operator
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path
from typing import Annotated, Final, TypedDict

from benchmarks import NO_AIM, Measurement, show
from benchmarks.answers import ANSWERS, TEXTS, AtOnce, needs
from benchmarks.check import Place
from benchmarks.nobody import Nobody
from proofstone.agents.models import Turn
from proofstone.agents.rules.answer import MalformedAnswer
from proofstone.agents.rules.conversation import read_turn
from proofstone.app.pipeline import PipelineRequest, build_pipeline_run
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.pipeline.agents import PipelineAgents, RequestContext, build_agent_request
from proofstone.pipeline.rules.effects import AgentReply
from proofstone.pipeline.run_folder import RunFolder
from proofstone.runtime.journal import Journal

STEPS: Final = 26
"""Dispatches of a feature of six tasks, when nothing goes wrong."""
THIRD: Final = 1 / 3
REQUEST: Final = "Let customers see how many things are in their cart"
DIFF: Final = "".join(f"+def count{n}(prices):\n+    return len(prices)\n" for n in range(10))
_SHOWN: Final = RequestContext("bench", REQUEST, diff=DIFF)
_NEEDS: Final = needs(STEPS, count(1))
_ALL: Final = [build_agent_request(need, _SHOWN) for need in _NEEDS]
_ASKED: Final = [one.text for one in _ALL]
_SAID: Final = [TEXTS[one.occasion.agent] for one in _ALL]

_STEP, _DISPATCH, _UNDOCUMENTED = "a step", "a dispatch", "a dispatch without documents"
_GROWING, _LAST = "a step of LangGraph", "a step of LangGraph with the last answer only"
_AS_MUCH, _BARE = "a dispatch by LangGraph", "a row of a bare journal"
_COMPARED: Final = (
    (_STEP, _GROWING, THIRD),
    (_STEP, _LAST, THIRD),
    (_STEP, _BARE, 2.0),
    (_DISPATCH, _GROWING, None),
    (_DISPATCH, _LAST, None),
    (_DISPATCH, _BARE, None),
    (_UNDOCUMENTED, _GROWING, None),
    (_UNDOCUMENTED, _LAST, None),
    (_UNDOCUMENTED, _BARE, None),
    (_DISPATCH, _AS_MUCH, None),
    (_UNDOCUMENTED, _AS_MUCH, None),
)
"""What is compared with what, and the aim. Decision 0020: the aim is for the durable step; dispatches are shown."""

Way = Callable[[], Sequence[float]]
"""Takes STEPS steps; seconds that each has taken."""


@dataclass
class Times:
    """Of one way: what a step has taken in each round, by the clock and on the processors."""

    clock: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    def add(self, steps: Way) -> None:
        before = time.process_time()
        took = steps()
        self.processor.append((time.process_time() - before) / len(took))
        self.clock.append(statistics.fmean(took))

    def __truediv__(self, other: Times) -> float:
        return statistics.median(self.clock) / statistics.median(other.clock)


def run(quick: bool = False) -> list[Measurement]:
    with tempfile.TemporaryDirectory(prefix="proofstone-bench-") as place, ExitStack() as stack:
        folder = Path(place)
        ways: dict[str, Way] = {
            _STEP: stack.enter_context(_recorded(folder / "steps.db")),
            _GROWING: stack.enter_context(_langgraph(folder / "growing.db", Growing, _said_at_once)),
            _LAST: stack.enter_context(_langgraph(folder / "last.db", Last, _said_at_once)),
            _BARE: stack.enter_context(_bare(folder / "bare.db")),
            _DISPATCH: stack.enter_context(_ours(folder / "ours")),
            _UNDOCUMENTED: stack.enter_context(_ours(folder / "record", documents=False)),
            _AS_MUCH: stack.enter_context(_langgraph(folder / "as-much.db", Growing, _asked, _answered)),
        }
        times = {name: Times() for name in ways}
        for steps in ways.values():
            steps()  # what is done once, such as a prompt that is read, is done
        for _ in range(4 if quick else 20):
            for name, steps in ways.items():
                times[name].add(steps)
    return [*_figures(times), *_ratios(times)]


def _figures(times: Mapping[str, Times]) -> Iterator[Measurement]:
    for name, one in times.items():
        clock, processor = statistics.median(one.clock) * 1000, statistics.median(one.processor) * 1000
        yield Measurement(f"{name}: by the clock", clock, "ms", NO_AIM, True)
        yield Measurement(f"{name}: on the processor", processor, "ms", NO_AIM, True)


def _ratios(times: Mapping[str, Times]) -> Iterator[Measurement]:
    for one, other, most in _COMPARED:
        ratio = times[one] / times[other]
        aim = NO_AIM if most is None else f"≤ {most:.2g}"
        yield Measurement(f"{one}, against {other}", ratio, "×", aim, most is None or ratio <= most)


# Ours.


@contextmanager
def _recorded(path: Path) -> Iterator[Way]:
    runs = count()
    with SqliteLedger(path) as ledger:

        def steps() -> list[float]:
            record, took = Journal.load(ledger, str(next(runs)), "bench.step", "run"), []
            for one, asked, said in zip(_ALL, _ASKED, _SAID, strict=True):
                start = time.perf_counter()
                if record.lookup(one.occasion.id, asked) is not None:
                    raise RuntimeError("the benchmark's steps are not new ones")
                record.record(one.occasion.id, asked, {"agent": one.occasion.agent, "answer": said})
                took.append(time.perf_counter() - start)
            return took

        yield steps


class Undocumented(RunFolder):
    """Nothing is written for people."""

    def write_answer(self, *_: object) -> None:
        return None


@contextmanager
def _ours(folder: Path, *, documents: bool = True) -> Iterator[Way]:
    folder.mkdir()
    root = Place(folder).repository({"shop/cart.py": "def total(prices):\n    return sum(prices)\n"})
    request = PipelineRequest(backends=("cmd:true",))  # somebody must be named; they are not asked
    with build_pipeline_run(root, REQUEST, request, Nobody(), lambda _: None, home=folder / "state") as begun:
        world, agents = begun.context, begun.agents
        agents.backends = dict.fromkeys(ANSWERS, AtOnce())
        if not documents:
            agents.documents = Undocumented(agents.documents.folder)
        agents.prepare(world.base_tree, world.base_commit)
        numbers = count(1)
        yield lambda: _dispatches(agents, numbers)


def _dispatches(agents: PipelineAgents, numbers: count[int]) -> list[float]:
    world = agents.world
    shown = RequestContext(world.run_id, REQUEST, diff=DIFF)
    took = []
    for need in needs(STEPS, numbers):
        shutil.rmtree(agents.documents.folder / "research", ignore_errors=True)  # in a run each document is a new one
        start = time.perf_counter()
        request = build_agent_request(need, shown)
        heard = agents.build_operation(request, world.base_tree, world.base_commit).perform()
        took.append(time.perf_counter() - start)
        if not isinstance(heard, AgentReply):
            raise RuntimeError(f"the benchmark's own agent gives no answer: {heard.why}")
    return took


# The others.


Said = Mapping[str, object]
Part = Callable[[int], Said]
"""What a node has to say in the step of that number."""


class Growing(TypedDict):
    step: int
    said: Annotated[list[Said], operator.add]


class Last(TypedDict):
    step: int
    said: list[Said]


def _said_at_once(number: int) -> Said:
    return {"request": _ASKED[number], "answer": _SAID[number]}


def _asked(number: int) -> Said:
    one = build_agent_request(_NEEDS[number], _SHOWN)
    return {"occasion": one.occasion.id, "request": one.text}


def _answered(number: int) -> Said:
    answer = read_turn(Turn(text=_SAID[number], model="at-once"), _ALL[number].role.output)
    if isinstance(answer, MalformedAnswer):
        raise RuntimeError(f"the benchmark's own agent gives no answer: {answer.why}")
    return {"answer": answer.answer.model_dump(mode="json")}


@contextmanager
def _langgraph(path: Path, state: type[Growing] | type[Last], *parts: Part) -> Iterator[Way]:
    """A node for each part of each step."""
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import START, StateGraph

    marks: list[float] = []

    def node(now: Mapping[str, int]) -> dict[str, object]:
        number, part = divmod(now["step"], len(parts))
        if part == 0:
            marks.append(time.perf_counter())
        return {"step": now["step"] + 1, "said": [parts[part](number % STEPS)]}

    nodes = STEPS * len(parts) + 1  # the last one's beginning is the end of those before
    graph = StateGraph(state)
    for number in range(nodes):
        graph.add_node(f"n{number}", node)
        graph.add_edge(f"n{number - 1}" if number else START, f"n{number}")
    with closing(_plain(path, check_same_thread=False)) as db:
        compiled, threads = graph.compile(checkpointer=SqliteSaver(db)), count()

        def steps() -> list[float]:
            marks.clear()
            of_one = {"configurable": {"thread_id": str(next(threads))}, "recursion_limit": nodes * 2}
            compiled.invoke({"step": 0, "said": []}, of_one, durability="sync")
            return [after - before for before, after in pairwise(marks)]

        yield steps
        (full,) = db.execute("PRAGMA synchronous").fetchone()
        if full != 2:
            raise RuntimeError("the checkpointer has changed how durable its connection is")


@contextmanager
def _bare(path: Path) -> Iterator[Way]:
    runs = count()
    with closing(_plain(path)) as db:
        db.execute("CREATE TABLE steps (run TEXT, step TEXT, asked TEXT, came TEXT, PRIMARY KEY (run, step))")

        def steps() -> list[float]:
            run_id, took = str(next(runs)), []
            for number, (asked, said) in enumerate(zip(_ASKED, _SAID, strict=True)):
                start = time.perf_counter()
                digest = hashlib.sha256(asked.encode()).hexdigest()
                with db:
                    db.execute("INSERT INTO steps VALUES (?, ?, ?, ?)", (run_id, str(number), digest, said))
                took.append(time.perf_counter() - start)
            return took

        yield steps


def _plain(path: Path, *, check_same_thread: bool = True) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=check_same_thread)
    for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL"):
        connection.execute(statement)
    return connection


if __name__ == "__main__":
    show(run)
